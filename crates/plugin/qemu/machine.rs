//! What differs between guests of two architectures, as data.

use core::ffi::{CStr, c_int};

/// A guest's architecture, and where QEMU 7.2 has its registers. Registers are words from the beginning of the structure that
/// QEMU has for a CPU (`CPUArchState`).
pub struct Machine {
    /// Its number in the stream.
    pub number: u64,
    /// QEMU's name for it.
    pub name: &'static CStr,
    /// The function with which its debugger's stub reads a register.
    pub read_register: &'static CStr,
    /// Where the first of `order` is, and the debugger's numbers of the registers that follow each other there.
    pub first: usize,
    pub order: &'static [c_int],
    /// The stack pointer, and the first argument of a function.
    pub stack: usize,
    pub argument: usize,
    pub flags: Flags,
    /// Where the kernel's image begins and ends; where the direct map begins.
    pub image: u64,
    pub image_end: u64,
    pub direct_map: u64,
    /// Where code runs that shows where the direct map's memory is, and ends; none where the image's code does too.
    pub physical: Option<(u64, u64)>,
    /// What an instruction is.
    pub kind: fn(&[u8]) -> Kind,
}

/// Where it stands whether interrupts are on.
pub enum Flags {
    /// EFLAGS, in this word.
    Word(usize),
    /// These bits of a word behind the registers, which the debugger's register of that number has too. They are set where
    /// interrupts are off, and five words behind them is the kernel's current task (SP_EL0).
    Masks { number: c_int, bits: u64, off: u64 },
}

/// An instruction, as far as blocks ask.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Other,
    Call,
    /// It turns interrupts off.
    Off,
    /// It reads the counter that the guest's clock is made of.
    Counter(Counter),
}

/// The registers that have a reading of the counter after the instruction: its lower half and its upper one, or all of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    pub low: u8,
    pub high: Option<u8>,
}

/// The kernel's addresses begin here: programs have none so high.
pub const KERNEL: u64 = 1 << 63;
/// EFLAGS: interrupts are on.
pub const INTERRUPTS_ON: u32 = 1 << 9;

/// All of them. QEMU has its name of the first from its program.
pub static ALL: [Machine; 2] = [AMD64, ARM64];

/// `CPUX86State` begins with the registers in this order. The kernel's image begins at guest-physical 0 with this address, the
/// direct map with the other one (without KASLR).
const AMD64: Machine = Machine {
    number: crate::layout::AMD64,
    name: c"x86_64",
    read_register: c"x86_cpu_gdb_read_register",
    first: 0,
    order: &[0, 2, 3, 1, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15],
    stack: 4,
    argument: 7,
    flags: Flags::Word(17),
    image: 0xffff_ffff_8000_0000,
    image_end: 0xffff_ffff_a000_0000,
    direct_map: 0xffff_8880_0000_0000,
    physical: None,
    kind: kind_on_amd64,
};

/// `CPUARMState` begins with 16 registers of 32 bits; x0 to x30 and the stack pointer follow. Memory of QEMU's `virt` begins
/// where its first instructions run. The image is where its symbols are.
const ARM64: Machine = Machine {
    number: crate::layout::ARM64,
    name: c"aarch64",
    read_register: c"aarch64_cpu_gdb_read_register",
    first: 8,
    order: &[
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
        29, 30, 31,
    ],
    stack: 8 + 31,
    argument: 8,
    flags: Flags::Masks { number: 33, bits: 0x3c0, off: 0x80 },
    image: 0,
    image_end: 0,
    direct_map: 0xffff_0000_0000_0000,
    physical: Some((0x4000_0000, 0x4000_1000)),
    kind: kind_on_arm64,
};

const RAX: u8 = 0;
const RDX: u8 = 2;

fn kind_on_amd64(instruction: &[u8]) -> Kind {
    match instruction {
        [0xfa] => Kind::Off,
        [0x0f, 0x31] | [0x0f, 0x01, 0xf9] => Kind::Counter(Counter { low: RAX, high: Some(RDX) }),
        // A near call, by an address or through a register or memory.
        [0xe8, ..] => Kind::Call,
        [0xff, operands, ..] | [0x40..=0x4f, 0xff, operands, ..] if operands >> 3 & 7 == 2 => Kind::Call,
        _ => Kind::Other,
    }
}

fn kind_on_arm64(instruction: &[u8]) -> Kind {
    let Ok(bytes) = <[u8; 4]>::try_from(instruction) else { return Kind::Other };
    let word = u32::from_le_bytes(bytes);
    // msr daifset, #imm
    if word & 0xffff_f0ff == 0xd503_40df && word & 0x200 != 0 {
        return Kind::Off;
    }
    // bl; blr and its forms with authentication
    if word & 0xfc00_0000 == 0x9400_0000 || word & 0xfeff_f000 == 0xd63f_0000 {
        return Kind::Call;
    }
    // mrs xN, cntvct_el0: xN begin at word 8, and 31 is none.
    let register = (word & 0x1f) as u8;
    if word & 0xffff_ffe0 == 0xd53b_e040 && register < 31 {
        return Kind::Counter(Counter { low: 8 + register, high: None });
    }
    Kind::Other
}
