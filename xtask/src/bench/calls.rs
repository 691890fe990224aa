//! `bench calls`: wake-ups from one thread to another by `measure --probe call` and by the programs of rt-tests, both threads on
//! one CPU. Means are compared: rt-tests counts whole microseconds, and its least is 1 or 2 of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use record::model::instrument::Setup;
use serde_json::Value;
use units::CpuId;

use super::beside::{self, Pair, Rounds};
use super::cost::first_cpu;
use crate::arguments::Arguments;
use crate::command;

const PRIORITY: &str = "90";

const fn pair(ours: &'static str, program: &'static str, differs: &'static str) -> Pair {
    Pair { ours, theirs: program, program, package: "rt-tests", differs }
}

const PAIRS: [Pair; 4] = [
    pair("futex", "ptsematest", "theirs: two mutexes of glibc, threads of one priority"),
    pair("futex", "svsematest", "theirs: a semaphore of System V, which we do not measure"),
    pair("mqueue", "pmqtest", "theirs: threads of one priority"),
    pair("sigwait", "sigwaittest", "theirs: threads of one priority"),
];

/// `bench calls [--rounds N] [--seconds N] [--cpu N] [--binary FILE]`
pub fn run(mut arguments: Arguments) -> Result<()> {
    let rounds: usize = arguments.value("--rounds")?.unwrap_or(5);
    let seconds: u64 = arguments.value("--seconds")?.unwrap_or(2);
    let cpu = match arguments.value("--cpu")? {
        Some(number) => CpuId(number),
        None => first_cpu()?,
    };
    let binary: Option<PathBuf> = arguments.value("--binary")?;
    arguments.finish()?;
    ensure!(rounds > 0 && seconds > 0, "--rounds and --seconds must be at least 1");
    let binary = binary.map_or_else(super::noise::built, Ok)?;
    let directory = std::env::temp_dir().join(format!("worstcase-calls-{}", std::process::id()));
    std::fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
    let mut pairs = Vec::new();
    for pair in PAIRS.iter().filter(|pair| beside::is_installed(pair)) {
        let mut taken = Rounds::default();
        for _ in 0..rounds {
            taken.take(
                || ours(&binary, &directory, (cpu, seconds), pair.ours),
                || theirs(&directory, (cpu, seconds), pair.program),
            );
        }
        eprintln!("  {} done", pair.theirs);
        pairs.push((pair, taken));
    }
    let _ = std::fs::remove_dir_all(&directory);
    println!(
        "{rounds} rounds of {seconds} s, both threads on CPU {cpu}, SCHED_FIFO {PRIORITY}; means of wake-ups"
    );
    print!("{}", beside::table(&pairs));
    inheritance();
    Ok(())
}

fn ours(binary: &Path, directory: &Path, (cpu, seconds): (CpuId, u64), call: &str) -> Result<f64> {
    let record = directory.join("record");
    let _ = std::fs::remove_dir_all(&record);
    let (cpu, length) = (cpu.to_string(), format!("{seconds}s"));
    let mut command = Command::new(binary);
    command.args(["measure", "--probe", "call", "--calls", call, "--cpus", &cpu, "--partners", &cpu]);
    command.args(["--interval", "1ms", "--duration", &length, "--policy", "fifo", "--priority", PRIORITY]);
    let output = command.arg("--out").arg(&record).output().context("starting worstcase")?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(matches!(output.status.code(), Some(0 | 3)), "worstcase ended with {}: {errors}", output.status);
    let record = record::store::load(&record).context("reading the record")?;
    let is_it = |setup: &Setup| matches!(setup, Setup::Call(setup) if setup.call == call);
    let scenario = record.scenarios.iter().find(|scenario| is_it(&scenario.head.planned.setup));
    let mut all = histogram::Histogram::default();
    scenario.context("the call is not in the record")?.series.iter().for_each(|one| all.merge(&one.observed));
    let summary = all.summary();
    ensure!(summary.count > 0, "no call was measured");
    Ok(summary.sum as f64 / summary.count as f64)
}

fn theirs(directory: &Path, (cpu, seconds): (CpuId, u64), program: &str) -> Result<f64> {
    let file = directory.join("result.json");
    let _ = std::fs::remove_file(&file);
    let mut command = Command::new(program);
    command.args(["-q", "-a", &cpu.to_string(), "-t", "1", "-p", PRIORITY, "-i", "1000"]);
    command.args(["-D", &seconds.to_string(), &format!("--json={}", file.display())]);
    command::output(&mut command)?;
    let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    mean(&serde_json::from_str(&text)?).with_context(|| format!("{program} gave no thread's mean"))
}

/// In nanoseconds. Each value was cut off at a whole microsecond, so half of one is missing in the mean.
fn mean(result: &Value) -> Option<f64> {
    let thread = result["thread"].as_object()?.values().next()?;
    Some((thread["receiver"]["avg"].as_f64()? + 0.5) * 1e3)
}

/// It has no figure: it provokes one inversion, and says whether inheritance ended it.
fn inheritance() {
    const PROGRAM: &str = "pip_stress";
    if command::find(PROGRAM).is_none() {
        return println!("skipped: {PROGRAM} is not installed (apt-get install rt-tests)");
    }
    let said = command::output(Command::new("timeout").args(["10", PROGRAM]));
    let said = said.map_or_else(|error| format!("{error:#}"), |text| text.trim().to_owned());
    println!("{PROGRAM} beside `pi-mutex`: it gives no figure, but says: {said}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_mean_of_cut_off_microseconds_lacks_half_of_one() {
        let receiver = json!({"cpu": 0, "priority": 80, "min": 2, "avg": 2.32, "max": 24});
        let result = json!({"num_threads": 1, "thread": {"0": {"receiver": receiver}}});
        assert!((mean(&result).unwrap() - 2_820.0).abs() < 1e-6);
        assert_eq!(mean(&json!({})), None);
        assert_eq!(mean(&json!({"thread": {"0": {"receiver": {}}}})), None);
    }
}
