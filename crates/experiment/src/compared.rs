//! What the comparisons of an experiment came to, in one form for all kinds: what tables and pages are made of.

use statistics::{Tail, Value, Verdict, compare};

use crate::bisect::{self, Step};
use crate::judge::median;
use crate::{Answer, Arm, Changes, Effect, Found, Judged, Measure, ladder};

/// Two arms that were compared by one measure under one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// What was measured.
    pub arm: Arm,
    /// What it was compared with.
    pub against: Arm,
    /// The place of the load among the experiment's.
    pub load: usize,
    /// The figure of a block.
    pub measure: Measure,
    /// Whether a verdict is made of it.
    pub decides: bool,
    /// Whether by blocks that confirm what others had found.
    pub is_fresh: bool,
    /// What was found, or why the arms cannot be compared.
    pub found: Result<Difference, String>,
}

/// How far the second arm's figure is from the first's.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Medians of the figures of the blocks of the arm that was compared with.
    pub before: f64,
    /// The same of the arm that was measured.
    pub after: f64,
    /// How many times the first is in the second.
    pub ratio: f64,
    /// The ratios that the blocks allow.
    pub interval: [f64; 2],
    /// How sure that is: 0.95 or more.
    pub confidence: f64,
    /// The ratio above one, or its reciprocal, that as many fresh blocks would find with a probability of 80 %; none where
    /// it was not asked.
    pub detectable: Option<f64>,
    /// What it means; none for a measure that does not decide.
    pub effect: Option<Effect>,
}

impl From<&Judged> for Difference {
    fn from(judged: &Judged) -> Self {
        let Judged { before, after, ratio, interval, confidence, detectable, effect, .. } = *judged;
        Self { before, after, ratio, interval, confidence, detectable: Some(detectable), effect }
    }
}

impl Compared {
    fn of(judged: &Judged, arm: Arm, against: Arm, is_fresh: bool) -> Self {
        let decides = judged.effect.is_some();
        Self { arm, against, load: 0, measure: judged.measure, decides, is_fresh, found: Ok(judged.into()) }
    }
}

impl Answer {
    /// Each setting against control by every measure, then control against off.
    pub fn comparisons(&self) -> Vec<Compared> {
        let tried = self.settings.iter().enumerate().flat_map(|(place, tried)| {
            tried.measures.iter().map(move |judged| {
                // Blocks with a setting that no kernel read differ by chance, whatever their figures say.
                let effect = judged.effect.map(|_| tried.verdict);
                Compared::of(&Judged { effect, ..judged.clone() }, Arm::only(place), Arm::Control, false)
            })
        });
        let control = self.control.iter();
        tried.chain(control.map(|judged| Compared::of(judged, Arm::Control, Arm::off(), false))).collect()
    }
}

impl Found {
    /// In the order in which a search of so many settings made them.
    pub fn comparisons(&self, settings: usize) -> Vec<Compared> {
        let all = Arm::all(settings);
        let mut made = vec![
            Compared::of(&self.control, Arm::Control, Arm::off(), false),
            Compared::of(&self.all, all.clone(), Arm::Control, false),
        ];
        let mut left: Changes = (0..settings).collect();
        for (setting, step) in self.steps.iter().enumerate() {
            let rest = without(&left, setting);
            made.push(Compared::of(&step.without, Arm::With(rest.clone()), all.clone(), false));
            if step.dropped {
                left = rest;
            }
        }
        let set = Arm::With(left.clone());
        let against = [(&self.against_control, Arm::Control), (&self.against_all, all)];
        for (judged, against) in against {
            made.extend(judged.iter().map(|judged| Compared::of(judged, set.clone(), against.clone(), true)));
        }
        for (kept, &setting) in self.kept.iter().zip(&left) {
            made.push(Compared::of(&kept.price, lacking(&left, setting), set.clone(), true));
        }
        made
    }
}

impl bisect::Answer {
    /// In the order in which a bisection by `tail` made them.
    pub fn comparisons(&self, tail: Tail) -> Vec<Compared> {
        self.steps.iter().map(|step| of_step(step, tail)).collect()
    }
}

fn of_step(step: &Step, tail: Tail) -> Compared {
    let Step { arm, against, fresh, tail: after, before, ratio, confidence, reading, failure } = step;
    let found = match (before, after, ratio, confidence) {
        (Some(before), Some(after), Some((ratio, interval)), Some(confidence)) => Ok(Difference {
            before: *before,
            after: *after,
            ratio: *ratio,
            interval: *interval,
            confidence: *confidence,
            detectable: None,
            effect: *reading,
        }),
        _ => Err(failure.clone().unwrap_or_default()),
    };
    let (arm, against) = (arm.clone(), against.clone());
    Compared { arm, against, load: 0, measure: Measure::Tail(tail), decides: true, is_fresh: *fresh, found }
}

/// Each rung of a ladder against the one before, and the last against the first, under each load. `tails` holds for each
/// rung and load the tails of its guests.
pub fn of_ladder(tail: Tail, tails: &[Vec<Vec<Value>>], bases: &[Option<usize>]) -> Vec<Compared> {
    let step = |(from, to): (usize, usize)| {
        let pairs = tails[from].iter().zip(&tails[to]).enumerate();
        pairs.map(move |(load, (before, after))| Compared {
            arm: Arm::all(to),
            against: Arm::all(from),
            load,
            measure: Measure::Tail(tail),
            decides: true,
            is_fresh: false,
            found: gain(before, after),
        })
    };
    ladder::steps(bases).into_iter().flat_map(step).collect()
}

/// A ladder asks for no smallest effect: what is no more than the spread from guest to guest is undecided.
fn gain(before: &[Value], after: &[Value]) -> Result<Difference, String> {
    let compared = compare(before, after).map_err(|error| error.to_string())?;
    Ok(Difference {
        before: median(before),
        after: median(after),
        ratio: compared.ratio,
        interval: [compared.interval.0, compared.interval.1],
        confidence: compared.confidence,
        detectable: Some(compared.detectable),
        effect: Some(match compared.verdict {
            Verdict::Lower => Effect::Helps,
            Verdict::Higher => Effect::Harms,
            Verdict::NoDifference => Effect::Undecided,
        }),
    })
}

/// All of `settings` but one.
pub(crate) fn without(settings: &Changes, setting: usize) -> Changes {
    settings.iter().copied().filter(|&other| other != setting).collect()
}

/// The arm that shows what one of `settings` is worth: without its only setting a set is control.
pub(crate) fn lacking(settings: &Changes, setting: usize) -> Arm {
    match without(settings, setting) {
        rest if rest.is_empty() => Arm::Control,
        rest => Arm::With(rest),
    }
}
