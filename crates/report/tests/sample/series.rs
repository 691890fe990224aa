//! Latencies drawn by lot: a narrow peak, a skewed shoulder, a thin tail.

use histogram::{Histogram, Summary, layout, record_missed};
use record::{Block, Sample, Series, Timeline, WarmUp};
use units::{CpuId, Nanos, Random};

pub struct Shape {
    pub interval: Nanos,
    pub length: Nanos,
    pub median: u64,
    pub weight: f64,
    pub stall: Option<Nanos>,
}

/// Latencies drawn for one series, however many activations it stands for.
const DRAWS: u64 = 10_000;

/// How much a load stretches the tail.
pub fn weight(load: &str) -> f64 {
    match load {
        "idle" => 0.55,
        "cpu" => 0.42,
        "io" => 0.62,
        "vm" => 0.70,
        "hdd" => 0.85,
        _ => 0.95,
    }
}

impl Shape {
    pub fn series(&self, cpu: Option<CpuId>, random: &mut Random) -> Series {
        let expected = self.length.0 / self.interval.0.max(1);
        let mut series = Series { cpu, expected, warm_up: warm_up(self.median), ..Series::default() };
        let draws = DRAWS.min(expected).max(1);
        let steps = self.length.0.div_ceil(1_000_000_000).max(1);
        let mut blocks = vec![Block::default(); steps as usize];
        let (mut summary, mut cells) = (Summary::default(), Vec::new());
        let stall = self.stall.map(|stall| (draws / 3, stall));
        let mut missed = 0;
        for draw in 0..draws {
            let times = expected / draws + u64::from(draw < expected % draws);
            let activation = draw * (expected / draws);
            let latency = match stall {
                Some((at, stall)) if at == draw => stall.0,
                _ => self.draw(random),
            };
            let lost = (latency / self.interval.0).min(expected - activation - 1);
            missed += lost;
            let times = if lost > 0 { 1 } else { times };
            summary.add(latency, times);
            cells.push((layout::index(latency), times));
            let due = Nanos(activation * self.interval.0);
            series.worst.push(Sample { latency: Nanos(latency), due, activation });
            let block = &mut blocks[(due.0 / 1_000_000_000).min(steps - 1) as usize];
            block.observed.add(latency, times);
            block.missed += lost;
            if lost > 0 {
                series.late += 1;
                let mut histogram = Histogram::default();
                let sum = record_missed(&mut histogram, latency, self.interval.0, lost);
                let least = latency - lost * self.interval.0;
                let summary = Summary { count: lost, sum, min: least, max: latency - self.interval.0 };
                let missed: Vec<_> = histogram.cells().collect();
                series.missed.merge(&Histogram::from_parts(summary, missed));
            }
        }
        series.observed = Histogram::from_parts(summary, cells);
        series.expected = summary.count + missed;
        series.worst.sort_by_key(|sample| std::cmp::Reverse(sample.latency));
        series.worst.truncate(20);
        series.timeline = timeline(blocks);
        series
    }

    /// Log-normal by the sum of twelve even draws, with a rare heavy tail.
    fn draw(&self, random: &mut Random) -> u64 {
        let even = |random: &mut Random| random.below(1 << 20) as f64 / f64::from(1 << 20);
        let normal = (0..12).map(|_| even(random)).sum::<f64>() - 6.0;
        let tail = if random.below(400) == 0 { 1.0 + 2.2 * even(random) * self.weight } else { 1.0 };
        let spread = if normal > 0.0 { self.weight * 0.55 } else { 0.14 };
        (self.median as f64 * (normal * spread).exp().powf(tail) * tail.powi(2)) as u64
    }
}

fn warm_up(median: u64) -> WarmUp {
    let mut observed = Summary::default();
    observed.add(median * 3, 1);
    observed.add(median, 499);
    WarmUp { observed, missed: 0 }
}

fn timeline(blocks: Vec<Block>) -> Timeline {
    let mut timeline = Timeline::default();
    for (second, block) in blocks.into_iter().enumerate() {
        timeline.push(second as u64, block);
    }
    timeline
}

/// What is left of a series when the last save of its histogram held only the first `share` of its samples.
pub fn keep_first(series: &mut Series, share: f64) {
    let cells: Vec<_> =
        series.observed.cells().map(|(cell, count)| (cell, (count as f64 * share) as u64)).collect();
    series.observed = Histogram::from_parts(*series.observed.summary(), cells);
}
