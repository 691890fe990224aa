//! Sets the gaps of the noise probe against what the kernel counts: its counters are read in the pauses between windows.

use std::time::Duration;

use machine::Disturbances;
use probe::board::View;
use probe::{Job, NoiseJob, Probe};
use record::instrument::noise::{Around, Counted, NoiseSeries};
use record::{Fact, Sample};
use sysroot::SysRoot;

/// Stretches kept of each CPU, so that the worst gaps find theirs.
const MOST_STRETCHES: usize = 100_000;

/// The counters of one scenario.
#[derive(Default)]
pub struct Counters {
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

impl Counters {
    /// How long until the middle of the next pause, where the probe has pauses.
    pub fn patience(probe: &Probe) -> Option<Duration> {
        let Job::Noise(job) = &probe.plan().job else { return None };
        let origin = probe.view(0).origin()?;
        let (window, spin) = (job.setup.window.0, job.setup.spin.0);
        let middle = spin + (window - spin) / 2;
        let within = probe.now().saturating_sub(origin) % window;
        let left = if within < middle { middle - within } else { window - within + middle };
        Some(Duration::from_nanos(left))
    }

    /// Reads the counters, if all threads pause now. One that begins to spin or has seen more meanwhile makes the reading
    /// useless: the stretch goes on to the next.
    pub fn look(&mut self, root: &SysRoot, probe: &Probe) {
        let Job::Noise(job) = &probe.plan().job else { return };
        if !is_pause(probe, job) {
            return;
        }
        let seen: Vec<Seen> = probe.views().map(|view| Seen::by(&view)).collect();
        let disturbances = Disturbances::read(root);
        let is_same = probe.views().zip(&seen).all(|(view, seen)| Seen::by(&view) == *seen);
        if !is_same || !is_pause(probe, job) {
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

    /// Enters what was counted on the CPU of thread `index`, around its worst gaps too.
    pub fn enter(&self, index: usize, noise: &mut NoiseSeries, worst: &[Sample]) {
        let Some(of_cpu) = self.cpus.get(index) else { return };
        noise.counted = of_cpu.counted.clone();
        let around = |sample: &Sample| {
            let at = noise.began.0.saturating_add(sample.due.0);
            let stretch = of_cpu.stretches.iter().find(|stretch| (stretch.from..stretch.to).contains(&at));
            stretch.map_or(Fact::Absent, |stretch| stretch.around.clone())
        };
        noise.around_worst = worst.iter().map(around).collect();
    }
}

impl OfCpu {
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
fn is_pause(probe: &Probe, job: &NoiseJob) -> bool {
    let Some(origin) = probe.view(0).origin() else { return false };
    let now = probe.now();
    now >= origin && (now - origin) % job.setup.window.0.max(1) >= job.setup.spin.0
}
