//! Delays of a known sort and length, for tests: a BPF program that does nothing but wait. bpf(2).
//!
//! Run on the own CPU it runs with preemption off, on another CPU in an interrupt that this CPU sends there
//! (`BPF_F_TEST_RUN_ON_CPU`, Linux 5.10).

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::Result;
use crate::error::check;

const PROG_LOAD: u32 = 5;
const PROG_TEST_RUN: u32 = 10;
const RAW_TRACEPOINT: u32 = 17;
const ON_CPU: u32 = 1;

/// What the verifier lets a program go through: the jumps of so many rounds.
const ROUNDS: i32 = 8_000;
/// How often a round asks for the time.
const ASKS: usize = 24;

/// An instruction: what it does, its registers, the distance of a jump, a number.
const fn instruction(code: u8, to: u8, from: u8, jump: i16, number: i32) -> u64 {
    u64::from_ne_bytes([
        code,
        if cfg!(target_endian = "little") { to | from << 4 } else { to << 4 | from },
        jump.to_ne_bytes()[0],
        jump.to_ne_bytes()[1],
        number.to_ne_bytes()[0],
        number.to_ne_bytes()[1],
        number.to_ne_bytes()[2],
        number.to_ne_bytes()[3],
    ])
}

/// `call bpf_ktime_get_ns`: the time is in register 0.
const ASK: u64 = instruction(0x85, 0, 0, 0, 5);

/// Waits until so many nanoseconds have gone by as its argument says, or all rounds are over.
fn program() -> Vec<u64> {
    let mut program = vec![
        instruction(0x79, 7, 1, 0, 0), // r7 = the argument
        ASK,
        instruction(0x0f, 7, 0, 0, 0), // r7 += r0
        instruction(0xb7, 6, 0, 0, 0), // r6 = 0
    ];
    let begin = program.len();
    program.extend([ASK; ASKS]);
    program.push(instruction(0x2d, 0, 7, 2, 0)); // if r0 > r7: end
    program.push(instruction(0x07, 6, 0, 0, 1)); // r6 += 1
    let back = i16::try_from(program.len() + 1 - begin).unwrap_or_default();
    program.push(instruction(0xa5, 6, 0, -back, ROUNDS)); // if r6 < ROUNDS: once more
    program.push(instruction(0xb7, 0, 0, 0, 0)); // r0 = 0
    program.push(instruction(0x95, 0, 0, 0, 0)); // return
    program
}

/// Steps of a filter of system calls: a word of `seccomp_data`, a comparison, the answer.
pub(crate) const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
pub(crate) const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
pub(crate) const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Makes one system call of `command` and its children dearer by several filters of so many steps, at most 4000, and no other.
/// With no steps the filters are there all the same: what they cost themselves can be compared. seccomp(2).
pub fn slow_down(command: &mut std::process::Command, call: libc::c_long, steps: u16) {
    use std::os::unix::process::CommandExt;
    // Of `seccomp_data`: the call's number, and its first argument, which the kernel does not take for a constant.
    const NUMBER: u32 = 0;
    // The kernel takes 32768 steps in all.
    const FILTERS: usize = 7;
    const ARGUMENT: u32 = 16;
    let step = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let mut filter = vec![
        step(LOAD, 0, NUMBER),
        step(JUMP_IF_EQUAL, 1, call as u32),
        step(RETURN, 0, libc::SECCOMP_RET_ALLOW),
    ];
    filter.extend((0..steps).map(|_| step(LOAD, 0, ARGUMENT)));
    filter.push(step(RETURN, 0, libc::SECCOMP_RET_ALLOW));
    let enter = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: between fork and exec a few system calls; the kernel copies the filter.
        let entered = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && (0..FILTERS).all(|_| {
                    libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
                })
        };
        if entered { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: the closure makes system calls only and allocates nothing.
    unsafe { command.pre_exec(enter) };
}

/// getppid(2).
pub const GETPPID: libc::c_long = libc::SYS_getppid;

/// A program that waits, in the kernel.
#[derive(Debug)]
pub struct Waiting(OwnedFd);

#[repr(C)]
#[derive(Default)]
struct Load {
    kind: u32,
    instructions: u32,
    program: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    version: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct Run {
    program: u32,
    result: u32,
    data_in_size: u32,
    data_out_size: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_in_size: u32,
    context_out_size: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
}

/// A command of bpf(2) with its attributes.
fn bpf<T>(command: u32, attributes: &mut T, what: &'static str) -> Result<libc::c_int> {
    // SAFETY: the kernel reads and writes the attributes, which have the size that is given; what they point at outlives the call.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), std::mem::size_of::<T>())
    };
    // A descriptor, 0 or -1.
    check(result as libc::c_int, what, "")
}

impl Waiting {
    /// Loads it.
    ///
    /// # Errors
    /// `EPERM` without `CAP_BPF` and `CAP_PERFMON`, `ENOSYS` without `CONFIG_BPF_SYSCALL`.
    pub fn load() -> Result<Self> {
        let program = program();
        let mut load = Load {
            kind: RAW_TRACEPOINT,
            instructions: u32::try_from(program.len()).unwrap_or_default(),
            program: program.as_ptr() as u64,
            license: c"Dual MIT/GPL".as_ptr() as u64,
            ..Load::default()
        };
        let descriptor = bpf(PROG_LOAD, &mut load, "bpf(BPF_PROG_LOAD)")?;
        // SAFETY: the kernel has just opened it for us.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Has it wait so many nanoseconds on a CPU, at the most some milliseconds.
    ///
    /// # Errors
    /// `EINVAL` before Linux 5.10, `ENXIO` where the CPU is offline.
    pub fn run_on(&self, cpu: u32, length: u64) -> Result<()> {
        let context = [length];
        let mut run = Run {
            program: u32::try_from(self.0.as_raw_fd()).unwrap_or_default(),
            context_in_size: 8,
            context_in: context.as_ptr() as u64,
            flags: ON_CPU,
            cpu,
            ..Run::default()
        };
        bpf(PROG_TEST_RUN, &mut run, "bpf(BPF_PROG_TEST_RUN)").map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_as_long_as_it_was_asked_to() {
        let waiting = match Waiting::load() {
            Ok(waiting) => waiting,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let begin = crate::clock::Clock::Monotonic.now();
        let cpu = crate::schedule::affinity(0).unwrap().iter().next().unwrap();
        waiting.run_on(cpu.0, 500_000).unwrap();
        assert!(crate::clock::Clock::Monotonic.now() - begin >= 500_000);
    }
}
