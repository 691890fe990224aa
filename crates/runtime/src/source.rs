//! What the kernel has for a program, as events: interrupts through UIO and VFIO, edges of GPIO lines, timers, sockets.
//!
//! A thread off the cores waits for a descriptor, and each read of it becomes an event. A core makes no system call for that; what
//! the event takes longer than a read is the way from this thread to the core.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use sys::Errno;
use sys::descriptor::{self, Bell};

use crate::model::{Error, PoolId, QueueId};
use crate::state::{Machine, Shared};

/// The thread looks so often whether the machine has ended, in nanoseconds.
const LOOK: u64 = 100_000_000;
/// Bytes before those that were read: how many these are, and when.
const HEAD: usize = 16;
/// Pause after a read for which there was no event: else a device that goes on would keep the thread's CPU.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(1);

/// Where the events of a source come from and go to.
#[derive(Clone, Debug)]
pub struct SourceSpec {
    /// The thread's name: 15 bytes are shown.
    pub name: String,
    /// Where events are taken from.
    pub pool: PoolId,
    /// Bytes of a read, at most: 4 of UIO, 8 of an eventfd or a timerfd, 48 of a GPIO line, those of a datagram.
    pub bytes: usize,
    /// Where they are sent to.
    pub queue: QueueId,
}

/// What a source has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceFigures {
    /// Reads that became events.
    pub sent: u64,
    /// Reads that did not: the pool was empty, or the queue refused the event. What they had read is lost.
    pub refused: u64,
    /// The errno of the read that ended it; 0 at the end of what it reads from. None while it goes on.
    pub ended: Option<i32>,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    refused: AtomicU64,
    /// The errno, and one; 0: it goes on.
    ended: AtomicU64,
    is_stopping: AtomicBool,
}

/// A thread that makes events of what a descriptor has. Dropped, it ends.
#[derive(Debug)]
pub struct Source {
    counts: Arc<Counts>,
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Source {
    /// Starts the thread, with the policy, the priority and the CPUs of the calling one. Before each wait `before` is called: a driver of UIO
    /// that disables interrupts at each has to be asked for the next there.
    ///
    /// An event's word 0 is the number of bytes that were read, its word 1 the time on the machine's clock at which that was; the
    /// bytes follow, filled up to a word by zeroes. So events of the pool have 16 bytes more than [`SourceSpec::bytes`], rounded up to 8.
    ///
    /// # Errors
    /// No descriptor or thread is left.
    pub fn start(
        machine: &Machine,
        spec: SourceSpec,
        from: OwnedFd,
        before: impl FnMut() -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let bell = Arc::new(Bell::new().map_err(|error| io::Error::from_raw_os_error(error.number()))?);
        let counts = Arc::new(Counts::default());
        let name = spec.name.clone();
        let mut work = Work {
            machine: Arc::downgrade(&machine.shared),
            spec,
            from,
            before,
            bytes: Vec::new(),
            bell: Arc::clone(&bell),
            counts: Arc::clone(&counts),
        };
        work.bytes = vec![0; work.spec.bytes];
        let thread = std::thread::Builder::new().name(name).spawn(move || work.run())?;
        Ok(Self { counts, bell, thread: Some(thread) })
    }

    /// What it has done so far.
    pub fn figures(&self) -> SourceFigures {
        let load = |count: &AtomicU64| count.load(Ordering::Acquire);
        let ended = load(&self.counts.ended).checked_sub(1).map(|errno| errno as i32);
        SourceFigures { sent: load(&self.counts.sent), refused: load(&self.counts.refused), ended }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.counts.is_stopping.store(true, Ordering::SeqCst);
        self.bell.ring();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The thread's own.
struct Work<F> {
    machine: Weak<Shared>,
    spec: SourceSpec,
    from: OwnedFd,
    before: F,
    bytes: Vec<u8>,
    bell: Arc<Bell>,
    counts: Arc<Counts>,
}

impl<F: FnMut() -> io::Result<()>> Work<F> {
    fn run(&mut self) {
        if let Err(errno) = self.work() {
            self.counts.ended.store(u64::from(errno.unsigned_abs()) + 1, Ordering::Release);
        }
    }

    /// Until it is to stop, or a read fails: by what, 0 for the end.
    fn work(&mut self) -> Result<(), i32> {
        let number = |errno: Errno| errno.raw_os_error();
        loop {
            (self.before)().map_err(|error| error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()))?;
            while !self.bell.wait_with(&self.from, LOOK).map_err(number)? {
                if self.is_over() {
                    return Ok(());
                }
            }
            match descriptor::read(&self.from, &mut self.bytes) {
                Ok(0) => return Err(0),
                Ok(length) => self.send(length),
                // Somebody else has read it.
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(number(errno)),
            }
            if self.is_over() {
                return Ok(());
            }
        }
    }

    fn is_over(&self) -> bool {
        let has_ended = |shared: Arc<Shared>| shared.is_ending.load(Ordering::Acquire);
        self.counts.is_stopping.load(Ordering::SeqCst) || self.machine.upgrade().is_none_or(has_ended)
    }

    fn send(&self, length: usize) {
        let Some(shared) = self.machine.upgrade() else { return };
        let is_sent = self.send_to(&Machine::of(shared), length).is_ok();
        let count = if is_sent { &self.counts.sent } else { &self.counts.refused };
        count.fetch_add(1, Ordering::AcqRel);
        if !is_sent {
            std::thread::sleep(PAUSE);
        }
    }

    fn send_to(&self, machine: &Machine, length: usize) -> Result<(), Error> {
        let now = machine.clock().now();
        let mut event = machine.allocate(self.spec.pool, HEAD + length.next_multiple_of(8))?;
        event.bytes_mut().fill(0);
        event.set_word(0, length as u64);
        event.set_word(1, now);
        let place = event.bytes_mut().get_mut(HEAD..HEAD + length);
        if let Some((place, bytes)) = place.zip(self.bytes.get(..length)) {
            place.copy_from_slice(bytes);
        }
        machine.send(event, self.spec.queue).map_err(|refused| refused.error)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixStream};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::{Config, Event, Kind, QueueSpec};

    /// A machine with a pool of two events and a queue whose events are taken by hand.
    fn machine() -> (Machine, SourceSpec) {
        let (machine, _) = Machine::new(Config::default()).unwrap();
        let pool = machine.pool(2, 64).unwrap();
        let queue = machine.queue(&QueueSpec::new("arrived", Kind::Unscheduled), None).unwrap();
        (machine, SourceSpec { name: "source".into(), pool, bytes: 32, queue })
    }

    fn until<T>(mut what: impl FnMut() -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            match what() {
                Some(found) => return found,
                None => assert!(start.elapsed() < Duration::from_secs(20), "nothing came"),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn next(machine: &Machine, spec: &SourceSpec) -> Event {
        until(|| machine.take(spec.queue).unwrap())
    }

    #[test]
    fn each_read_is_an_event_with_its_time_and_its_bytes() {
        let (machine, spec) = machine();
        let (from, to) = UnixDatagram::pair().unwrap();
        let waits = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&waits);
        let before = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        let source = Source::start(&machine, spec.clone(), from.into(), before).unwrap();
        let mut last = 0;
        for text in ["one", "twelve bytes", "x"] {
            let sent = machine.clock().now();
            to.send(text.as_bytes()).unwrap();
            let event = next(&machine, &spec);
            assert_eq!(event.word(0), text.len() as u64);
            assert!((sent.max(last)..=machine.clock().now()).contains(&event.word(1)));
            assert_eq!(&event.bytes()[HEAD..HEAD + text.len()], text.as_bytes());
            assert!(event.bytes()[HEAD + text.len()..].iter().all(|byte| *byte == 0));
            last = event.word(1);
        }
        until(|| (waits.load(Ordering::SeqCst) == 4).then_some(()));
        assert_eq!(source.figures(), SourceFigures { sent: 3, refused: 0, ended: None });
    }

    #[test]
    fn what_finds_no_event_is_counted_and_does_not_end_it() {
        let (machine, spec) = machine();
        let (from, to) = UnixDatagram::pair().unwrap();
        let source = Source::start(&machine, spec.clone(), from.into(), || Ok(())).unwrap();
        let held: Vec<Event> = (0..2).map(|_| machine.allocate(spec.pool, 8).unwrap()).collect();
        to.send(b"lost").unwrap();
        until(|| (source.figures().refused == 1).then_some(()));
        drop(held);
        to.send(b"kept").unwrap();
        assert_eq!(&next(&machine, &spec).bytes()[HEAD..HEAD + 4], b"kept");
        assert_eq!(source.figures(), SourceFigures { sent: 1, refused: 1, ended: None });
    }

    #[test]
    fn an_end_and_an_error_are_known_afterwards() {
        let (machine, spec) = machine();
        let (from, to) = UnixStream::pair().unwrap();
        let source = Source::start(&machine, spec.clone(), from.into(), || Ok(())).unwrap();
        drop(to);
        assert_eq!(until(|| source.figures().ended), 0);
        let (from, _to) = UnixStream::pair().unwrap();
        let refused = || Err(io::Error::from_raw_os_error(13));
        let source = Source::start(&machine, spec, from.into(), refused).unwrap();
        assert_eq!(until(|| source.figures().ended), 13);
    }

    #[test]
    fn it_ends_when_it_is_dropped_and_with_the_machine() {
        let (machine, spec) = machine();
        let start = |machine: &Machine| {
            let (from, to) = UnixStream::pair().unwrap();
            (Source::start(machine, spec.clone(), from.into(), || Ok(())).unwrap(), to)
        };
        drop(start(&machine));
        let (source, _to) = start(&machine);
        machine.end();
        until(|| source.thread.as_ref().is_some_and(JoinHandle::is_finished).then_some(()));
    }
}
