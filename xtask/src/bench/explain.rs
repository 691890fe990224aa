//! `bench explain`: what tracing for explanations costs the threads that it watches. The trace is switched on and off within one
//! run, so that what else the machine does is the same for both.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use capture::{Capture, Threads};
use histogram::Histogram;
use sys::clock::{self, Clock};
use sys::schedule::{self, Scheduling};
use units::{CpuId, CpuList, Nanos};

use super::spread::Spread;
use crate::arguments::Arguments;

const PERIOD: u64 = 1_000_000;
/// How long the trace stays on or off.
const PHASE: Duration = Duration::from_millis(500);
/// After a switch nothing counts for so long: the kernel may still be at it.
const SETTLE: Duration = Duration::from_millis(20);
const NAME: &str = "traced/";
/// What the issue of it asked for: the median, and CPU time an activation.
const BUDGETS: (f64, f64) = (1.10, 1.15);

const OFF: u8 = 0;
const ON: u8 = 1;
const NEITHER: u8 = 2;

/// Wake-ups of one thread without and with the trace, and its CPU time in them.
#[derive(Default)]
struct Seen {
    latencies: [Histogram; 2],
    cpu_time: [u64; 2],
}

/// `bench explain [--rounds N] [--seconds N]`
pub fn run(mut arguments: Arguments) -> Result<()> {
    let rounds: usize = arguments.value("--rounds")?.unwrap_or(5);
    let seconds: u64 = arguments.value("--seconds")?.unwrap_or(10);
    arguments.finish()?;
    let (mut medians, mut costs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        for seen in round(Duration::from_secs(seconds))? {
            let median = |which: usize| seen.latencies[which].quantile(0.5).map(|median| median.0 as f64);
            let cost =
                |which: usize| seen.cpu_time[which] as f64 / seen.latencies[which].cell_count().max(1) as f64;
            let (off, on) =
                median(0).zip(median(1)).context("a thread never woke up in one of the phases")?;
            println!(
                "median {off:.0} ns without, {on:.0} ns with; CPU time an activation {:.0} ns, {:.0} ns",
                cost(0),
                cost(1)
            );
            medians.push(on / off);
            costs.push(cost(1) / cost(0));
        }
    }
    let (medians, costs) = Spread::of(medians).zip(Spread::of(costs)).context("no round")?;
    println!("median, with the trace to without      {medians}    budget: at most {}", BUDGETS.0);
    println!("CPU time an activation, the same       {costs}    budget: at most {}", BUDGETS.1);
    Ok(())
}

/// One run on all CPUs of this process.
fn round(length: Duration) -> Result<Vec<Seen>> {
    // Before there are threads. No latency is so long that it is marked: nothing is read.
    let begun = Capture::begin(&Threads::Named(NAME.to_owned()), 1, Nanos(u64::MAX));
    let mut capture = begun.map_err(|error| anyhow::anyhow!("{}: {}", error.message, error.hint))?;
    let (phase, end) = (&AtomicU8::new(NEITHER), &AtomicBool::new(false));
    std::thread::scope(|scope| {
        let start = |cpu: CpuId| {
            let thread = std::thread::Builder::new().name(format!("{NAME}{cpu}"));
            thread.spawn_scoped(scope, move || measure(cpu, phase, end))
        };
        let cpus = schedule::affinity(0)?;
        let threads: Vec<_> = cpus.iter().map(start).collect::<std::io::Result<_>>()?;
        let switched = switch(&mut capture, phase, length);
        end.store(true, Ordering::Relaxed);
        let seen: Result<Vec<Seen>> =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Ok(Seen::default()))).collect();
        switched?;
        seen
    })
}

fn switch(capture: &mut Capture, phase: &AtomicU8, length: Duration) -> Result<()> {
    let until = Instant::now() + length;
    let mut on = false;
    while Instant::now() < until {
        phase.store(NEITHER, Ordering::Relaxed);
        on = !on;
        let switched = if on { capture.go_on() } else { capture.hold() };
        switched.map_err(|error| anyhow::anyhow!("{}", error.message))?;
        std::thread::sleep(SETTLE);
        phase.store(if on { ON } else { OFF }, Ordering::Relaxed);
        std::thread::sleep(PHASE);
    }
    Ok(())
}

/// Wakes up every millisecond until `end`.
fn measure(cpu: CpuId, phase: &AtomicU8, end: &AtomicBool) -> Result<Seen> {
    schedule::set_affinity(0, &CpuList::from_iter([cpu]))?;
    let priority = "98".parse().map_err(|error| anyhow::anyhow!("{error}"))?;
    let set = schedule::set(Scheduling::Fifo(priority));
    ensure!(set.is_ok(), "SCHED_FIFO 98 is refused: run as root");
    let mut seen = Seen::default();
    let mut due = Clock::Monotonic.now() + PERIOD;
    let mut used = clock::thread_cpu_time();
    while !end.load(Ordering::Relaxed) {
        let before = phase.load(Ordering::Relaxed);
        let _ = Clock::Monotonic.sleep_until(due);
        let now = Clock::Monotonic.now();
        let latency = now.saturating_sub(due);
        let spent = clock::thread_cpu_time();
        // Of one in which the trace was switched nothing is known.
        if before != NEITHER && phase.load(Ordering::Relaxed) == before {
            seen.latencies[usize::from(before)].record(Nanos(latency));
            seen.cpu_time[usize::from(before)] += spent.saturating_sub(used);
        }
        used = spent;
        due = (due + PERIOD).max(now);
    }
    Ok(seen)
}
