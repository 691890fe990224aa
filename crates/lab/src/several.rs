//! Several guests, as many at once as there are cores for them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::boot::{self, Failure, Guest, Outcome};
use crate::{Error, MadeOf};

/// How often the watcher is asked whether to go on.
const TICK: Duration = Duration::from_millis(100);

/// What boots a guest: QEMU, or a script in tests.
pub trait Booter: Sync {
    /// Boots `guest` and waits for its end; `stop` is asked now and then.
    ///
    /// # Errors
    /// Where it did not run its command to the end.
    fn boot(&self, guest: &Guest, stop: &dyn Fn() -> bool) -> Result<Outcome, Failure>;

    /// What `guest` would be made of now.
    ///
    /// # Errors
    /// What a guest cannot be made of.
    fn made_of(&self, guest: &Guest) -> Result<MadeOf, Error>;
}

/// The real one.
#[derive(Clone, Copy, Debug)]
pub struct Qemu;

impl Booter for Qemu {
    fn boot(&self, guest: &Guest, stop: &dyn Fn() -> bool) -> Result<Outcome, Failure> {
        boot::run(guest, stop)
    }

    fn made_of(&self, guest: &Guest) -> Result<MadeOf, Error> {
        boot::made_of(guest)
    }
}

/// Follows what happens, in one thread.
pub trait Watcher {
    /// Guest `index` boots.
    fn begun(&mut self, index: usize);

    /// Guest `index` ended after `taken` of the host's time.
    ///
    /// # Errors
    /// Ends all: what came back could not be kept, so that more of it is no use.
    fn ended(&mut self, index: usize, result: Result<Outcome, Failure>, taken: Duration)
    -> Result<(), Error>;

    /// Asked several times a second; true ends all guests, and of those nothing more is reported.
    fn stop(&mut self) -> bool;
}

/// Boots all `guests`, `jobs` at once, in their order. One that fails does not stop the others. Gives back whether all
/// of them came to their end.
///
/// # Errors
/// The watcher's own.
pub fn run(
    booter: &dyn Booter,
    guests: &[Guest],
    jobs: usize,
    watcher: &mut dyn Watcher,
) -> Result<bool, Error> {
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = channel();
    let sender = Mutex::new(sender);
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, guests.len().max(1)) {
            let sender = sender.lock().map(|sender| sender.clone());
            let Ok(sender) = sender else { continue };
            scope.spawn(|| work(booter, guests, &next, &stopped, sender));
        }
        drop(sender);
        let mut result = Ok(());
        loop {
            match receiver.recv_timeout(TICK) {
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
                // What ends because it was ended says nothing.
                Ok(_) if stopped.load(Ordering::Relaxed) => {}
                Ok(Event::Begun(index)) => watcher.begun(index),
                Ok(Event::Ended(index, outcome, taken)) => result = watcher.ended(index, *outcome, taken),
            }
            if result.is_err() || watcher.stop() {
                stopped.store(true, Ordering::Relaxed);
            }
            if result.is_err() {
                break;
            }
        }
        result.map(|()| !stopped.load(Ordering::Relaxed))
    })
}

enum Event {
    Begun(usize),
    Ended(usize, Box<Result<Outcome, Failure>>, Duration),
}

/// Takes one guest after the other until none is left.
fn work(
    booter: &dyn Booter,
    guests: &[Guest],
    next: &AtomicUsize,
    stopped: &AtomicBool,
    tell: Sender<Event>,
) {
    let stop = || stopped.load(Ordering::Relaxed);
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(guest) = guests.get(index).filter(|_| !stop()) else { break };
        let begun = Instant::now();
        // Nobody listens any more where the watcher gave up.
        let _ = tell.send(Event::Begun(index));
        let outcome = booter.boot(guest, &stop);
        let _ = tell.send(Event::Ended(index, Box::new(outcome), begun.elapsed()));
    }
}
