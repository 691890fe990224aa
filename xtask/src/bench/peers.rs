//! `bench peers`: the same CPUs, the same conditions, runs taken in turn, ratios within a round.
//!
//! A round is one run of each tool, cyclictest twice in each form; the order turns from round to round, so that a
//! drift of the machine falls on all. Ratios are taken within a round, and shown as the median of the rounds with the
//! least and the greatest. Beside them stands cyclictest against itself: what such a ratio is worth here. Another version
//! of ours, where one is given, has jitterdebugger's place.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use units::{CpuList, Nanos};

use super::contender::{
    Conditions, Contender, EARLIER, FINE, JITTERDEBUGGER, Latencies, PLAIN, PRIORITY, WORSTCASE,
};
use super::figures::{self, Against, Rounds, Run};
use super::watch;
use crate::arguments::Arguments;
use crate::command;
use crate::dist::{self, targets::Target};
use crate::processes;

/// One round's runs in their first order, ours between the two of each form; the places are named below.
type Round = [&'static Contender; 6];
const ROUND: Round = [&FINE, &PLAIN, &WORSTCASE, &FINE, &PLAIN, &JITTERDEBUGGER];
const OURS: usize = 2;
const OTHER: usize = 5;
/// From a form's first run in a round to its second.
const AGAIN: usize = 3;

/// Seconds that a run needs at least: one to settle, one to be watched, one to end.
const LEAST_SECONDS: u64 = 4;

struct Options {
    rounds: usize,
    seconds: u64,
    intervals: Vec<Nanos>,
    cpus: CpuList,
    earlier: Option<PathBuf>,
}

/// `bench peers [--rounds N] [--seconds N] [--intervals LIST] [--cpus LIST] [--binary FILE]`
pub fn run(mut arguments: Arguments) -> Result<()> {
    let options = options(&mut arguments)?;
    arguments.finish()?;
    ensure!(command::find("cyclictest").is_some(), "cyclictest is not installed (apt-get install rt-tests)");
    let native = Target::native().ok_or_else(|| anyhow!("no static target for this machine is known"))?;
    println!("building the static binary, the one that is shipped");
    let binary = dist::worstcase(native)?;
    let scratch = Scratch::new()?;
    for interval in options.intervals {
        let (cpus, binary) = (options.cpus.clone(), binary.clone());
        let earlier = options.earlier.clone();
        let conditions = Conditions { cpus, interval, seconds: options.seconds, binary, earlier };
        compare(&conditions, options.rounds, &scratch.0)?;
    }
    Ok(())
}

fn options(arguments: &mut Arguments) -> Result<Options> {
    let intervals: String = arguments.value("--intervals")?.unwrap_or_else(|| "200us,1ms".to_owned());
    let intervals = intervals.split(',').map(str::parse::<Nanos>).collect::<Result<_, _>>()?;
    let cpus = match arguments.value("--cpus")? {
        Some(cpus) => cpus,
        None => processes::allowed_cpus().context("this process' CPUs")?.parse()?,
    };
    let options = Options {
        rounds: arguments.value("--rounds")?.unwrap_or(5),
        seconds: arguments.value("--seconds")?.unwrap_or(8),
        intervals,
        cpus,
        earlier: arguments.value("--binary")?,
    };
    ensure!(options.rounds > 0, "--rounds must be at least 1");
    ensure!(options.seconds >= LEAST_SECONDS, "--seconds must be at least {LEAST_SECONDS}");
    Ok(options)
}

fn compare(conditions: &Conditions, rounds: usize, scratch: &Path) -> Result<()> {
    let Conditions { cpus, interval, seconds, .. } = conditions;
    println!(
        "\ninterval {interval}: {rounds} rounds of {seconds} s a tool, CPUs {cpus}, SCHED_FIFO {PRIORITY}"
    );
    let mut contenders = ROUND;
    if conditions.earlier.is_some() {
        contenders[OTHER] = &EARLIER;
    }
    let mut runs: [Vec<Run>; ROUND.len()] = Default::default();
    for round in 0..rounds {
        for turn in 0..contenders.len() {
            let place = (round + turn) % contenders.len();
            if is_installed(contenders[place]) {
                runs[place].push(measure(contenders[place], conditions, scratch)?);
            }
        }
        eprintln!("  round {} of {rounds} done", round + 1);
    }
    table(conditions, &contenders, &runs);
    Ok(())
}

fn is_installed(contender: &Contender) -> bool {
    contender.program.is_none_or(|program| command::find(program).is_some())
}

fn measure(contender: &Contender, conditions: &Conditions, scratch: &Path) -> Result<Run> {
    let directory = scratch.join("run");
    // What an earlier run left must not be taken for this one's result.
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
    let mut command = (contender.command)(conditions, &directory);
    let said = directory.join("said");
    let cost = execute(contender, &mut command, conditions, &said).with_context(|| {
        let said = fs::read_to_string(&said).unwrap_or_default();
        format!("{}: {command:?}\n{}", contender.name, said.trim())
    })?;
    let latencies = (contender.read)(&directory).with_context(|| format!("{}'s result", contender.name))?;
    Ok(Run { latencies, cost })
}

fn execute(
    contender: &Contender,
    command: &mut Command,
    with: &Conditions,
    said: &Path,
) -> Result<watch::Cost> {
    let file = fs::File::create(said).with_context(|| format!("creating {}", said.display()))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    let mut tool = Tool(command.spawn().with_context(|| format!("starting {command:?}"))?);
    let cost = watch::watch(&mut tool.0, with.cpus.len(), PRIORITY, with.seconds)?;
    let status = tool.0.wait()?;
    let measured = status.code().is_some_and(|code| contender.codes.contains(&code));
    ensure!(measured, "it ended with {status}");
    Ok(cost)
}

/// A running tool that does not outlive us.
struct Tool(Child);

impl Drop for Tool {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            processes::kill_tree(self.0.id());
            let _ = self.0.wait();
        }
    }
}

fn table(conditions: &Conditions, contenders: &Round, runs: &[Vec<Run>; ROUND.len()]) {
    println!("{}", figures::heading(contenders[OTHER].name));
    for figure in &figures::ALL {
        let once = usize::from(figure.against == Against::Cost);
        let (theirs, again) = (&runs[once], &runs[once + AGAIN]);
        let rounds = Rounds { ours: &runs[OURS], theirs, again, other: &runs[OTHER] };
        println!("{}", figure.line(&rounds));
    }
    println!("\nactivations accounted for, of those due in the first round:");
    for (contender, runs) in contenders.iter().zip(runs) {
        if let Some(run) = runs.first() {
            println!("  {:<16}{}", contender.name, accounted(conditions, &run.latencies));
        }
    }
    println!("conditions, read back from the running threads:");
    for (contender, runs) in contenders.iter().zip(runs) {
        let seen: BTreeSet<&str> = runs.iter().map(|run| run.cost.conditions.as_str()).collect();
        seen.iter().for_each(|seen| println!("  {:<16}{seen}", contender.name));
    }
}

fn accounted(conditions: &Conditions, latencies: &Latencies) -> String {
    let due = conditions.seconds * 1_000_000_000 / conditions.interval.0 * conditions.cpus.len() as u64;
    let Latencies { rows, accounted, .. } = latencies;
    let share = *accounted as f64 / due as f64 * 100.0;
    format!("{accounted} of {due} ({share:.1} %), {} of them wake-ups", rows.count())
}

/// A directory that goes when the comparison ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("worstcase-peers-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
