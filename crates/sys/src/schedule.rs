//! Policies, priorities, affinity: sched_setattr(2), sched_setaffinity(2), prctl(2).
//!
//! Raw system calls: musl's `sched_setscheduler` always fails, and rustix has no policies.

use units::{CpuId, CpuList, MAX_CPUS, Nanos, Policy, Priority};

use crate::error::{Named, check};
use crate::{Errno, Result};

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// `SCHED_OTHER` at nice 0.
    Other,
    /// `SCHED_FIFO`.
    Fifo(Priority),
    /// `SCHED_RR`.
    Rr(Priority),
    /// `SCHED_DEADLINE` with a deadline equal to its period.
    Deadline {
        /// Run time per period.
        runtime: Nanos,
        /// Period and relative deadline.
        period: Nanos,
    },
}

impl Scheduling {
    /// Of a policy that takes a priority or none.
    pub fn new(policy: Policy, priority: Option<Priority>) -> Self {
        match (policy, priority) {
            (Policy::Fifo, Some(priority)) => Self::Fifo(priority),
            (Policy::Rr, Some(priority)) => Self::Rr(priority),
            _ => Self::Other,
        }
    }

    fn attributes(self) -> Attributes {
        let with = |policy: Policy, priority: u8| Attributes {
            size: size_of::<Attributes>() as u32,
            policy: policy.number(),
            priority: u32::from(priority),
            ..Attributes::default()
        };
        match self {
            Self::Other => with(Policy::Other, 0),
            Self::Fifo(priority) => with(Policy::Fifo, priority.get()),
            Self::Rr(priority) => with(Policy::Rr, priority.get()),
            Self::Deadline { runtime, period } => Attributes {
                runtime: runtime.0,
                deadline: period.0,
                period: period.0,
                ..with(Policy::Deadline, 0)
            },
        }
    }
}

impl std::fmt::Display for Scheduling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Other => f.write_str("to SCHED_OTHER"),
            Self::Fifo(priority) => write!(f, "to SCHED_FIFO, priority {priority}"),
            Self::Rr(priority) => write!(f, "to SCHED_RR, priority {priority}"),
            Self::Deadline { runtime, period } => write!(f, "to SCHED_DEADLINE, {runtime} every {period}"),
        }
    }
}

/// The first 48 bytes of `struct sched_attr`: the part that every kernel knows (later fields answer E2BIG on older ones).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Sets how the calling thread is scheduled. `EPERM` without CAP_SYS_NICE or a sufficient RLIMIT_RTPRIO, or with a
/// real-time group that has no run time; `EBUSY` where a deadline reservation does not fit.
pub fn set(scheduling: Scheduling) -> Result<()> {
    let attributes = scheduling.attributes();
    // SAFETY: the structure is 48 bytes long, says so, and is only read.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &attributes, 0) };
    match check(result, "sched_setattr", scheduling) {
        // Kernels before 3.14 have no sched_setattr and no deadline policy.
        Err(error) if error.errno == Errno::NOSYS => {
            set_policy(0, Policy::from_number(attributes.policy), attributes.priority)
        }
        other => other.map(drop),
    }
}

/// Sets policy and priority of thread `tid`, 0 for the caller. Its nice value stays as it is, unlike with
/// sched_setattr(2). Policies without a priority take 0. sched_setscheduler(2).
///
/// # Errors
/// `ESRCH` for a thread that is gone; `EINVAL` for a priority that the policy does not take; `EPERM` as for [`set`].
pub fn set_policy(tid: i32, policy: Policy, priority: u32) -> Result<()> {
    set_policy_number(tid, policy.number(), priority)
        .map_err(|error| crate::Error { on: format!("of thread {tid} to {policy} {priority}"), ..error })
}

/// Children and threads of the caller are ordinary ones. sched(7).
const RESET_ON_FORK: u32 = 0x4000_0000;

/// The number of a policy, with flags.
fn set_policy_number(tid: i32, number: u32, priority: u32) -> Result<()> {
    let parameter = priority as libc::c_int;
    // SAFETY: the third argument is a sched_param, which is one int, and is only read.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, tid, number as libc::c_int, &parameter) };
    check(result, "sched_setscheduler", format_args!("of thread {tid}")).map(drop)
}

/// The nice value of the greatest share of a CPU.
pub const LOWEST_NICE: i32 = -20;

/// Sets the calling thread's nice value, from [`LOWEST_NICE`] (the greatest share of a CPU) to 19. Its policy stays as it is.
///
/// # Errors
/// `EACCES` for a lower one without CAP_SYS_NICE or a sufficient RLIMIT_NICE.
pub fn set_nice(nice: i32) -> Result<()> {
    rustix::process::setpriority_process(None, nice).on("setpriority", format_args!("to {nice}"))
}

/// The calling thread goes before other ordinary ones until this is dropped, by the lowest nice value. Behind hundreds of
/// processes it would wait for seconds each time that it wakes: a tick for each of them. Without the privilege it waits.
#[derive(Debug)]
pub struct BeforeOthers(Option<i32>);

impl BeforeOthers {
    /// From now on. Processes and threads that the caller starts meanwhile inherit the nice value. Where it is the lowest
    /// already, nothing is to be put back.
    pub fn begin() -> Self {
        let former = nice().ok().filter(|nice| *nice > LOWEST_NICE);
        Self(former.filter(|_| set_nice(LOWEST_NICE).is_ok()))
    }
}

impl Drop for BeforeOthers {
    fn drop(&mut self) {
        if let Some(former) = self.0 {
            // A greater value is never refused.
            let _ = set_nice(former);
        }
    }
}

/// The calling thread's nice value. getpriority(2).
///
/// # Errors
/// What the kernel answered.
pub fn nice() -> Result<i32> {
    rustix::process::getpriority_process(None).on("getpriority", "of this thread")
}

/// Policy and priority of the calling thread, read back from the kernel.
pub fn get() -> Result<(Policy, u32)> {
    of_thread(0)
}

/// Policy and priority of thread `tid`, 0 for the caller. sched_getscheduler(2), sched_getparam(2).
///
/// # Errors
/// `ESRCH` for a thread that is gone.
pub fn of_thread(tid: i32) -> Result<(Policy, u32)> {
    let on = || if tid == 0 { String::new() } else { format!("of thread {tid}") };
    // SAFETY: takes a thread id and no pointer.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, tid) };
    let policy = check(policy, "sched_getscheduler", on())?;
    let mut priority: libc::c_int = 0;
    // SAFETY: a sched_param is one int, which outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_sched_getparam, tid, &mut priority) };
    check(result, "sched_getparam", on())?;
    Ok((Policy::from_number(policy as u32 & !RESET_ON_FORK), priority as u32))
}

/// Does `work` before all ordinary threads: see [`BeforeOrdinary`].
pub fn before_ordinary<T>(work: impl FnOnce() -> T) -> T {
    let _back = BeforeOrdinary::begin();
    work()
}

/// The calling thread is at the lowest real-time priority, before all ordinary threads: behind hundreds of a load's processes
/// on one CPU, what it does would take seconds. Without the privilege it takes them. Threads and processes that it starts are
/// ordinary ones. Dropped, policy and nice value are as before.
#[derive(Debug)]
pub struct BeforeOrdinary(Option<Policy>);

impl BeforeOrdinary {
    /// From now on. A thread that has another policy than an ordinary one keeps it.
    pub fn begin() -> Self {
        let ordinary = |policy: &Policy| matches!(policy, Policy::Other | Policy::Batch | Policy::Idle);
        let policy = get().ok().map(|(policy, _)| policy).filter(ordinary);
        Self(policy.filter(|_| set_policy_number(0, Policy::Fifo.number() | RESET_ON_FORK, 1).is_ok()))
    }
}

impl Drop for BeforeOrdinary {
    fn drop(&mut self) {
        let Some(policy) = self.0 else { return };
        if set_policy(0, policy, 0).is_err() {
            // RLIMIT_RTPRIO lets a thread set the flag, and CAP_SYS_NICE alone lets it take the flag back.
            let _ = set_policy_number(0, policy.number() | RESET_ON_FORK, 0);
        }
    }
}

const WORD_BITS: usize = libc::c_ulong::BITS as usize;
type Mask = [libc::c_ulong; MAX_CPUS as usize / WORD_BITS];

/// The CPUs that thread `tid` may run on; 0 is the caller.
pub fn affinity(tid: i32) -> Result<CpuList> {
    let mut mask: Mask = [0; MAX_CPUS as usize / WORD_BITS];
    // SAFETY: the kernel writes at most the size given.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, tid, size_of::<Mask>(), mask.as_mut_ptr()) };
    check(result, "sched_getaffinity", format!("of thread {tid}"))?;
    Ok((0..MAX_CPUS)
        .filter(|&cpu| mask[cpu as usize / WORD_BITS] >> (cpu as usize % WORD_BITS) & 1 == 1)
        .collect())
}

/// Lets thread `tid` (0 is the caller) run on `cpus` only. `EINVAL` where none of them is online and within the
/// thread's cpuset.
pub fn set_affinity(tid: i32, cpus: &CpuList) -> Result<()> {
    let mut mask: Mask = [0; MAX_CPUS as usize / WORD_BITS];
    for CpuId(cpu) in cpus.iter() {
        mask[cpu as usize / WORD_BITS] |= 1 << (cpu as usize % WORD_BITS);
    }
    // SAFETY: the kernel reads at most the size given.
    let result = unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, size_of::<Mask>(), mask.as_ptr()) };
    check(result, "sched_setaffinity", format!("to CPU {cpus}")).map(drop)
}

/// Which of `cpus` the calling thread may be pinned to: each is tried, then the affinity is put back.
pub fn reachable(cpus: &CpuList) -> Result<CpuList> {
    let before = affinity(0)?;
    let reached = cpus.iter().filter(|&cpu| set_affinity(0, &CpuList::from_iter([cpu])).is_ok()).collect();
    set_affinity(0, &before)?;
    Ok(reached)
}

/// Those of `cpus` to which a deadline thread can be pinned: the ones that are a root domain of their own, as in an
/// isolated partition of one CPU. Each is tried by a thread with a small reservation (sched(7), "Deadline scheduling").
pub fn reservable(cpus: &CpuList) -> CpuList {
    let small = Scheduling::Deadline { runtime: Nanos::from_micros(50), period: Nanos::from_millis(10) };
    let attempt = move |cpu| set_affinity(0, &CpuList::from_iter([cpu])).and_then(|()| set(small)).is_ok();
    cpus.iter().filter(|&cpu| std::thread::spawn(move || attempt(cpu)).join().unwrap_or(false)).collect()
}

/// Asks for timers of the calling thread to be at most `slack` late for the sake of coalescing; at least 1 ns.
/// `PR_SET_TIMERSLACK`, prctl(2).
pub fn set_timer_slack(slack: Nanos) -> Result<()> {
    // SAFETY: an integer argument.
    let result = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack.0.max(1) as libc::c_ulong, 0, 0, 0) };
    check(result, "prctl", "PR_SET_TIMERSLACK").map(drop)
}

/// The calling thread's timer slack. `PR_GET_TIMERSLACK`.
pub fn timer_slack() -> Result<Nanos> {
    // SAFETY: no pointers.
    let result = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    check(result, "prctl", "PR_GET_TIMERSLACK").map(|slack| Nanos(slack as u64))
}

/// Gives the CPU away; a deadline thread sleeps until its next period. sched_yield(2).
/// It fails where a filter refuses it (seccomp).
#[inline]
pub fn give_way() -> std::result::Result<(), crate::Errno> {
    // SAFETY: no arguments.
    match unsafe { libc::sched_yield() } {
        0 => Ok(()),
        _ => Err(crate::Error::last("sched_yield", "").errno),
    }
}

/// The calling thread's id in the kernel: gettid(2).
pub fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_the_48_bytes_that_every_kernel_knows() {
        assert_eq!(size_of::<Attributes>(), 48);
    }

    #[test]
    fn a_thread_can_be_pinned_and_says_so() {
        std::thread::spawn(|| {
            let one: CpuList = affinity(0).unwrap().first().into_iter().collect();
            set_affinity(0, &one).unwrap();
            assert_eq!(affinity(0).unwrap(), one);
            assert_eq!(affinity(0).unwrap(), one);
            assert_eq!(reachable(&"0-8000".parse().unwrap()).unwrap().intersection(&one), one);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_policy_reads_back_as_it_was_set() {
        std::thread::spawn(|| {
            let priority = "7".parse().unwrap();
            match set(Scheduling::Fifo(priority)) {
                Ok(()) => assert_eq!(get().unwrap(), (Policy::Fifo, 7)),
                Err(error) => println!("skipped: {error}"),
            }
            set(Scheduling::Other).unwrap();
            assert_eq!(get().unwrap(), (Policy::Other, 0));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn another_threads_policy_is_read_and_one_that_is_gone_is_no_answer() {
        let (send, receive) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            set_policy(0, Policy::Batch, 0).unwrap();
            send.send(thread_id()).unwrap();
            let _ = ended.recv();
        });
        let tid = receive.recv().unwrap();
        assert_eq!(of_thread(tid).unwrap(), (Policy::Batch, 0));
        drop(end);
        other.join().unwrap();
        while of_thread(tid).is_ok() {
            std::thread::yield_now();
        }
        assert_eq!(of_thread(tid).unwrap_err().errno, Errno::SRCH);
    }

    #[test]
    fn what_was_done_before_ordinary_threads_leaves_no_trace() {
        std::thread::spawn(|| {
            rustix::process::setpriority_process(None, 5).unwrap();
            let (inside, child) =
                before_ordinary(|| (get().unwrap(), std::thread::spawn(|| get().unwrap()).join().unwrap()));
            assert_eq!(child, (Policy::Other, 0), "what it starts is ordinary");
            assert!([(Policy::Fifo, 1), (Policy::Other, 0)].contains(&inside), "{inside:?}");
            assert_eq!(get().unwrap(), (Policy::Other, 0));
            assert_eq!(rustix::process::getpriority_process(None).unwrap(), 5);
            if inside.0 == Policy::Other {
                println!("skipped: without CAP_SYS_NICE nothing is raised: needs other kernel privileges");
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_nice_value_that_was_lowered_for_a_while_is_put_back() {
        std::thread::spawn(|| {
            set_nice(5).unwrap();
            let lowered = BeforeOthers::begin();
            let inside = nice().unwrap();
            assert!([-20, 5].contains(&inside), "{inside}");
            drop(BeforeOthers::begin());
            assert_eq!(nice().unwrap(), inside, "one within another puts nothing back");
            drop(lowered);
            assert_eq!(nice().unwrap(), 5);
            if inside == 5 {
                println!("skipped: without CAP_SYS_NICE nothing is lowered: needs other kernel privileges");
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_reservation_cannot_be_pinned_within_a_larger_root_domain() {
        let cpus = affinity(0).unwrap();
        if cpus.len() < 2 {
            return println!("skipped: a cpu alone is its own root domain");
        }
        assert!(reservable(&cpus).len() < cpus.len());
        assert_eq!(affinity(0).unwrap(), cpus, "the caller's own affinity stays");
    }

    #[test]
    fn timer_slack_reads_back_as_it_was_set() {
        set_timer_slack(Nanos(1)).unwrap();
        assert_eq!(timer_slack().unwrap(), Nanos(1));
    }
}
