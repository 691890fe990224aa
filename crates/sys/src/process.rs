//! Processes: started, waited for, ended, bound to the life of others.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Signal;
pub use rustix::process::{Pid, Resource};
use units::Nanos;

use crate::error::{Named, check};
use crate::{Errno, Error, Result};

/// What to do where the kernel gives no further thread or process.
pub const RAISE_LIMIT: &str = "raise the limit of processes (ulimit -u)";

/// Lets `descriptor` survive the exec of `command`, under its number. It stays open here until `command` is dropped.
/// Other children do not inherit it: the close-on-exec flag is cleared in the child alone. fcntl(2).
pub fn pass_on(command: &mut Command, descriptor: OwnedFd) {
    let keep =
        move || rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::empty()).map_err(io::Error::from);
    // SAFETY: between fork and exec the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(keep) };
}

/// A duplicate of a descriptor that the parent passed on by [`pass_on`]. From then on no program that this process
/// executes has either. fcntl(2).
///
/// # Errors
/// `EBADF` where no such descriptor is open.
pub fn inherited(number: RawFd) -> Result<OwnedFd> {
    if number < 0 {
        return Err(Error { call: "fcntl", on: format!("descriptor {number}"), errno: Errno::BADF });
    }
    // SAFETY: the descriptor is borrowed for this one call, which answers EBADF where it is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let closed = rustix::io::fcntl_setfd(borrowed, rustix::io::FdFlags::CLOEXEC);
    closed.on("fcntl", format_args!("descriptor {number}"))?;
    rustix::io::fcntl_dupfd_cloexec(borrowed, 3).on("fcntl", format_args!("descriptor {number}"))
}

/// /dev/null, open to be read and written: what a child's output goes to. open(2).
///
/// # Errors
/// `ENOENT` on boards and in roots that have none.
pub fn null() -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    Ok(open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// Gives `command` a process group of its own, so that the terminal's Ctrl-C does not reach it, and no signal blocked
/// or ignored, whatever this process has. setpgid(2), rt_sigprocmask(2), rt_sigaction(2).
pub fn detach(command: &mut Command) {
    set_apart(command, || rustix::process::setpgid(None, None));
}

/// As [`detach`], with a session of its own too: it has no terminal. setsid(2).
pub fn leave_session(command: &mut Command) {
    set_apart(command, || rustix::process::setsid().map(drop));
}

/// As [`leave_session`]; the terminal that is the child's standard input becomes that of its session, so that Ctrl-C
/// reaches what runs there. setsid(2), ioctl_tty(2).
pub fn own_terminal(command: &mut Command) {
    set_apart(command, || {
        rustix::process::setsid()?;
        // SAFETY: standard input of the child, open since before this.
        rustix::process::ioctl_tiocsctty(unsafe { BorrowedFd::borrow_raw(0) })
    });
}

fn set_apart(command: &mut Command, leave: fn() -> rustix::io::Result<()>) {
    let prepare = move || {
        leave()?;
        reset_signals();
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls that are safe there, and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

/// Kills `command` when the thread that starts it ends. prctl(2), `PR_SET_PDEATHSIG`.
pub fn end_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let prepare =
        move || die_with(Some(parent)).map_err(|error| io::Error::from_raw_os_error(error.number()));
    // SAFETY: as above; the error carries no text, so that nothing is allocated.
    unsafe { command.pre_exec(prepare) };
}

/// Unblocks every signal and gives each its default action, those that the C library keeps for itself too: what an
/// earlier program ignored would stay ignored across exec. rt_sigaction(2), rt_sigprocmask(2).
pub fn reset_signals() {
    // The kernel's own structures, which differ from the C library's: all zero is SIG_DFL and the empty set.
    let zeros = [0_u64; 32];
    let set_size: usize = if cfg!(any(target_arch = "mips", target_arch = "mips64")) { 16 } else { 8 };
    let (zeros, none) = (zeros.as_ptr(), std::ptr::null_mut::<u64>());
    for signal in 1..=64_i32 {
        // SAFETY: reads no more than a structure of zeros; SIGKILL and SIGSTOP answer EINVAL.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, zeros, none, set_size) };
    }
    // SAFETY: reads `set_size` bytes of zeros.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, zeros, none, set_size) };
}

/// Kills this process when its parent thread ends. prctl(2), `PR_SET_PDEATHSIG`. Where `parent` is given and is
/// gone already, the answer is `ESRCH`; the parent of a process that is the first of its namespace cannot be seen.
pub fn die_with(parent: Option<Pid>) -> Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).named("prctl")?;
    match parent {
        Some(parent) if rustix::process::getppid() != Some(parent) => Err(Error::new("getppid", Errno::SRCH)),
        _ => Ok(()),
    }
}

/// Asks this process to end, by SIGTERM, when its parent thread ends. prctl(2), `PR_SET_PDEATHSIG`.
///
/// # Errors
/// `ESRCH` where `parent` is gone already.
pub fn end_with(parent: Pid) -> Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM)).named("prctl")?;
    if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(Error::new("getppid", Errno::SRCH)) }
}

/// The parent's id, asked of the kernel each time. getppid(2).
pub fn parent() -> Option<Pid> {
    rustix::process::getppid()
}

/// This process's id. getpid(2).
pub fn own_pid() -> Pid {
    rustix::process::getpid()
}

/// The user that this process acts as. geteuid(2).
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Puts this process into a process group of its own. setpgid(2).
pub fn new_group() -> Result<()> {
    rustix::process::setpgid(None, None).named("setpgid")
}

/// Makes orphaned descendants children of this process. prctl(2), `PR_SET_CHILD_SUBREAPER`, Linux 3.4.
pub fn adopt_orphans() -> Result<()> {
    rustix::process::set_child_subreaper(Some(own_pid())).named("prctl")
}

/// Names this thread, as `ps` and `top` show it; 15 bytes are kept. prctl(2), `PR_SET_NAME`.
pub fn set_name(name: &str) -> Result<()> {
    let name = std::ffi::CString::new(name).map_err(|_| Error::new("prctl", Errno::INVAL))?;
    rustix::thread::set_name(&name).named("prctl")
}

/// Starts a copy of this process that runs `child` and ends with what it returns. fork(2).
///
/// Only a process of one thread may do so: in the copy of another, a lock held by a thread that was not copied stays
/// locked for ever. A panic in `child` ends the copy with 101.
///
/// # Errors
/// `EDEADLK` where this process has other threads; those of fork(2); unreadable /proc/self/task.
pub fn fork(child: impl FnOnce() -> u8) -> Result<Pid> {
    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
    match threads.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)) {
        Ok(1) => {}
        Ok(_) => return Err(Error { call: "fork", on: "with several threads".into(), errno: Errno::DEADLK }),
        Err(errno) => return Err(Error { call: "opendir", on: "/proc/self/task".into(), errno }),
    }
    // SAFETY: the process has this one thread, so the copy is whole; the child leaves by _exit, not by returning.
    match unsafe { libc::fork() } {
        0 => {
            let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(101);
            unsafe { libc::_exit(i32::from(status)) }
        }
        pid => {
            check(pid, "fork", "")?;
            Pid::from_raw(pid).ok_or_else(|| Error::new("fork", Errno::INVAL))
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "ended with status {status}"),
            Self::Killed(signal) => write!(f, "was killed by signal {signal}"),
        }
    }
}

/// A child that has ended and is gone.
#[derive(Clone, Copy, Debug)]
pub struct Reaped {
    /// Its id, which may be given to another process from now on.
    pub pid: Pid,
    /// How it ended.
    pub ended: Ended,
    /// CPU time of it and of those of its children that it waited for.
    pub cpu_time: Nanos,
}

/// A child that has ended, or none where there are children and all of them run. wait4(2), `WNOHANG`.
///
/// # Errors
/// `ECHILD` where there are no children.
pub fn reap() -> Result<Option<Reaped>> {
    wait4(-1, libc::WNOHANG)
}

/// Waits until `child` has ended. wait4(2).
pub fn wait(child: Pid) -> Result<Reaped> {
    wait_for(child.as_raw_pid())
}

/// Waits until any child has ended. wait4(2).
///
/// # Errors
/// `ECHILD` where there are no children.
pub fn wait_any() -> Result<Reaped> {
    wait_for(-1)
}

fn wait_for(pid: i32) -> Result<Reaped> {
    loop {
        match wait4(pid, 0) {
            Ok(Some(reaped)) => return Ok(reaped),
            Ok(None) => {}
            Err(error) if error.errno == Errno::INTR => {}
            Err(error) => return Err(error),
        }
    }
}

fn wait4(pid: i32, options: i32) -> Result<Option<Reaped>> {
    let mut status = 0;
    // SAFETY: both pointers are to values of ours; zero bytes are a valid rusage.
    let (answer, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(pid, &mut status, options, &mut usage), usage)
    };
    check(answer, "wait4", "")?;
    let ended = if libc::WIFSIGNALED(status) {
        Ended::Killed(libc::WTERMSIG(status))
    } else {
        Ended::Exited(libc::WEXITSTATUS(status))
    };
    let cpu_time = length(usage.ru_utime) + length(usage.ru_stime);
    Ok(Pid::from_raw(answer).map(|pid| Reaped { pid, ended, cpu_time }))
}

pub(crate) fn length(time: libc::timeval) -> Nanos {
    Nanos::from_micros((time.tv_sec as u64).saturating_mul(1_000_000).saturating_add(time.tv_usec as u64))
}

/// Kills `pid`. A process that is gone already is no error. kill(2), `SIGKILL`.
pub fn kill(pid: Pid) -> Result<()> {
    gone_is_fine(rustix::process::kill_process(pid, Signal::KILL)).on("kill", pid)
}

/// Asks `pid` to end. A process that is gone already is no error. kill(2), `SIGTERM`.
pub fn end(pid: Pid) -> Result<()> {
    gone_is_fine(rustix::process::kill_process(pid, Signal::TERM)).on("kill", pid)
}

/// Kills every process of the group that `leader` founded; a group that is gone is no error. kill(2), `SIGKILL`.
pub fn kill_group(leader: Pid) -> Result<()> {
    gone_is_fine(rustix::process::kill_process_group(leader, Signal::KILL)).on("kill", leader)
}

/// Asks every process of the group that `leader` founded to end; a gone group is no error. kill(2), `SIGTERM`.
pub fn end_group(leader: Pid) -> Result<()> {
    gone_is_fine(rustix::process::kill_process_group(leader, Signal::TERM)).on("kill", leader)
}

fn gone_is_fine(result: rustix::io::Result<()>) -> rustix::io::Result<()> {
    if result == Err(Errno::SRCH) { Ok(()) } else { result }
}

/// Sets a soft and hard limit of this process and its later children. setrlimit(2).
pub fn limit(resource: Resource, bytes: u64) -> Result<()> {
    let limit = rustix::process::Rlimit { current: Some(bytes), maximum: Some(bytes) };
    rustix::process::setrlimit(resource, limit).named("setrlimit")
}

/// The number by which a child finds `descriptor` after [`pass_on`].
pub fn number(descriptor: &OwnedFd) -> RawFd {
    descriptor.as_raw_fd()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::process::Stdio;

    #[test]
    fn a_descriptor_that_is_passed_on_is_open_in_the_child_alone() {
        let (_words, file) = crate::shared::SharedWords::create(1).unwrap();
        let number = number(&file);
        let script = format!("test -e /proc/self/fd/{number}");
        let run = |command: &mut Command| command.args(["-c", &script]).status().unwrap().success();
        assert!(!run(&mut Command::new("/bin/sh")));
        let mut command = Command::new("/bin/sh");
        pass_on(&mut command, file);
        assert!(run(&mut command));
        assert!(!run(&mut Command::new("/bin/sh")));
    }

    #[test]
    fn a_descriptor_that_was_inherited_goes_no_further() {
        let (_words, file) = crate::shared::SharedWords::create(1).unwrap();
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
        let duplicate = inherited(number(&file)).unwrap();
        let script =
            format!("test -e /proc/self/fd/{} -o -e /proc/self/fd/{}", number(&file), number(&duplicate));
        assert!(!Command::new("/bin/sh").args(["-c", &script]).status().unwrap().success());
    }

    #[test]
    fn a_descriptor_that_is_not_open_is_not_inherited() {
        assert_eq!(inherited(-1).unwrap_err().errno, Errno::BADF);
        assert_eq!(inherited(100_000).unwrap_err().errno, Errno::BADF);
        let (_words, file) = crate::shared::SharedWords::create(1).unwrap();
        let ours = inherited(number(&file)).unwrap();
        assert!(crate::shared::SharedWords::open(ours.as_fd(), 1).is_ok());
    }

    #[test]
    fn a_detached_child_leads_its_group_with_no_signal_blocked_or_ignored() {
        // SAFETY: plain sets; the mask is this test thread's own.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
        }
        let mut command = Command::new("/bin/cat");
        command.args(["/proc/self/status", "/proc/self/stat"]).stdout(Stdio::piped());
        detach(&mut command);
        let mut child = command.spawn().unwrap();
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        child.wait().unwrap();
        let field =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        assert_eq!(u64::from_str_radix(&field("SigBlk:"), 16), Ok(0));
        assert_eq!(u64::from_str_radix(&field("SigIgn:"), 16), Ok(0));
        let stat: Vec<&str> = text.lines().last().unwrap().split(' ').collect();
        assert_eq!(stat[4], child.id().to_string(), "process group in {stat:?}");
    }

    #[test]
    fn a_process_of_several_threads_is_not_copied() {
        assert_eq!(std::thread::spawn(|| fork(|| 0).unwrap_err().errno).join().unwrap(), Errno::DEADLK);
    }
}
