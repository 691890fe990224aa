//! A guest's registers, memory and clock, as QEMU 7.2 has them in its own memory (amd64).
//!
//! This version of the interface has no registers and no memory to offer, and QEMU exports the functions with which its
//! debugger's stub reads them. They are used to find the registers; then those are read where they are, at starts of blocks,
//! where all of them are in memory.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;

use crate::abi;
use crate::layout::Trouble;

/// The kernel's image begins at guest-physical 0 with this address, the direct map with the other one (without KASLR).
const IMAGE: u64 = 0xffff_ffff_8000_0000;
const IMAGE_END: u64 = 0xffff_ffff_a000_0000;
const DIRECT_MAP: u64 = 0xffff_8880_0000_0000;
/// Addresses of programs end here.
pub const USER_END: u64 = 1 << 47;

/// `CPUX86State` begins with the registers in this order; the numbers are those of gdb.
const ORDER: [c_int; 16] = [0, 2, 3, 1, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
const RAX: usize = 0;
const RDX: usize = 2;
const RSP: usize = 4;
const RDI: usize = 7;
const EFLAGS: usize = 17;

/// `CPUState`, with which the CPU's object begins, is no shorter, and the whole object no longer, in bytes.
const STATE: usize = 0x2000;
const OBJECT: usize = 0x10000;

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
    fn find() -> Option<Self> {
        let find = |name: &CStr| {
            // SAFETY: a null library means all that are loaded; the name ends with a zero.
            let found = unsafe { abi::dlsym(ptr::null_mut(), name.as_ptr()) };
            (!found.is_null()).then_some(found)
        };
        // SAFETY: these are functions of those types in QEMU 7.2 (include/hw/core/cpu.h, target/i386/cpu.h,
        // include/exec/cpu-common.h) and in GLib.
        unsafe {
            Some(Self {
                get_cpu: core::mem::transmute::<*mut c_void, GetCpu>(find(c"qemu_get_cpu")?),
                read_register: core::mem::transmute::<*mut c_void, ReadRegister>(find(
                    c"x86_cpu_gdb_read_register",
                )?),
                new_array: core::mem::transmute::<*mut c_void, NewArray>(find(c"g_byte_array_new")?),
                set_size: core::mem::transmute::<*mut c_void, SetSize>(find(c"g_byte_array_set_size")?),
                read_memory: core::mem::transmute::<*mut c_void, ReadMemory>(find(c"cpu_memory_rw_debug")?),
            })
        }
    }
}

/// The one CPU's registers and the guest's memory.
pub struct Guest {
    functions: Option<Functions>,
    cpu: *mut c_void,
    registers: *const u64,
    /// Where guest-physical 0 is.
    memory: *const u8,
    size: u64,
}

impl Guest {
    /// Of a guest with so many bytes of memory.
    pub fn new(size: u64) -> Self {
        Self {
            functions: Functions::find(),
            cpu: ptr::null_mut(),
            registers: ptr::null(),
            memory: ptr::null(),
            size,
        }
    }

    /// Learns from an instruction of the kernel's image where the guest's memory is.
    pub fn learn(&mut self, address: u64, host: *const u8) {
        if self.memory.is_null() && !host.is_null() && (IMAGE..IMAGE_END).contains(&address) {
            self.memory = host.wrapping_sub((address - IMAGE) as usize);
        }
    }

    /// Finds the registers, at the start of a block.
    pub fn find(&mut self) -> Result<(), Trouble> {
        if !self.registers.is_null() {
            return Ok(());
        }
        let functions = self.functions.ok_or(Trouble::NoFunctions)?;
        if self.memory.is_null() {
            return Err(Trouble::NoMemory);
        }
        // SAFETY: the guest has a CPU 0 as long as it runs.
        self.cpu = unsafe { (functions.get_cpu)(0) };
        let values = self.slow_registers(&functions).ok_or(Trouble::NoRegisters)?;
        self.registers = self.search(&values).ok_or(Trouble::NoRegisters)?;
        Ok(())
    }

    /// As the debugger's stub reads them.
    fn slow_registers(&self, functions: &Functions) -> Option<[u64; 16]> {
        let mut values = [0; 16];
        for (value, number) in values.iter_mut().zip(ORDER) {
            // SAFETY: the array is GLib's; a register of 64 bits is appended to it, which is checked. `cpu` is one, or null is
            // refused before.
            unsafe {
                let array = (functions.new_array)();
                if self.cpu.is_null() || array.is_null() {
                    return None;
                }
                (functions.set_size)(array, 0);
                if (functions.read_register)(self.cpu, array, number) != 8 || (*array).length != 8 {
                    return None;
                }
                *value = (*array).data.cast::<u64>().read_unaligned();
            }
        }
        Some(values)
    }

    /// The pointer in `CPUState` to the registers, which lie in the same object behind it.
    fn search(&self, values: &[u64; 16]) -> Option<*const u64> {
        let object = self.cpu.cast::<u64>().cast_const();
        let range = object.addr()..object.addr() + OBJECT;
        for place in 0..STATE / 8 {
            // SAFETY: `CPUState` is longer than that.
            let pointer = unsafe { object.add(place).read() } as usize;
            if !range.contains(&pointer) || pointer % 8 != 0 {
                continue;
            }
            let candidate = object.wrapping_byte_add(pointer - object.addr());
            // SAFETY: a pointer into the object, of which `CPUX86State` is by far the largest part; 18 words from a pointer
            // that QEMU itself has there are in it.
            let is_equal = (0..16).all(|number| unsafe { candidate.add(number).read() } == values[number]);
            if is_equal && values[RSP] != 0 {
                return Some(candidate);
            }
        }
        None
    }

    fn register(&self, number: usize) -> u64 {
        // SAFETY: they are found before anything asks, and are 18 words long. QEMU's thread that writes them is this one.
        unsafe { self.registers.add(number).read() }
    }

    /// A reading of the time-stamp counter that has just ended.
    pub fn reading(&self) -> u64 {
        self.register(RDX) << 32 | self.register(RAX) & 0xffff_ffff
    }

    pub fn stack(&self) -> u64 {
        self.register(RSP)
    }

    pub fn first_argument(&self) -> u64 {
        self.register(RDI)
    }

    /// EFLAGS; those of arithmetic are not up to date.
    pub fn flags(&self) -> u64 {
        self.register(EFLAGS)
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
        let base = if address >= IMAGE { IMAGE } else { DIRECT_MAP };
        let place = address.checked_sub(base)?;
        let is_inside = place.checked_add(length)? <= self.size && !self.memory.is_null();
        is_inside.then(|| self.memory.wrapping_add(place as usize))
    }

    /// A word there.
    pub fn word(&self, address: u64) -> Option<u64> {
        // SAFETY: `at` says that it is in the guest's memory, which QEMU keeps mapped as long as it runs.
        self.at(address, 8).map(|place| unsafe { place.cast::<u64>().read_unaligned() })
    }

    /// The name in a `task_struct` with that field at `offset`.
    pub fn name(&self, task: u64, offset: u64) -> Option<[u64; 2]> {
        let start = task.checked_add(offset)?;
        Some([self.word(start)?, self.word(start.checked_add(8)?)?])
    }

    /// Where a `task_struct` has its thread's name: where the first thread's is found.
    pub fn name_offset(&self, first: u64) -> Option<u64> {
        const LONGEST: u64 = 0x4000;
        let name = u64::from_le_bytes(*b"swapper/");
        (0..LONGEST).step_by(8).find(|&offset| self.word(first + offset) == Some(name))
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
        (source >= DIRECT_MAP && is_mask && clock.mult != 0 && clock.shift < 64).then_some(clock)
    }

    /// The time of a reading, in nanoseconds.
    pub fn time(&self, reading: u64) -> u64 {
        let cycles = reading.wrapping_sub(self.last) & self.mask;
        self.base.wrapping_add(cycles.wrapping_mul(self.mult).wrapping_add(self.fraction) >> self.shift)
    }
}

/// A path for open(2).
pub type Path = *const c_char;
