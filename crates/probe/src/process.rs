//! The probe's own process: prepares its threads, lets them run, reports what they were.
//!
//! It speaks with its parent over standard input and output, one JSON text a line: the plan comes in, [`Message::Ready`]
//! goes out, `go` comes in, [`Message::Done`] goes out. The end of standard input means stop: the parent is gone.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Condvar, Mutex, mpsc};
use std::time::Duration;

use control::Marker;
use failure::Error;
use record::{ClockName, CpuReading, Fact, ThreadEvidence};
use serde::{Deserialize, Serialize};
use sys::cpu::{CpuReader, Way};
use sys::schedule::{self, Scheduling};
use sys::shared::{SharedWords, Word};
use sys::timer::TimerFd;
use units::{CpuList, Nanos};

use crate::board::{self, Recorder, View};
use crate::clock::clock_of;
use crate::job::{Place, Ready};
use crate::plan::ProbePlan;

/// The first argument by which the binary knows that it is to be a probe.
pub const ARGUMENT: &str = "__probe";

/// The stack of a measuring thread: enough for the loop, little enough to be locked.
const STACK: usize = 64 * 1024;

/// What the probe says to its parent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// All threads are prepared and wait: their kernel ids, in the plan's order.
    Ready(Vec<i32>),
    /// The probe could not be prepared.
    Failed(Error),
    /// All threads have ended.
    Done(Vec<ThreadEvidence>),
}

/// Runs as the probe; `descriptor` is that of the board. Returns the exit code.
pub fn main(descriptor: BorrowedFd<'_>) -> i32 {
    sys::signal::ignore_terminal();
    let mut input = std::io::stdin().lock();
    match prepare_and_run(descriptor, &mut input) {
        Ok(()) => 0,
        Err(failure) => {
            say(&Message::Failed(failure));
            2
        }
    }
}

fn say(message: &Message) {
    let mut line = serde_json::to_string(message).unwrap_or_default();
    line.push('\n');
    // A parent that is gone needs no answer.
    let _ = std::io::stdout().write_all(line.as_bytes());
}

fn prepare_and_run(descriptor: BorrowedFd<'_>, input: &mut impl Read) -> Result<(), Error> {
    let plan: ProbePlan =
        record::json::read(line(input).as_bytes()).map_err(|error| Error::new(error, ""))?;
    plan.check(sys::privilege::comes_from_file())?;
    let _held = plan.job.own().hold()?;
    let board = SharedWords::open(descriptor, plan.words())?;
    let clock = clock_of(plan.clock());
    let clock_is_system_call = clock.is_system_call();
    if !plan.housekeeping.is_empty() {
        // Of no consequence where it fails: the threads pin themselves.
        let _ = schedule::set_affinity(0, &plan.housekeeping);
    }
    sys::memory::keep_one_heap();
    let memory_locked = sys::memory::lock_all().is_ok();
    board.touch();
    sys::signal::make_sleeps_interruptible()?;
    let marker = plan.marker.as_deref().map(marker).transpose()?;
    let mut group = ThreadGroup::new(&plan, &board, memory_locked, clock_is_system_call)?;
    group.marker = marker.as_ref();
    group.work(input)
}

fn marker(path: &str) -> Result<Marker, Error> {
    Marker::open(path).map_err(|error| Error::new(format!("open {path}: {error}"), "").caused_by(error))
}

/// One line, read byte by byte so that nothing of the next is taken.
fn line(input: &mut impl Read) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while matches!(input.read(&mut byte), Ok(1)) && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    String::from_utf8_lossy(&line).into_owned()
}

/// What the threads share while they prepare, start and end.
struct ThreadGroup<'a> {
    plan: &'a ProbePlan,
    board: &'a [Word],
    memory_locked: bool,
    clock_is_system_call: bool,
    /// What late wake-ups are marked with in a trace.
    marker: Option<&'a Marker>,
    /// Whether the C library tells a thread's CPU without a system call.
    cpu_is_quiet: bool,
    /// The clock's reading at the common start, once it is known.
    start: Mutex<Option<u64>>,
    started: Condvar,
    /// Threads leave together: one that ends earlier would unmap its stack and interrupt the CPUs of the others.
    leaving: Barrier,
    at_work: AtomicUsize,
    bell: UnixStream,
    listener: UnixStream,
}

/// What a thread says when it is prepared: its place in the plan and its id, or why it cannot measure.
type Prepared = Result<(usize, i32), Error>;

impl<'a> ThreadGroup<'a> {
    fn new(
        plan: &'a ProbePlan,
        board: &'a [Word],
        memory_locked: bool,
        clock_is_system_call: bool,
    ) -> Result<Self, Error> {
        let (bell, listener) = UnixStream::pair().map_err(|error| Error::new(error, ""))?;
        Ok(Self {
            plan,
            board,
            memory_locked,
            clock_is_system_call,
            marker: None,
            cpu_is_quiet: sys::cpu::library_is_quiet(),
            start: Mutex::new(None),
            started: Condvar::new(),
            leaving: Barrier::new(plan.threads.len()),
            at_work: AtomicUsize::new(plan.threads.len()),
            bell,
            listener,
        })
    }

    fn work(&self, input: &mut impl Read) -> Result<(), Error> {
        std::thread::scope(|scope| {
            let (sender, prepared) = mpsc::channel::<Prepared>();
            let mut threads = Vec::new();
            for (index, cpu) in self.plan.threads.iter().enumerate() {
                let sender = sender.clone();
                let name = cpu.map_or(format!("probe:{index}"), |cpu| format!("probe/{cpu}"));
                let body = move || self.live(index, &sender);
                let spawned =
                    std::thread::Builder::new().name(name).stack_size(STACK).spawn_scoped(scope, body);
                threads.push(spawned.map_err(|error| self.abandon(of_thread(error)))?);
            }
            let tids = self.all_prepared(&prepared)?;
            say(&Message::Ready(tids.clone()));
            // Behind a load's processes it would hear of it late, and have its threads wait.
            schedule::before_ordinary(|| {
                if line(input) != "go" {
                    board::stop(self.board, clock_of(self.plan.clock()).now());
                }
                self.open_the_gate();
            });
            self.attend(&tids);
            let evidence = threads.into_iter().filter_map(|thread| thread.join().ok()).collect();
            say(&Message::Done(evidence));
            Ok(())
        })
    }

    /// Waits until every thread is prepared, or lets those that are go home.
    fn all_prepared(&self, prepared: &mpsc::Receiver<Prepared>) -> Result<Vec<i32>, Error> {
        let next = || {
            let answer = prepared.recv();
            answer.unwrap_or_else(|_| Err(Error::new("a measuring thread died while it prepared", "")))
        };
        let threads = self.plan.threads.iter().map(|_| next().map_err(|failure| self.abandon(failure)));
        // They answer in the order in which they get ready.
        let mut threads = threads.collect::<Result<Vec<_>, _>>()?;
        threads.sort_unstable();
        Ok(threads.into_iter().map(|(_, tid)| tid).collect())
    }

    /// A process that cannot measure says why and ends at once, its waiting threads with it.
    fn abandon(&self, failure: Error) -> Error {
        say(&Message::Failed(failure));
        std::process::exit(2)
    }

    fn open_the_gate(&self) {
        // Far enough ahead that all threads are asleep again before the first activation is due.
        let start = clock_of(self.plan.clock()).now() + 5_000_000;
        let step = self.plan.job.own().start_at_multiple_of();
        let step = step.map_or(1, |step| step.0.max(1));
        let start = start.div_ceil(step).saturating_mul(step);
        *self.start.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(start);
        self.started.notify_all();
    }

    fn wait_at_the_gate(&self) -> u64 {
        let mut start = self.start.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        loop {
            if let Some(start) = *start {
                return start;
            }
            start = self.started.wait(start).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Sleeps until all threads are done, the parent says stop or is gone, or the clock is set.
    fn attend(&self, tids: &[i32]) {
        let settable = self.plan.clock() != ClockName::Monotonic;
        let watch = settable.then(TimerFd::on_clock_set).and_then(Result::ok);
        // Real-time threads alone keep it from its CPU, however many ordinary ones there are. Where it is not permitted it
        // has its share as they have.
        let _ = schedule::set_nice(schedule::LOWEST_NICE);
        let stdin = std::io::stdin();
        let long =
            self.plan.fail_safe.map_or(Duration::from_secs(3600), |limit| limit.duration() / board::BEATS);
        const SOON: Duration = Duration::from_millis(5);
        while self.at_work.load(Ordering::Acquire) > 0 {
            board::beat(self.board);
            let stopping = board::stopped_at(self.board).is_some();
            let mut fds = vec![self.listener.as_fd()];
            fds.extend(watch.as_ref().map(AsFd::as_fd));
            if !stopping {
                fds.push(stdin.as_fd());
            }
            let ready =
                sys::signal::wait_readable(&fds, if stopping { SOON } else { long }).unwrap_or_default();
            if !stopping && ready.last() == Some(&true) {
                board::stop(self.board, clock_of(self.plan.clock()).now());
            }
            let clock_set = watch.as_ref().is_some_and(TimerFd::was_clock_set);
            if clock_set || board::stopped_at(self.board).is_some() {
                tids.iter().for_each(|&tid| sys::signal::wake_thread(tid));
            }
        }
    }

    /// A measuring thread's life.
    fn live(&self, index: usize, prepared: &mpsc::Sender<Prepared>) -> ThreadEvidence {
        let ready = match self.prepare(index) {
            Ok(ready) => ready,
            Err(failure) => {
                let _ = prepared.send(Err(failure));
                return ThreadEvidence::default();
            }
        };
        let _ = prepared.send(Ok((index, schedule::thread_id())));
        let evidence = self.measure(index, self.wait_at_the_gate(), ready);
        if self.at_work.fetch_sub(1, Ordering::AcqRel) == 1 {
            let _ = (&self.bell).write_all(b".");
        }
        self.leaving.wait();
        evidence
    }

    /// Pins the thread and gives it its policy. Where that is not permitted it measures as an ordinary thread: its
    /// evidence says what it was.
    fn prepare(&self, index: usize) -> Result<Box<dyn Ready + 'a>, Error> {
        // Without a CPU of its own, everywhere that the cpuset lets it: a reservation must be able to run in its
        // whole root domain.
        let cpus = self.plan.threads[index]
            .map_or_else(|| (0..units::MAX_CPUS).collect(), |cpu| CpuList::from_iter([cpu]));
        schedule::set_affinity(0, &cpus).map_err(of_affinity)?;
        // Real-time threads have no slack whatever is set; SCHED_OTHER ones do.
        let _ = schedule::set_timer_slack(Nanos(1));
        sys::memory::touch_stack();
        let reservation = self.plan.job.own().reservation();
        let deadline = reservation.is_some();
        let scheduling = reservation.unwrap_or(Scheduling::new(self.plan.policy, self.plan.priority));
        match schedule::set(scheduling) {
            Ok(()) => {}
            Err(error) if deadline => return Err(of_reservation(error)),
            Err(error) if error.errno == sys::Errno::PERM => {}
            Err(error) => return Err(error.into()),
        }
        let stop_at = self.plan.stop_at.map_or(u64::MAX, |value| value.0);
        let (threads, cpu) = (self.plan.threads.len(), self.plan.threads[index]);
        self.plan.job.own().prepare(Place { index, threads, cpu, stop_at })
    }

    fn measure(&self, index: usize, start: u64, ready: Box<dyn Ready + '_>) -> ThreadEvidence {
        let plan = self.plan;
        let words = board::block(self.board, index, plan.every_sample);
        let mut recorder = Recorder::new(words, Nanos(plan.grid(index, 0).interval), plan.every_sample);
        if let Some(limit) = plan.fail_safe {
            recorder.fail_safe(limit);
        }
        let reader = CpuReader::prepare(self.cpu_is_quiet);
        let cpu_reading = reader.as_ref().map(reading_of);
        if let Some(reader) = reader {
            recorder.watch_cpu(reader, plan.threads[index]);
        }
        if let Some(marker) = self.marker {
            recorder.mark_with(marker);
        }
        let own = plan.tally(self.board, index);
        let waited = sys::usage::waited();
        let used = ready.measure(start, self.board, &mut recorder, own);
        let evidence = self.evidence(index, &View(words));
        ThreadEvidence {
            minor_faults: used.usage.minor_faults,
            major_faults: used.usage.major_faults,
            voluntary_switches: used.usage.voluntary,
            involuntary_switches: used.usage.involuntary,
            cpu_time: used.cpu_time,
            waited: added(waited, sys::usage::waited()),
            cpu_reading,
            ..evidence
        }
    }

    /// What the kernel and the board say of the calling thread.
    fn evidence(&self, index: usize, view: &View<'_>) -> ThreadEvidence {
        let mut unread = Vec::new();
        let scheduling = known("policy and priority", schedule::get(), &mut unread);
        ThreadEvidence {
            thread: index as u32,
            tid: schedule::thread_id(),
            policy: scheduling.map(|(policy, _)| policy),
            priority: scheduling.map_or(0, |(_, priority)| priority),
            affinity: known("affinity", schedule::affinity(0), &mut unread).unwrap_or_default(),
            timer_slack: known("timer slack", schedule::timer_slack(), &mut unread).unwrap_or_default(),
            unread,
            memory_locked: self.memory_locked,
            clock_is_system_call: self.clock_is_system_call,
            migrations: view.migrations(),
            elsewhere: view.elsewhere(),
            clock_steps: view.clock_steps(),
            early_wakes: view.early(),
            sleeps: view.sleeps(),
            rephased: view.rephased(),
            ..ThreadEvidence::default()
        }
    }
}

/// What was added between two readings of how long the thread waited for a CPU.
fn added(before: std::io::Result<Nanos>, after: std::io::Result<Nanos>) -> Fact<Nanos> {
    match before.and_then(|before| Ok(Nanos(after?.0.saturating_sub(before.0)))) {
        Ok(waited) => Fact::Value(waited),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Fact::Absent,
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => Fact::Unsupported,
        Err(error) => Fact::Unreadable(error.raw_os_error().unwrap_or(sys::Errno::BADMSG.raw_os_error())),
    }
}

fn of_thread(error: std::io::Error) -> Error {
    let hint = "raise the limit of locked memory (ulimit -l) or of processes (ulimit -u)";
    Error::new(format!("a measuring thread could not be started: {error}"), hint).caused_by(error)
}

fn of_affinity(error: sys::Error) -> Error {
    let hint = "the CPU is offline or belongs to another cgroup's cpuset; choose others with --cpus";
    Error::from(error).with_hint(hint)
}

fn of_reservation(error: sys::Error) -> Error {
    let hint = match error.errno {
        sys::Errno::PERM => {
            "SCHED_DEADLINE needs root (CAP_SYS_NICE) and an affinity that spans the thread's whole root domain: \
             run it outside cpusets that are not exclusive, or in an isolated cpuset partition"
        }
        sys::Errno::BUSY => {
            "the kernel's admission control has no room: lower --runtime, or raise \
             /proc/sys/kernel/sched_rt_runtime_us, which caps all deadline reservations together"
        }
        _ => "the kernel wants 1024 ns <= runtime <= interval, and an interval between 100 us and 4 s",
    };
    Error::from(error).with_hint(hint)
}

/// What was read; what could not be is named in `unread`.
fn known<T>(what: &str, read: sys::Result<T>, unread: &mut Vec<String>) -> Option<T> {
    read.map_err(|error| unread.push(format!("{what}: {error}"))).ok()
}

fn reading_of(reader: &CpuReader) -> CpuReading {
    match reader.way() {
        Way::OwnArea => CpuReading::Rseq,
        Way::Library => CpuReading::Library,
    }
}
