//! Families of latencies whose truth is known: what a statistical claim has to hold for.

use histogram::{Histogram, Summary, layout};
use statistics::Sequence;
use units::{Random, Seed};

/// How latencies depend on each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Family {
    /// Exponential, each on its own.
    Independent,
    /// Gaussian, each this much like the one before.
    Autoregressive(f64),
    /// Exponential, each so many times over.
    Clusters(usize),
    /// A hundredth of the time is spent in episodes of 100, ten times as late: each on its own, or all alike.
    Episodes { alike: bool },
    /// Exponential, this share later at the end than at the beginning.
    Drift(f64),
}

use Family::{Autoregressive, Clusters, Drift, Episodes, Independent};

pub const FAMILIES: [Family; 13] = [
    Independent,
    Autoregressive(0.5),
    Autoregressive(0.9),
    Autoregressive(0.99),
    Clusters(2),
    Clusters(5),
    Clusters(10),
    Episodes { alike: false },
    Episodes { alike: true },
    Drift(0.05),
    Drift(0.1),
    Drift(0.2),
    Drift(1.0),
];

/// Runs of a few thousand activations up to 200,000 are 25 to 100 times as long as these remember: the tests of
/// stationarity refuse some and let others through.
pub const REMEMBERING: [Family; 6] = [
    Autoregressive(0.95),
    Autoregressive(0.97),
    Autoregressive(0.985),
    Autoregressive(0.995),
    Autoregressive(0.998),
    Autoregressive(0.9995),
];

/// Nanoseconds that a unit of a family's figures lasts, and where they begin.
const UNIT: f64 = 20_000.0;
const BASE: f64 = 200_000.0;

fn even(random: &mut Random) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

fn exponential(random: &mut Random) -> f64 {
    -even(random).ln()
}

fn gaussian(random: &mut Random) -> f64 {
    (2.0 * exponential(random)).sqrt() * (std::f64::consts::TAU * even(random)).cos()
}

/// The probability that a standard normal figure exceeds `x` (Abramowitz and Stegun 26.2.17: to 7.5e-8, which is
/// enough for shares of a millionth of what is compared here; far out, the first term of Mills' ratio).
fn normal_tail(x: f64) -> f64 {
    let density = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    if x > 3.0 {
        // Laplace's continued fraction.
        return density / (1..60).rev().fold(x, |below, n| x + f64::from(n) / below);
    }
    if x < 0.0 {
        return 1.0 - normal_tail(-x);
    }
    let t = 1.0 / (1.0 + 0.231_641_9 * x);
    let sum = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
    density * sum.iter().fold(0.0, |value, factor| (value + factor) * t)
}

impl Family {
    /// `count` latencies in nanoseconds.
    pub fn draw(self, count: usize, seed: u64) -> Vec<u64> {
        let mut random = Seed(seed).stream(&format!("{self:?}"));
        let figures = self.figures(count, &mut random);
        figures.into_iter().map(|figure| (BASE + UNIT * figure) as u64).collect()
    }

    fn figures(self, count: usize, random: &mut Random) -> Vec<f64> {
        match self {
            Independent => (0..count).map(|_| exponential(random)).collect(),
            Drift(by) => {
                (0..count).map(|n| exponential(random) * (1.0 + by * n as f64 / count as f64)).collect()
            }
            Autoregressive(like) => {
                let mut figure = gaussian(random);
                let rest = (1.0 - like * like).sqrt();
                let mut next = |_| {
                    figure = like * figure + rest * gaussian(random);
                    figure
                };
                (0..count).map(&mut next).collect()
            }
            Clusters(size) => {
                let skip = random.below(size as u64) as usize;
                let drawn =
                    (0..count / size + 2).flat_map(|_| std::iter::repeat_n(exponential(random), size));
                drawn.skip(skip).take(count).collect()
            }
            Episodes { alike } => episodes(count, alike, random),
        }
    }

    /// The probability that a figure of the run exceeds `figure`, on average over the run.
    fn tail(self, figure: f64) -> f64 {
        match self {
            Independent | Clusters(_) => (-figure).exp().min(1.0),
            Autoregressive(_) => normal_tail(figure),
            Episodes { alike } => 0.01 * in_episode(figure, alike) + 0.99 * (-figure).exp(),
            Drift(by) => {
                let at = |step: u32| (-figure / (1.0 + by * (f64::from(step) + 0.5) / 200.0)).exp();
                (0..200).map(at).sum::<f64>() / 200.0
            }
        }
    }

    /// The share of activations later than a latency.
    pub fn share_above(self, latency: u64) -> f64 {
        self.tail((latency as f64 - BASE) / UNIT)
    }

    /// How many clusters an activation, on average, come above a latency. None where there is no closed form.
    pub fn events_above(self, latency: u64) -> Option<f64> {
        let figure = (latency as f64 - BASE) / UNIT;
        match self {
            Autoregressive(_) => None,
            Clusters(size) => Some(self.tail(figure) / size as f64),
            Independent | Drift(_) => Some(self.tail(figure)),
            Episodes { alike: true } => Some(1e-4 * in_episode(figure, true) + 0.99 * (-figure).exp()),
            Episodes { alike: false } => {
                let none = (1.0 - in_episode(figure, false)).powi(100);
                Some(1e-4 * (1.0 - none) + 0.99 * (-figure).exp())
            }
        }
    }

    /// The latency that a share of the activations exceeds.
    pub fn quantile(self, share: f64) -> u64 {
        let (mut low, mut high) = (0_u64, 100_000_000_u64);
        while high - low > 1 {
            let middle = u64::midpoint(low, high);
            if self.share_above(middle) > share { low = middle } else { high = middle }
        }
        high
    }
}

fn in_episode(figure: f64, alike: bool) -> f64 {
    if alike { (-(figure - 20.0) / 10.0).exp().min(1.0) } else { (-figure / 10.0).exp() }
}

fn episodes(count: usize, alike: bool, random: &mut Random) -> Vec<f64> {
    let gap = |random: &mut Random| 1 + (exponential(random) * 9_900.0) as u64;
    let mut inside = random.below(100) == 0;
    let mut left = if inside { 1 + random.below(100) } else { gap(random) };
    let mut level = exponential(random);
    let figure = |_| {
        if left == 0 {
            inside = !inside;
            (left, level) = if inside { (100, exponential(random)) } else { (gap(random), 0.0) };
        }
        left -= 1;
        match (inside, alike) {
            (false, _) => exponential(random),
            (true, false) => 10.0 * exponential(random),
            (true, true) => 20.0 + 10.0 * level,
        }
    };
    (0..count).map(figure).collect()
}

/// The histogram of latencies.
pub fn histogram(latencies: &[u64]) -> Histogram {
    let mut cells = vec![0; layout::CELLS];
    let mut summary = Summary { min: u64::MAX, ..Summary::default() };
    for &latency in latencies {
        cells[layout::index(latency)] += 1;
        summary.count += 1;
        summary.sum += latency;
        summary.min = summary.min.min(latency);
        summary.max = summary.max.max(latency);
    }
    Histogram::from_parts(summary, cells.into_iter().enumerate().filter(|(_, count)| *count > 0))
}

/// The maxima of blocks, as the probe keeps them: how many activations in a block, and the maxima.
pub fn maxima(latencies: &[u64]) -> (u64, Vec<u64>) {
    let size = latencies.len().div_ceil(2048).next_power_of_two();
    (size as u64, latencies.chunks(size).filter_map(|block| block.iter().copied().max()).collect())
}

pub fn sequence(latencies: &[u64]) -> Sequence {
    let (size, maxima) = maxima(latencies);
    Sequence::new(histogram(latencies), size, maxima)
}
