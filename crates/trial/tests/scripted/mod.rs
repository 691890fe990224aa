//! A bench whose blocks are drawn from a distribution that a test makes up.

use trial::{Arm, Bench, Block, Design, Error, Figures, Kind};
use units::{Nanos, Random, Seed};

/// How many times as long the tail is in an arm, in a block that is the `n`th to be measured.
pub type Script = dyn Fn(&Arm, usize) -> f64;

/// Measures nothing.
pub struct Scripted {
    script: Box<Script>,
    random: Random,
    /// How much the tail differs from block to block: the logarithm's spread.
    spread: f64,
    /// Activations a block.
    pub samples: u64,
    /// The blocks that were measured.
    pub seen: Vec<Block>,
    /// Told to stop before this block.
    pub stop: Option<usize>,
}

impl Scripted {
    pub fn new(seed: u64, spread: f64, script: impl Fn(&Arm, usize) -> f64 + 'static) -> Self {
        let random = Seed(seed).stream("made up");
        Self { script: Box::new(script), random, spread, samples: 100, seen: Vec::new(), stop: None }
    }

    /// Sum of twelve uniforms: close enough to normal.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64).sum::<f64>() - 6.0
    }

    /// Most activations are early; one in twenty is in the tail, which is the longer the later the block's own draw is.
    fn figures(&mut self, factor: f64) -> Figures {
        let tail = 50_000.0 * factor * (self.spread * self.normal()).exp();
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
}

/// `count` settings, five blocks an arm.
pub fn design(count: usize, seed: u64) -> Design {
    Design {
        settings: (1..=count).map(|number| format!("setting-{number}")).collect(),
        blocks: 5,
        seed: Seed(seed),
        smallest_effect: 0.2,
        measure: Kind::Quantile,
        threshold: None,
    }
}
