//! `bench cost`: what operations take by `worstcase cost` and by other tools, on one CPU.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use units::{CpuId, CpuList};

use super::beside::{self, Pair, Rounds};
use crate::arguments::Arguments;
use crate::{command, processes};

/// A tool's way to an operation.
struct Peer {
    pair: Pair,
    /// What answers it, where it needs somebody.
    server: &'static [&'static str],
    arguments: &'static [&'static str],
    /// The time of one of our operations, in nanoseconds, from what it printed.
    read: fn(&str) -> Option<f64>,
}

/// The loops of perf's benchmarks.
const LOOPS: f64 = 50_000.0;
const CALLS: f64 = 2_000_000.0;
const BLOCK: f64 = 16.0 * 1024.0;
const COPY: f64 = 16.0 * 1024.0 * 1024.0;

const fn pair(
    ours: &'static str,
    theirs: &'static str,
    program: &'static str,
    package: &'static str,
    differs: &'static str,
) -> Pair {
    Pair { ours, theirs, program, package, differs }
}

const PEERS: &[Peer] = &[
    Peer {
        pair: pair("getppid", "perf bench syscall", "perf", "linux-perf", ""),
        server: &[],
        arguments: &["bench", "-f", "simple", "syscall", "basic", "-l", "2000000"],
        read: |text| Some(number(text)? * 1e9 / CALLS),
    },
    Peer {
        pair: pair("pipe-ping-pong", "perf bench sched pipe", "perf", "linux-perf", ""),
        server: &[],
        arguments: &["bench", "-f", "simple", "sched", "pipe", "-T", "-l", "50000"],
        read: |text| Some(number(text)? * 1e9 / LOOPS),
    },
    Peer {
        pair: pair("memory-copy", "perf bench mem memcpy", "perf", "linux-perf", ""),
        server: &[],
        arguments: &["bench", "-f", "simple", "mem", "memcpy", "-f", "default", "-s", "16MB", "-l", "100"],
        read: |text| Some(COPY / number(text)? * 1e9),
    },
    Peer {
        pair: pair(
            "fifo-stream",
            "stress-ng --fifo",
            "stress-ng",
            "stress-ng",
            "theirs writes 8 bytes to 4 readers, which select before each read",
        ),
        server: &[],
        arguments: &["--fifo", "1", "--metrics", "--yaml", "/dev/stdout", "-t", "1"],
        read: stress_ng,
    },
    Peer {
        pair: pair(
            "mqueue-stream",
            "stress-ng --mq",
            "stress-ng",
            "stress-ng",
            "theirs makes invalid calls and calls with time limits in between",
        ),
        server: &[],
        arguments: &["--mq", "1", "--metrics", "--yaml", "/dev/stdout", "-t", "1"],
        read: stress_ng,
    },
    Peer {
        pair: pair(
            "fork",
            "stress-ng --fork",
            "stress-ng",
            "stress-ng",
            "the same calls, of a larger process",
        ),
        server: &[],
        arguments: &["--fork", "1", "--metrics", "--yaml", "/dev/stdout", "-t", "1"],
        read: stress_ng,
    },
    Peer {
        pair: pair(
            "vfork",
            "stress-ng --vfork",
            "stress-ng",
            "stress-ng",
            "the same calls, of a larger process",
        ),
        server: &[],
        arguments: &["--vfork", "1", "--metrics", "--yaml", "/dev/stdout", "-t", "1"],
        read: stress_ng,
    },
    Peer {
        pair: pair(
            "udp-ping-pong",
            "sockperf ping-pong",
            "sockperf",
            "sockperf",
            "theirs is two processes and reads the clock twice a message",
        ),
        server: &["server", "-i", "127.0.0.1", "-p", "18111"],
        arguments: &["ping-pong", "-i", "127.0.0.1", "-p", "18111", "-t", "1", "-m", "14"],
        read: sockperf,
    },
    Peer {
        pair: pair(
            "tcp-ping-pong",
            "sockperf ping-pong --tcp",
            "sockperf",
            "sockperf",
            "theirs is two processes and reads the clock twice a message",
        ),
        server: &["server", "--tcp", "-i", "127.0.0.1", "-p", "18112"],
        arguments: &["ping-pong", "--tcp", "-i", "127.0.0.1", "-p", "18112", "-t", "1", "-m", "14"],
        read: sockperf,
    },
    Peer {
        pair: pair(
            "tcp-stream",
            "iperf3 -l 16384",
            "iperf3",
            "iperf3",
            "theirs selects after every tenth write",
        ),
        server: &["-s", "-1", "-B", "127.0.0.1", "-p", "18113"],
        arguments: &["-c", "127.0.0.1", "-p", "18113", "-t", "1", "-l", "16384", "-J"],
        read: iperf,
    },
];

/// `bench cost [--rounds N] [--cpu N] [--binary FILE]`
pub fn run(mut arguments: Arguments) -> Result<()> {
    let rounds: usize = arguments.value("--rounds")?.unwrap_or(5);
    let cpu = match arguments.value("--cpu")? {
        Some(number) => CpuId(number),
        None => first_cpu()?,
    };
    let binary: Option<PathBuf> = arguments.value("--binary")?;
    arguments.finish()?;
    ensure!(rounds > 0, "--rounds must be at least 1");
    let binary = binary.map_or_else(super::noise::built, Ok)?;
    let directory = std::env::temp_dir().join(format!("worstcase-cost-{}", std::process::id()));
    std::fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
    let mut pairs = Vec::new();
    for peer in PEERS.iter().filter(|peer| beside::is_installed(&peer.pair)) {
        let mut taken = Rounds::default();
        for _ in 0..rounds {
            taken.take(|| ours(&binary, &directory, cpu, peer.pair.ours), || theirs(peer, cpu));
        }
        eprintln!("  {} done", peer.pair.theirs);
        pairs.push((&peer.pair, taken));
    }
    let _ = std::fs::remove_dir_all(&directory);
    println!("{rounds} rounds, all on CPU {cpu}; the time of one operation");
    print!("{}", beside::table(&pairs));
    println!("netperf, which measures the same as sockperf and iperf3, is not in Debian's main archive");
    Ok(())
}

pub fn first_cpu() -> Result<CpuId> {
    let allowed: CpuList = processes::allowed_cpus().context("this process' CPUs")?.parse()?;
    allowed.first().context("no CPU is allowed")
}

fn ours(binary: &Path, directory: &Path, cpu: CpuId, operation: &str) -> Result<f64> {
    let record = directory.join("record");
    let _ = std::fs::remove_dir_all(&record);
    let mut command = Command::new(binary);
    command.args([
        "cost",
        "--only",
        operation,
        "--cpus",
        &cpu.to_string(),
        "--rounds",
        "1",
        "--sample",
        "500ms",
    ]);
    command::output(command.arg("--out").arg(&record))?;
    let cost = record::cost::load(&record).context("there is no record of costs")??;
    let measured =
        cost.operations.iter().find(|one| one.name == operation).context("it is not in the record")?;
    let sample = measured.samples.first().context("it was not measured")?;
    Ok(sample.picoseconds() as f64 / 1e3)
}

fn theirs(peer: &Peer, cpu: CpuId) -> Result<f64> {
    let on_cpu = |arguments: &[&str]| {
        let mut command = Command::new("taskset");
        command.args(["-c", &cpu.to_string(), peer.pair.program]).args(arguments);
        command
    };
    let _server = (!peer.server.is_empty()).then(|| Server::start(&mut on_cpu(peer.server))).transpose()?;
    let text = command::output(&mut on_cpu(peer.arguments))?;
    (peer.read)(&text)
        .filter(|figure| figure.is_finite())
        .with_context(|| format!("no figure in what {} printed", peer.pair.program))
}

/// It ends with its value.
struct Server(Child);

impl Server {
    fn start(command: &mut Command) -> Result<Self> {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Self(quiet.spawn().with_context(|| format!("starting {command:?}"))?);
        // None of them says when it listens.
        std::thread::sleep(Duration::from_millis(500));
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        processes::kill_tree(self.0.id());
        let _ = self.0.wait();
    }
}

/// The number on the last line that is one, as `perf bench -f simple` prints it.
fn number(text: &str) -> Option<f64> {
    text.lines().rev().find_map(|line| line.trim().parse().ok()).filter(|number| *number > 0.0)
}

/// The time of a bogo operation.
fn stress_ng(text: &str) -> Option<f64> {
    let rate = text.lines().find_map(|line| line.trim().strip_prefix("bogo-ops-per-second-real-time: "))?;
    Some(1e9 / number(rate)?)
}

/// Its latency is half of the way there and back.
fn sockperf(text: &str) -> Option<f64> {
    let (_, rest) = text.split_once("Summary: Latency is ")?;
    Some(2.0 * 1e3 * number(rest.split_whitespace().next()?)?)
}

fn iperf(text: &str) -> Option<f64> {
    let result: Value = serde_json::from_str(text).ok()?;
    Some(BLOCK * 8.0 * 1e9 / result["end"]["sum_received"]["bits_per_second"].as_f64()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_print_is_the_time_of_one_operation() {
        assert_eq!(number("0.109\n"), Some(0.109));
        let memory = "# function 'default' (Default memcpy() provided by glibc)\n23177432100.129856\n";
        assert_eq!(number(memory), Some(23_177_432_100.129_856));
        let metrics = "metrics:\n    - stressor: fifo\n      bogo-ops: 262357\n      \
                       bogo-ops-per-second-usr-sys-time: 415094.250066\n      \
                       bogo-ops-per-second-real-time: 260839.835620\n      wall-clock-time: 1.005816\n";
        assert!((stress_ng(metrics).unwrap() - 3_833.77).abs() < 0.01);
        let latency = "sockperf: Test ended\nsockperf: Summary: Latency is 7.900 usec\nsockperf: Total 30899 observations\n";
        assert_eq!(sockperf(latency), Some(15_800.0));
        let stream = r#"{"end":{"sum_received":{"bytes":1635434496,"bits_per_second":13081409105.361351}}}"#;
        assert!((iperf(stream).unwrap() - 10_019.7).abs() < 0.1);
    }

    #[test]
    fn what_is_no_result_gives_no_figure() {
        for text in [
            "",
            "perf: command not found",
            "0.0",
            "{}",
            "Summary: Latency is",
            "bogo-ops-per-second-real-time: 0",
        ] {
            let read = |of: fn(&str) -> Option<f64>| of(text).filter(|figure| figure.is_finite());
            assert_eq!([number, stress_ng, sockperf, iperf].map(read), [None; 4], "{text}");
        }
    }
}
