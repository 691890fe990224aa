//! What operations take, measured round by round into a record: for `cost`, and for the blocks of a trial.

use std::path::{Path, PathBuf};

use failure::{Error, Result};
use operation::measure::{self, Observer};
use record::Machine;
use record::cost::{COST_VERSION, Cost, CostPlan, Operation};
use record::store::RunDirectory;
use record::time::UtcTime;
use sys::signal::Signals;
use sysroot::SysRoot;
use units::{CpuList, Nanos, Seed};

use crate::output::{self, Stream};

/// A record without figures.
pub fn begun(machine: Machine, plan: CostPlan, started: UtcTime, only: &[String]) -> Cost {
    let missing = plan.second.is_none().then(|| format!("there is no second CPU beside CPU {}", plan.cpu));
    Cost {
        cost_version: COST_VERSION,
        tool: runner::tool(),
        command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        note: None,
        started,
        machine,
        plan,
        turn: None,
        rounds: 0,
        runs: 0,
        interrupted: None,
        evidence: None,
        operations: measure::planned(only, missing.as_deref()),
    }
}

/// One round of all operations, with its record in `path`: what a block of a trial measures beside latencies.
pub fn one_round(path: &Path, seed: Seed) -> Result<()> {
    let signals = Signals::take()?;
    let machine = runner::guest::machine(&SysRoot::live())?;
    let reachable = sys::schedule::reachable(&machine.cpus.online)?;
    let mut places = reachable.iter();
    let cpu = places.next().ok_or_else(|| Error::new("there is no CPU to measure on", ""))?;
    // In a guest as long as its ladders have them: lab::measure.
    let sample = Nanos::from_millis(if machine.lab.is_some() { 40 } else { 20 });
    let plan = CostPlan { cpu, second: places.next(), rounds: 1, runs: 1, sample, seed };
    let started = UtcTime(sys::clock::unix_seconds());
    let directory = RunDirectory::create(path)?;
    let mut cost = begun(machine, plan, started, &[]);
    let above = path.parent().unwrap_or(Path::new("."));
    measured(&mut cost, above, &directory, &signals)?;
    match &cost.interrupted {
        None => Ok(()),
        Some(how) => Err(Error::new(format!("what operations take was not measured: {how}"), "")),
    }
}

/// All rounds of a set-up, written to its record.
pub fn measured(cost: &mut Cost, files: &Path, directory: &RunDirectory, signals: &Signals) -> Result<()> {
    let path = whole(files)?;
    let before = counters(&cost.plan);
    let mut progress = Progress::new(directory);
    measure::measure(cost, &path, signals, &mut progress)?;
    progress.end();
    cost.evidence = Some(machine::evidence_between(&before, &counters(&cost.plan)));
    Ok(directory.write_cost(cost)?)
}

/// A directory by its whole path: samples are taken by processes that start elsewhere.
pub fn whole(files: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(files);
    path.map_err(|error| Error::new(format!("find the working directory: {error}"), ""))
}

/// Of the CPUs that operations are measured on.
pub fn counters(plan: &CostPlan) -> machine::Snapshot {
    let cpus = CpuList::from_iter([plan.cpu].into_iter().chain(plan.second));
    machine::Snapshot::take(&SysRoot::live(), &cpus)
}

/// Says how far it is, and writes the record after each round.
pub struct Progress<'a> {
    directory: &'a RunDirectory,
    can_redraw: bool,
}

impl<'a> Progress<'a> {
    pub fn new(directory: &'a RunDirectory) -> Self {
        Self { directory, can_redraw: output::can_redraw(Stream::Error) }
    }

    pub fn end(&self) {
        if self.can_redraw {
            output::end_progress();
        }
    }
}

impl Observer for Progress<'_> {
    fn begins(&mut self, cost: &Cost, operation: &Operation, number: usize, of: usize) {
        if self.can_redraw {
            // Of two set-ups in turn, the other one has as much left.
            let set_ups = 1 + u64::from(cost.turn.is_some());
            let left = cost.plan.sample.saturating_mul((of - number + 1) as u64 * set_ups).rounded();
            output::progress(&format!("[{number}/{of}] {}  {left} left", operation.words()));
        }
    }

    fn round(&mut self, cost: &Cost) -> Result<()> {
        if !self.can_redraw {
            let with = cost.turn.as_ref().map_or("", |turn| if turn.on { ", with" } else { ", without" });
            output::news(&match &cost.interrupted {
                None => format!("round {} of {}{with}", cost.rounds, cost.plan.rounds),
                Some(how) => format!("interrupted by {how}{with}"),
            });
        }
        Ok(self.directory.write_cost(cost)?)
    }
}
