//! A guest of a few hundred bytes under KVM: no BIOS, no system, no library of a virtual machine's. ioctl(2) on `/dev/kvm`
//! (Documentation/virt/kvm/api.rst).
//!
//! Its program stamps three moments with the time-stamp counter, and then leaves: its first instruction, the first one of its
//! handler of an interrupt that was raised before it was entered, and the one after that handler.

use std::arch::x86_64::{_mm_lfence, _rdtsc};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Opcode, opcode};
use rustix::mm::{MapFlags, ProtFlags};

use crate::error::{Named, check};
use crate::{Errno, Error, Result};

/// The file by which KVM is asked.
pub const PATH: &str = "/dev/kvm";

/// `KVMIO`.
const KVM: u8 = 0xae;
const GET_API_VERSION: Opcode = opcode::none(KVM, 0x00);
const CREATE_VM: Opcode = opcode::none(KVM, 0x01);
const GET_VCPU_MMAP_SIZE: Opcode = opcode::none(KVM, 0x04);
const CREATE_VCPU: Opcode = opcode::none(KVM, 0x41);
const SET_USER_MEMORY_REGION: Opcode = opcode::write::<Region>(KVM, 0x46);
const SET_TSS_ADDR: Opcode = opcode::none(KVM, 0x47);
const SET_IDENTITY_MAP_ADDR: Opcode = opcode::write::<u64>(KVM, 0x48);
const CREATE_IRQCHIP: Opcode = opcode::none(KVM, 0x60);
const IRQ_LINE: Opcode = opcode::write::<Line>(KVM, 0x61);
const GET_IRQCHIP: Opcode = opcode::read_write::<Chip>(KVM, 0x62);
const SET_IRQCHIP: Opcode = opcode::read::<Chip>(KVM, 0x63);
const RUN: Opcode = opcode::none(KVM, 0x80);
const SET_REGS: Opcode = opcode::write::<[u64; 18]>(KVM, 0x82);
const GET_SREGS: Opcode = opcode::read::<[u64; 39]>(KVM, 0x83);
const SET_SREGS: Opcode = opcode::write::<[u64; 39]>(KVM, 0x84);
const GET_STATS_FD: Opcode = opcode::none(KVM, 0xce);
const SET_DEVICE_ATTR: Opcode = opcode::write::<Attribute>(KVM, 0xe1);

/// `KVM_EXIT_IO`, `KVM_EXIT_INTR`.
const BY_PORT: u32 = 2;
const BY_SIGNAL: u32 = 10;
/// The interface's version, the same since Linux 2.6.22.
const VERSION: libc::c_int = 12;
/// Three pages and one that Intel's CPUs need for real mode, below 4 GiB and away from the guest's memory.
const TASK_STATE: usize = 0xfeff_d000;
static IDENTITY_MAP: u64 = 0xfeff_c000;

/// `struct kvm_userspace_memory_region`.
#[repr(C)]
struct Region {
    slot: u32,
    flags: u32,
    guest_address: u64,
    size: u64,
    address: u64,
}

/// `struct kvm_irq_level`.
#[repr(C)]
struct Line {
    number: u32,
    level: u32,
}

/// `struct kvm_irqchip`; of an i8259 (`struct kvm_pic_state`) the first sixteen bytes count.
#[repr(C)]
struct Chip {
    id: u32,
    pad: u32,
    state: [u8; 512],
}

/// `struct kvm_device_attr`.
#[repr(C)]
struct Attribute {
    flags: u32,
    group: u32,
    number: u64,
    address: u64,
}

/// Bytes of an i8259's state: which lines are masked, the vector of the first line, whether the end of an interrupt needs no
/// command.
const MASK: usize = 2;
const FIRST_VECTOR: usize = 5;
const ENDS_BY_ITSELF: usize = 10;

/// The line that the interrupt comes by.
const LINE: u32 = 4;
const VECTORS: u8 = 0x20;
/// Where the guest's memory has what: vectors of interrupts, program, stamps, the top of its stack. A page each: what is written
/// beside code makes emulators translate that code again.
const VECTOR: usize = (VECTORS as usize + LINE as usize) * 4;
const CODE: usize = 0x1000;
const STAMPS: usize = 0x2000;
const STACK: u64 = 0x4000;
const MEMORY: usize = 0x4000;
/// The port by which the guest says that a turn is over.
const DONE: u16 = 0x10;

/// The program, in real mode. Addresses of stamps are 16 bits wide, registers 32.
#[rustfmt::skip]
const PROGRAM: [u8; 54] = [
    // Entered with interrupts off.
    0x0f, 0x31,                         // rdtsc
    0x66, 0xa3, 0x00, 0x20,             // mov [0x2000], eax
    0x66, 0x89, 0x16, 0x04, 0x20,       // mov [0x2004], edx
    0x66, 0x90,                         // nop: where tests put an instruction that exits
    0xb9, 0x00, 0x00,                   // mov cx, 0
    // The interrupt has been raised before. It comes after the one instruction that sti keeps it off.
    0xfb,                               // sti
    0xe2, 0xfe,                         // loop to itself, 65536 times at most: see `rest`
    0x0f, 0x31,                         // rdtsc
    0xfa,                               // cli
    0x66, 0xa3, 0x10, 0x20,             // mov [0x2010], eax
    0x66, 0x89, 0x16, 0x14, 0x20,       // mov [0x2014], edx
    0xe6, DONE as u8,                   // out DONE, al
    0xeb, 0xdd,                         // jmp to the first
    // The handler. The program needs none of the registers that it changes.
    0x0f, 0x31,                         // rdtsc
    0x66, 0xa3, 0x08, 0x20,             // mov [0x2008], eax
    0x66, 0x89, 0x16, 0x0c, 0x20,       // mov [0x200c], edx
    // It goes on behind the wait, wherever it came: one before the halt (emulators forget what sti keeps off) would be the last.
    0x89, 0xe5,                         // mov bp, sp
    0xc7, 0x46, 0x00, AFTER as u8, (CODE >> 8) as u8, // mov word [bp], 0x1013
    0xcf,                               // iret
];
/// Where the handler begins.
const HANDLER: usize = 0x23;
/// Where the guest waits for the interrupt.
const WAIT: usize = 0x11;
/// Where it goes on after the handler.
const AFTER: usize = WAIT + 2;
/// Where tests put an instruction.
#[cfg(feature = "injection")]
const HOLE: usize = 0x0b;

/// What the time-stamp counter read in the guest: see the head of this module. 0: not reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The first instruction.
    pub entry: u64,
    /// The first of the handler.
    pub interrupt: u64,
    /// The first after the handler.
    pub thread: u64,
}

/// Why the guest gave its CPU to this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It has made all three stamps.
    Done,
    /// It used this port.
    Port(u16),
    /// A signal (`KVM_EXIT_INTR`).
    Signal,
    /// Another reason of `struct kvm_run`.
    Other(u32),
}

/// Exits that KVM counts by their kind, as it calls them (`struct kvm_vcpu_stat` of x86); the first are all.
pub const COUNTED: [&str; 11] = [
    "exits",
    "io_exits",
    "mmio_exits",
    "signal_exits",
    "irq_window_exits",
    "nmi_window_exits",
    "halt_exits",
    "request_irq_exits",
    "irq_exits",
    "hypercalls",
    "pf_taken",
];

/// How many of each there have been.
pub type Counts = [u64; COUNTED.len()];

/// A guest with one CPU, which is the thread that enters it.
#[derive(Debug)]
pub struct Guest {
    memory: *mut u8,
    /// `struct kvm_run`, which the kernel and this program share.
    run: *mut u8,
    run_length: usize,
    counters: Option<Counters>,
    vcpu: OwnedFd,
    vm: OwnedFd,
}

// SAFETY: nothing of it belongs to a thread, but that one thread at a time enters it: `&mut self`.
unsafe impl Send for Guest {}

/// Whether the kernel has KVM.
pub fn is_there() -> bool {
    std::path::Path::new(PATH).exists()
}

/// What the time-stamp counter reads, no instruction before it left over.
#[inline]
pub fn counter() -> u64 {
    // SAFETY: both are in every x86-64 CPU; Linux allows RDTSC unless prctl(PR_SET_TSC) took it away.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

fn control(file: &OwnedFd, number: Opcode, argument: usize, name: &'static str) -> Result<libc::c_int> {
    // SAFETY: an ioctl of KVM with a number, or with a structure that outlives the call and whose length its number has.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), number as _, argument) };
    check(result, name, "")
}

fn descriptor(file: &OwnedFd, number: Opcode, argument: usize, name: &'static str) -> Result<OwnedFd> {
    let made = control(file, number, argument, name)?;
    // SAFETY: the kernel made the descriptor for this process just now.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}

/// Maps memory for both: of `file`, or of nobody.
fn map(length: usize, file: Option<&OwnedFd>) -> Result<*mut u8> {
    let (rights, at) = (ProtFlags::READ | ProtFlags::WRITE, std::ptr::null_mut());
    // SAFETY: a new mapping at an address of the kernel's choice, which is accessed volatile.
    let mapped = unsafe {
        match file {
            Some(file) => rustix::mm::mmap(at, length, rights, MapFlags::SHARED, file, 0),
            None => rustix::mm::mmap_anonymous(at, length, rights, MapFlags::SHARED),
        }
    };
    Ok(mapped.named("mmap of a guest's memory")?.cast())
}

impl Guest {
    /// Makes the guest. Its time-stamp counter is this CPU's.
    ///
    /// # Errors
    /// `ENOENT` without KVM, `EACCES` without rights to it, `ENODEV` where the CPU's firmware has it off, `ENXIO` and `EINVAL` for
    /// kernels that cannot have the guest's counter be the host's (before Linux 5.16), `ENOTTY` for those without an interrupt
    /// controller for guests.
    pub fn new() -> Result<Self> {
        let kvm = rustix::fs::open(PATH, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).on("open", PATH)?;
        if control(&kvm, GET_API_VERSION, 0, "KVM_GET_API_VERSION")? != VERSION {
            return Err(Error::new("KVM_GET_API_VERSION", Errno::PROTO));
        }
        let vm = descriptor(&kvm, CREATE_VM, 0, "KVM_CREATE_VM")?;
        control(&vm, SET_IDENTITY_MAP_ADDR, &raw const IDENTITY_MAP as usize, "KVM_SET_IDENTITY_MAP_ADDR")?;
        control(&vm, SET_TSS_ADDR, TASK_STATE, "KVM_SET_TSS_ADDR")?;
        control(&vm, CREATE_IRQCHIP, 0, "KVM_CREATE_IRQCHIP")?;
        let vcpu = descriptor(&vm, CREATE_VCPU, 0, "KVM_CREATE_VCPU")?;
        let length = control(&kvm, GET_VCPU_MMAP_SIZE, 0, "KVM_GET_VCPU_MMAP_SIZE")?;
        let run_length = usize::try_from(length).unwrap_or_default();
        let run = map(run_length, Some(&vcpu))?;
        let mut guest = Self { memory: std::ptr::null_mut(), run, run_length, counters: None, vcpu, vm };
        guest.memory = map(MEMORY, None)?;
        guest.load()?;
        guest.set_interrupts()?;
        guest.set_registers()?;
        guest.share_counter()?;
        guest.counters = Counters::open(&guest.vcpu);
        Ok(guest)
    }

    /// Gives it its memory and its program.
    fn load(&mut self) -> Result<()> {
        for (place, byte) in PROGRAM.into_iter().enumerate() {
            self.put(CODE + place, byte);
        }
        // The vector: offset, then segment 0.
        for (place, byte) in ((CODE + HANDLER) as u16).to_le_bytes().into_iter().enumerate() {
            self.put(VECTOR + place, byte);
        }
        let address = self.memory as u64;
        let region = Region { slot: 0, flags: 0, guest_address: 0, size: MEMORY as u64, address };
        let argument = &raw const region as usize;
        control(&self.vm, SET_USER_MEMORY_REGION, argument, "KVM_SET_USER_MEMORY_REGION").map(drop)
    }

    fn put(&mut self, place: usize, byte: u8) {
        assert!(place < MEMORY, "outside of the guest's memory");
        // SAFETY: within the mapping.
        unsafe { self.memory.add(place).write_volatile(byte) };
    }

    /// The old interrupt controller, with one line, whose interrupts need no command at their end: such a command would be an exit.
    fn set_interrupts(&self) -> Result<()> {
        let mut chip = Chip { id: 0, pad: 0, state: [0; 512] };
        control(&self.vm, GET_IRQCHIP, &raw mut chip as usize, "KVM_GET_IRQCHIP")?;
        chip.state[MASK] = !(1 << LINE);
        chip.state[FIRST_VECTOR] = VECTORS;
        chip.state[ENDS_BY_ITSELF] = 1;
        control(&self.vm, SET_IRQCHIP, &raw const chip as usize, "KVM_SET_IRQCHIP").map(drop)
    }

    fn set_registers(&self) -> Result<()> {
        let mut special = [0_u64; 39];
        control(&self.vcpu, GET_SREGS, &raw mut special as usize, "KVM_GET_SREGS")?;
        // The code segment comes first: its base, then its limit and its selector. After a reset it lies at the BIOS.
        special[0] = 0;
        special[1] &= !(0xffff << 32);
        control(&self.vcpu, SET_SREGS, &raw const special as usize, "KVM_SET_SREGS")?;
        let mut registers = [0_u64; 18];
        // rsp, rip, rflags: interrupts off.
        (registers[6], registers[16], registers[17]) = (STACK, CODE as u64, 2);
        control(&self.vcpu, SET_REGS, &raw const registers as usize, "KVM_SET_REGS").map(drop)
    }

    /// Has the guest's time-stamp counter be the host's: `KVM_VCPU_TSC_CTRL`, `KVM_VCPU_TSC_OFFSET`.
    fn share_counter(&self) -> Result<()> {
        let offset = 0_u64;
        let attribute = Attribute { flags: 0, group: 0, number: 0, address: &raw const offset as u64 };
        let argument = &raw const attribute as usize;
        control(&self.vcpu, SET_DEVICE_ATTR, argument, "KVM_SET_DEVICE_ATTR of the TSC's offset").map(drop)
    }

    /// From now on the guest halts until the interrupt comes, as a system does that has nothing to do. Before, it counts for a while:
    /// one whose interrupts do not come would never come back from a halt.
    pub fn rest(&mut self) {
        // hlt; nop
        self.put(CODE + WAIT, 0xf4);
        self.put(CODE + WAIT + 1, 0x90);
    }

    /// Raises the interrupt, which waits until the guest takes it.
    ///
    /// # Errors
    /// What `KVM_IRQ_LINE` answered.
    #[inline]
    pub fn raise(&self) -> std::result::Result<(), Errno> {
        self.line(1)
    }

    /// Lets go of the line: the next interrupt is another one.
    ///
    /// # Errors
    /// What `KVM_IRQ_LINE` answered.
    #[inline]
    pub fn lower(&self) -> std::result::Result<(), Errno> {
        self.line(0)
    }

    fn line(&self, level: u32) -> std::result::Result<(), Errno> {
        let line = Line { number: LINE, level };
        control(&self.vm, IRQ_LINE, &raw const line as usize, "").map(drop).map_err(|error| error.errno)
    }

    /// Forgets the stamps of the last turn.
    #[inline]
    pub fn forget(&mut self) {
        (0..3).for_each(|number| {
            // SAFETY: within the mapping, which begins at a page: aligned.
            unsafe { self.memory.add(STAMPS).cast::<u64>().add(number).write_volatile(0) };
        });
    }

    /// What the guest wrote since [`Guest::forget`].
    #[inline]
    pub fn stamps(&self) -> Stamps {
        // SAFETY: within the mapping, which begins at a page: aligned.
        let stamp = |number| unsafe { self.memory.add(STAMPS).cast::<u64>().add(number).read_volatile() };
        Stamps { entry: stamp(0), interrupt: stamp(1), thread: stamp(2) }
    }

    /// Lets the guest run until it leaves.
    ///
    /// # Errors
    /// What `KVM_RUN` answered; a signal is an [`Exit`].
    #[inline]
    pub fn enter(&mut self) -> std::result::Result<Exit, Errno> {
        // SAFETY: KVM_RUN takes no argument; the guest writes to its own memory, which is read and written volatile.
        if unsafe { libc::ioctl(self.vcpu.as_raw_fd(), RUN as _, 0) } == -1 {
            return match Error::last("KVM_RUN", "").errno {
                Errno::INTR => Ok(Exit::Signal),
                errno => Err(errno),
            };
        }
        // SAFETY: the kernel mapped `struct kvm_run`: exit_reason lies at 8, io.port at 34.
        let (reason, port) = unsafe {
            (self.run.add(8).cast::<u32>().read_volatile(), self.run.add(34).cast::<u16>().read_volatile())
        };
        Ok(match (reason, port) {
            (BY_PORT, DONE) => Exit::Done,
            (BY_PORT, port) => Exit::Port(port),
            (BY_SIGNAL, _) => Exit::Signal,
            _ => Exit::Other(reason),
        })
    }

    /// What KVM counted of this guest until now; none for kernels before Linux 5.14.
    #[inline]
    pub fn counts(&self) -> Option<Counts> {
        self.counters.as_ref()?.read()
    }

    /// Puts an instruction of two bytes between the first stamp and the interrupt.
    #[cfg(feature = "injection")]
    pub fn inject(&mut self, instruction: Injected) {
        let bytes = match instruction {
            Injected::Nothing => [0x66, 0x90],
            Injected::Port => [0xe6, PORT as u8],
            Injected::Cpuid => [0x0f, 0xa2],
        };
        self.put(CODE + HOLE, bytes[0]);
        self.put(CODE + HOLE + 1, bytes[1]);
    }
}

/// An instruction that exits.
#[cfg(feature = "injection")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injected {
    /// None does.
    Nothing,
    /// `out` to [`PORT`], an exit to this program.
    Port,
    /// `cpuid`, an exit to KVM.
    Cpuid,
}

/// The port of [`Injected::Port`].
#[cfg(feature = "injection")]
pub const PORT: u16 = 0x11;

impl Drop for Guest {
    fn drop(&mut self) {
        for (start, length) in [(self.run, self.run_length), (self.memory, MEMORY)] {
            if !start.is_null() {
                // SAFETY: the mapping is ours and nothing borrows from it.
                let _ = unsafe { rustix::mm::munmap(start.cast(), length) };
            }
        }
    }
}

/// The counters that KVM keeps of a CPU of a guest: binary statistics (Documentation/virt/kvm/api.rst, `KVM_GET_STATS_FD`).
#[derive(Debug)]
struct Counters {
    file: OwnedFd,
    /// Where in the file each of [`COUNTED`] is; none for one that this kernel does not count.
    places: [Option<u64>; COUNTED.len()],
}

impl Counters {
    fn open(vcpu: &OwnedFd) -> Option<Self> {
        let file = descriptor(vcpu, GET_STATS_FD, 0, "KVM_GET_STATS_FD").ok()?;
        let mut header = [0; 24];
        (rustix::io::pread(&file, &mut header, 0).ok()? == header.len()).then_some(())?;
        let word =
            |bytes: &[u8], at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let [name, count, descriptors, data] = [4, 8, 16, 20].map(|at| word(&header, at).unwrap_or_default());
        // Before the name: flags, exponent and number of values, place in the data, size of a bucket.
        let length = 16 + name as usize;
        let mut all = vec![0; length.checked_mul(count as usize).filter(|bytes| *bytes < 1 << 20)?];
        let read = rustix::io::pread(&file, all.as_mut_slice(), u64::from(descriptors)).ok()?;
        let mut places = [None; COUNTED.len()];
        for one in all.get(..read)?.chunks_exact(length) {
            let name = one[16..].split(|byte| *byte == 0).next().unwrap_or_default();
            if let Some(known) = COUNTED.iter().position(|counted| counted.as_bytes() == name) {
                places[known] = word(one, 8).map(|place| u64::from(data) + u64::from(place));
            }
        }
        places.iter().any(Option::is_some).then_some(Self { file, places })
    }

    /// One read, of all from the first to the last.
    fn read(&self) -> Option<Counts> {
        const MOST: usize = 4096;
        let first = self.places.iter().flatten().min()?;
        let last = self.places.iter().flatten().max()?;
        let length = usize::try_from(last - first + 8).ok().filter(|length| *length <= MOST)?;
        let mut bytes = [0; MOST];
        let read = rustix::io::pread(&self.file, &mut bytes[..length], *first).ok()?;
        (read == length).then_some(())?;
        let value = |place: Option<u64>| {
            let at = usize::try_from(place? - first).ok()?;
            Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
        };
        Some(self.places.map(|place| value(place).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_and_numbers_are_the_kernels() {
        assert_eq!((size_of::<Region>(), size_of::<Line>(), size_of::<Chip>()), (32, 8, 520));
        assert_eq!((SET_SREGS, SET_REGS), (0x4138_ae84, 0x4090_ae82));
        assert_eq!((IRQ_LINE, SET_DEVICE_ATTR, RUN), (0x4008_ae61, 0x4018_aee1, 0xae80));
        assert_eq!((GET_IRQCHIP, SET_IRQCHIP), (0xc208_ae62, 0x8208_ae63));
    }

    #[test]
    fn the_program_jumps_to_where_it_begins_and_its_handler_follows() {
        let jump = PROGRAM.windows(2).position(|pair| pair == [0xeb, 0xdd]).unwrap();
        assert_eq!((jump + 2) as isize + isize::from(0xdd_u8 as i8), 0);
        assert_eq!(PROGRAM[HANDLER - 2..HANDLER], [0xeb, 0xdd]);
        assert_eq!(PROGRAM[WAIT - 1..WAIT + 2], [0xfb, 0xe2, 0xfe], "sti directly before the wait");
        assert_eq!(PROGRAM[AFTER..AFTER + 3], [0x0f, 0x31, 0xfa], "the last stamp directly behind the wait");
        assert_eq!(CODE & 0xff, 0, "the address behind it is made of two bytes");
        assert_eq!(PROGRAM.last(), Some(&0xcf), "iret");
    }

    #[test]
    fn a_machine_without_kvm_says_so() {
        if !is_there() {
            let error = Guest::new().unwrap_err();
            assert!(error.errno == Errno::NOENT && error.to_string().contains(PATH), "{error}");
        }
    }
}
