//! `worstcase guard`.

mod cores;
mod seen;
mod text;

use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use capture::Guard;
use clap::{ArgGroup, Args};
use explain::guard::Charges;
use machine::tasks::Task;
use sys::signal::{Signal, Signals};
use sysroot::SysRoot;
use units::Nanos;

use crate::options;
use crate::output::{self, Stream};
use cores::Cores;
use failure::{Error, Result};
use seen::{Seen, SeenCore};

/// How often trace and rings are read, before they overwrite themselves.
const LOOK: Duration = Duration::from_millis(20);

/// Name what takes the CPU from cores of the runtime, and from which object
///
/// Traces the threads that are the cores of a program with worstcase's runtime: each system call, page fault, interrupt, softirq
/// and other thread is named, with its length, and charged to the object that ran. The program publishes what it runs
/// (Config::publish, docs/runtime.md). Exit code 1 if an event ran or waited longer than its queue's contract allows, 3
/// if something was lost.
#[derive(Args)]
#[command(group = ArgGroup::new("who").required(true).args(["pid", "tid"]))]
#[command(after_help = "Examples:\n  \
    worstcase guard --pid 4711 -D 1m    a program of the runtime, by object\n  \
    worstcase guard --tid 4712          a thread that should only compute")]
pub struct GuardCommand {
    /// The program
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,

    /// Threads of any program; no objects are known
    #[arg(long, value_name = "TID", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..))]
    tid: Vec<i32>,

    /// How long [default: until Ctrl-C]
    #[arg(short = 'D', long, value_name = "TIME", value_parser = options::duration)]
    duration: Option<Nanos>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl GuardCommand {
    /// Does it.
    pub fn run(self) -> Result<ExitCode> {
        let root = SysRoot::live();
        super::check_ids(&root)?;
        let signals = Signals::take()?;
        let mut cores = match self.pid {
            Some(pid) => Cores::of_process(&root, pid)?,
            None => Cores::of_threads(&root, &self.tid)?,
        };
        // Elsewhere if that may be, so that the looking is not seen.
        let online = machine::machine(&root).cpus.online;
        let cpus = cores.cpus(&online);
        let _ = sys::schedule::set_affinity(0, &online.difference(&cpus));
        let mut guard = Guard::begin(&cores.tids(), &cpus)?;
        let mut charges = Charges::of(cores.len());
        cores.begin()?;
        let start = guard.start()?;
        let began = Instant::now();
        let until = self.duration.map(|duration| began + duration.duration());
        output::news(&format!("guarding {} on {}", cores.in_words(), cpus.named()));
        loop {
            let left = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()));
            sys::signal::wait_readable(&[signals.as_fd()], left.min(LOOK))?;
            let signal = signals.next().filter(|signal| *signal != Signal::User1);
            let is_over = left.is_zero() || signal.is_some();
            let has_ended = cores.look(&root, &mut charges)?;
            guard.look()?;
            pass_on(&mut guard, &mut charges, &cores);
            cores.settle(&mut charges);
            if is_over || has_ended {
                break;
            }
        }
        let now = Nanos(sys::clock::Clock::Monotonic.now());
        let is_off = |tid| machine::tasks::is_ready(&root, tid) == Some(false);
        guard.takings().finish(now, is_off);
        cores.end(now);
        pass_on(&mut guard, &mut charges, &cores);
        cores.settle(&mut charges);
        let seen = Seen::of(&mut guard, &mut charges, &cores, (start, now));
        // Before anything is shown: who reads it finds no instance.
        drop(guard);
        if self.json {
            let json = serde_json::to_string_pretty(&seen).map_err(|error| Error::new(error, ""))?;
            output::final_data(&(json + "\n"))?;
        } else {
            output::final_data(&text::text(&seen, &output::style(Stream::Output)))?;
        }
        let is_late = !seen.excesses.is_empty() || seen.cores.iter().any(SeenCore::is_over);
        Ok(ExitCode::from(if is_late { 1 } else { u8::from(!seen.lost.is_empty()) * 3 }))
    }
}

/// Gives what the trace has of the cores to who charges it.
fn pass_on(guard: &mut Guard, charges: &mut Charges, cores: &Cores) {
    let takings = guard.takings();
    for taking in takings.take() {
        charges.taken(taking);
    }
    for (cpu, from, to) in takings.gaps() {
        for core in (0..cores.len()).filter(|core| takings.cpu(*core) == Some(cpu)) {
            charges.missing(core, from, to);
        }
    }
}

/// Where a program of the runtime is not found.
fn nothing_published(task: &Task) -> Error {
    let hint = "set Config::publish (in C: publish of wr_config), or name its threads: worstcase guard --tid";
    let name = printable::line(&task.name).into_owned();
    let (what, hint) = match task {
        Task { kernel: true, .. } => {
            ("is a thread of the kernel", "worstcase guard --tid names what takes its CPU")
        }
        Task { pid, tid, .. } if pid != tid => ("is a thread", "--pid wants its process"),
        _ => ("publishes nothing that its cores run", hint),
    };
    Error::new(format!("{name} [{}] {what}", task.tid), hint)
}
