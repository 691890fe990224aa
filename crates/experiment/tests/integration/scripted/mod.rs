//! A bench whose blocks are drawn from a distribution that a test makes up.

use experiment::{Arm, Bench, Block, Design, Error, Figures, Kind, Planned};
use units::{Nanos, Random, Seed};

/// How many times as long the tail is in an arm, in a block that is the `n`th to be measured.
pub type Script = dyn Fn(&Arm, usize) -> f64;

/// What blocks have in common with those before them, beside a draw of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Nothing.
    Independent,
    /// Each block is 5 % later than the one before.
    Drift,
    /// Nine tenths of where the last one was.
    Autoregressive,
    /// Five at a time are at one level.
    Clusters,
    /// Now and then ten blocks are five times as late.
    Episodes,
}

impl Noise {
    pub const ALL: [Self; 5] =
        [Self::Independent, Self::Drift, Self::Autoregressive, Self::Clusters, Self::Episodes];
}

/// Measures nothing.
pub struct Scripted {
    /// What blocks have in common.
    noise: Noise,
    /// Where the last block was, and how many more there are of an episode.
    level: (f64, u32),
    /// What a search said that it would measure.
    pub planned: Vec<Planned>,
    script: Box<Script>,
    random: Random,
    /// How much the tail differs from block to block: the logarithm's spread.
    spread: f64,
    /// Activations a block.
    pub samples: u64,
    /// The blocks that were measured.
    pub seen: Vec<Block>,
    /// Stopped before this block.
    pub stop: Option<usize>,
}

impl Scripted {
    pub fn new(seed: u64, spread: f64, script: impl Fn(&Arm, usize) -> f64 + 'static) -> Self {
        let random = Seed(seed).stream("made up");
        Self {
            noise: Noise::Independent,
            level: (0.0, 0),
            planned: Vec::new(),
            script: Box::new(script),
            random,
            spread,
            samples: 100,
            seen: Vec::new(),
            stop: None,
        }
    }

    /// With blocks that have something in common.
    pub fn with(self, noise: Noise) -> Self {
        Self { noise, ..self }
    }

    /// Sum of twelve uniforms: close enough to normal.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64).sum::<f64>() - 6.0
    }

    /// The logarithm of what the next block has in common with others.
    fn common(&mut self) -> f64 {
        let number = self.seen.len();
        let own = self.spread * self.normal();
        let (last, left) = self.level;
        self.level = match self.noise {
            Noise::Independent => (0.0, 0),
            Noise::Drift => (0.05 * number as f64, 0),
            Noise::Autoregressive => (0.9 * last + own, 0),
            Noise::Clusters => (if number % 5 == 0 { 3.0 * own } else { last }, 0),
            Noise::Episodes if left > 0 => (last, left - 1),
            Noise::Episodes if self.random.below(30) == 0 => (5.0_f64.ln(), 9),
            Noise::Episodes => (0.0, 0),
        };
        self.level.0
    }

    /// Most activations are early; one in twenty is in the tail, which is the longer the later the block's own draw is.
    fn figures(&mut self, factor: f64) -> Figures {
        let tail = 50_000.0 * factor * (self.common() + self.spread * self.normal()).exp();
        let mut figures = Figures::default();
        for place in 0..self.samples {
            let latency = if place % 20 == 19 { tail } else { 5_000.0 };
            figures.latencies.record(Nanos((latency * (1.0 + place as f64 / 1e4)) as u64));
        }
        figures.maxima.extend(figures.latencies.summary().maximum());
        figures
    }
}

impl Bench for Scripted {
    fn measure(&mut self, blocks: &[Block]) -> Result<Option<Vec<Figures>>, Error> {
        let mut figures = Vec::new();
        for block in blocks {
            if self.stop == Some(self.seen.len()) {
                return Ok(None);
            }
            let factor = (self.script)(&block.arm, self.seen.len());
            self.seen.push(block.clone());
            figures.push(self.figures(factor));
        }
        Ok(Some(figures))
    }

    fn planned(&mut self, planned: &Planned) {
        self.planned.push(*planned);
    }
}

/// `count` settings, eight blocks an arm or as many as they need.
pub fn design(count: usize, seed: u64) -> Design {
    Design {
        settings: (1..=count).map(|number| format!("setting-{number}")).collect(),
        blocks: statistics::rounds_needed(count).max(8),
        most_blocks: None,
        seed: Seed(seed),
        smallest_effect: 0.2,
        measure: Kind::Quantile,
        threshold: Some(Nanos(30_000)),
    }
}
