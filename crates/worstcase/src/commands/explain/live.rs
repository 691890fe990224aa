//! `worstcase explain --live`: late wake-ups of a machine that runs, as they come.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use capture::{Live, Threads};
use clap::Args;
use machine::facts::virtualization::virtualization;
use machine::tasks::start_of_living;
use record::{Hit, Unit};
use sys::clock::Clock;
use sys::schedule::{self, Scheduling};
use sys::signal::Signals;
use sysroot::SysRoot;
use units::{CpuId, CpuList, Nanos, Priority};

use super::beside::{Beside, Tracer};
use crate::commands::{check_ids, no_such_thread};
use crate::options;
use crate::output::{self, Stream};
use failure::{Error, Result};

/// What the names of threads of our own begin with.
const OWN: &str = "explain/";
/// Their period.
const PERIOD: u64 = 1_000_000;
const PRIORITY: &str = "98";
/// How often the trace is read.
const LOOK: Duration = Duration::from_millis(100);
/// How late a wake-up is that is explained unless another threshold is given.
const THRESHOLD: Nanos = Nanos::from_micros(100);
/// How many late wake-ups the causes in the end are taken from: the last ones.
const KEPT: usize = 10_000;

/// What is watched.
#[derive(Args)]
pub struct Options {
    /// Explain late wake-ups of the running machine as they come, until Ctrl-C: those of a thread of our own on each CPU, or
    /// those of --tid or --pid
    #[arg(long, conflicts_with_all = ["record", "export"])]
    live: bool,

    /// Watch this thread; can be given several times
    #[arg(long, value_name = "TID", requires = "live")]
    tid: Vec<i32>,

    /// Watch the threads that this process has now, not those that it starts later
    #[arg(long, value_name = "PID", requires = "live")]
    pid: Option<i32>,

    /// Explain wake-ups that are this late or later [default: 100us]
    #[arg(long, value_name = "TIME", requires = "live", value_parser = options::length)]
    threshold: Option<Nanos>,

    /// Have a tracer of the kernel's own measure meanwhile (root; Debian's rt kernels have them), and show its figures beside
    #[arg(long, value_name = "TRACER", requires = "live")]
    beside: Option<Tracer>,

    /// How long [default: until Ctrl-C]
    #[arg(short = 'D', long, value_name = "TIME", requires = "live", value_parser = options::length)]
    duration: Option<Nanos>,
}

impl Options {
    /// Whether the machine is watched, and no record is read.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// An option that says nothing about a record. A record excludes `--live`, and with it what clap asks of these.
    pub fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("--tid", !self.tid.is_empty()),
            ("--pid", self.pid.is_some()),
            ("--threshold", self.threshold.is_some()),
            ("--beside", self.beside.is_some()),
            ("--duration", self.duration.is_some()),
        ];
        given.iter().find(|(_, is_given)| *is_given).map(|(name, _)| *name)
    }

    /// Watches until the time is up or a signal comes.
    pub fn watch(&self, json: bool) -> Result<()> {
        check_ids(&SysRoot::live())?;
        let signals = Signals::take()?;
        let asked = self.asked()?;
        let of_tracer = self.beside.and_then(Tracer::waits).filter(|_| asked.0.is_empty());
        let are_own = asked.0.is_empty() && of_tracer.is_none();
        let threads = match asked.0.is_empty() {
            true => Threads::Named(of_tracer.unwrap_or(OWN).to_owned()),
            false => Threads::Ids(asked.ids()),
        };
        let mut live = Live::begin(threads, self.threshold.unwrap_or(THRESHOLD))?;
        // After the watch and before any thread, so that whoever takes them away can be started, and ends first.
        let beside = self.beside.map(Beside::start).transpose()?;
        if !are_own {
            return self.follow(live, asked, beside, &signals, json);
        }
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watched = start(scope, &end).and_then(|ids| {
                live.watch_only(ids);
                // The threads have their policy by now. How they came to it, and to their first period, is no wake-up.
                live.count_from(Nanos(Clock::Monotonic.now().saturating_add(PERIOD)));
                self.follow(live, asked, beside, &signals, json)
            });
            end.store(true, Ordering::Relaxed);
            watched
        })
    }

    /// The threads that are asked for; none where our own are to be watched.
    fn asked(&self) -> Result<Asked> {
        let root = SysRoot::live();
        let mut ids = self.tid.clone();
        if let Some(pid) = self.pid {
            ids.extend(machine::tasks::threads(&root, pid).iter().map(|thread| thread.tid));
        }
        if let Some(pid) = self.pid.filter(|_| ids.is_empty()) {
            return Err(not_living(&root, pid));
        }
        let asked = ids
            .into_iter()
            .map(|id| Ok((id, start_of_living(&root, id).ok_or_else(|| not_living(&root, id))?)));
        Ok(Asked(asked.collect::<Result<_>>()?))
    }

    fn follow(
        &self,
        mut live: Live,
        mut asked: Asked,
        mut beside: Option<Beside>,
        signals: &Signals,
        json: bool,
    ) -> Result<()> {
        let style = output::style(Stream::Output);
        let began = Instant::now();
        let until = self.duration.map(|duration| began + duration.duration());
        if let Some(duration) = self.duration {
            live.count_until(Nanos(Clock::Monotonic.now().saturating_add(duration.0)));
        }
        let mut kept: VecDeque<Hit> = VecDeque::new();
        let mut show = |hits: Vec<Hit>| {
            let mut reads = true;
            for hit in hits {
                reads &= print(&shown(&hit, json, &style)?)?;
                kept.push_back(hit);
                kept.drain(..kept.len().saturating_sub(KEPT));
            }
            Ok::<bool, Error>(reads)
        };
        let mut readers = true;
        loop {
            let left = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()));
            sys::signal::wait_readable(&[signals.as_fd()], left.min(LOOK))?;
            if left.is_zero() || signals.next().is_some() {
                break;
            }
            readers &= show(live.look()?)?;
            if let Some(beside) = &mut beside {
                beside.look()?;
            }
            let all_ended = asked.lose_those_that_ended(&mut live);
            if all_ended {
                output::words("note: all threads that were watched have ended");
            }
            if all_ended || !readers {
                break;
            }
        }
        let watched = self.duration.map_or(began.elapsed(), |most| began.elapsed().min(most.duration()));
        readers &= show(live.finish()?)?;
        let beside = beside.map(Beside::finish).transpose()?.unwrap_or_default();
        if !readers {
            return Ok(());
        }
        let summary = live.summary(watched.as_secs_f64());
        if json {
            let line = serde_json::to_string(&serde_json::json!({ "summary": summary }));
            print(&(line.map_err(|error| Error::new(error, ""))? + "\n"))?;
            return Ok(());
        }
        let hits: Vec<Hit> = kept.into();
        let (tracing, overview) = (live.tracing(), live.overview());
        let seen = (&tracing, &overview, is_guest());
        let watched = report::explanation::watched(&hits, &summary, seen, &style);
        print(&(watched + &beside))?;
        Ok(())
    }
}

/// Whether this machine is a guest, where that can be read.
fn is_guest() -> Option<bool> {
    virtualization(&SysRoot::live()).value().map(|name| name != "none")
}

/// Threads of others that are watched, by their ids and when they began: an id can be another's after a while.
struct Asked(Vec<(i32, u64)>);

impl Asked {
    fn ids(&self) -> Vec<i32> {
        self.0.iter().map(|&(id, _)| id).collect()
    }

    /// Watches those that are left; true where there were some and none is.
    fn lose_those_that_ended(&mut self, live: &mut Live) -> bool {
        let (root, before) = (SysRoot::live(), self.0.len());
        self.0.retain(|&(id, start)| start_of_living(&root, id) == Some(start));
        if self.0.len() < before {
            live.watch_only(self.ids());
        }
        before > 0 && self.0.is_empty()
    }
}

/// Whether somebody still reads.
fn print(text: &str) -> Result<bool> {
    output::data(text).map_err(|error| output::lost(&error))
}

fn shown(hit: &Hit, json: bool, style: &report::Style) -> Result<String> {
    if json {
        let text = serde_json::to_string(hit);
        return Ok(text.map_err(|error| Error::new(error, ""))? + "\n");
    }
    Ok(report::explanation::hit(hit, Unit::Microseconds, style) + "\n")
}

/// Starts a thread on each CPU that wakes up every millisecond until `end`, and gives their ids.
fn start<'scope>(scope: &'scope std::thread::Scope<'scope, '_>, end: &'scope AtomicBool) -> Result<Vec<i32>> {
    let mut ids = Vec::new();
    let priority: Priority = PRIORITY.parse().map_err(|error| Error::new(error, ""))?;
    sys::memory::lock_all().map_err(|error| Error::from(error).with_hint(LOCKED))?;
    for cpu in schedule::affinity(0)?.iter() {
        let (say, said) = std::sync::mpsc::channel();
        let body = move || {
            let set = wakes_up_alone(cpu, priority);
            let is_set = set.is_ok();
            let _ = say.send(set.map(|()| schedule::thread_id()));
            let mut at = Clock::Monotonic.now();
            while is_set && !end.load(Ordering::Relaxed) {
                // After a long delay it goes on from there.
                at = (at + PERIOD).max(Clock::Monotonic.now());
                let _ = Clock::Monotonic.sleep_until(at);
            }
        };
        let builder = std::thread::Builder::new().name(format!("{OWN}{cpu}"));
        builder.spawn_scoped(scope, body).map_err(|error| not_started(cpu, error))?;
        if let Ok(set) = said.recv() {
            ids.push(set.map_err(not_set)?);
        }
    }
    Ok(ids)
}

/// Where memory is locked, the stack of each thread counts.
const LOCKED: &str =
    "raise the limit of locked memory (ulimit -l), or watch threads that are there: --tid, --pid";

fn not_started(cpu: CpuId, error: std::io::Error) -> Error {
    Error::new(format!("cannot start the thread {OWN}{cpu}: {error}"), LOCKED).caused_by(error)
}

fn not_set(error: sys::Error) -> Error {
    let hint = match error.errno {
        sys::Errno::PERM => {
            "SCHED_FIFO needs root (CAP_SYS_NICE) or ulimit -r 98, and in a cgroup with cpu.rt_runtime_us a value above 0 there"
        }
        sys::Errno::INVAL => "the CPU is offline or belongs to another cgroup's cpuset",
        _ => "",
    };
    Error::from(error).with_hint(hint)
}

/// Why a process or thread cannot be watched.
fn not_living(root: &SysRoot, id: i32) -> Error {
    match machine::tasks::state(root, id) {
        Some('Z' | 'X') => Error::new(
            format!("process or thread {id} has ended, and its parent has not yet asked for its exit code"),
            "ps -eLo pid,tid,stat,comm shows those that have ended with Z",
        ),
        _ => no_such_thread(id),
    }
}

fn wakes_up_alone(cpu: CpuId, priority: Priority) -> sys::Result<()> {
    schedule::set_affinity(0, &CpuList::from_iter([cpu]))?;
    schedule::set(Scheduling::Fifo(priority))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::Tree;

    #[test]
    fn a_process_that_has_ended_and_is_not_reaped_is_not_said_to_be_absent() {
        let root = |state: &str| {
            let stat = format!("8 (gone) {state} 1 8 8 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0");
            SysRoot::of(Tree::whole([("/proc/8/stat".to_owned(), stat.into_bytes())]))
        };
        assert!(not_living(&root("Z"), 8).message.contains("8 has ended"));
        assert!(not_living(&root("S"), 9).message.contains("there is no process or thread 9"));
    }

    #[test]
    fn what_hinders_a_thread_of_our_own_has_a_hint() {
        let again = std::io::Error::from(sys::Errno::AGAIN);
        let error = not_started(CpuId(1), again);
        assert!(error.message.starts_with("cannot start the thread explain/1: "), "{}", error.message);
        assert!(error.hint.contains("ulimit -l"), "{}", error.hint);
        let refused = not_set(sys::Error::new("sched_setattr", sys::Errno::PERM));
        assert!(refused.hint.contains("cpu.rt_runtime_us"), "{}", refused.hint);
    }
}
