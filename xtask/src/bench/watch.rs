//! What a measuring tool costs, read from outside: the same way for each.

use std::fs::File;
use std::io::Read;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::processes::{self, FIFO, Thread};

/// Cost of one run, between the moment when it was under way and the moment before its end.
#[derive(Clone, Debug, Default)]
pub struct Cost {
    /// CPU time of the measuring threads per wake-up of theirs, in ns.
    pub measuring: f64,
    /// CPU time of all the tool's threads per wake-up of the measuring ones, in ns.
    pub whole: f64,
    /// Resident memory of the process that measures, in KiB.
    pub resident: Option<u64>,
    /// Memory of all the tool's processes, shared pages divided, in KiB.
    pub proportional: Option<u64>,
    /// What the tool asked of the kernel, as the kernel shows it.
    pub conditions: String,
}

/// One look at a tool.
struct Snapshot {
    measuring: Vec<Thread>,
    cpu_nanos: u64,
}

impl Snapshot {
    fn take(root: u32, priority: u32) -> Self {
        let threads: Vec<Thread> = processes::tree(root).into_iter().flat_map(processes::threads).collect();
        let cpu_nanos = threads.iter().map(|thread| thread.cpu_nanos).sum();
        let measures = |thread: &Thread| thread.policy == FIFO && thread.priority == priority;
        Self { measuring: threads.into_iter().filter(measures).collect(), cpu_nanos }
    }

    fn sum(&self, of: fn(&Thread) -> u64) -> u64 {
        self.measuring.iter().map(of).sum()
    }
}

/// Watches `tool` until `threads` threads of SCHED_FIFO `priority` measure, lets it settle for a second, and reads its
/// cost over all but the last second of its `seconds`.
pub fn watch(tool: &mut Child, threads: usize, priority: u32, seconds: u64) -> Result<Cost> {
    let root = tool.id();
    let found = begin(tool, threads, priority)?;
    std::thread::sleep(Duration::from_secs(1));
    let before = Snapshot::take(root, priority);
    let rest = Duration::from_secs(seconds.saturating_sub(1)).saturating_sub(found.elapsed());
    std::thread::sleep(rest);
    let after = Snapshot::take(root, priority);
    cost(root, &before, &after)
}

fn begin(tool: &mut Child, threads: usize, priority: u32) -> Result<Instant> {
    const PATIENCE: Duration = Duration::from_secs(20);
    let start = Instant::now();
    while Snapshot::take(tool.id(), priority).measuring.len() < threads {
        ensure!(tool.try_wait()?.is_none(), "it ended before it measured");
        ensure!(start.elapsed() < PATIENCE, "no {threads} threads of SCHED_FIFO {priority} were seen");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(Instant::now())
}

fn cost(root: u32, before: &Snapshot, after: &Snapshot) -> Result<Cost> {
    let same = before.measuring.len() == after.measuring.len();
    ensure!(same, "measuring threads came or went while they were watched");
    let wake_ups = after.sum(|thread| thread.sleeps).saturating_sub(before.sum(|thread| thread.sleeps));
    ensure!(wake_ups > 0, "no wake-up was seen");
    let per_wake_up = |after: u64, before: u64| after.saturating_sub(before) as f64 / wake_ups as f64;
    let first = after.measuring.first().context("no measuring thread is left")?;
    Ok(Cost {
        measuring: per_wake_up(after.sum(|thread| thread.cpu_nanos), before.sum(|thread| thread.cpu_nanos)),
        whole: per_wake_up(after.cpu_nanos, before.cpu_nanos),
        resident: processes::resident_kib(first.process),
        proportional: processes::tree(root).into_iter().map(processes::proportional_kib).sum(),
        conditions: conditions(&after.measuring),
    })
}

fn conditions(threads: &[Thread]) -> String {
    let mut cpus: Vec<&str> = threads.iter().map(|thread| thread.cpus.as_str()).collect();
    cpus.sort_unstable();
    let priorities: Vec<String> = threads.iter().map(|thread| thread.priority.to_string()).collect();
    let latency = latency_request().map_or_else(|| "unreadable".to_owned(), |micros| format!("{micros} us"));
    format!("FIFO {} on CPU {}, C-state latency {latency}", priorities.join(" "), cpus.join(" "))
}

/// What all requests together allow idle states to cost, in us (Documentation/power/pm_qos_interface.rst): reading
/// /dev/cpu_dma_latency gives the effective value.
fn latency_request() -> Option<i32> {
    let mut bytes = [0; 4];
    File::open("/dev/cpu_dma_latency").ok()?.read_exact(&mut bytes).ok()?;
    Some(i32::from_ne_bytes(bytes))
}
