//! What is tried and how it is judged.

use serde::{Deserialize, Serialize};
use statistics::{Tail, Value, rounds_needed, tail};
use units::{InOrder, Nanos, Seed};

use crate::{Error, Figures};

/// More settings than these at once are a mistake.
const MOST_SETTINGS: usize = 64;

/// More blocks an arm than these never end.
const MOST_BLOCKS: u32 = 1000;

/// An experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Design {
    /// The settings, as they were asked for.
    pub settings: Vec<String>,
    /// Blocks an arm, one in each round: at least [`rounds_needed`]. In a search, those of its first phase.
    pub blocks: u32,
    /// In a search: the most blocks an arm of the later phases, which have as many as the spread of the first one asks
    /// for. None: every phase has `blocks`.
    pub most_blocks: Option<u32>,
    /// Orders are drawn from it, and the blocks of round `n` are measured with the seed `seed + n`, counted from 0.
    pub seed: Seed,
    /// Effects below it do not matter: 0.2 is 20 %. Above 0.
    pub smallest_effect: f64,
    /// What verdicts are made from.
    pub measure: Kind,
    /// From which latency on activations are counted as exceedances; none for `COMMON_SHARE` of all blocks together.
    pub threshold: Option<Nanos>,
}

/// The share of all activations together that lies below the threshold where none was asked for.
const COMMON_SHARE: f64 = 0.99;

impl Design {
    /// Refuses what cannot be answered by so many comparisons with control at once: one for each setting of a trial, one
    /// at a time in a search.
    ///
    /// # Errors
    /// The first thing that makes no sense.
    pub fn check(&self, comparisons: usize) -> Result<(), Error> {
        if self.settings.is_empty() || self.settings.len() > MOST_SETTINGS {
            let message = format!("{} settings cannot be tried", self.settings.len());
            return Err(Error::new(message, format!("name one, and at most {MOST_SETTINGS}")));
        }
        let needed = rounds_needed(comparisons);
        if self.blocks < needed {
            let settings =
                if comparisons == 1 { String::new() } else { format!(" for {comparisons} settings") };
            let message = format!("{} blocks an arm are too few{settings}: {needed} are needed", self.blocks);
            let fewer = if comparisons == 1 { "" } else { "; fewer settings need fewer blocks" };
            let hint =
                format!("even if all blocks agree, so few can be chance in more than 1 of 20 trials{fewer}");
            return Err(Error::new(message, hint));
        }
        let most = self.blocks.max(self.most_blocks.unwrap_or_default());
        if most > MOST_BLOCKS {
            let message = format!("{most} blocks an arm are too many");
            return Err(Error::new(message, format!("at most {MOST_BLOCKS}; longer blocks say more")));
        }
        if !(self.smallest_effect > 0.0 && self.smallest_effect.is_finite()) {
            let message = format!("{} is no smallest effect", self.smallest_effect);
            return Err(Error::new(message, "20 stands for 20 %"));
        }
        Ok(())
    }

    /// The ratio of two tails, above one, from which on they differ by what matters.
    pub fn ratio(&self) -> f64 {
        1.0 + self.smallest_effect
    }

    /// The three measures for these blocks, the one that decides first.
    ///
    /// # Errors
    /// Blocks with too few samples for any quantile.
    pub(crate) fn measures(&self, blocks: &[&Figures]) -> Result<Vec<Measure>, Error> {
        let too_few =
            || Error::new("the blocks have too few samples for a tail", "measure longer: --duration");
        let fewest = blocks.iter().map(|block| block.latencies.summary().count).min().unwrap_or(0);
        let quantile = Tail::finest(fewest).ok_or_else(too_few)?;
        let latencies = blocks.iter().map(|block| &block.latencies);
        let common = || tail::common_threshold(latencies, COMMON_SHARE);
        let threshold = self.threshold.or_else(common).ok_or_else(too_few)?;
        let mut measures =
            vec![Measure::Tail(quantile), Measure::Tail(Tail::Exceedances(threshold)), Measure::BlockMaxima];
        measures.order_by_key(|measure| measure.kind() != self.measure);
        Ok(measures)
    }
}

/// A sort of measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The finest quantile that a block carries: p99.9 from 1000 samples on.
    Quantile,
    /// How many activations lie at or above a threshold.
    Exceedances,
    /// The geometric mean of the greatest latencies of each second on each CPU.
    Maxima,
}

impl Kind {
    /// All of them, with their names.
    pub const NAMES: [(&'static str, Self); 3] =
        [("quantile", Self::Quantile), ("exceedances", Self::Exceedances), ("maxima", Self::Maxima)];
}

impl std::str::FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.into_iter().find(|(name, _)| *name == text);
        let names = Self::NAMES.map(|(name, _)| name).join(", ");
        found.map(|(_, kind)| kind).ok_or_else(|| format!("`{text}` is none of {names}"))
    }
}

/// What one figure of a block is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// A quantile, or exceedances.
    Tail(Tail),
    /// Of the greatest latencies of each second.
    BlockMaxima,
}

impl Measure {
    /// Its sort.
    pub fn kind(self) -> Kind {
        match self {
            Self::Tail(Tail::Quantile(_)) => Kind::Quantile,
            Self::Tail(Tail::Exceedances(_)) => Kind::Exceedances,
            Self::BlockMaxima => Kind::Maxima,
        }
    }

    /// The figure of a block; none where it has too few samples.
    pub(crate) fn of(self, block: &Figures) -> Option<Value> {
        match self {
            Self::Tail(tail) => tail.of(&block.latencies),
            Self::BlockMaxima => tail::block_maxima(block.maxima.iter().copied().map(Some)),
        }
    }

    /// A figure as a reader understands it: exceedances are doubled and one more, to be compared by ratios.
    pub(crate) fn plain(self, figure: f64) -> f64 {
        match self.kind() {
            Kind::Exceedances => (figure - 1.0) / 2.0,
            Kind::Quantile | Kind::Maxima => figure,
        }
    }
}

/// `p99.9`, `exceedances of 7us`, `block maxima`.
impl std::fmt::Display for Measure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tail(tail) => tail.fmt(f),
            Self::BlockMaxima => f.pad("block maxima"),
        }
    }
}
