//! Tools that measure wake-up latency, each as its command line and the form of its result.
//!
//! What can be compared, and how it is made equal:
//! - cyclictest truncates to whole us unless `-N` is given; then its cells are 1 ns wide and end at 1 ms. That form
//!   gives latencies, put into cells of our width. Its table of a million cells would be charged to it in memory and
//!   cache, so cost is taken from the form that test farms use, `-h 400`.
//! - `-a LIST -t N` takes the CPUs that are asked for. (With `-S` instead, cyclictest 2.4 locks whole thread stacks:
//!   19 MB rather than 3 for two CPUs. The smaller one is compared with.)
//! - all hold /dev/cpu_dma_latency at 0, wake all CPUs at the same moment (`-d0`, aligned) and lock their memory.
//! - cyclictest does not count what it slept through: observed wake-ups are compared with observed wake-ups.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use units::{CpuList, Nanos};

use super::rows::Rows;

/// The priority of every measuring thread.
pub const PRIORITY: u32 = 90;

/// cyclictest's highest cell: with `-N` in ns.
const FINE_CELLS: u64 = 1_000_000;

/// What all runs of one comparison share.
pub struct Conditions {
    /// The CPUs measured.
    pub cpus: CpuList,
    /// The period.
    pub interval: Nanos,
    /// Length of one run.
    pub seconds: u64,
    /// Our binary.
    pub binary: PathBuf,
    /// One of another version.
    pub earlier: Option<PathBuf>,
}

/// What a run measured.
pub struct Latencies {
    /// The least, in ns as exact as the tool has it.
    pub minimum: Option<f64>,
    /// Wake-ups by latency.
    pub rows: Rows,
    /// Wake-ups, and activations known to have been missed.
    pub accounted: u64,
}

/// One way to measure.
pub struct Contender {
    /// What it is called in the table.
    pub name: &'static str,
    /// The program that must be installed; none for ours.
    pub program: Option<&'static str>,
    /// Its command line; results go to the directory.
    pub command: fn(&Conditions, &Path) -> Command,
    /// Reads the results from the directory.
    pub read: fn(&Path) -> Result<Latencies>,
    /// Exit codes that say that it measured.
    pub codes: &'static [i32],
}

pub const WORSTCASE: Contender =
    Contender { name: "worstcase", program: None, command: ours, read: read_worstcase, codes: &[0, 3] };

/// Another version of ours, where one is given.
pub const EARLIER: Contender =
    Contender { name: "given binary", program: None, command: earlier, read: read_worstcase, codes: &[0, 3] };

/// cyclictest with cells of 1 ns: for latencies.
pub const FINE: Contender = Contender {
    name: "cyclictest -N",
    program: Some("cyclictest"),
    command: |conditions, directory| {
        let mut command = cyclictest(conditions, directory);
        command.args(["-N", "-h", &FINE_CELLS.to_string()]);
        command
    },
    read: read_cyclictest,
    codes: &[0],
};

/// cyclictest as test farms run it: for cost.
pub const PLAIN: Contender = Contender {
    name: "cyclictest",
    program: Some("cyclictest"),
    command: |conditions, directory| {
        let mut command = cyclictest(conditions, directory);
        command.args(["-h", "400"]);
        command
    },
    read: read_cyclictest,
    codes: &[0],
};

/// jitterdebugger: cells of 1 us up to 1 ms, its own phases.
pub const JITTERDEBUGGER: Contender = Contender {
    name: "jitterdebugger",
    program: Some("jitterdebugger"),
    command: jitterdebugger,
    read: read_jitterdebugger,
    codes: &[0],
};

fn ours(conditions: &Conditions, directory: &Path) -> Command {
    worstcase(&conditions.binary, conditions, directory)
}

fn earlier(conditions: &Conditions, directory: &Path) -> Command {
    worstcase(conditions.earlier.as_ref().unwrap_or(&conditions.binary), conditions, directory)
}

fn worstcase(binary: &Path, conditions: &Conditions, directory: &Path) -> Command {
    let mut command = Command::new(binary);
    command.args(["bench", "--loads", "idle", "--duration", &format!("{}s", conditions.seconds)]);
    command.args(["--interval", &conditions.interval.to_string(), "--cpus", &conditions.cpus.to_string()]);
    command.args(["--policy", "fifo", "--priority", &PRIORITY.to_string()]);
    command.args(["--cstates", "restrict", "--phase", "aligned"]);
    command.arg("--out").arg(directory.join("run"));
    command
}

fn cyclictest(conditions: &Conditions, directory: &Path) -> Command {
    let mut command = Command::new("cyclictest");
    let micros = (conditions.interval.0 / 1_000).to_string();
    let threads = conditions.cpus.len().to_string();
    command.args(["-q", "-m", "-d0", "--policy=fifo", "-p", &PRIORITY.to_string(), "-i", &micros]);
    command.args(["-t", &threads, "-a", &conditions.cpus.to_string(), "-D", &conditions.seconds.to_string()]);
    command.arg(format!("--json={}", directory.join("result.json").display()));
    command
}

fn jitterdebugger(conditions: &Conditions, directory: &Path) -> Command {
    let mut command = Command::new("jitterdebugger");
    let micros = (conditions.interval.0 / 1_000).to_string();
    command.args(["-a", &conditions.cpus.to_string(), "-D", &format!("{}s", conditions.seconds)]);
    command.args(["-i", &micros, "-p", &PRIORITY.to_string(), "-o"]).arg(directory);
    command
}

fn read_worstcase(directory: &Path) -> Result<Latencies> {
    let record = record::store::load(&directory.join("run")).context("reading the record")?;
    let scenario = record.scenarios.first().context("the record has no scenario")?;
    let mut observed = histogram::Histogram::default();
    scenario.series.iter().for_each(|series| observed.merge(&series.observed));
    Ok(Latencies {
        minimum: observed.summary().minimum().map(|nanos| nanos.0 as f64),
        rows: Rows::of(&observed),
        accounted: scenario.series.iter().map(record::Series::expected).sum(),
    })
}

fn read_json(directory: &Path, name: &str) -> Result<Value> {
    let path = directory.join(name);
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))
}

fn read_cyclictest(directory: &Path) -> Result<Latencies> {
    from_cyclictest(&read_json(directory, "result.json")?)
}

/// `resolution_in_ns` is 1 where values are ns, 0 where they are us.
fn from_cyclictest(result: &Value) -> Result<Latencies> {
    let threads = entries(&result["thread"]);
    ensure!(!threads.is_empty(), "cyclictest gave no thread's figures");
    let fine = result["resolution_in_ns"] == 1;
    let cycles: u64 = threads.iter().filter_map(|thread| thread["cycles"].as_u64()).sum();
    let counts: Vec<(u64, u64)> = threads.iter().flat_map(|thread| counts(thread)).collect();
    let counted: u64 = counts.iter().map(|(_, count)| count).sum();
    let rows = if fine { Rows::of_nanoseconds(counts) } else { Rows::of_microseconds(counts) };
    let end = if fine { FINE_CELLS } else { 400_000 };
    let minimum = threads.iter().filter_map(|thread| thread["min"].as_u64()).min().filter(|_| fine);
    Ok(Latencies {
        minimum: minimum.map(|nanos| nanos as f64),
        rows: rows.with_overflow(end, cycles.saturating_sub(counted)),
        accounted: cycles,
    })
}

fn read_jitterdebugger(directory: &Path) -> Result<Latencies> {
    let result = read_json(directory, "results.json")?;
    let threads = entries(&result["cpu"]);
    ensure!(!threads.is_empty(), "jitterdebugger gave no thread's figures");
    let wake_ups: u64 = threads.iter().filter_map(|thread| thread["count"].as_u64()).sum();
    let counts: Vec<(u64, u64)> = threads.iter().flat_map(|thread| counts(thread)).collect();
    let counted: u64 = counts.iter().map(|(_, count)| count).sum();
    let rows = Rows::of_microseconds(counts).with_overflow(1_000_000, wake_ups.saturating_sub(counted));
    Ok(Latencies { minimum: None, rows, accounted: wake_ups })
}

fn entries(value: &Value) -> Vec<&Value> {
    value.as_object().map(|map| map.values().collect()).unwrap_or_default()
}

/// `"histogram": {"3": 17, ...}`
fn counts(thread: &Value) -> Vec<(u64, u64)> {
    let rows = thread["histogram"].as_object().into_iter().flatten();
    rows.filter_map(|(row, count)| Some((row.parse().ok()?, count.as_u64()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_cyclictest_did_not_count_is_above_its_last_cell() {
        let result = json!({"resolution_in_ns": 1, "thread": {
            "0": {"histogram": {"3010": 600, "3090": 300}, "cycles": 1000, "min": 3010},
            "1": {"histogram": {"2050": 1000}, "cycles": 1000, "min": 2050}}});
        let latencies = from_cyclictest(&result).unwrap();
        assert_eq!(latencies.minimum, Some(2050.0));
        assert_eq!(latencies.rows.count(), 2000);
        assert_eq!(latencies.rows.quantile(0.5), Some(2_100.0));
        assert_eq!(latencies.rows.quantile(0.99), None);
    }

    #[test]
    fn microseconds_give_no_exact_minimum() {
        let result =
            json!({"resolution_in_ns": 0, "thread": {"0": {"histogram": {"3": 10}, "cycles": 10, "min": 3}}});
        assert_eq!(from_cyclictest(&result).unwrap().minimum, None);
        assert!(from_cyclictest(&json!({})).is_err());
    }
}
