//! Signals as data: blocked, and read from a descriptor (signalfd(2)); and one to wake a sleeping thread.

use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::check;
use crate::{Errno, Error, Result};

/// The signals that a command answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// kill(1)'s default.
    Terminate,
    /// The terminal is gone.
    HangUp,
    /// `SIGUSR1`: print a snapshot.
    User1,
}

impl Signal {
    const ALL: [(Self, libc::c_int); 4] = [
        (Self::Interrupt, libc::SIGINT),
        (Self::Terminate, libc::SIGTERM),
        (Self::HangUp, libc::SIGHUP),
        (Self::User1, libc::SIGUSR1),
    ];
}

/// The signals of [`Signal`], blocked for this thread and those it starts, and read here instead.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// Blocks them and opens the descriptor. To be called before any thread is started.
    pub fn take() -> Result<Self> {
        let set = set_of(Signal::ALL.iter().map(|(_, number)| *number));
        Ok(Self(blocked(&set, libc::SFD_NONBLOCK)?))
    }

    /// The next signal that has come, if any.
    pub fn next(&self) -> Option<Signal> {
        let mut info = [0_u8; size_of::<libc::signalfd_siginfo>()];
        let read = rustix::io::read(&self.0, &mut info).ok()?;
        let number = u32::from_ne_bytes(info.get(..4)?.try_into().ok()?) as libc::c_int;
        (read == info.len())
            .then(|| Signal::ALL.iter().find(|(_, known)| *known == number))
            .flatten()
            .map(|(signal, _)| *signal)
    }

    /// The next signal, waited for; none where the wait was cut short.
    pub fn wait(&self) -> Option<Signal> {
        let _ = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None);
        self.next()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Blocks signals for this thread and those it starts; the descriptor that they are read from.
fn blocked(set: &libc::sigset_t, flags: libc::c_int) -> Result<OwnedFd> {
    // SAFETY: a filled signal set; the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set, std::ptr::null_mut()) };
    // SAFETY: a filled signal set; -1 asks for a new descriptor, which is ours.
    let fd = unsafe { libc::signalfd(-1, set, libc::SFD_CLOEXEC | flags) };
    check(fd, "signalfd", "")?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The signal of [`OwnSignal`].
const OWN: libc::c_int = libc::SIGUSR2;

/// A signal that is sent to the thread that made this, and that it waits for: signalfd(2), sigwaitinfo(2).
#[derive(Debug)]
pub struct OwnSignal {
    fd: OwnedFd,
    tid: i32,
}

impl OwnSignal {
    /// Blocks the signal for the calling thread.
    pub fn take() -> Result<Self> {
        Ok(Self { fd: blocked(&set_of([OWN].into_iter()), 0)?, tid: crate::schedule::thread_id() })
    }

    /// Sleeps until the signal has come, in sigwaitinfo(2). For the thread that made this, as [`Self::read`].
    pub fn wait(&self) -> std::result::Result<(), Errno> {
        // SAFETY: a set that lives, and no room for what is known of the signal.
        match unsafe { libc::sigwaitinfo(&set_of([OWN].into_iter()), std::ptr::null_mut()) } {
            -1 => Err(Error::last("sigwaitinfo", "").errno),
            _ => Ok(()),
        }
    }

    /// Sleeps until the signal has come, in read(2). For the thread that made this: the kernel gives each thread its own signals.
    pub fn read(&self) -> std::result::Result<(), Errno> {
        rustix::io::read(&self.fd, &mut [0_u8; size_of::<libc::signalfd_siginfo>()]).map(drop)
    }

    /// What sends the signal, from any thread of this process.
    pub fn sender(&self) -> impl Fn() + Send + use<> {
        let tid = self.tid;
        move || signal_thread(tid, OWN)
    }
}

/// Waits until one of `fds` can be read or has ended, at most `timeout`; says which. A signal ends the wait early.
pub fn wait_readable(fds: &[BorrowedFd<'_>], timeout: Duration) -> Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect()),
        Err(errno) => Err(Error::new("poll", errno)),
    }
}

/// The signal that interrupts a sleeping thread.
const WAKE: libc::c_int = libc::SIGURG;

extern "C" fn nothing(_: libc::c_int) {}

/// Makes [`wake_thread`] interrupt the sleeps of this process's threads: a handler that does nothing, without
/// SA_RESTART. sigaction(2).
pub fn make_sleeps_interruptible() -> Result<()> {
    // SAFETY: a zeroed sigaction is valid, and the handler is async-signal-safe.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        libc::sigaction(WAKE, &action, std::ptr::null_mut())
    };
    check(result, "sigaction", "SIGURG").map(drop)
}

/// Interrupts whatever thread `tid` of this process sleeps in. tgkill(2).
pub fn wake_thread(tid: i32) {
    signal_thread(tid, WAKE);
}

fn signal_thread(tid: i32, signal: libc::c_int) {
    // SAFETY: integers only; a thread that is gone answers ESRCH.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, signal) };
}

/// Leaves Ctrl-C and a lost terminal to the parent process. signal(2).
pub fn ignore_terminal() {
    // SAFETY: SIG_IGN is a valid disposition.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGHUP, libc::SIG_IGN);
    }
}

pub(crate) fn set_of(signals: impl Iterator<Item = libc::c_int>) -> libc::sigset_t {
    // SAFETY: sigemptyset fills the set; the numbers are valid.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn a_signal_of_its_own_wakes_the_thread_that_reads_it() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let own = OwnSignal::take().unwrap();
            sender.send(own.sender()).unwrap();
            own.wait()
        });
        receiver.recv().unwrap()();
        assert_eq!(reader.join().unwrap(), Ok(()));
    }

    #[test]
    fn a_sleeping_thread_can_be_woken() {
        make_sleeps_interruptible().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            sender.send(crate::schedule::thread_id()).unwrap();
            Clock::Monotonic.sleep_until(Clock::Monotonic.now() + 60_000_000_000)
        });
        let tid = receiver.recv().unwrap();
        while !sleeper.is_finished() {
            wake_thread(tid);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(sleeper.join().unwrap(), Err(Errno::INTR));
    }
}
