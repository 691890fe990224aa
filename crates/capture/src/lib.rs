//! Catches late wake-ups in the kernel's trace and has them explained.
//!
//! An instance of the trace records into rings that overwrite themselves. A thread that woke up late writes a mark, and the
//! kernel stops the instance at that write, by a trigger: nobody else has to come in time. [`Capture::take`] then reads
//! the rings, explains the wake-ups, and lets the instance go on; the threshold rises to the least of the worst ones
//! kept, so that the rings are read ever more seldom.
//!
//! Where recording the stacks takes longer than the worst wake-ups do without, it goes on without them.
//!
//! Where many wake-ups are wanted they come in clusters, and a frozen ring has the first one alone. Then the rings are read on
//! while the kernel records, as [`Live`] reads them, and each late wake-up has its mark ([`Capture::streams`]).
//!
//! ```text
//! thread:  late ─ mark ─┐ (trigger: traceoff)          marks again from a higher threshold
//! kernel:  rings ═══════╪ frozen ───────────── rings ═════
//! Capture:                 read, explain, clear
//! ```
//!
//! ```no_run
//! use capture::{Live, Threads};
//! use units::Nanos;
//!
//! # fn main() -> failure::Result<()> {
//! let mut live = Live::begin(Threads::Named("app".into()), Nanos::from_micros(100))?;
//! loop {
//!     std::thread::sleep(std::time::Duration::from_millis(100));
//!     for late in live.look()? {
//!         println!("{}: {:?}", late.latency, late.causes);
//!     }
//! }
//! # }
//! ```

mod cpus;
mod guard;
mod hits;
mod live;
mod rings;

use control::Mark;
use explain::{Event, Kind, Watching};
use failure::{Error, Result};
use machine::facts::processors::online;
use record::{Hit, LateWakeUp, Overview, Tracing};
use sys::clock::Clock;
use sys::schedule::BeforeOthers;
use sysroot::SysRoot;
use trace::Symbols;
use trace::live::{Form, Instance};
use units::{Bytes, Nanos};

use cpus::Cpus;
pub use guard::Guard;
use hits::Hits;
pub use live::Live;
use rings::{Read, Rings};

/// The most wake-ups that are wanted of rings that freeze.
const FROZEN: usize = 10;

/// How long events are kept that nothing wants yet: as long a delay is explained to its beginning.
const KEPT: Nanos = Nanos(300_000_000);

/// By what a thread has itself woken.
const ARMED: &str = "timer/hrtimer_start";

/// What is absent where every address in /proc/kallsyms is 0.
const HIDDEN: &str =
    "names of functions: the kernel hides its addresses (kernel.kptr_restrict above 0; at 2 from root too)";

/// Size of a CPU's ring, and of all together.
const RING: Bytes = Bytes(4 << 20);
const RINGS: u64 = 128 << 20;

/// The threads whose wake-ups are caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Threads {
    /// Those whose name begins with this.
    Named(String),
    /// These.
    Ids(Vec<i32>),
}

impl Threads {
    /// A filter of the kernel's: the field with the id, the one with the name.
    fn filter(&self, id: &str, name: &str) -> String {
        match self {
            Self::Named(beginning) => format!("{name} ~ \"{beginning}*\""),
            Self::Ids(ids) => {
                let ids: Vec<String> = ids.iter().map(|one| format!("{id} == {one}")).collect();
                ids.join(" || ")
            }
        }
    }

    /// Whether it is one of them.
    fn has(&self, tid: i32, name: &str) -> bool {
        match self {
            Self::Named(beginning) => name.starts_with(beginning),
            Self::Ids(ids) => ids.contains(&tid),
        }
    }
}

/// Late wake-ups being caught. Dropped, the instance is removed.
pub struct Capture {
    recording: Recording,
    hits: Hits,
    threads: Threads,
    rings: Rings,
    watching: Watching,
    /// When the kernel began to record, or went on.
    since: Nanos,
    /// Whether the kernel goes on recording at a mark.
    streams: bool,
    /// Marks that were read and not explained yet: what other CPUs did meanwhile is still to come.
    waiting: Vec<LateWakeUp>,
    /// Marks that the trace had.
    marks: u64,
    /// The end of the events that were read: where they come fast, they are read long after they were recorded.
    read: Nanos,
    urgent: Option<BeforeOthers>,
}

/// The wake-up that an event marks.
fn marked(event: &Event) -> Option<LateWakeUp> {
    let Kind::Mark(text) = &event.kind else { return None };
    let Mark { activation, due, woke, interval } = Mark::read(text)?;
    let (due, woke, interval) = (Nanos(due), Nanos(woke), Nanos(interval));
    Some(LateWakeUp { tid: event.task, cpu: event.cpu, activation, due, woke, interval, slack_until: None })
}

impl Capture {
    /// Makes the instance for the `wanted` worst wake-ups of `threads`, which are looked at from `threshold` on. Nothing is
    /// recorded before [`Capture::go_on`].
    ///
    /// # Errors
    /// There is no tracefs, or the kernel refuses.
    pub fn begin(threads: &Threads, wanted: usize, threshold: Nanos) -> Result<Self> {
        let mut recording = Recording::begin(threads, threshold)?;
        let streams = wanted > FROZEN;
        if !streams {
            let freeze = format!("traceoff if buf ~ \"{}*\"", control::Marker::TEXT);
            recording.instance.write("events/ftrace/print/trigger", &freeze).map_err(Error::from)?;
        }
        recording.instance.open(Form::Binary).map_err(Error::from)?;
        Ok(Self {
            recording,
            hits: Hits::new(wanted, threshold),
            threads: threads.clone(),
            rings: Rings::of_this_machine(),
            watching: Watching::default(),
            since: Nanos(u64::MAX),
            streams,
            waiting: Vec::new(),
            marks: 0,
            read: Nanos::ZERO,
            urgent: None,
        })
    }

    /// The file by which threads mark late wake-ups.
    pub fn marker(&self) -> String {
        format!("{}/trace_marker", self.recording.instance.directory())
    }

    /// Lets the kernel record. From now on the calling thread goes before others, until this is dropped.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn go_on(&mut self) -> Result<()> {
        self.urgent.get_or_insert_with(BeforeOthers::begin);
        self.rings.are_read_here();
        self.rings.resume(Nanos(Clock::Monotonic.now()));
        self.recording.instance.write("tracing_on", "1").map_err(Error::from)?;
        self.since = Nanos(Clock::Monotonic.now());
        Ok(())
    }

    /// Has the kernel record nothing until [`Capture::go_on`].
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn hold(&mut self) -> Result<()> {
        self.halt()?;
        self.read_on()?;
        self.watching.lose(None);
        Ok(())
    }

    fn halt(&mut self) -> Result<()> {
        self.recording.instance.write("tracing_on", "0").map_err(Error::from)
    }

    /// From which latency wake-ups are to be marked now.
    pub fn threshold(&self) -> Nanos {
        self.hits.threshold()
    }

    /// Whether every late wake-up is to be marked, because a mark stops nothing.
    pub fn streams(&self) -> bool {
        self.streams
    }

    /// Explains wake-ups whose marks have stopped the trace, and lets the kernel record again.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn take(&mut self) -> Result<()> {
        self.halt()?;
        self.read_on()?;
        // Nothing is recorded until the kernel goes on.
        self.watching.lose(None);
        self.recording.tracing.freezes += 1;
        self.explain_waiting();
        self.forget();
        self.go_on()
    }

    /// Reads what was recorded since, so that the rings do not overwrite it; a few times a second is enough for most loads.
    /// Explains the wake-ups that were marked before the last reading, where marks stop nothing.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn read(&mut self) -> Result<()> {
        let ready = std::mem::take(&mut self.waiting);
        self.read_on()?;
        let marked = std::mem::replace(&mut self.waiting, ready);
        if self.streams {
            self.explain_waiting();
        }
        self.waiting.extend(marked);
        self.forget();
        Ok(())
    }

    /// Reads on, and finds marks.
    fn read_on(&mut self) -> Result<()> {
        let Self { recording, threads, rings, watching, waiting, marks, read, .. } = self;
        let all = Nanos(u64::MAX);
        rings.read_on(&mut recording.instance, &recording.symbols, all, &mut |item| match item {
            Read::Event(event) => {
                *read = event.at.max(*read);
                watching.see(event, |tid, name| threads.has(tid, name));
                let late = marked(event);
                *marks += u64::from(late.is_some());
                late.iter().for_each(|late| watching.late(late));
                waiting.extend(late);
            }
            Read::Lost { .. } => watching.lose(None),
        })?;
        recording.look_at_cpus();
        Ok(())
    }

    fn explain_waiting(&mut self) {
        for late in std::mem::take(&mut self.waiting) {
            // What began before is in no trace.
            let explained = if late.due >= self.since { self.rings.explain(&late) } else { None };
            match explained {
                Some(explained) => self.hits.add(explained),
                None => self.recording.tracing.blind += 1,
            }
        }
        if self.hits.are_hidden() && self.recording.do_without_stacks() {
            self.hits.go_on_with_less();
        }
    }

    /// Forgets what no explanation wants any more.
    fn forget(&mut self) {
        let needed = self.waiting.iter().map(|late| late.due).min().unwrap_or(self.read).min(self.read);
        self.rings.forget_before(Nanos(needed.0.saturating_sub(KEPT.0)));
    }

    /// What was traced, the worst wake-ups, the worst first, and what all activations and handlers took. Of the marks that
    /// threads have `written` some may be in no trace.
    pub fn finish(mut self, written: u64) -> (Tracing, Vec<Hit>, Overview) {
        // Where the rest cannot be read any more, there is what was read before.
        let _ = self.halt().and_then(|()| self.read_on());
        self.explain_waiting();
        let mut tracing = self.recording.tracing(&self.watching);
        tracing.blind += written.saturating_sub(self.marks);
        let (hits, left_out) = self.hits.finish(|explained| self.rings.judged(explained));
        tracing.own += left_out;
        (tracing, hits, self.watching.overview())
    }
}

/// What the kernel has enabled and leaves out all the same.
fn withheld(watching: &Watching) -> Option<String> {
    let cpus = watching.silent_idle();
    (!cpus.is_empty()).then(|| format!("events of the idle thread on {}", cpus.named()))
}

/// An instance that records what explanations want.
struct Recording {
    instance: Instance,
    symbols: Symbols,
    tracing: Tracing,
    cpus: Cpus,
    /// Where stacks are recorded: the event, and what has the kernel record them.
    stacks: Vec<(&'static str, String)>,
}

impl Recording {
    /// Makes it. Nothing is recorded yet.
    fn begin(threads: &Threads, threshold: Nanos) -> Result<Self> {
        // Of processes that were killed.
        trace::live::clear();
        let root = SysRoot::live();
        let mut tracing = Tracing { threshold, ..Tracing::default() };
        let (symbols, without) = named(Symbols::live(&root));
        tracing.absent.extend(without);
        let mut instance = Instance::make(None).map_err(Error::from)?;
        instance.write("tracing_on", "0").map_err(Error::from)?;
        tracing.buffer = Bytes(RING.0.min(RINGS / instance.cpus().len().max(1) as u64).max(256 << 10));
        instance.write("buffer_size_kb", &(tracing.buffer.0 >> 10).to_string()).map_err(Error::from)?;
        let cpus = Cpus::new(online(&root));
        let mut recording = Self { instance, symbols, tracing, cpus, stacks: Vec::new() };
        recording.enable(threads)?;
        Ok(recording)
    }

    fn enable(&mut self, threads: &Threads) -> Result<()> {
        for optional in &explain::EVENTS {
            let own = threads.filter("common_pid", "comm");
            let filter = optional.event.starts_with("exceptions/").then_some(own.as_str());
            let enabled =
                self.instance.has(optional.event) && self.instance.enable(optional.event, filter).is_ok();
            let list = if enabled { &mut self.tracing.events } else { &mut self.tracing.absent };
            list.push(optional.event.to_owned());
        }
        let own = threads.filter("common_pid", "comm");
        if self.instance.enable(ARMED, Some(&own)).is_err() {
            let without = "when threads are due: their lateness begins with their waking";
            self.tracing.absent.push(without.to_owned());
        }
        if !self.tracing.events.iter().any(|event| event == "sched/sched_switch") {
            let hint = "mount tracefs, or run as root with a kernel that has CONFIG_EVENT_TRACING";
            return Err(Error::new("the kernel does not record sched_switch", hint));
        }
        let waking = format!("stacktrace if {}", threads.filter("pid", "comm"));
        let switch = format!("stacktrace if prev_pid != 0 && ({})", threads.filter("next_pid", "next_comm"));
        for (event, trigger) in [("sched_waking", waking), ("sched_switch", switch)] {
            match self.instance.write(&trigger_of(event), &trigger) {
                Ok(()) => self.stacks.push((event, trigger)),
                Err(_) => self.tracing.absent.push(format!("stacks of callers at {event}")),
            }
        }
        Ok(())
    }

    /// Notes CPUs that have come or gone.
    fn look_at_cpus(&mut self) {
        self.cpus.look(online(&SysRoot::live()));
    }

    /// What was traced, and what was not.
    fn tracing(&self, watching: &Watching) -> Tracing {
        let mut tracing = self.tracing.clone();
        tracing.absent.extend(withheld(watching));
        tracing.absent.extend(self.cpus.unknown(&self.instance.without_buffer()));
        tracing
    }

    /// Has no more stacks recorded. Whether that is new: where the kernel refuses they go on, and what they make is left out.
    fn do_without_stacks(&mut self) -> bool {
        let mut ended = false;
        for (event, trigger) in std::mem::take(&mut self.stacks) {
            ended |= self.instance.write(&trigger_of(event), &format!("!{trigger}")).is_ok();
        }
        if ended {
            let why = "stacks of callers, after the first late wake-ups: recording them took longer than the worst do";
            self.tracing.absent.push(why.to_owned());
        }
        ended
    }
}

/// The names of functions, or why there are none.
fn named(symbols: trace::Result<Symbols>) -> (Symbols, Option<String>) {
    match symbols {
        Ok(symbols) if symbols.is_empty() => (symbols, Some(HIDDEN.to_owned())),
        Ok(symbols) => (symbols, None),
        Err(error) => (Symbols::default(), Some(format!("names of functions ({error})"))),
    }
}

/// The file of what the kernel does at an event of the scheduler.
fn trigger_of(event: &str) -> String {
    format!("events/sched/{event}/trigger")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With `kernel.kptr_restrict` at 2 every address in /proc/kallsyms reads 0.
    #[test]
    fn names_of_functions_that_the_kernel_hides_are_absent() {
        let read = |text: &str| named(Ok(Symbols::read(text.as_bytes()).unwrap()));
        let (symbols, without) = read("0000000000000000 T first\n");
        assert!(symbols.is_empty());
        assert!(without.is_some_and(|without| without.contains("kernel.kptr_restrict")));
        assert_eq!(read("ffffffff81000010 T first\n").1, None);
    }
}
