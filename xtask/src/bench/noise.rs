//! `bench noise`: what takes a CPU from a thread that never gives it up, by the noise probe and by oslat, in turn on the
//! same CPU.
//!
//! A round is oslat, ours, oslat again: beside our ratio to the first stands the second's, which is what such a ratio is
//! worth here. oslat watches all the time and ours nine tenths of it, so gaps are counted for each watched second.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use record::Record;
use serde_json::Value;
use units::{CpuId, CpuList};

use super::spread::Spread;
use crate::arguments::Arguments;
use crate::command;
use crate::dist::{self, targets::Target};
use crate::processes;

/// Gaps of at least so many microseconds are counted. oslat's first bucket ends at 1 us.
const LEAST: [u64; 3] = [1, 5, 20];

/// oslat's buckets, of 1 us each; the last has all that is longer.
const BUCKETS: &str = "1024";

/// What one run saw.
struct Seen {
    /// Gaps a second, of each length in [`LEAST`].
    gaps: [f64; LEAST.len()],
    /// The longest gap, in microseconds.
    longest: f64,
}

impl Seen {
    /// Of gaps as (microseconds at least, how many).
    fn of(gaps: impl Iterator<Item = (u64, u64)> + Clone, longest: f64, seconds: f64) -> Self {
        let a_second = |least| {
            let long = gaps.clone().filter(|(micros, _)| *micros >= least);
            long.map(|(_, count)| count).sum::<u64>() as f64 / seconds
        };
        Self { gaps: LEAST.map(a_second), longest }
    }
}

/// `bench noise [--rounds N] [--seconds N] [--cpu N] [--binary FILE]`: FILE instead of a static build made now.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let rounds: usize = arguments.value("--rounds")?.unwrap_or(5);
    let seconds: u64 = arguments.value("--seconds")?.unwrap_or(8);
    let cpu = match arguments.value("--cpu")? {
        Some(number) => CpuId(number),
        None => last_cpu()?,
    };
    let binary: Option<PathBuf> = arguments.value("--binary")?;
    arguments.finish()?;
    ensure!(command::find("oslat").is_some(), "oslat is not installed (apt-get install rt-tests)");
    let binary = binary.map_or_else(built, Ok)?;
    let directory = std::env::temp_dir().join(format!("worstcase-noise-{}", std::process::id()));
    std::fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
    let measured = measured(&binary, &directory, (rounds, seconds, cpu));
    let _ = std::fs::remove_dir_all(&directory);
    println!("{rounds} rounds of {seconds} s a run, CPU {cpu}, SCHED_FIFO 90, gaps for each watched second");
    print!("{}", table(&measured?));
    Ok(())
}

pub(super) fn built() -> Result<PathBuf> {
    let native = Target::native().ok_or_else(|| anyhow!("no static target for this machine is known"))?;
    println!("building the static binary, the one that is shipped");
    dist::worstcase(native)
}

fn last_cpu() -> Result<CpuId> {
    let allowed: CpuList = processes::allowed_cpus().context("this process' CPUs")?.parse()?;
    allowed.iter().last().context("no CPU is allowed")
}

/// oslat, ours and oslat again, of each round.
fn measured(
    binary: &Path,
    directory: &Path,
    (rounds, seconds, cpu): (usize, u64, CpuId),
) -> Result<Vec<[Seen; 3]>> {
    let round = |_| -> Result<[Seen; 3]> {
        Ok([
            oslat(directory, seconds, cpu)?,
            ours(binary, directory, seconds, cpu)?,
            oslat(directory, seconds, cpu)?,
        ])
    };
    (0..rounds).map(round).collect()
}

fn oslat(directory: &Path, seconds: u64, cpu: CpuId) -> Result<Seen> {
    let file = directory.join("oslat.json");
    let mut command = Command::new("oslat");
    command.args(["-q", "-f", "90", "-b", BUCKETS, "-c", &cpu.to_string(), "-D", &seconds.to_string()]);
    command.arg(format!("--json={}", file.display()));
    completed(&mut command, &[0])?;
    let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    from_oslat(&serde_json::from_str(&text)?)
}

/// A bucket's key is its upper edge: what it has is at least one less.
fn from_oslat(result: &Value) -> Result<Seen> {
    let thread = result["thread"].as_object().and_then(|threads| threads.values().next());
    let thread = thread.context("oslat gave no thread's figures")?;
    let buckets = thread["histogram"].as_object().context("oslat gave no histogram")?;
    let gaps = buckets
        .iter()
        .filter_map(|(edge, count)| Some((edge.parse::<u64>().ok()?.saturating_sub(1), count.as_u64()?)));
    let figure = |name: &str| thread[name].as_f64().with_context(|| format!("oslat gave no {name}"));
    Ok(Seen::of(gaps, figure("max")?, figure("duration")?))
}

fn ours(binary: &Path, directory: &Path, seconds: u64, cpu: CpuId) -> Result<Seen> {
    let out: PathBuf = directory.join("run");
    let _ = std::fs::remove_dir_all(&out);
    let mut command = Command::new(binary);
    command.args(["bench", "--probe", "noise", "--loads", "idle", "--threshold", "1us"]);
    command.args(["--policy", "fifo", "--priority", "90", "--duration", &format!("{seconds}s")]);
    command.args(["--cpus", &cpu.to_string()]).arg("--out").arg(&out);
    completed(&mut command, &[0, 3])?;
    let path = out.join("record.json");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let record: Record = serde_json::from_str(&text).context("reading the record")?;
    let series = record.scenarios.first().and_then(|scenario| scenario.series.first());
    let series = series.context("the record has no series")?;
    let noise = series.noise().context("the series has no figures of noise")?;
    let rows = series.observed.rows();
    let longest = series.observed.summary().maximum().map_or(0, |longest| longest.0);
    let gaps: Vec<(u64, u64)> = rows.map(|row| (row.lowest.0 / 1_000, row.count)).collect();
    Ok(Seen::of(gaps.into_iter(), longest as f64 / 1e3, noise.watched.0 as f64 / 1e9))
}

fn completed(command: &mut Command, codes: &[i32]) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("starting {command:?}"))?;
    let measured = output.status.code().is_some_and(|code| codes.contains(&code));
    ensure!(measured, "{command:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn table(rounds: &[[Seen; 3]]) -> String {
    let mut table = format!("{:<14} {:>12} {:>12}   {:<22} oslat again\n", "", "oslat", "worstcase", "ratio");
    for (place, least) in LEAST.iter().enumerate() {
        table += &line(&format!(">= {least} us"), rounds, |seen| seen.gaps[place]);
    }
    table + &line("longest, us", rounds, |seen| seen.longest)
}

/// A figure of every round, as medians and as ratios within the rounds.
fn line(name: &str, rounds: &[[Seen; 3]], figure: impl Fn(&Seen) -> f64) -> String {
    let of = |place: usize| -> Vec<Option<f64>> {
        rounds.iter().map(|round| Some(figure(&round[place]))).collect()
    };
    let [first, ours, again] = [of(0), of(1), of(2)];
    let median = |figures: &[Option<f64>]| {
        Spread::of(figures.iter().copied().flatten())
            .map_or_else(String::new, |spread| format!("{:.2}", spread.median))
    };
    let ratio = |figures: &[Option<f64>]| {
        Spread::of_ratios(figures, &first).map_or_else(|| "none".to_owned(), |spread| spread.to_string())
    };
    format!(
        "{name:<14} {:>12} {:>12}   {:<22} {}\n",
        median(&first),
        median(&ours),
        ratio(&ours),
        ratio(&again)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_bucket_of_oslat_begins_one_below_its_key() {
        let result = json!({"thread": {"0": {"max": 900, "duration": 2.0,
            "histogram": {"1": 1_000_000, "2": 10, "6": 4, "21": 2}}}});
        let seen = from_oslat(&result).unwrap();
        assert_eq!((seen.gaps, seen.longest), ([8.0, 3.0, 1.0], 900.0));
        assert!(from_oslat(&json!({"thread": {}})).is_err());
    }

    #[test]
    fn a_ratio_is_taken_within_its_round() {
        let seen = |gaps: u64| Seen::of([(5, gaps)].into_iter(), 7.0, 1.0);
        let table = table(&[[seen(10), seen(20), seen(10)], [seen(100), seen(200), seen(50)]]);
        let line = table.lines().find(|line| line.starts_with(">= 5 us")).unwrap();
        assert!(line.contains("2.00 [2.00..2.00]") && line.contains("0.75 [0.50..1.00]"), "{table}");
    }
}
