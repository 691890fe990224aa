//! Sets the gaps of the noise probe against what the kernel counts: its counters are read in the pauses between windows.

use std::time::Duration;

use failure::Result;
use machine::Disturbances;
use probe::Probe;
use probe::board::View;
use record::instrument::noise::{Around, Counted, NoiseSetup};
use record::{Fact, Own, Sample, Series, Setup};
use sysroot::SysRoot;
use units::Nanos;

use super::Beside;

/// Stretches kept of each CPU, so that the worst gaps find theirs.
const MOST_STRETCHES: usize = 100_000;

/// The counters of one scenario.
struct Counters {
    setup: NoiseSetup,
    last: Option<Reading>,
    cpus: Vec<OfCpu>,
}

/// One reading, with what each thread had seen by then.
struct Reading {
    disturbances: Disturbances,
    clock: u64,
    seen: Vec<Seen>,
}

/// What a thread has seen so far.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    windows: u64,
    gaps: u64,
    preemptions: u64,
}

#[derive(Default)]
struct OfCpu {
    counted: Counted,
    stretches: Vec<Stretch>,
}

/// What was counted from one reading of the clock to another.
struct Stretch {
    from: u64,
    to: u64,
    around: Fact<Around>,
}

impl Seen {
    fn by(view: &View<'_>) -> Self {
        let noise = view.noise();
        Self { windows: noise.windows, gaps: view.summary().count, preemptions: noise.preemptions }
    }
}

/// Nothing for other instruments.
pub fn begin(_: &SysRoot, setup: &Setup, _: Option<Nanos>) -> Result<Option<Box<dyn Beside>>> {
    let Setup::Noise(setup) = setup else { return Ok(None) };
    Ok(Some(Box::new(Counters { setup: setup.clone(), last: None, cpus: Vec::new() })))
}

impl Beside for Counters {
    /// Until the middle of the next pause.
    fn patience(&self, probe: &Probe) -> Option<Duration> {
        let origin = probe.view(0).origin()?;
        let (window, spin) = (self.setup.window.0.max(1), self.setup.spin.0);
        let middle = spin + window.saturating_sub(spin) / 2;
        let within = probe.now().saturating_sub(origin) % window;
        let left = if within < middle { middle - within } else { window - within + middle };
        Some(Duration::from_nanos(left))
    }

    /// Reads the counters, if all threads pause now. One that begins to spin or has seen more meanwhile makes the reading
    /// useless: the stretch goes on to the next.
    fn look(&mut self, root: &SysRoot, probe: &Probe) {
        if !is_pause(probe, &self.setup) {
            return;
        }
        let seen: Vec<Seen> = probe.views().map(|view| Seen::by(&view)).collect();
        let disturbances = Disturbances::read(root);
        let is_same = probe.views().zip(&seen).all(|(view, seen)| Seen::by(&view) == *seen);
        if !is_same || !is_pause(probe, &self.setup) {
            return;
        }
        let reading = Reading { disturbances, clock: probe.now(), seen };
        if let Some(before) = &self.last {
            self.cpus.resize_with(reading.seen.len(), OfCpu::default);
            for (index, of_cpu) in self.cpus.iter_mut().enumerate() {
                of_cpu.add(probe, index, before, &reading);
            }
        }
        self.last = Some(reading);
    }

    /// What was counted on each CPU, around its worst gaps too.
    fn enter(&mut self, series: &mut [Series]) {
        for (of_cpu, series) in self.cpus.iter().zip(series) {
            let Own::Noise(noise) = &mut series.own else { continue };
            noise.counted = of_cpu.counted.clone();
            let around = |sample: &Sample| of_cpu.around(noise.began.0.saturating_add(sample.due.0));
            noise.around_worst = series.worst.iter().map(around).collect();
        }
    }
}

impl OfCpu {
    /// What was counted in the stretch that has this reading of the clock.
    fn around(&self, at: u64) -> Fact<Around> {
        let stretch = self.stretches.iter().find(|stretch| (stretch.from..stretch.to).contains(&at));
        stretch.map_or(Fact::Absent, |stretch| stretch.around.clone())
    }

    fn add(&mut self, probe: &Probe, index: usize, before: &Reading, after: &Reading) {
        let (Some(then), Some(now)) = (before.seen.get(index), after.seen.get(index)) else { return };
        let cpu = probe.plan().threads.get(index).copied().flatten();
        let around = cpu.map_or(Fact::Unsupported, |cpu| after.disturbances.since(&before.disturbances, cpu));
        let preemptions = now.preemptions.saturating_sub(then.preemptions);
        let around = around.map(|around| Around { preemptions, ..around });
        self.counted.stretches += 1;
        if let Fact::Value(around) = &around {
            let (gaps, windows) = (now.gaps - then.gaps, now.windows - then.windows);
            self.counted.unexplained_gaps += around.leaves_unexplained(gaps, windows);
        }
        self.counted.sum = match (std::mem::take(&mut self.counted.sum), &around) {
            (Fact::Value(mut sum), Fact::Value(around)) => {
                sum += *around;
                Fact::Value(sum)
            }
            _ if self.counted.stretches == 1 => around.clone(),
            (Fact::Value(_), missing) => missing.clone(),
            (missing, _) => missing,
        };
        if self.stretches.len() < MOST_STRETCHES {
            self.stretches.push(Stretch { from: before.clock, to: after.clock, around });
        }
    }
}

/// Whether the threads pause by the plan.
fn is_pause(probe: &Probe, setup: &NoiseSetup) -> bool {
    let Some(origin) = probe.view(0).origin() else { return false };
    let now = probe.now();
    now >= origin && (now - origin) % setup.window.0.max(1) >= setup.spin.0
}
