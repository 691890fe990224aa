//! The figures that are compared, and the table of them.

use super::contender::Latencies;
use super::spread::Spread;
use super::watch::Cost;

/// One run of one tool.
pub struct Run {
    /// What it measured.
    pub latencies: Latencies,
    /// What it cost.
    pub cost: Cost,
}

/// Which of cyclictest's two forms a figure is compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// The one with cells of 1 ns.
    Latency,
    /// The one that test farms run.
    Cost,
}

/// What DESIGN allows.
#[derive(Clone, Copy)]
enum Budget {
    /// No more than cyclictest, but for the noise that cyclictest shows against itself.
    AsMuchAsPeer,
    /// At most this.
    AtMost(f64),
    /// Not bounded.
    None,
}

/// One figure.
pub struct Figure {
    name: &'static str,
    unit: &'static str,
    /// Value as kept, divided by this, is in `unit`.
    scale: f64,
    /// Which form of cyclictest it is compared with.
    pub against: Against,
    budget: Budget,
    value: fn(&Run) -> Option<f64>,
}

/// All of them.
pub const ALL: [Figure; 7] = [
    latency("minimum", Budget::AsMuchAsPeer, |run| run.latencies.minimum),
    latency("median", Budget::AsMuchAsPeer, |run| run.latencies.rows.quantile(0.5)),
    latency("p99.9", Budget::None, |run| run.latencies.rows.quantile(0.999)),
    cost("CPU time per activation, measuring threads", "us", Budget::AsMuchAsPeer, |run| {
        Some(run.cost.measuring)
    }),
    cost("CPU time per activation, whole tool", "us", Budget::None, |run| Some(run.cost.whole)),
    // The budget is 6 MB for two CPUs.
    cost("resident memory, measuring process", "MB", Budget::AtMost(6e6), |run| bytes(run.cost.resident)),
    cost("resident memory, whole tool", "MB", Budget::None, |run| bytes(run.cost.proportional)),
];

const fn latency(name: &'static str, budget: Budget, value: fn(&Run) -> Option<f64>) -> Figure {
    Figure { name, unit: "us", scale: 1e3, against: Against::Latency, budget, value }
}

const fn cost(
    name: &'static str,
    unit: &'static str,
    budget: Budget,
    value: fn(&Run) -> Option<f64>,
) -> Figure {
    let scale = if matches!(unit.as_bytes(), b"MB") { 1e6 } else { 1e3 };
    Figure { name, unit, scale, against: Against::Cost, budget, value }
}

fn bytes(kibibytes: Option<u64>) -> Option<f64> {
    Some(kibibytes? as f64 * 1024.0)
}

/// The rounds of the tools that one figure compares.
pub struct Rounds<'a> {
    /// Ours.
    pub ours: &'a [Run],
    /// cyclictest.
    pub theirs: &'a [Run],
    /// cyclictest once more, to see how far it agrees with itself.
    pub again: &'a [Run],
    /// jitterdebugger, or another version of ours; empty where it is not installed.
    pub other: &'a [Run],
}

/// The table's heading.
pub fn heading(other: &str) -> String {
    format!(
        "{:<44}{:>12}{:>12}  {:<22}{:<22}{:<22}budget",
        "",
        "worstcase",
        "cyclictest",
        "to cyclictest",
        "cyclictest to itself",
        format!("to {other}")
    )
}

impl Figure {
    /// The figure's line: medians, then ratios as the median of the rounds and how far they lie apart.
    pub fn line(&self, rounds: &Rounds<'_>) -> String {
        let values = |runs: &[Run]| runs.iter().map(self.value).collect::<Vec<_>>();
        let (ours, theirs) = (values(rounds.ours), values(rounds.theirs));
        let ratio = Spread::of_ratios(&ours, &theirs);
        let itself = Spread::of_ratios(&values(rounds.again), &theirs);
        let other = Spread::of_ratios(&ours, &values(rounds.other));
        let shown =
            |spread: Option<Spread>| spread.map_or_else(|| "-".to_owned(), |spread| spread.to_string());
        format!(
            "{:<44}{:>12}{:>12}  {:<22}{:<22}{:<22}{}",
            self.name,
            self.median(&ours),
            self.median(&theirs),
            shown(ratio),
            shown(itself),
            shown(other),
            self.judge(ratio, itself, &ours)
        )
    }

    fn median(&self, values: &[Option<f64>]) -> String {
        let spread = Spread::of(values.iter().copied().flatten());
        spread.map_or_else(
            || "-".to_owned(),
            |spread| format!("{:.2} {}", spread.median / self.scale, self.unit),
        )
    }

    fn judge(&self, ratio: Option<Spread>, itself: Option<Spread>, ours: &[Option<f64>]) -> String {
        match self.budget {
            Budget::None => String::new(),
            Budget::AsMuchAsPeer => format!("ratio at most 1.0: {}", holds(ratio, itself)),
            Budget::AtMost(bound) => {
                let held = Spread::of(ours.iter().copied().flatten()).map(|spread| spread.greatest <= bound);
                let word = held.map_or("no figure", |held| if held { "holds" } else { "over" });
                format!("at most {:.0} {}: {word}", bound / self.scale, self.unit)
            }
        }
    }
}

fn holds(ratio: Option<Spread>, itself: Option<Spread>) -> &'static str {
    match (ratio, itself) {
        (Some(ratio), _) if ratio.median <= 1.0 => "holds",
        (Some(ratio), Some(itself)) if ratio.median <= itself.noise() => "holds within the noise",
        (Some(_), _) => "over",
        (None, _) => "no figure",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(least: f64, median: f64, greatest: f64) -> Option<Spread> {
        Some(Spread { median, least, greatest })
    }

    #[test]
    fn a_ratio_above_one_holds_only_within_what_the_peer_shows_against_itself() {
        assert_eq!(holds(spread(0.5, 0.9, 3.0), None), "holds");
        assert_eq!(holds(spread(0.9, 1.05, 1.2), spread(0.9, 1.0, 1.02)), "holds within the noise");
        assert_eq!(holds(spread(0.9, 1.2, 1.3), spread(0.9, 1.0, 1.02)), "over");
        assert_eq!(holds(None, spread(1.0, 1.0, 1.0)), "no figure");
    }
}
