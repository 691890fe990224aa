//! `bench record`: what it costs the measuring thread to record one sample.
//!
//! The recorder that the probe uses writes to the memory that the probe uses. This task builds itself with
//! optimisation and runs itself: an unoptimised loop would measure itself. Instructions are counted by callgrind, in
//! two runs of different length, so that their difference is the loop alone.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use probe::board::{self, Recorder};
use sys::cpu::CpuReader;
use sys::shared::SharedWords;
use units::{Nanos, Seed};

use super::spread::Spread;
use crate::arguments::Arguments;
use crate::command;
use crate::workspace;

/// What DESIGN allows for one sample.
const NANOS: f64 = 5.0;
const INSTRUCTIONS: f64 = 100.0;

/// `bench record`, and `bench record --samples N` within itself.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let samples: Option<u64> = arguments.value("--samples")?;
    let placed: Option<u64> = arguments.value("--placed")?;
    arguments.finish()?;
    match (samples, placed) {
        (Some(samples), _) => println!("{}", nanoseconds(samples, false)?),
        (None, Some(samples)) => println!("{}", nanoseconds(samples, true)?),
        (None, None) => compare()?,
    }
    Ok(())
}

fn compare() -> Result<()> {
    let status = workspace::cargo().args(["build", "--quiet", "--release", "--package", "xtask"]).status()?;
    ensure!(status.success(), "the optimised build failed");
    let optimised = workspace::root().join("target/release/xtask");
    let time = |what: &str| -> Result<Spread> {
        let rounds = (0..7).map(|_| Ok(start(Command::new(&optimised), what, 20_000_000)?.trim().parse()?));
        Spread::of(rounds.collect::<Result<Vec<f64>>>()?).context("no round")
    };
    println!("time to record one sample          {} ns    budget: at most {NANOS} ns", time(SAMPLES)?);
    println!("the same with its CPU              {} ns", time(PLACED)?);
    let Some(count) = instructions(&optimised, SAMPLES)? else {
        println!("skipped: instructions: needs valgrind (apt-get install valgrind)");
        return Ok(());
    };
    println!("instructions to record one sample  {count:.1}    budget: at most {INSTRUCTIONS}");
    if let Some(count) = instructions(&optimised, PLACED)? {
        println!("the same with its CPU              {count:.1}");
    }
    Ok(())
}

/// What this program is asked for within itself: samples, and samples with the CPU that each woke up on.
const SAMPLES: &str = "--samples";
const PLACED: &str = "--placed";

/// Runs `program`, which is this one, for `samples` samples of that sort.
fn start(mut program: Command, what: &str, samples: u64) -> Result<String> {
    command::output(program.args(["bench", "record", what, &samples.to_string()]))
}

fn instructions(optimised: &Path, what: &str) -> Result<Option<f64>> {
    const SHORT: u64 = 100_000;
    const LONG: u64 = 1_100_000;
    if command::find("valgrind").is_none() {
        return Ok(None);
    }
    let (short, long) = (counted(optimised, what, SHORT)?, counted(optimised, what, LONG)?);
    Ok(Some((long - short) / (LONG - SHORT) as f64))
}

fn counted(optimised: &Path, what: &str, samples: u64) -> Result<f64> {
    let file = workspace::logs().join(format!("callgrind-{}", std::process::id()));
    std::fs::create_dir_all(workspace::logs())?;
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["-q", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(optimised);
    start(valgrind, what, samples)?;
    let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    std::fs::remove_file(&file)?;
    let total =
        text.lines().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
    let total = total.context("callgrind gave no total")?;
    total.trim().parse().with_context(|| format!("callgrind's total `{total}`"))
}

/// Records `samples` latencies, with the CPU of each where `placed` says so; the mean time of one in ns.
fn nanoseconds(samples: u64, placed: bool) -> Result<f64> {
    let latencies = latencies();
    let (words, _file) = SharedWords::create(board::words(1, false)).context("shared memory")?;
    let mut recorder = Recorder::new(board::block(&words, 0, false), Nanos::from_millis(1), false);
    if placed {
        let reader = CpuReader::prepare(true).context("the CPU cannot be read without a system call")?;
        recorder.watch_cpu(reader, None);
    }
    let start = Instant::now();
    for activation in 0..samples {
        recorder.observed(activation, latencies[activation as usize % latencies.len()]);
        recorder.placed(activation);
    }
    let elapsed = start.elapsed();
    black_box(&words);
    Ok(elapsed.as_nanos() as f64 / samples as f64)
}

/// Latencies as a quiet machine has them: most within a few us, one in a hundred up to 100 us.
fn latencies() -> [u64; 4096] {
    let mut random = Seed(1).stream("latencies");
    std::array::from_fn(|_| {
        let width = if random.below(100) == 0 { 100_000 } else { 3_000 };
        2_000 + random.below(width)
    })
}
