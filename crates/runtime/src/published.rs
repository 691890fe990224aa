//! What ran on each core, for another process to read: `worstcase guard` lays the kernel's trace over it.
//!
//! The memory is a file without a name (memfd_create(2)) that the machine keeps open, so whoever may look into the process finds it
//! at `/proc/PID/fd`. A core writes with plain stores and never waits: it makes no system call, as a write to `trace_marker`
//! would be. Each core has a ring of what ran; what was overwritten before it was read is lost, and its reader counts it.
//!
//! Words of 64 bits in the machine's order of bytes:
//!
//! ```text
//! head      MAGIC, cores, entries a core, objects, queues, clock: kind, base, multiplier, CLOCK_MONOTONIC at its 0
//! objects   name (4 words), each
//! queues    name (4 words), budget, deadline, bound (ns; 0 none), each
//! cores     thread, written, what runs now, since when; then the ring: sent, begin, end, what (ns of the machine's clock)
//! ```

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{Ordering, fence};

use sys::clock::Clock as KernelClock;
use sys::shared::{SharedWords, Word};

use crate::clock::Clock;
use crate::model::MAX_CORES;

/// What the memory begins with; another form gets another one.
const MAGIC: u64 = u64::from_le_bytes(*b"wrcores1");

const HEAD: usize = 16;
const NAME: usize = 4;
const QUEUE: usize = NAME + 3;
/// Before a core's ring: two lines of cache, which other cores do not write to.
const CORE: usize = 16;
const ENTRY: usize = 4;

/// Places of a core's words.
const THREAD: usize = 0;
const WRITTEN: usize = 1;
const RUNNING: usize = 2;
const SINCE: usize = 3;

/// What a reader believes at most, who reads memory of any program: entries of a core, objects, queues.
const MOST: [u64; 3] = [MOST_ENTRIES as u64, 1 << 16, 1 << 16];
const MOST_ENTRIES: usize = 1 << 20;

/// A core that did not look round for so long, with nothing to run meanwhile, was held up: ns.
pub(crate) const GAP: u64 = 1_000;

#[derive(Clone, Copy, Debug)]
struct Layout {
    cores: usize,
    entries: usize,
    objects: usize,
    queues: usize,
}

impl Layout {
    fn object(self, number: usize) -> usize {
        HEAD + number * NAME
    }

    fn queue(self, number: usize) -> usize {
        self.object(self.objects) + number * QUEUE
    }

    fn core(self, number: usize) -> usize {
        self.queue(self.queues).next_multiple_of(CORE) + number * (CORE + self.entries * ENTRY)
    }

    fn words(self) -> usize {
        self.core(self.cores)
    }
}

/// The side of the machine.
pub(crate) struct Published {
    words: SharedWords,
    layout: Layout,
    /// By which others find the memory.
    _file: OwnedFd,
}

/// An object's number + 1, and a queue's.
fn what(object: u32, queue: u32) -> u64 {
    u64::from(object) << 32 | u64::from(queue)
}

impl Published {
    pub fn new(
        (cores, entries, objects, queues): (usize, usize, usize, usize),
        clock: &Clock,
    ) -> sys::Result<Self> {
        let entries = entries.min(MOST_ENTRIES);
        let layout = Layout { cores, entries, objects, queues };
        let (words, file) = SharedWords::create(layout.words())?;
        words.touch();
        let (kind, base, multiplier) = clock.parts();
        let zero = KernelClock::Monotonic.now().wrapping_sub(clock.now());
        let head =
            [cores as u64, entries as u64, objects as u64, queues as u64, kind, base, multiplier, zero];
        words[1..].iter().zip(head).for_each(|(word, value)| word.set(value));
        words[0].publish(MAGIC);
        Ok(Self { words, layout, _file: file })
    }

    fn name(&self, place: usize, name: &str) {
        let mut bytes = [0; NAME * 8];
        let ends = name.char_indices().map(|(place, c)| place + c.len_utf8());
        let length = ends.take_while(|end| *end <= bytes.len()).last().unwrap_or(0);
        bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
        numbers(&bytes).zip(&self.words[place..]).for_each(|(number, word)| word.set(number));
    }

    pub fn object(&self, number: usize, name: &str) {
        self.name(self.layout.object(number), name);
    }

    pub fn queue(&self, number: usize, name: &str) {
        self.name(self.layout.queue(number), name);
    }

    /// Budget, deadline and bound of a queue, ns.
    pub fn limits(&self, number: usize, limits: [u64; 3]) {
        let place = self.layout.queue(number) + NAME;
        self.words[place..].iter().zip(limits).for_each(|(word, limit)| word.set(limit));
    }

    fn core(&self, core: usize) -> &[Word] {
        &self.words[self.layout.core(core)..]
    }

    /// The thread that is this core now.
    pub fn thread(&self, core: usize, thread: i32) {
        self.core(core)[THREAD].set(thread as u64);
    }

    /// A receive begins.
    #[inline]
    pub fn begin(&self, core: usize, since: u64, object: u32, queue: u32) {
        let core = self.core(core);
        core[SINCE].set(since);
        core[RUNNING].publish(what(object, queue));
    }

    /// It ends; or the core was held up between two receives, where the object is 0.
    #[inline]
    pub fn end(&self, core: usize, (sent, begin, end): (u64, u64, u64), object: u32, queue: u32) {
        let core = self.core(core);
        let written = core[WRITTEN].get();
        let place = CORE + (written % self.layout.entries as u64) as usize * ENTRY;
        // Who read the number of entries before sees none of this in their place, or the new number afterwards.
        fence(Ordering::Release);
        let entry = [sent, begin, end, what(object, queue)];
        core[place..].iter().zip(entry).for_each(|(word, value)| word.set(value));
        core[RUNNING].set(0);
        core[WRITTEN].publish(written + 1);
    }
}

/// Something that ran on a core, ns of the machine's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// When its event was sent, or due; 0 where its queue has no contract.
    pub sent: u64,
    /// When it began.
    pub begin: u64,
    /// When it was done; 0 for what still runs.
    pub end: u64,
    /// The object's number; none where the core was held up while nothing ran.
    pub object: Option<u32>,
    /// The queue's number.
    pub queue: u32,
}

/// What a machine promises of a queue, ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// The queue's name.
    pub name: String,
    /// How long an event may run; none without a contract.
    pub budget: Option<u64>,
    /// By when it is to be done.
    pub deadline: Option<u64>,
    /// What was computed; none where there is no bound.
    pub bound: Option<u64>,
}

/// Two clocks read at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// ns of the machine's clock.
    pub machine: u64,
    /// `CLOCK_MONOTONIC`, ns.
    pub monotonic: u64,
    /// By how much the two readings may lie apart, ns.
    pub doubt: u64,
}

/// The side of who looks on.
#[derive(Debug)]
pub struct Reader {
    file: File,
    layout: Layout,
    clock: Clock,
    /// `CLOCK_MONOTONIC` at the clock's 0, as the machine read it.
    zero: u64,
    /// Entries of each core that were read.
    read: Vec<u64>,
}

impl Reader {
    /// Of a file that may be one; none where it is not.
    ///
    /// # Errors
    /// What reading it answered.
    pub fn open(file: File) -> io::Result<Option<Self>> {
        let length = file.metadata()?.len();
        if length < (HEAD * 8) as u64 {
            return Ok(None);
        }
        let head = words(&file, 0, HEAD)?;
        let [magic, cores, entries, objects, queues, kind, base, multiplier, zero, ..] = head[..] else {
            return Ok(None);
        };
        let counts = [entries, objects, queues];
        let is_sane =
            cores <= MAX_CORES as u64 && counts.iter().zip(MOST).all(|(count, most)| *count <= most);
        if magic != MAGIC || !is_sane || entries == 0 {
            return Ok(None);
        }
        let layout = Layout {
            cores: cores as usize,
            entries: entries as usize,
            objects: objects as usize,
            queues: queues as usize,
        };
        if length < 8 * layout.words() as u64 {
            return Ok(None);
        }
        let clock = Clock::of_parts(kind, base, multiplier);
        Ok(Some(Self { file, layout, clock, zero, read: vec![0; cores as usize] }))
    }

    /// How many cores the machine has.
    pub fn cores(&self) -> usize {
        self.layout.cores
    }

    /// Names of the objects, by their numbers; empty where there is none.
    ///
    /// # Errors
    /// What reading answered.
    pub fn objects(&self) -> io::Result<Vec<String>> {
        let words = words(&self.file, self.layout.object(0), self.layout.objects * NAME)?;
        Ok(words.chunks(NAME).map(name).collect())
    }

    /// What is promised of the queues, by their numbers.
    ///
    /// # Errors
    /// What reading answered.
    pub fn queues(&self) -> io::Result<Vec<Promise>> {
        let words = words(&self.file, self.layout.queue(0), self.layout.queues * QUEUE)?;
        let promise = |words: &[u64]| {
            let limit = |place: usize| words.get(NAME + place).copied().filter(|limit| *limit > 0);
            Promise { name: name(&words[..NAME]), budget: limit(0), deadline: limit(1), bound: limit(2) }
        };
        Ok(words.chunks(QUEUE).map(promise).collect())
    }

    /// The thread that is a core, and what runs there now; 0 where no thread was one yet.
    ///
    /// # Errors
    /// What reading answered.
    pub fn now(&self, core: usize) -> io::Result<(i32, Option<Ran>)> {
        let words = words(&self.file, self.layout.core(core), CORE)?;
        let running = Ran { begin: words[SINCE], ..ran(&[0, 0, 0, words[RUNNING]]) };
        Ok((words[THREAD] as i32, (words[RUNNING] != 0).then_some(running)))
    }

    /// Leaves out what ran so far.
    ///
    /// # Errors
    /// What reading answered.
    pub fn forget(&mut self) -> io::Result<()> {
        for core in 0..self.layout.cores {
            self.read[core] = self.written(core)?;
        }
        Ok(())
    }

    fn written(&self, core: usize) -> io::Result<u64> {
        Ok(words(&self.file, self.layout.core(core) + WRITTEN, 1)?[0])
    }

    /// Shows what ran on a core since the last call, in its order, and says how many were overwritten before.
    ///
    /// # Errors
    /// What reading answered.
    pub fn each(&mut self, core: usize, see: &mut dyn FnMut(Ran)) -> io::Result<u64> {
        let Layout { entries, .. } = self.layout;
        let (from, to) = (self.read[core], self.written(core)?);
        let ring = words(&self.file, self.layout.core(core) + CORE, entries * ENTRY)?;
        // The place of the next one may have been written to already.
        let whole = self.written(core)?.saturating_add(1).saturating_sub(entries as u64);
        let first = from.max(whole).min(to);
        for number in first..to {
            let place = (number % entries as u64) as usize * ENTRY;
            see(ran(&ring[place..place + ENTRY]));
        }
        self.read[core] = to;
        Ok(first - from.min(first))
    }

    /// Reads both clocks: the least doubt of several tries.
    pub fn moment(&self) -> Moment {
        let read = |_| {
            let before = KernelClock::Monotonic.now();
            let machine = self.clock.now();
            let after = KernelClock::Monotonic.now();
            Moment { machine, monotonic: before + (after - before) / 2, doubt: (after - before).div_ceil(2) }
        };
        let best = (0..16).map(read).min_by_key(|moment| moment.doubt);
        let library = |moment: Moment| Moment { machine: moment.monotonic.wrapping_sub(self.zero), ..moment };
        let is_counter = self.clock.counter_at(0).is_some();
        let none = Moment { machine: 0, monotonic: 0, doubt: u64::MAX };
        best.map_or(none, |best| if is_counter { best } else { library(best) })
    }
}

fn ran(entry: &[u64]) -> Ran {
    let [sent, begin, end, what] = entry[..] else { return Ran::default() };
    Ran { sent, begin, end, object: ((what >> 32) as u32).checked_sub(1), queue: what as u32 }
}

fn name(words: &[u64]) -> String {
    let bytes: Vec<u8> =
        words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn words(file: &File, from: usize, count: usize) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; count * 8];
    file.read_exact_at(&mut bytes, from as u64 * 8)?;
    Ok(numbers(&bytes).collect())
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).filter_map(|eight| eight.try_into().ok().map(u64::from_ne_bytes))
}

#[cfg(all(test, not(loom), not(miri)))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Config, Contract, Event, Here, Kind, Limits, Machine, QueueId, QueueSpec};

    fn reader(published: &Published) -> Reader {
        let file = File::from(published._file.try_clone().unwrap());
        Reader::open(file).unwrap().unwrap()
    }

    #[test]
    fn what_was_overwritten_is_counted_and_what_is_there_is_whole() {
        let published = Published::new((2, 8, 1, 1), &Clock::simulated()).unwrap();
        let mut reader = reader(&published);
        let mut read = |published: &Published, count: u64| {
            (0..count).for_each(|n| published.end(1, (0, n, n + 1), 1, 7));
            let mut seen = Vec::new();
            let lost = reader.each(1, &mut |ran| seen.push(ran.begin)).unwrap();
            (lost, seen)
        };
        assert_eq!(read(&published, 3), (0, vec![0, 1, 2]));
        // Of 20 the last 7: the eighth may be in the writing.
        assert_eq!(read(&published, 20), (13, (13..20).collect()));
        assert_eq!(read(&published, 0), (0, vec![]));
    }

    #[test]
    fn a_file_of_another_kind_is_none() {
        let (words, file) = SharedWords::create(64).unwrap();
        assert!(Reader::open(File::from(file.try_clone().unwrap())).unwrap().is_none());
        // The sign alone: everything else is wrong.
        words[0].set(MAGIC);
        (1..9).for_each(|place| words[place].set(u64::MAX));
        assert!(Reader::open(File::from(file)).unwrap().is_none());
    }

    #[test]
    fn a_machine_publishes_what_ran_with_its_names_and_limits() {
        let clock = Clock::simulated();
        let config = Config { publish: 16, ..Config::default() };
        let (machine, mut cores) = Machine::with_clock(config, clock.clone()).unwrap();
        let pool = machine.pool(16, 64).unwrap();
        let inside = clock.clone();
        let object = machine
            .object("controller of the motor on axis é", move |here: &Here<'_>, event: Event, _: QueueId| {
                inside.advance(700);
                here.now(); // reading the clock makes the run no shorter
                inside.advance(event.word(0));
            })
            .unwrap();
        let contract = Contract { distance: 100_000, burst: 4, budget: 1_000, deadline: 90_000 };
        let queue = machine
            .queue(&QueueSpec::new("controls", Kind::Atomic).contract(contract), Some(object))
            .unwrap();
        machine.start(object).unwrap();
        clock.advance(50);
        for length in [10, 5_000] {
            let mut event = machine.allocate(pool, 64).unwrap();
            event.set_word(0, length);
            machine.send(event, queue).map_err(|refused| refused.error).unwrap();
        }
        cores[0].dispatch(Limits { idle_rounds: 1, ..Limits::default() });
        let mut reader = reader(machine.shared.published.as_ref().unwrap());
        // Cut where the next letter has no room.
        assert_eq!(reader.objects().unwrap()[0], "controller of the motor on axis ");
        let promise = reader.queues().unwrap().remove(0);
        assert_eq!(
            (promise.name.as_str(), promise.budget, promise.deadline),
            ("controls", Some(1_000), Some(90_000))
        );
        assert_eq!(promise.bound, machine.bound_of(queue).map(|bound| bound.response));
        assert_eq!(reader.now(0).unwrap(), (sys::schedule::thread_id(), None));
        let mut seen = Vec::new();
        assert_eq!(reader.each(0, &mut |ran| seen.push(ran)).unwrap(), 0);
        let ran = |begin, end| Ran { sent: 50, begin, end, object: Some(0), queue: queue.number() };
        assert_eq!(seen, [ran(50, 760), ran(760, 6_460)]);
        assert_eq!(machine.figures_of(queue).unwrap().overruns, 1);
    }
}
