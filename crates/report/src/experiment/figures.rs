//! What is reckoned of an experiment's records.

use experiment::{Compared, Difference, of_ladder};
use statistics::Value;
use statistics::tail::Tail;
use units::Nanos;

use super::{Answer, Experiment};
use crate::cost::{Against, SetUp, Trade};
use crate::figures::Figures;
use crate::group::groups;

/// An experiment with its figures.
pub(super) struct Reckoned<'a> {
    pub experiment: &'a Experiment,
    /// The figure that stands for a block's tail, the same everywhere; none where samples are too few for any.
    pub tail: Option<Tail>,
    /// For each block, for each load its figures, if it has them.
    pub blocks: Vec<Vec<Option<Figures>>>,
    /// For each arm, for each load.
    pub places: Vec<Vec<Place>>,
    /// What was compared, in the order in which it is shown.
    pub comparisons: Vec<Compared>,
}

/// What operations take in an arm, against another.
pub(super) struct Costs<'a> {
    /// The other's name.
    pub base: String,
    pub arm: &'a super::Arm,
    pub found: Against,
}

/// One load in one arm: all blocks of it.
pub(super) struct Place {
    /// How many there are.
    pub blocks: usize,
    /// Their figures together.
    pub together: Figures,
    tails: Vec<Value>,
}

impl<'a> Reckoned<'a> {
    pub fn of(experiment: &'a Experiment) -> Self {
        let blocks: Vec<Vec<Option<Figures>>> =
            experiment.blocks.iter().map(|one| of_block(experiment, &one.record)).collect();
        let counts = blocks.iter().flatten().flatten().map(|figures| figures.corrected.summary().count);
        let tail = experiment.tail.or_else(|| Tail::finest(counts.min().unwrap_or(0)));
        let of_arm = |arm: &super::Arm| {
            let own = experiment.blocks.iter().zip(&blocks).filter(|(one, _)| one.block.arm == arm.arm);
            let own: Vec<&Vec<Option<Figures>>> = own.map(|(_, figures)| figures).collect();
            (0..experiment.loads.len()).map(|load| Place::of(&own, load, tail)).collect()
        };
        let places: Vec<Vec<Place>> = experiment.arms.iter().map(of_arm).collect();
        let comparisons = comparisons(experiment, tail, &places);
        Self { experiment, tail, blocks, places, comparisons }
    }

    /// The tail's name for heads: `p99.9`.
    pub fn tail_name(&self) -> String {
        self.tail.map_or_else(|| "tail".into(), |tail| tail.to_string())
    }

    /// The comparisons that verdicts are made of, with what they found.
    pub fn judged(&self) -> impl Iterator<Item = (&Compared, &Difference)> {
        let deciding = self.comparisons.iter().filter(|compared| compared.decides);
        deciding.filter_map(|compared| Some((compared, compared.found.as_ref().ok()?)))
    }

    /// What each arm gains and costs against the one that it is compared with: of each of those one. None where costs or
    /// latencies were not measured.
    pub fn trades(&self) -> Vec<Trade> {
        self.bases().iter().filter_map(|base| self.trade(base)).collect()
    }

    /// The arms that others are compared with.
    fn bases(&self) -> Vec<experiment::Arm> {
        let mut named: Vec<experiment::Arm> = Vec::new();
        for base in self.experiment.arms.iter().filter_map(|arm| arm.base.as_ref()) {
            if !named.contains(base) {
                named.push(base.clone());
            }
        }
        match self.experiment.answer {
            _ if !named.is_empty() => named,
            Some(Answer::Trial(_) | Answer::Search(_)) => vec![experiment::Arm::Control],
            _ => self.experiment.arms.first().map(|arm| arm.arm.clone()).into_iter().collect(),
        }
    }

    /// Whether the trade-off of `arm` is one with `base`.
    fn is_against(&self, arm: &super::Arm, base: &experiment::Arm) -> bool {
        let is_said = self.experiment.arms.iter().any(|arm| arm.base.is_some());
        arm.arm != *base && (!is_said || arm.base.as_ref() == Some(base))
    }

    /// What operations take in each arm against the one that it is compared with.
    pub fn costs(&self) -> Vec<Costs<'a>> {
        let experiment = self.experiment;
        let of =
            |arm: &experiment::Arm| experiment.costs.iter().find(|(of, _)| of == arm).map(|(_, cost)| cost);
        let mut all = Vec::new();
        for base in self.bases() {
            let others = experiment.arms.iter().filter(|arm| self.is_against(arm, &base));
            all.extend(others.filter_map(|arm| {
                let found = crate::cost::against(of(&base)?, of(&arm.arm)?);
                Some(Costs { base: experiment.name(&base), arm, found })
            }));
        }
        all
    }

    fn trade(&self, base: &experiment::Arm) -> Option<Trade> {
        let costs = &self.experiment.costs;
        let set_up = |(arm, places): (&super::Arm, &Vec<Place>)| SetUp {
            name: arm.name.clone(),
            tails: self
                .experiment
                .loads
                .iter()
                .cloned()
                .zip(places.iter().map(|one| one.tails.clone()))
                .collect(),
            cost: costs.iter().find(|(of, _)| *of == arm.arm).map(|(_, cost)| cost),
        };
        let all = || self.experiment.arms.iter().zip(&self.places);
        let first = all().filter(|(arm, _)| arm.arm == *base);
        let others = all().filter(|(arm, _)| self.is_against(arm, base));
        let set_ups: Vec<SetUp<'_>> = first.chain(others).map(set_up).collect();
        let mut trade = Trade::of(self.tail_name(), &set_ups).filter(|_| !costs.is_empty())?;
        self.judged().filter(|(compared, _)| compared.against == *base).for_each(|(compared, found)| {
            let (name, load) = (self.experiment.name(&compared.arm), &self.experiment.loads[compared.load]);
            trade.judged(&name, load, found.ratio, found.interval, found.effect);
        });
        Some(trade)
    }

    /// `rt / plain`.
    pub fn pair(&self, compared: &Compared) -> String {
        let name = |arm| self.experiment.name(arm);
        format!("{} / {}", name(&compared.arm), name(&compared.against))
    }
}

fn of_block(experiment: &Experiment, record: &record::Record) -> Vec<Option<Figures>> {
    let groups = groups(record);
    let of_load = |load: &String| groups.iter().find(|group| group.key.load == *load);
    experiment.loads.iter().map(|load| of_load(load).map(|group| group.figures())).collect()
}

fn comparisons(experiment: &Experiment, tail: Option<Tail>, places: &[Vec<Place>]) -> Vec<Compared> {
    match (&experiment.answer, tail) {
        (Some(Answer::Trial(answer)), _) => answer.comparisons(),
        (Some(Answer::Search(found)), _) => found.comparisons(experiment.changes.len()),
        (Some(Answer::Bisection { found, .. }), Some(tail)) => found.comparisons(tail),
        (Some(Answer::Ladder), Some(tail)) => {
            let tails = |places: &Vec<Place>| places.iter().map(|place| place.tails.clone()).collect();
            of_ladder(tail, &places.iter().map(tails).collect::<Vec<_>>(), &bases(experiment))
        }
        (None | Some(Answer::Bisection { .. } | Answer::Ladder), _) => Vec::new(),
    }
}

/// For each arm the place of the one that it is compared with.
fn bases(experiment: &Experiment) -> Vec<Option<usize>> {
    let place = |arm: &experiment::Arm| experiment.arms.iter().position(|known| known.arm == *arm);
    experiment.arms.iter().map(|arm| arm.base.as_ref().and_then(place)).collect()
}

impl Place {
    fn of(blocks: &[&Vec<Option<Figures>>], load: usize, tail: Option<Tail>) -> Self {
        let own: Vec<&Figures> = blocks.iter().filter_map(|block| block[load].as_ref()).collect();
        let tails = own.iter().filter_map(|figures| tail?.of(&figures.corrected)).collect();
        Self { blocks: own.len(), together: Figures::sum(own, None), tails }
    }

    /// The tails of the blocks, ascending.
    pub fn tails(&self) -> Vec<Nanos> {
        let mut tails: Vec<Nanos> = self.tails.iter().map(|tail| Nanos(tail.figure() as u64)).collect();
        tails.sort_unstable();
        tails
    }
}

/// A ratio, with as many digits as it takes to tell it from none and from one.
pub(super) fn times(ratio: f64) -> String {
    match ratio {
        0.0..0.01 => format!("{ratio:.4}"),
        0.01..0.1 => format!("{ratio:.3}"),
        0.1..10.0 => format!("{ratio:.2}"),
        10.0..100.0 => format!("{ratio:.1}"),
        _ => format!("{ratio:.0}"),
    }
}

/// `0.16 to 0.82`.
pub(super) fn interval([low, high]: [f64; 2]) -> String {
    format!("{} to {}", times(low), times(high))
}
