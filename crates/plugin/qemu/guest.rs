//! A guest's registers, memory and clock, as QEMU 7.2 has them in its own memory.
//!
//! This version of the interface has no registers and no memory to offer, and QEMU exports the functions with which its
//! debugger's stub reads them. They are used to find the registers; then those are read where they are, at starts of blocks,
//! where all of them are in memory.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;

use crate::{abi, clock};
use crate::layout::Trouble;
use crate::machine::{Counter, Flags, INTERRUPTS_ON, KERNEL, Machine};
use crate::sections::NOT_WANTED;

/// `CPUState`, with which the CPU's object begins, is no shorter, and the whole object no longer, in bytes.
const STATE: usize = 0x2000;
const OBJECT: usize = 0x10000;
/// Words behind the registers in which the masks of interrupts are looked for.
const NEAR: usize = 64;
/// From the masks of interrupts (`daif`) to `sp_el[0]`: `elr_el[4]` is between them, and from QEMU 7.1 on `svcr`. Where a version has no
/// `svcr`, the second is `sp_el[1]`; where it has, the first is `elr_el[3]`, which is zero without a secure monitor.
const TO_THREAD: [usize; 2] = [5, 6];
/// The code of a kernel's image is no longer, in bytes.
const CODE: u64 = 32 << 20;
/// The part of `preempt_count` that a thread counts in.
const PREEMPTION: u64 = 0xff;

/// GLib's array of bytes.
#[repr(C)]
struct ByteArray {
    data: *mut u8,
    length: u32,
}

type GetCpu = unsafe extern "C" fn(c_int) -> *mut c_void;
type ReadRegister = unsafe extern "C" fn(*mut c_void, *mut ByteArray, c_int) -> c_int;
type NewArray = unsafe extern "C" fn() -> *mut ByteArray;
type SetSize = unsafe extern "C" fn(*mut ByteArray, u32) -> *mut ByteArray;
type ReadMemory = unsafe extern "C" fn(*mut c_void, u64, *mut c_void, usize, bool) -> c_int;

/// Functions that QEMU exports without promising to.
#[derive(Clone, Copy)]
struct Functions {
    get_cpu: GetCpu,
    read_register: ReadRegister,
    new_array: NewArray,
    set_size: SetSize,
    read_memory: ReadMemory,
}

impl Functions {
    fn find(machine: &Machine) -> Option<Self> {
        let find = |name: &CStr| {
            // SAFETY: a null library means all that are loaded; the name ends with a zero.
            let found = unsafe { abi::dlsym(ptr::null_mut(), name.as_ptr()) };
            (!found.is_null()).then_some(found)
        };
        // SAFETY: these are functions of those types in QEMU 7.2 (include/hw/core/cpu.h, target/i386/cpu.h, target/arm/internals.h,
        // include/exec/cpu-common.h) and in GLib.
        unsafe {
            Some(Self {
                get_cpu: core::mem::transmute::<*mut c_void, GetCpu>(find(c"qemu_get_cpu")?),
                read_register: core::mem::transmute::<*mut c_void, ReadRegister>(find(machine.read_register)?),
                new_array: core::mem::transmute::<*mut c_void, NewArray>(find(c"g_byte_array_new")?),
                set_size: core::mem::transmute::<*mut c_void, SetSize>(find(c"g_byte_array_set_size")?),
                read_memory: core::mem::transmute::<*mut c_void, ReadMemory>(find(c"cpu_memory_rw_debug")?),
            })
        }
    }

    /// A register as the debugger's stub reads it.
    fn register(&self, cpu: *mut c_void, number: c_int) -> Option<u64> {
        // SAFETY: the array is GLib's; a register of 32 or 64 bits is appended to it, which is checked. `cpu` is one, or null is
        // refused before.
        unsafe {
            let array = (self.new_array)();
            if cpu.is_null() || array.is_null() {
                return None;
            }
            (self.set_size)(array, 0);
            let size = (self.read_register)(cpu, array, number);
            match (size, (*array).length) {
                (8, 8) => Some((*array).data.cast::<u64>().read_unaligned()),
                (4, 4) => Some(u64::from((*array).data.cast::<u32>().read_unaligned())),
                _ => None,
            }
        }
    }
}

/// Where the thread that runs and its `preempt_count` are.
enum Current {
    /// Not known yet.
    Nowhere,
    /// Both in the CPU's area.
    InArea { preempt: *const u32, task: *const u64 },
    /// The thread in a register while the kernel runs, and the count in its `task_struct`, so many bytes from the beginning.
    InThread { offset: u64 },
}

/// The one CPU's registers and the guest's memory.
pub struct Guest {
    machine: &'static Machine,
    functions: Option<Functions>,
    cpu: *mut c_void,
    registers: *const u64,
    /// The words with the flags and, where it is in a register, the current thread; 0: that was not found.
    flags: usize,
    thread: usize,
    /// The last thread that the register had.
    last: u64,
    /// The thread with which the CPU began.
    pub first: u64,
    current: Current,
    /// Where the kernel's image begins, and where it and the direct map are in QEMU's memory.
    image: u64,
    image_at: *const u8,
    direct_at: *const u8,
    size: u64,
}

impl Guest {
    /// Of a guest with so many bytes of memory. `image`: where its kernel's image is, if that differs from kernel to kernel.
    pub fn new(machine: &'static Machine, size: u64, image: u64, first: u64) -> Self {
        Self {
            machine,
            functions: Functions::find(machine),
            cpu: ptr::null_mut(),
            registers: ptr::null(),
            flags: 0,
            thread: 0,
            last: 0,
            first,
            current: Current::Nowhere,
            image: if machine.image == 0 { image } else { machine.image },
            image_at: ptr::null(),
            direct_at: ptr::null(),
            size,
        }
    }

    /// What it is.
    pub fn machine(&self) -> &'static Machine {
        self.machine
    }

    /// Learns from an instruction where the guest's memory is.
    pub fn learn(&mut self, address: u64, host: *const u8) {
        if host.is_null() {
            return;
        }
        let end = if self.machine.image_end == 0 { self.image.saturating_add(CODE) } else { self.machine.image_end };
        if self.image_at.is_null() && self.image != 0 && (self.image..end).contains(&address) {
            self.image_at = host.wrapping_sub((address - self.image) as usize);
            if self.machine.physical.is_none() {
                self.direct_at = self.image_at;
            }
        }
        let Some((start, end)) = self.machine.physical else { return };
        if self.direct_at.is_null() && (start..end).contains(&address) {
            self.direct_at = host.wrapping_sub((address - start) as usize);
        }
    }

    /// Finds the registers, at the start of a block.
    pub fn find(&mut self) -> Result<(), Trouble> {
        if self.flags != 0 {
            return Ok(());
        }
        let functions = self.functions.ok_or(Trouble::NoFunctions)?;
        if self.image_at.is_null() || self.direct_at.is_null() {
            return Err(Trouble::NoMemory);
        }
        // SAFETY: the guest has a CPU 0 as long as it runs.
        self.cpu = unsafe { (functions.get_cpu)(0) };
        self.registers = self.search(&functions).ok_or(Trouble::NoRegisters)?;
        match self.machine.flags {
            Flags::Word(word) => self.flags = word,
            Flags::Masks { number, bits, .. } => {
                let masks = functions.register(self.cpu, number).ok_or(Trouble::NoRegisters)? & bits;
                let word = self.only(masks).ok_or(Trouble::NoRegisters)?;
                let is_thread = |word: &usize| self.register(*word) >= KERNEL;
                let thread = TO_THREAD.map(|distance| word + distance).into_iter().find(is_thread);
                self.thread = thread.ok_or(Trouble::NoRegisters)?;
                self.flags = word;
                self.last = self.register(self.thread);
                self.first = self.last;
            }
        }
        Ok(())
    }

    /// The pointer in `CPUState` to the registers, which lie in the same object behind it.
    fn search(&self, functions: &Functions) -> Option<*const u64> {
        let object = self.cpu.cast::<u64>().cast_const();
        let range = object.addr()..object.addr() + OBJECT;
        let Machine { first, order, .. } = *self.machine;
        for place in 0..STATE / 8 {
            // SAFETY: `CPUState` is longer than that.
            let pointer = unsafe { object.add(place).read() } as usize;
            if !range.contains(&pointer) || pointer % 8 != 0 {
                continue;
            }
            let candidate = object.wrapping_byte_add(pointer - object.addr());
            let is_equal = (first..).zip(order).all(|(word, &number)| {
                // SAFETY: a pointer into the object, of which `CPUArchState` is by far the largest part; some words from a pointer
                // that QEMU itself has there are in it.
                let value = unsafe { candidate.add(word).read() };
                functions.register(self.cpu, number) == Some(value)
            });
            // SAFETY: as before.
            if is_equal && unsafe { candidate.add(self.machine.stack).read() } != 0 {
                return Some(candidate);
            }
        }
        None
    }

    /// The one word behind the registers that has this value, where it is not zero.
    fn only(&self, value: u64) -> Option<usize> {
        let start = self.machine.first + self.machine.order.len();
        let mut equal = (start..start + NEAR).filter(|&word| self.register(word) == value);
        equal.next().filter(|_| value != 0 && equal.next().is_none())
    }

    fn register(&self, number: usize) -> u64 {
        // SAFETY: they are found before anything asks, and what is asked for is in the structure. QEMU's thread that writes
        // them is this one.
        unsafe { self.registers.add(number).read() }
    }

    /// A reading of the counter that has just ended.
    pub fn reading(&self, counter: Counter) -> u64 {
        let low = self.register(usize::from(counter.low));
        counter.high.map_or(low, |high| self.register(usize::from(high)) << 32 | low & 0xffff_ffff)
    }

    pub fn stack(&self) -> u64 {
        self.register(self.machine.stack)
    }

    pub fn first_argument(&self) -> u64 {
        self.register(self.machine.argument)
    }

    /// EFLAGS, without those of arithmetic; of another architecture the one that says whether interrupts are on.
    pub fn flags(&self) -> u32 {
        let word = self.register(self.flags);
        match self.machine.flags {
            Flags::Word(_) => word as u32,
            Flags::Masks { off, .. } => u32::from(word & off == 0) * INTERRUPTS_ON,
        }
    }

    /// At the start of each block: the register has the thread while the kernel runs, and a program's stack in its last
    /// instructions.
    #[inline]
    pub fn follow(&mut self) {
        if self.thread != 0 {
            let thread = self.register(self.thread);
            self.last = if thread >= KERNEL { thread } else { self.last };
        }
    }

    /// Where this CPU's words are: its area is moved during the boot. Addresses are those of `__per_cpu_offset`, `preempt_count`
    /// and `current_task`.
    pub fn locate(&mut self, areas: u64, preempt: u64, task: u64) -> Result<(), Trouble> {
        let found = match self.machine.flags {
            Flags::Word(_) => self.in_area(areas, preempt, task),
            Flags::Masks { .. } => self.count_offset().map(|offset| Current::InThread { offset }),
        };
        self.current = found.ok_or(Trouble::NoCount)?;
        Ok(())
    }

    fn in_area(&self, areas: u64, preempt: u64, task: u64) -> Option<Current> {
        let area = self.word(areas)?;
        let preempt = self.at(area.wrapping_add(preempt), 4)?.cast();
        let task = self.at(area.wrapping_add(task), 8)?.cast();
        Some(Current::InArea { preempt, task })
    }

    /// Where a `task_struct` has its `preempt_count`: behind the flags, and behind a page table's address on some kernels
    /// (`ARM64_SW_TTBR0_PAN`). The count has 24 bits; the word above it is zero or one.
    fn count_offset(&self) -> Option<u64> {
        let is_count = |word: u64| word & 0xffff_ffff < 1 << 24 && word >> 32 <= 1 && word != 0;
        [8, 16].into_iter().find(|offset| self.word(self.first + offset).is_some_and(is_count))
    }

    /// Whether the kernel counts what keeps preemption off: the first thread, which is idle, has a count of one for good then.
    /// In the CPU's area stands the count of the thread that runs, of which this is not known.
    pub fn counts(&self) -> bool {
        match self.current {
            Current::InThread { offset } => {
                self.word(self.first + offset).is_none_or(|word| word & PREEMPTION != 0)
            }
            Current::Nowhere | Current::InArea { .. } => true,
        }
    }

    /// The `task_struct` of the thread that runs.
    pub fn task(&self) -> u64 {
        match self.current {
            Current::Nowhere => 0,
            // SAFETY: `locate` found it in the guest's memory.
            Current::InArea { task, .. } => unsafe { task.read_unaligned() },
            Current::InThread { .. } => self.last,
        }
    }

    /// `preempt_count`: bit 31 is clear where a reschedule is wanted. On arm64 the upper word says so.
    pub fn preempt(&self) -> u32 {
        match self.current {
            Current::Nowhere => NOT_WANTED,
            // SAFETY: `locate` found it in the guest's memory.
            Current::InArea { preempt, .. } => unsafe { preempt.read_unaligned() },
            Current::InThread { offset } => {
                let word = self.word(self.last.wrapping_add(offset)).unwrap_or(1 << 32);
                let not_wanted = if word >> 32 == 0 { 0 } else { NOT_WANTED };
                word as u32 & !NOT_WANTED | not_wanted
            }
        }
    }

    /// The word on top of the stack, by the page tables.
    pub fn top_of_stack(&self) -> u64 {
        let mut value = 0_u64;
        if let Some(functions) = self.functions {
            // SAFETY: eight bytes are read into a word, of a CPU that is there; what is not mapped leaves it as it is.
            unsafe {
                (functions.read_memory)(self.cpu, self.stack(), ptr::from_mut(&mut value).cast(), 8, false);
            }
        }
        value
    }

    /// Where `length` bytes of the kernel's image or of the direct map are; none where they are not in memory.
    pub fn at(&self, address: u64, length: u64) -> Option<*const u8> {
        let is_of_image = address >= self.image && self.image != 0;
        let (base, at) =
            if is_of_image { (self.image, self.image_at) } else { (self.machine.direct_map, self.direct_at) };
        let place = address.checked_sub(base)?;
        let is_inside = place.checked_add(length)? <= self.size && !at.is_null();
        is_inside.then(|| at.wrapping_add(place as usize))
    }

    /// A word there.
    pub fn word(&self, address: u64) -> Option<u64> {
        // SAFETY: `at` says that it is in the guest's memory, which QEMU keeps mapped as long as it runs.
        self.at(address, 8).map(|place| unsafe { place.cast::<u64>().read_unaligned() })
    }

    /// Where `tk_core` is if its figures are at the first of [`BEGINNINGS`], by the code of the function at `ktime`.
    pub fn clock(&self, ktime: u64) -> Option<u64> {
        let instruction = |number: usize| self.word(ktime + 4 * number as u64).map(|word| word as u32);
        let code = (0..clock::LENGTH).map_while(instruction);
        clock::read_base(ktime, code)?.checked_sub(BEGINNINGS[0])
    }

    /// The name in a `task_struct` with that field at `offset`.
    pub fn name(&self, task: u64, offset: u64) -> Option<[u64; 2]> {
        let start = task.checked_add(offset)?;
        Some([self.word(start)?, self.word(start.checked_add(8)?)?])
    }

    /// Where a `task_struct` has its thread's name: where the first thread's is found.
    pub fn name_offset(&self) -> Option<u64> {
        const LONGEST: u64 = 0x4000;
        let name = u64::from_le_bytes(*b"swapper/");
        (0..LONGEST).step_by(8).find(|&offset| self.word(self.first + offset) == Some(name))
    }
}

/// `CLOCK_MONOTONIC` by the kernel's own figures (`struct tk_read_base`), as they stand now.
#[derive(Clone, Copy)]
pub struct Clock {
    mask: u64,
    last: u64,
    mult: u64,
    shift: u64,
    fraction: u64,
    base: u64,
}

/// Places in `tk_core` at which `struct timekeeper` may begin: after the sequence counter, and after its lock on kernels that
/// have one there.
const BEGINNINGS: [u64; 3] = [8, 16, 24];

impl Clock {
    /// Reads it.
    pub fn read(guest: &Guest, core: u64) -> Option<Self> {
        BEGINNINGS.into_iter().find_map(|start| Self::read_at(guest, core + start))
    }

    /// `clock`, `mask`, `cycle_last`, `mult` and `shift` (32 bits each), `xtime_nsec`, `base`.
    fn read_at(guest: &Guest, start: u64) -> Option<Self> {
        let word = |number: u64| guest.word(start + 8 * number);
        let (source, mask, factors) = (word(0)?, word(1)?, word(3)?);
        let clock = Self {
            mask,
            last: word(2)?,
            mult: factors & 0xffff_ffff,
            shift: factors >> 32,
            fraction: word(4)?,
            base: word(5)?,
        };
        let is_mask = mask.wrapping_add(1) & mask == 0 && mask >> 32 != 0;
        (source >= guest.machine.direct_map && is_mask && clock.mult != 0 && clock.shift < 64).then_some(clock)
    }

    /// The time of a reading, in nanoseconds.
    pub fn time(&self, reading: u64) -> u64 {
        let cycles = reading.wrapping_sub(self.last) & self.mask;
        self.base.wrapping_add(cycles.wrapping_mul(self.mult).wrapping_add(self.fraction) >> self.shift)
    }
}

/// A path for open(2).
pub type Path = *const c_char;
