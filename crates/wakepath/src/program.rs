//! How the threads of a program wait: looked at again and again, in which call of the kernel each of them sleeps and on what.
//!
//! Nothing is traced and nothing of the program is stopped: `/proc/PID/task/TID/syscall` has the call and its arguments while a thread
//! is blocked in it (proc(5)). A wait that is short beside the time between two waits is seen in few looks.

use std::time::Duration;

use failure::{Error, Result};
use machine::tasks::{self, Task};
use machine::waits::{self, Descriptor, Family};
use record::Fact;
use record::wake_path::{Program, Thread, Waiting};
use sys::blocked::Blocked;
use sysroot::SysRoot;
use units::InOrder;

/// How often all threads are looked at, and how long there is between two looks.
const LOOKS: u32 = 200;
const BETWEEN: Duration = Duration::from_millis(10);

/// Watches the threads of process `pid` for two seconds; `follow` is asked before each look and ends them by false.
///
/// # Errors
/// There is no such process, its calls may not be read, or they have other numbers than this program's.
pub fn watch(root: &SysRoot, pid: i32, follow: &mut dyn FnMut() -> bool) -> Result<Program> {
    same_numbers(root, pid)?;
    let mut program = Program { pid, looks: 0, waits: Vec::new() };
    while program.looks < LOOKS && follow() {
        look(root, &mut program)?;
        std::thread::sleep(BETWEEN);
    }
    if !program.waits.is_empty() {
        let others = tasks::threads(root, pid).into_iter().filter(|task| task.policy.is_real_time());
        let others = others.filter(|task| program.waits.iter().all(|wait| wait.thread.tid != task.tid));
        let never: Vec<Waiting> = others.map(|task| never_seen(&task)).collect();
        program.waits.extend(never);
    }
    for wait in &mut program.waits {
        // Policies and CPUs as they are now: a program may set them after its start.
        if let Some(task) = tasks::task(root, pid, wait.thread.tid) {
            let task = tasks::with_affinity(root, task);
            wait.cpus = task.cpus.clone();
            wait.thread = thread(&task);
        }
    }
    program.waits.order_by_key(|wait| (wait.thread.tid, std::cmp::Reverse(wait.seen)));
    Ok(program)
}

/// Numbers of calls are those of this program where the other one has words of the same size.
fn same_numbers(root: &SysRoot, pid: i32) -> Result<()> {
    match waits::word_bits(root, pid) {
        Fact::Value(bits) if bits == usize::BITS => Ok(()),
        Fact::Value(bits) => {
            let message =
                format!("program {pid} has words of {bits} bits, and its calls other numbers than here");
            Err(Error::new(message, format!("a worstcase of {bits} bits can look at it")))
        }
        Fact::Absent | Fact::Unsupported => {
            Err(Error::new(format!("there is no program {pid}"), "pgrep NAME shows its number"))
        }
        Fact::Unreadable(errno) => Err(refused("the program", pid, errno)),
    }
}

fn refused(what: &str, pid: i32, errno: i32) -> Error {
    let message = format!("read {what} of {pid}: {}", units::errno_in_words(errno));
    Error::new(
        message,
        match rustix::process::geteuid().is_root() {
            true => "refused even to root: by the container, or a security module",
            false => "as root, or as the user whose program it is",
        },
    )
}

/// A thread that ran, or slept elsewhere, whenever it was looked at: how it waits is not known.
fn never_seen(task: &Task) -> Waiting {
    let call = "not seen waiting".to_owned();
    Waiting { thread: thread(task), cpus: task.cpus.clone(), call, ways: Vec::new(), whole: false, seen: 0 }
}

fn thread(task: &Task) -> Thread {
    Thread { name: task.name.clone(), tid: task.tid, policy: task.policy, priority: task.priority }
}

/// One look at all threads.
fn look(root: &SysRoot, program: &mut Program) -> Result<()> {
    let pid = program.pid;
    let tids = tasks::thread_ids(root, pid);
    if tids.is_empty() {
        return Err(Error::new(format!("program {pid} has ended"), "start it, and name its new number"));
    }
    program.looks += 1;
    for tid in tids {
        let blocked = match waits::blocked(root, pid, tid) {
            Fact::Value(blocked) => blocked,
            Fact::Unreadable(errno) => return Err(refused("the calls", pid, errno)),
            // It runs, it has ended meanwhile, or the kernel was built without HAVE_ARCH_TRACEHOOK.
            Fact::Absent | Fact::Unsupported => continue,
        };
        let Named { call, ways, whole } = named(root, pid, blocked);
        let same = program.waits.iter_mut().find(|wait| wait.thread.tid == tid && wait.call == call);
        match same {
            // What a descriptor was once not known to be may be anything.
            Some(wait) => (wait.seen, wait.whole) = (wait.seen + 1, wait.whole && whole),
            None => {
                let Some(task) = tasks::task(root, pid, tid) else { continue };
                let ways = ways.into_iter().map(str::to_owned).collect();
                let cpus = units::CpuList::new();
                program.waits.push(Waiting { thread: thread(&task), cpus, call, ways, whole, seen: 1 });
            }
        }
    }
    Ok(())
}

/// A wait in words, the ways of [`crate::WAYS`] that it is, and whether these are all of it.
struct Named {
    call: String,
    ways: Vec<&'static str>,
    whole: bool,
}

impl Named {
    fn whole(call: &str, ways: &[&'static str]) -> Self {
        Self { call: call.into(), ways: ways.to_vec(), whole: true }
    }

    fn partly(call: impl Into<String>, ways: impl IntoIterator<Item = &'static str>) -> Self {
        Self { call: call.into(), ways: ways.into_iter().collect(), whole: false }
    }
}

fn named(root: &SysRoot, pid: i32, blocked: Blocked) -> Named {
    let timeout = |timed: bool| timed.then_some("poll-timeout");
    match blocked {
        Blocked::Sleep => Named::whole("clock_nanosleep", &["nanosleep"]),
        Blocked::Futex { timed: true } => Named::whole("futex, timed", &["futex-timeout", "futex"]),
        Blocked::Futex { timed: false } => Named::whole("futex", &["futex"]),
        Blocked::InheritingFutex => Named::whole("futex with priority inheritance", &["pi-mutex"]),
        Blocked::Poll { array, count, timed } => {
            let fds = waits::polled(root, pid, array, count);
            let mut found = of_descriptors("poll", root, pid, &fds, timeout(timed));
            found.whole &= fds.len() as u64 == count;
            found
        }
        // Its sets of bits are not looked at.
        Blocked::Select { timed } => Named::partly("select", timeout(timed)),
        Blocked::Epoll { fd, timed } => {
            let fds = waits::in_set(root, pid, fd);
            let others = timeout(timed).into_iter().chain(["epoll"]);
            let mut found = of_descriptors("epoll_wait", root, pid, &fds, others);
            found.whole &= (1..waits::MOST_DESCRIPTORS).contains(&fds.len());
            found
        }
        Blocked::Read(fd) => of_descriptors("read", root, pid, &[fd], None),
        Blocked::Signal => Named::whole("sigwaitinfo", &["posix-timer", "sigwait"]),
        Blocked::Queue => Named::whole("mq_receive", &["mqueue"]),
        // What was asked of it lies in its rings.
        Blocked::Ring => Named::partly("io_uring_enter", ["uring-timeout", "uring-read"]),
        Blocked::Other(number) => Named::partly(format!("system call {number}"), None),
    }
}

fn of_descriptors(
    call: &str,
    root: &SysRoot,
    pid: i32,
    fds: &[i32],
    others: impl IntoIterator<Item = &'static str>,
) -> Named {
    let mut kinds: Vec<Kind> = fds.iter().map(|fd| kind(root, pid, *fd)).collect();
    kinds.order_by(Ord::cmp);
    kinds.dedup();
    let words: Vec<&str> = kinds.iter().map(|(words, _)| words.as_str()).collect();
    let ways = kinds.iter().filter_map(|(_, way)| *way);
    Named {
        call: if words.is_empty() { call.to_owned() } else { format!("{call}: {}", words.join(", ")) },
        ways: ways.chain(others).collect(),
        whole: kinds.iter().all(|(_, way)| way.is_some()),
    }
}

/// What a descriptor is in words, and the way that waiting for it is.
type Kind = (String, Option<&'static str>);

fn kind(root: &SysRoot, pid: i32, fd: i32) -> Kind {
    const ANONYMOUS: [(&str, &str); 4] = [
        ("timerfd", "timerfd"),
        ("eventfd", "eventfd"),
        ("signalfd", "signalfd"),
        ("io_uring", "uring-read"),
    ];
    match waits::descriptor(root, pid, fd) {
        Descriptor::Anonymous(name) => {
            let way = ANONYMOUS.iter().find(|(known, _)| *known == name).map(|(_, way)| *way);
            (name, way)
        }
        Descriptor::Pipe => ("pipe".into(), Some("pipe")),
        Descriptor::Socket(Some(Family::Unix)) => ("Unix socket".into(), Some("unix")),
        Descriptor::Socket(Some(Family::Udp)) => ("UDP".into(), Some("udp")),
        Descriptor::Socket(Some(Family::Tcp)) => ("TCP".into(), None),
        Descriptor::Socket(None) => ("a socket".into(), None),
        Descriptor::File(path) => (path, None),
        Descriptor::Unknown => ("what is not known".into(), None),
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, eventfd};
    use sys::clock::Clock;
    use sys::timer::TimerFd;

    use super::*;

    /// Threads that wait in ways that are known, found again by looking at this process.
    #[test]
    fn each_thread_is_seen_waiting_as_it_does() {
        const LONG: u64 = 60_000_000_000;
        let (sender, receiver) = std::sync::mpsc::channel();
        let begin = |wait: Box<dyn FnOnce() + Send>| {
            let sender = sender.clone();
            std::thread::spawn(move || {
                sender.send(sys::schedule::thread_id()).unwrap();
                wait();
            });
            receiver.recv().unwrap()
        };
        let sleeper = begin(Box::new(|| {
            let _ = Clock::Monotonic.sleep_until(Clock::Monotonic.now() + LONG);
        }));
        let timer = begin(Box::new(|| {
            let timer = TimerFd::new(Clock::Monotonic).unwrap();
            timer.rearm(Clock::Monotonic.now() + LONG, 0).unwrap();
            let _ = timer.wait();
        }));
        let poller = begin(Box::new(|| {
            let counter = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
            let mut polled = [rustix::event::PollFd::new(&counter, rustix::event::PollFlags::IN)];
            let _ = rustix::event::poll(&mut polled, None);
        }));
        let mixed = begin(Box::new(|| {
            let counter = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let polled = rustix::event::PollFlags::IN;
            let mut polled =
                [rustix::event::PollFd::new(&counter, polled), rustix::event::PollFd::new(&listener, polled)];
            let _ = rustix::event::poll(&mut polled, None);
        }));
        let mut left = 20;
        let mut follow = || {
            left -= 1;
            left >= 0
        };
        let pid = sys::process::own_pid().as_raw_pid();
        let found = watch(&SysRoot::live(), pid, &mut follow).unwrap();
        assert_eq!(found.looks, 20);
        let of = |tid: i32| {
            let wait = found.waits.iter().find(|wait| wait.thread.tid == tid).unwrap();
            (wait.call.as_str(), wait.ways.iter().map(String::as_str).collect::<Vec<_>>())
        };
        assert_eq!(of(sleeper), ("clock_nanosleep", vec!["nanosleep"]));
        assert_eq!(of(timer), ("read: timerfd", vec!["timerfd"]));
        assert_eq!(of(poller), ("poll: eventfd", vec!["eventfd"]));
        let whole = |tid: i32| found.waits.iter().find(|wait| wait.thread.tid == tid).unwrap().whole;
        assert!(whole(sleeper) && whole(timer) && whole(poller));
        assert_eq!(of(mixed), ("poll: TCP, eventfd", vec!["eventfd"]));
        assert!(!whole(mixed), "a socket that no way stands for");
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let error = watch(&SysRoot::live(), i32::MAX, &mut || true).unwrap_err();
        assert!(error.message.contains("no program"), "{error:?}");
    }
}
