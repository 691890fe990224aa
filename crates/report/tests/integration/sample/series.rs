//! Random latencies: a narrow peak, a skewed shoulder, a thin tail.

use histogram::{Histogram, Summary, layout, record_missed};
use record::instrument::timer::TimerSeries;
use record::{Block, BlockMaxima, Sample, Series, Timeline, WarmUp};
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

/// Latencies that one draw is spread over.
const MOST_PARTS: u64 = 24;

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
        let mut made = Made::new(cpu, expected, self);
        let draws = DRAWS.min(expected).max(1);
        for draw in 0..draws {
            let latency = match self.stall {
                Some(stall) if draw == draws / 3 => stall.0,
                _ => self.draw(random),
            };
            let times = expected / draws + u64::from(draw < expected % draws);
            made.add(latency, times, self);
        }
        made.finish()
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

/// A series in the making: every activation due is either a wake-up or missed.
struct Made {
    series: Series,
    timer: TimerSeries,
    summary: Summary,
    cells: Vec<(usize, u64)>,
    blocks: Vec<Block>,
    maxima: BlockMaxima,
    /// The next activation.
    activation: u64,
    /// Activations still to be missed.
    asleep: u64,
}

impl Made {
    fn new(cpu: Option<CpuId>, expected: u64, shape: &Shape) -> Self {
        let steps = shape.length.0.div_ceil(1_000_000_000).max(1) as usize;
        Self {
            series: Series { cpu, ..Series::default() },
            timer: TimerSeries { expected, warm_up: warm_up(shape.median), ..TimerSeries::default() },
            summary: Summary::default(),
            cells: Vec::new(),
            blocks: vec![Block::default(); steps],
            maxima: BlockMaxima {
                activations: expected.div_ceil(2048).next_power_of_two(),
                maxima: Vec::new(),
            },
            activation: 0,
            asleep: 0,
        }
    }

    /// `times` activations, the first of them `latency` late, and the others too unless it swallows them.
    fn add(&mut self, latency: u64, times: u64, shape: &Shape) {
        let slept = self.asleep.min(times);
        self.asleep -= slept;
        self.activation += slept;
        let times = times - slept;
        if times == 0 {
            return;
        }
        let lost = (latency / shape.interval.0).min(self.timer.expected - self.activation - 1);
        let wakes = if lost == 0 { times } else { 1 };
        self.wake(latency, wakes, lost, shape);
        if lost > 0 {
            self.miss(latency, lost, shape);
            self.asleep = lost;
            self.add(shape.median, times - 1, shape);
        }
    }

    fn wake(&mut self, latency: u64, wakes: u64, lost: u64, shape: &Shape) {
        // Spread a little, as real latencies are: what stands for many fills many cells.
        let parts = wakes.min(MOST_PARTS);
        for part in 0..parts {
            let (latency, times) =
                (latency - latency * part / 200, wakes / parts + u64::from(part < wakes % parts));
            self.summary.add(latency, times);
            self.cells.push((layout::index(latency), times));
        }
        let due = Nanos(self.activation * shape.interval.0);
        self.series.worst.push(Sample { latency: Nanos(latency), due, activation: self.activation });
        let last = self.blocks.len() - 1;
        let block = &mut self.blocks[((due.0 / 1_000_000_000) as usize).min(last)];
        block.observed.add(latency, wakes);
        block.missed += lost;
        self.peak(latency, wakes);
        self.activation += wakes;
    }

    /// `count` activations from the next one on are `latency` late.
    fn peak(&mut self, latency: u64, count: u64) {
        let BlockMaxima { activations, maxima } = &mut self.maxima;
        let (first, last) = (self.activation / *activations, (self.activation + count - 1) / *activations);
        maxima.resize(maxima.len().max(last as usize + 1), 0);
        maxima[first as usize..=last as usize]
            .iter_mut()
            .for_each(|maximum| *maximum = latency.max(*maximum));
    }

    fn miss(&mut self, latency: u64, lost: u64, shape: &Shape) {
        self.timer.late += 1;
        self.peak(latency - shape.interval.0, lost);
        let mut cells = Histogram::default();
        let sum = record_missed(&mut cells, latency, shape.interval.0, lost);
        let least = latency - lost * shape.interval.0;
        let summary = Summary { count: lost, sum, min: least, max: latency - shape.interval.0 };
        self.timer.missed.merge(&Histogram::from_parts(summary, cells.cells()));
    }

    fn finish(self) -> Series {
        let mut series = self.series;
        series.observed = Histogram::from_parts(self.summary, self.cells);
        series.worst.sort_by_key(|sample| std::cmp::Reverse(sample.latency));
        series.worst.truncate(20);
        series.timeline = timeline(self.blocks);
        series.maxima = self.maxima;
        series.own = self.timer.into();
        assert_eq!(series.expected(), series.observed.summary().count + series.missed().summary().count);
        series
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
