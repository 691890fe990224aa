//! A double of EVL's interface, for tests on kernels without EVL: a process under it finds `/dev/evl`, attaches threads and sleeps out of
//! band, and another thread of the test answers as the core of Linux 5.10 with EVL (ABI 32) did. It intercepts system calls
//! (SECCOMP_RET_USER_NOTIF, seccomp(2)) of x86-64; nothing runs out of band.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::ioctl::{Opcode, opcode};

use super::{Attributes, Core, OUT_OF_BAND_IOCTL, Request, State, Time};
use crate::clock::Clock;
use crate::error::check;
use crate::injection::{JUMP_IF_EQUAL, LOAD, RETURN};
use crate::{Errno, Result};

/// Where the listener lies in the process, until it is fetched.
const LISTENER: libc::c_int = 987;
/// What says how early the core wakes threads.
const GRAVITY: &str = "/sys/devices/virtual/clock/monotonic/gravity";

/// How the core behaves.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// The versions of the interface that it has.
    pub abi: (u32, u32),
    /// By how much it wakes threads before the time that they ask for.
    pub gravity: u64,
    /// How often a thread fell back in band, when it is asked at the end.
    pub in_band_switches: u32,
    /// One sleep in so many is longer, by so many nanoseconds.
    pub delay: Option<(u32, u64)>,
    /// What attaching a thread ends with.
    pub refuses: Option<Errno>,
}

/// As the core that was looked at: `0i 3000k 3000u`, ABI 23 to 32.
impl Default for Behaviour {
    fn default() -> Self {
        Self { abi: (23, 32), gravity: 3_000, in_band_switches: 0, delay: None, refuses: None }
    }
}

/// What a thread asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The name of its element.
    pub name: String,
    /// Its policy and priority.
    pub scheduling: Option<(i32, i32)>,
    /// How often it slept.
    pub sleeps: u32,
    /// How many of these were longer.
    pub delayed: u32,
    /// How often it asked for its state.
    pub states: u32,
    /// Whether it was given back to Linux.
    pub detached: bool,
}

/// Has `command` run under the double; [`serve`] answers.
pub fn put_under(command: &mut Command) {
    let filter = filter();
    let enter = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: between fork and exec a few system calls; the kernel copies the filter.
        let entered = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            let mode = libc::SECCOMP_SET_MODE_FILTER;
            let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
            let listener = libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program);
            listener >= 0 && libc::dup2(listener as i32, LISTENER) == LISTENER
        };
        if entered { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: the closure makes system calls only and allocates nothing.
    unsafe { command.pre_exec(enter) };
}

/// Calls that may be the core's go to the double, all others to the kernel.
fn filter() -> Vec<libc::sock_filter> {
    // Of `seccomp_data`: the call's number, and the low halves of its first two arguments.
    const CALL: u32 = 0;
    const FIRST: u32 = 16;
    const SECOND: u32 = 24;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let [version, create, detach] = NUMBERS.map(|number| number());
    vec![
        step(LOAD, 0, 0, CALL),
        step(JUMP_IF_EQUAL, 11, 0, libc::SYS_open as u32),
        step(JUMP_IF_EQUAL, 10, 0, libc::SYS_openat as u32),
        step(JUMP_IF_EQUAL, 2, 0, libc::SYS_prctl as u32),
        step(JUMP_IF_EQUAL, 3, 0, libc::SYS_ioctl as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
        step(LOAD, 0, 0, FIRST),
        step(JUMP_IF_EQUAL, 5, 4, OUT_OF_BAND_IOCTL as u32),
        step(LOAD, 0, 0, SECOND),
        step(JUMP_IF_EQUAL, 3, 0, version),
        step(JUMP_IF_EQUAL, 2, 0, create),
        step(JUMP_IF_EQUAL, 1, 0, detach),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
        step(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
    ]
}

/// The ioctls that are made in band.
const NUMBERS: [fn() -> Opcode; 3] =
    [|| opcode::read::<Core>(b'C', 0), || opcode::read_write::<Request>(b'f', 0), || opcode::none(b'T', 7)];

/// What is answered to a call.
enum Answer {
    /// The kernel is to make it.
    Kernel,
    Value(i64),
    Refused(Errno),
    /// Nothing, until the clock reads this.
    Until(u64),
    /// The descriptor of a file with this content.
    Open(Vec<u8>),
}

/// The core: what it does, and what it was asked.
struct Double {
    listener: OwnedFd,
    behaviour: Behaviour,
    asked: Arc<Mutex<BTreeMap<u32, Asked>>>,
    /// Calls that sleep: when each ends, and its number.
    asleep: BTreeSet<(u64, u64)>,
}

/// The answering thread; joined, it gives what each thread of the process asked for.
pub struct Answering {
    thread: JoinHandle<()>,
    asked: Arc<Mutex<BTreeMap<u32, Asked>>>,
}

impl Answering {
    /// Waits until all of the process is gone.
    pub fn end(self) -> Vec<Asked> {
        let _ = self.thread.join();
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.values().cloned().collect()
    }
}

/// Answers the calls of the process `pid`, which [`put_under`] began.
///
/// # Errors
/// The kernel does not give its listener away (Linux 5.6, and the right to trace it).
pub fn serve(pid: u32, behaviour: Behaviour) -> Result<Answering> {
    // SAFETY: integers only; the descriptors are ours.
    let listener = unsafe {
        let process = check(libc::syscall(libc::SYS_pidfd_open, pid, 0), "pidfd_open", pid)?;
        let process = OwnedFd::from_raw_fd(process as i32);
        let fetched = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), LISTENER, 0);
        OwnedFd::from_raw_fd(check(fetched, "pidfd_getfd", pid)? as i32)
    };
    let asked = Arc::new(Mutex::new(BTreeMap::new()));
    let double = Double { listener, behaviour, asked: Arc::clone(&asked), asleep: BTreeSet::new() };
    Ok(Answering { thread: std::thread::spawn(|| double.answer_all()), asked })
}

impl Double {
    fn answer_all(mut self) {
        loop {
            self.wake();
            let mut wanted = libc::pollfd { fd: self.listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            let left = self
                .asleep
                .first()
                .map_or(1_000_000_000, |(until, _)| until.saturating_sub(Clock::Monotonic.now()));
            let time =
                libc::timespec { tv_sec: (left / 1_000_000_000) as _, tv_nsec: (left % 1_000_000_000) as _ };
            // SAFETY: both outlive the call.
            let found = unsafe { libc::ppoll(&raw mut wanted, 1, &raw const time, std::ptr::null()) };
            if found > 0 && wanted.revents & libc::POLLIN != 0 {
                self.answer_one();
            } else if found > 0 {
                return;
            }
        }
    }

    /// Ends the sleeps whose time has come.
    fn wake(&mut self) {
        let now = Clock::Monotonic.now();
        while let Some(&(until, id)) = self.asleep.first() {
            if until > now {
                return;
            }
            self.asleep.remove(&(until, id));
            self.send(id, 0, 0, 0);
        }
    }

    fn answer_one(&mut self) {
        // SAFETY: all zeros is a value of it, and what the kernel wants before it fills it.
        let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: `call` outlives the call. It fails where the process was killed meanwhile.
        let received = unsafe {
            libc::ioctl(self.listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV as _, &raw mut call)
        };
        if received == -1 {
            return;
        }
        match self.answer(&call).unwrap_or(Answer::Refused(Errno::FAULT)) {
            Answer::Kernel => self.send(call.id, 0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
            Answer::Value(value) => self.send(call.id, value, 0, 0),
            Answer::Refused(errno) => self.send(call.id, 0, -errno.raw_os_error(), 0),
            Answer::Until(until) => _ = self.asleep.insert((until, call.id)),
            Answer::Open(content) => match self.give(call.id, &content) {
                Some(descriptor) => self.send(call.id, descriptor.into(), 0, 0),
                None => self.send(call.id, 0, -libc::EMFILE, 0),
            },
        }
    }

    fn send(&self, id: u64, val: i64, error: i32, flags: u32) {
        let mut response = libc::seccomp_notif_resp { id, val, error, flags };
        // SAFETY: `response` outlives the call. It fails where the process was killed meanwhile.
        unsafe {
            libc::ioctl(self.listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND as _, &raw mut response)
        };
    }

    /// Opens a file with this content in the process; its number there.
    fn give(&self, id: u64, content: &[u8]) -> Option<i32> {
        let file = rustix::fs::memfd_create(c"double", rustix::fs::MemfdFlags::CLOEXEC).ok()?;
        let mut file = File::from(file);
        file.write_all(content).ok()?;
        rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0)).ok()?;
        let mut added = libc::seccomp_notif_addfd {
            id,
            flags: 0,
            srcfd: file.as_raw_fd() as u32,
            newfd: 0,
            newfd_flags: libc::O_CLOEXEC as u32,
        };
        // SAFETY: `added` outlives the call.
        let number = unsafe {
            libc::ioctl(self.listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD as _, &raw mut added)
        };
        (number >= 0).then_some(number)
    }

    /// What is answered; none where the memory of the process is not what it said.
    fn answer(&mut self, call: &libc::seccomp_notif) -> Option<Answer> {
        let [first, second, third, fourth, ..] = call.data.args;
        let memory = File::options().read(true).write(true).open(format!("/proc/{}/mem", call.pid));
        let memory = Memory(memory.ok()?);
        let asked = Arc::clone(&self.asked);
        let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
        match i64::from(call.data.nr) {
            libc::SYS_open => Some(self.opened(&memory.text(first)?)),
            libc::SYS_openat => Some(self.opened(&memory.text(second)?)),
            libc::SYS_ioctl => {
                let asked = asked.entry(call.pid).or_default();
                self.in_band(call.id, second as Opcode, third, &memory, asked)
            }
            _ => self.out_of_band(third as Opcode, fourth, &memory, asked.entry(call.pid).or_default()),
        }
    }

    fn opened(&self, path: &str) -> Answer {
        match path {
            GRAVITY => Answer::Open(format!("0i {0}k {0}u\n", self.behaviour.gravity).into_bytes()),
            _ if path.starts_with("/dev/evl/") => Answer::Open(Vec::new()),
            _ => Answer::Kernel,
        }
    }

    fn in_band(
        &self,
        id: u64,
        number: Opcode,
        at: u64,
        memory: &Memory,
        asked: &mut Asked,
    ) -> Option<Answer> {
        let [version, create, _] = NUMBERS.map(|number| number());
        if number == version {
            let (abi_base, abi_current) = self.behaviour.abi;
            memory.put(at, &Core { abi_base, abi_current, fpu_features: 0, shared_memory: 2 << 20 })?;
        } else if number == create {
            if let Some(errno) = self.behaviour.refuses {
                return Some(Answer::Refused(errno));
            }
            let mut request: Request = memory.get(at)?;
            asked.name = memory.text(request.name)?;
            request.descriptor = self.give(id, b"")? as u32;
            memory.put(at, &request)?;
        } else {
            asked.detached = true;
        }
        Some(Answer::Value(0))
    }

    fn out_of_band(&self, number: Opcode, at: u64, memory: &Memory, asked: &mut Asked) -> Option<Answer> {
        let is = |other: Opcode| number == other;
        if is(opcode::write::<Attributes>(b'T', 1)) {
            let attributes: Attributes = memory.get(at)?;
            asked.scheduling = Some((attributes.policy, attributes.priority));
        } else if is(opcode::read::<State>(b'T', 4)) {
            asked.states += 1;
            let in_band_switches = if asked.states > 1 { self.behaviour.in_band_switches } else { 0 };
            let state = State { in_band_switches, context_switches: asked.sleeps, ..State::default() };
            memory.put(at, &state)?;
        } else if is(opcode::write::<Time>(b'c', 0)) {
            let time: Time = memory.get(at)?;
            asked.sleeps += 1;
            let until = (time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64)
                .saturating_sub(self.behaviour.gravity);
            let longer = self.behaviour.delay.filter(|(each, _)| asked.sleeps % each == 0);
            asked.delayed += u32::from(longer.is_some());
            return Some(Answer::Until(until + longer.map_or(0, |(_, length)| length)));
        } else {
            return Some(Answer::Refused(Errno::NOTTY));
        }
        Some(Answer::Value(0))
    }
}

/// The memory of a process.
struct Memory(File);

impl Memory {
    fn text(&self, at: u64) -> Option<String> {
        let mut bytes = [0; 256];
        let length = self.0.read_at(&mut bytes, at).ok()?;
        let text = bytes[..length].split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    fn get<T: Copy>(&self, at: u64) -> Option<T> {
        let mut bytes = vec![0_u8; size_of::<T>()];
        self.0.read_exact_at(&mut bytes, at).ok()?;
        // SAFETY: the structures of the interface consist of integers.
        Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
    }

    fn put<T: Copy>(&self, at: u64, value: &T) -> Option<()> {
        // SAFETY: as above; padding is zero or of no consequence.
        let bytes =
            unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast::<u8>(), size_of::<T>()) };
        self.0.write_all_at(bytes, at).ok()
    }
}
