//! Ways to wait, one entry each.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

use failure::{Error, Result};
use record::wake_path::Waker;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use sys::clock::Clock;
use sys::io_uring::Ring;
use sys::message_queue::Queue;
use sys::signal::OwnSignal;
use sys::timer::{PosixTimer, TimerFd};

use crate::holder::Locking;
use crate::wait::Wait;

/// No wait is longer, in nanoseconds, where the call can end by itself.
const LONG: u64 = 1_000_000_000;

/// A way for a thread to wait.
#[derive(Clone, Copy)]
pub struct Way {
    /// Its name: `timerfd`.
    pub name: &'static str,
    /// The calls, as people read them.
    pub title: &'static str,
    /// What wakes.
    pub waker: Waker,
    /// What can be used in its place where it is not safe.
    pub instead: &'static str,
    begin: fn() -> Result<Ends>,
}

/// What another thread does to wake the waiter; nothing where a clock does.
pub type Trigger = Box<dyn Fn() + Send>;

/// Both ends of a way.
pub type Ends = (Box<dyn Wait>, Trigger);

const TIMERS: &str = "clock_nanosleep, or a futex, ppoll or semaphore with a time limit";
const INHERITANCE: &str = "a mutex with PTHREAD_PRIO_INHERIT";
const HANDOVERS: &str = "a futex (mutex, condition variable, semaphore) or a message queue";

/// All that can be tried without a device.
pub const WAYS: [Way; 19] = [
    Way { name: "nanosleep", title: "clock_nanosleep", waker: Waker::Clock, instead: "", begin: nanosleep },
    Way {
        name: "futex-timeout",
        title: "futex, timed",
        waker: Waker::Clock,
        instead: TIMERS,
        begin: futex_timeout,
    },
    Way {
        name: "poll-timeout",
        title: "ppoll, timed",
        waker: Waker::Clock,
        instead: TIMERS,
        begin: poll_timeout,
    },
    Way { name: "timerfd", title: "timerfd, read", waker: Waker::Clock, instead: TIMERS, begin: timerfd },
    Way {
        name: "posix-timer",
        title: "timer_create, sigwaitinfo",
        waker: Waker::Clock,
        instead: TIMERS,
        begin: posix_timer,
    },
    Way {
        name: "uring-timeout",
        title: "io_uring, timeout",
        waker: Waker::Clock,
        instead: TIMERS,
        begin: uring_timeout,
    },
    Way { name: "futex", title: "futex wake", waker: Waker::Thread, instead: "", begin: futex },
    Way {
        name: "mqueue",
        title: "mq_send, mq_receive",
        waker: Waker::Thread,
        instead: HANDOVERS,
        begin: mqueue,
    },
    Way {
        name: "signal",
        title: "tgkill, a handler ends a sleep",
        waker: Waker::Thread,
        instead: HANDOVERS,
        begin: signal,
    },
    Way {
        name: "sigwait",
        title: "tgkill, sigwaitinfo",
        waker: Waker::Thread,
        instead: HANDOVERS,
        begin: sigwait,
    },
    Way {
        name: "signalfd",
        title: "tgkill, signalfd",
        waker: Waker::Thread,
        instead: HANDOVERS,
        begin: signalfd,
    },
    Way {
        name: "eventfd",
        title: "eventfd, read",
        waker: Waker::Thread,
        instead: HANDOVERS,
        begin: eventfd_read,
    },
    Way {
        name: "epoll",
        title: "eventfd, epoll_wait",
        waker: Waker::Thread,
        instead: HANDOVERS,
        begin: epoll_wait,
    },
    Way {
        name: "uring-read",
        title: "eventfd, io_uring",
        waker: Waker::Thread,
        instead: HANDOVERS,
        begin: uring_read,
    },
    Way { name: "pipe", title: "pipe, read", waker: Waker::Thread, instead: HANDOVERS, begin: pipe },
    Way { name: "unix", title: "Unix datagram", waker: Waker::Thread, instead: HANDOVERS, begin: unix },
    Way { name: "udp", title: "UDP on loopback", waker: Waker::Thread, instead: HANDOVERS, begin: udp },
    Way { name: "mutex", title: "mutex", waker: Waker::Holder, instead: INHERITANCE, begin: plain_mutex },
    Way {
        name: "pi-mutex",
        title: "mutex with priority inheritance",
        waker: Waker::Holder,
        instead: "",
        begin: pi_mutex,
    },
];

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Way {
    /// The one of that name.
    pub fn find(name: &str) -> Option<Self> {
        WAYS.into_iter().find(|way| way.name == name)
    }

    /// Both ends, made by the thread that waits.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn begin(self) -> Result<Ends> {
        (self.begin)()
    }
}

/// Says what failed.
fn tried<T, E: std::fmt::Display>(result: std::result::Result<T, E>, what: &str) -> Result<T> {
    result.map_err(|error| Error::new(format!("{what}: {error}"), ""))
}

fn nobody() -> Trigger {
    Box::new(|| {})
}

/// A wait until a time, which [`Wait::arm`] gives.
struct Until<F>(u64, F);

impl<F: FnMut(u64) -> Result<()>> Wait for Until<F> {
    fn arm(&mut self, due: u64) -> Result<()> {
        self.0 = due;
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        (self.1)(self.0)
    }
}

/// A timer that is armed, and what waits for it.
struct Armed<A, W>(A, W);

impl<A: FnMut(u64) -> Result<()>, W: FnMut() -> Result<()>> Wait for Armed<A, W> {
    fn arm(&mut self, due: u64) -> Result<()> {
        (self.0)(due)
    }

    fn wait(&mut self) -> Result<()> {
        (self.1)()
    }
}

/// A wait for another thread.
struct For<F>(F);

impl<F: FnMut() -> Result<()>> Wait for For<F> {
    fn wait(&mut self) -> Result<()> {
        (self.0)()
    }
}

fn left(due: u64) -> u64 {
    due.saturating_sub(Clock::Monotonic.now())
}

fn timespec(nanos: u64) -> Timespec {
    Timespec { tv_sec: (nanos / LONG) as i64, tv_nsec: (nanos % LONG) as i64 }
}

fn nanosleep() -> Result<Ends> {
    let wait = |due| tried(Clock::Monotonic.sleep_until(due), "clock_nanosleep");
    Ok((Box::new(Until(0, wait)), nobody()))
}

fn futex_timeout() -> Result<Ends> {
    let word = AtomicU32::new(0);
    let wait = move |due| {
        sys::futex::wait(&word, 0, left(due));
        Ok(())
    };
    Ok((Box::new(Until(0, wait)), nobody()))
}

fn poll_timeout() -> Result<Ends> {
    let silent = tried(eventfd(0, EventfdFlags::CLOEXEC), "make an eventfd")?;
    let wait = move |due| {
        let mut polled = [PollFd::new(&silent, PollFlags::IN)];
        tried(poll(&mut polled, Some(&timespec(left(due)))), "ppoll").map(drop)
    };
    Ok((Box::new(Until(0, wait)), nobody()))
}

fn timerfd() -> Result<Ends> {
    let timer = Arc::new(TimerFd::new(Clock::Monotonic)?);
    let armed = timer.clone();
    let arm = move |due| tried(armed.rearm(due, 0), "timerfd_settime");
    let wait = move || tried(timer.wait(), "read a timerfd").map(drop);
    Ok((Box::new(Armed(arm, wait)), nobody()))
}

fn posix_timer() -> Result<Ends> {
    let timer = std::rc::Rc::new(PosixTimer::new(Clock::Monotonic)?);
    let armed = timer.clone();
    let arm = move |due| tried(armed.rearm(due, 0), "timer_settime");
    let wait = move || tried(timer.wait(), "sigwaitinfo");
    Ok((Box::new(Armed(arm, wait)), nobody()))
}

fn uring_timeout() -> Result<Ends> {
    let mut ring = Ring::new()?;
    let wait = move |due| tried(ring.sleep_until(due), "io_uring_enter");
    Ok((Box::new(Until(0, wait)), nobody()))
}

fn futex() -> Result<Ends> {
    let word = Arc::new(AtomicU32::new(0));
    let theirs = word.clone();
    let wait = move || {
        while word.swap(0, SeqCst) == 0 {
            sys::futex::wait(&word, 0, LONG);
        }
        Ok(())
    };
    let trigger = move || {
        theirs.store(1, SeqCst);
        sys::futex::wake(&theirs);
    };
    Ok((Box::new(For(wait)), Box::new(trigger)))
}

fn mqueue() -> Result<Ends> {
    // Several threads make theirs at once, and so may a process of another PID namespace.
    let name = format!("worstcase-{}-{}", sys::schedule::thread_id(), Clock::Monotonic.now());
    let queue = Arc::new(Queue::new(&name, 1)?);
    let theirs = queue.clone();
    let mut message = [0; Queue::LONGEST];
    let wait = move || tried(queue.receive(&mut message), "mq_receive").map(drop);
    Ok((Box::new(For(wait)), Box::new(move || drop(theirs.send(&[1])))))
}

fn signal() -> Result<Ends> {
    sys::signal::make_sleeps_interruptible()?;
    let waiter = sys::schedule::thread_id();
    let wait = || {
        // A signal that came before the sleep is not seen: the sleep ends by itself then, and the trial shows a long delay.
        let _ = Clock::Monotonic.sleep_until(Clock::Monotonic.now() + LONG);
        Ok(())
    };
    Ok((Box::new(For(wait)), Box::new(move || sys::signal::wake_thread(waiter))))
}

fn sigwait() -> Result<Ends> {
    let own = OwnSignal::take()?;
    let trigger = own.sender();
    Ok((Box::new(For(move || tried(own.wait(), "sigwaitinfo"))), Box::new(trigger)))
}

fn signalfd() -> Result<Ends> {
    let own = OwnSignal::take()?;
    let trigger = own.sender();
    Ok((Box::new(For(move || tried(own.read(), "read a signalfd"))), Box::new(trigger)))
}

fn counter() -> Result<(Arc<OwnedFd>, Trigger)> {
    let counter = Arc::new(tried(eventfd(0, EventfdFlags::CLOEXEC), "make an eventfd")?);
    let theirs = counter.clone();
    let trigger = move || {
        let _ = rustix::io::write(&*theirs, &1_u64.to_ne_bytes());
    };
    Ok((counter, Box::new(trigger)))
}

fn read_one(from: &OwnedFd) -> Result<()> {
    tried(rustix::io::read(from, &mut [0; 8]), "read").map(drop)
}

fn eventfd_read() -> Result<Ends> {
    let (counter, trigger) = counter()?;
    Ok((Box::new(For(move || read_one(&counter))), trigger))
}

fn epoll_wait() -> Result<Ends> {
    let (counter, trigger) = counter()?;
    let set = tried(epoll::create(epoll::CreateFlags::CLOEXEC), "epoll_create")?;
    let data = epoll::EventData::new_u64(0);
    tried(epoll::add(&set, &counter, data, epoll::EventFlags::IN), "epoll_ctl")?;
    let wait = move || {
        let mut events = Vec::with_capacity(1);
        // Work of the kernel for this thread, as after a ring of io_uring was closed, ends it early.
        let waited = || epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), None);
        tried(rustix::io::retry_on_intr(waited), "epoll_wait")?;
        read_one(&counter)
    };
    Ok((Box::new(For(wait)), trigger))
}

fn uring_read() -> Result<Ends> {
    let (counter, trigger) = counter()?;
    let mut ring = Ring::new()?;
    let wait = move || tried(ring.read(&*counter), "io_uring_enter").map(drop);
    Ok((Box::new(For(wait)), trigger))
}

fn pipe() -> Result<Ends> {
    let (out, into) = tried(pipe_with(PipeFlags::CLOEXEC), "make a pipe")?;
    let trigger = move || {
        let _ = rustix::io::write(&into, &[1]);
    };
    Ok((
        Box::new(For(move || tried(rustix::io::read(&out, &mut [0; 1]), "read").map(drop))),
        Box::new(trigger),
    ))
}

fn unix() -> Result<Ends> {
    let (here, there) = tried(UnixDatagram::pair(), "make a pair of sockets")?;
    let wait = move || tried(here.recv(&mut [0; 1]), "receive").map(drop);
    Ok((Box::new(For(wait)), Box::new(move || drop(there.send(&[1])))))
}

fn udp() -> Result<Ends> {
    let socket = || tried(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)), "bind to 127.0.0.1");
    let (here, there) = (socket()?, socket()?);
    tried(there.connect(tried(here.local_addr(), "find the port")?), "connect to 127.0.0.1")?;
    // What is lost never comes.
    tried(here.set_read_timeout(Some(std::time::Duration::from_nanos(LONG))), "set a time limit")?;
    let wait = move || tried(here.recv(&mut [0; 1]), "receive from 127.0.0.1").map(drop);
    Ok((Box::new(For(wait)), Box::new(move || drop(there.send(&[1])))))
}

fn plain_mutex() -> Result<Ends> {
    Ok((Box::new(Locking::begin(false)?), nobody()))
}

fn pi_mutex() -> Result<Ends> {
    Ok((Box::new(Locking::begin(true)?), nobody()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holders need the right to a real-time priority; a kernel may have no io_uring, or let nobody use it.
    fn is_allowed(way: Way) -> bool {
        let is_ring = way.name.starts_with("uring-");
        (way.waker != Waker::Holder || rustix::process::geteuid().is_root())
            && (!is_ring || Ring::new().is_ok())
    }

    #[test]
    fn every_way_ends_when_its_time_comes_or_another_thread_wakes() {
        for way in WAYS.into_iter().filter(|way| is_allowed(*way)) {
            // Each in a thread of its own, as in a trial: what is left to do for a ring that was closed ends later waits early.
            std::thread::spawn(move || ends_in_time(way)).join().unwrap();
        }
    }

    fn ends_in_time(way: Way) {
        let (mut wait, trigger) = way.begin().unwrap();
        let due = Clock::Monotonic.now() + 2_000_000;
        wait.arm(due).unwrap();
        std::thread::scope(|scope| {
            if way.waker == Waker::Thread {
                scope.spawn(move || {
                    Clock::Monotonic.sleep_until(due).unwrap();
                    trigger();
                });
            }
            wait.wait().unwrap();
        });
        assert!(Clock::Monotonic.now() >= due, "{way:?}");
    }

    #[test]
    fn threads_begin_the_same_way_at_once_and_nothing_with_a_name_collides() {
        for way in WAYS.into_iter().filter(|way| way.waker == Waker::Thread && is_allowed(*way)) {
            let begin = move || (0..200).try_for_each(|_| way.begin().map(drop));
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(begin)).collect();
                threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
            });
        }
    }

    #[test]
    fn names_are_unique() {
        for way in WAYS {
            assert_eq!(WAYS.iter().filter(|other| other.name == way.name).count(), 1, "{way:?}");
        }
    }
}
