//! Two records of costs compared: how many times as long each operation takes, the mean of all, and the worst.

use record::cost::{Cost, Operation, Sample};
use serde::Serialize;
use statistics::{Comparison, TooFew, Value, Verdict, compare_among, compare_apart};

/// What a second set-up costs, measured by the first.
#[derive(Debug, Default)]
pub struct Against {
    /// Operations of both records, in the order of the second.
    pub rows: Vec<Row>,
    /// The geometric mean of the families' geometric means; none where too few rounds are whole.
    pub mean: Option<Comparison>,
    /// What was not compared, and why.
    pub left_out: Vec<(String, String)>,
    /// Why the records do not show what the set-up costs.
    pub inconclusive: Option<String>,
    /// How many comparisons share the error of 5 %.
    pub comparisons: usize,
}

/// An operation in both set-ups.
#[derive(Clone, Debug)]
pub struct Row {
    /// As people read it.
    pub words: String,
    /// Its name, for programs.
    pub name: String,
    /// Its place, for programs.
    pub place: record::cost::Place,
    /// Its family.
    pub family: String,
    /// Its medians, in picoseconds.
    pub medians: (u64, u64),
    /// What they say of each other.
    pub found: Comparison,
}

/// What a comparison takes for its draws: the figures that stand for themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Draws {
    /// Rounds: those of two set-ups came in turn, or each is a run that an experiment placed.
    Rounds,
    /// Runs, of two records that were made one after the other.
    Runs,
}

impl Draws {
    pub(super) fn of(before: &Cost, after: &Cost) -> Self {
        let is_placed = |cost: &Cost| cost.runs > 0 || cost.machine.lab.is_some();
        let is_in_turn = super::in_turn(before, after).is_some() || (is_placed(before) && is_placed(after));
        if is_in_turn { Self::Rounds } else { Self::Runs }
    }

    /// An operation's, each with its number.
    fn samples(self, cost: &Cost, operation: &Operation) -> Vec<(u32, Value)> {
        let figure = |sample: &Sample| Value::exact(sample.picoseconds());
        match self {
            Self::Rounds => operation.samples.iter().map(|sample| (sample.round, figure(sample))).collect(),
            Self::Runs => {
                operation.by_run(&cost.plan).iter().map(|(run, sample)| (*run, figure(sample))).collect()
            }
        }
    }

    fn refusal(self, few: TooFew) -> String {
        match self {
            Self::Rounds => few.to_string(),
            Self::Runs => format!(
                "{} runs are too few to compare with a record made apart: {} are needed (--runs)",
                few.runs, few.needed
            ),
        }
    }

    fn compare(self, first: &[Value], second: &[Value], comparisons: usize) -> Result<Comparison, TooFew> {
        match self {
            Self::Rounds => compare_among(first, second, comparisons),
            Self::Runs => compare_apart(first, second, comparisons),
        }
    }
}

/// Compares `after` with `before`. The chance that any operation looks different where none is, is at most 5 %.
pub fn against(before: &Cost, after: &Cost) -> Against {
    let earlier = |one: &Operation| before.operations.iter().find(|other| other.is(one));
    let pairs: Vec<(&Operation, &Operation)> =
        after.operations.iter().filter_map(|one| Some((earlier(one)?, one))).collect();
    let measured = |one: &Operation| !one.samples.is_empty();
    let comparisons = 1 + pairs.iter().filter(|(first, second)| measured(first) && measured(second)).count();
    let mut against = Against {
        comparisons,
        inconclusive: super::inconclusive(before, after),
        left_out: only_in_one(before, after),
        ..Against::default()
    };
    for (first, second) in pairs {
        match row((before, first), (after, second), comparisons) {
            Ok(row) => against.rows.push(row),
            Err(why) => against.left_out.push((second.words(), why)),
        }
    }
    against.mean = mean(before, after, &against.rows, comparisons);
    if against.rows.is_empty() {
        against.inconclusive.get_or_insert_with(|| "no operation could be compared".into());
    }
    against
}

impl Against {
    /// The operation that became dearer by most, beyond the spread; none where none did.
    pub fn worst(&self) -> Option<&Row> {
        self.most(Verdict::Higher, |row| row.found.ratio)
    }

    /// The operation that became cheaper by most.
    pub fn best(&self) -> Option<&Row> {
        self.most(Verdict::Lower, |row| -row.found.ratio)
    }

    fn most(&self, verdict: Verdict, by: impl Fn(&Row) -> f64) -> Option<&Row> {
        let differ = self.rows.iter().filter(|row| row.found.verdict == verdict);
        differ.max_by(|one, other| by(one).total_cmp(&by(other)))
    }
}

fn only_in_one(before: &Cost, after: &Cost) -> Vec<(String, String)> {
    let missing = |from: &Cost, of: &Cost, which: &str| {
        let absent = of.operations.iter().filter(|one| !from.operations.iter().any(|other| other.is(one)));
        absent.map(|one| (one.words(), format!("it is not in the {which} record"))).collect::<Vec<_>>()
    };
    [missing(before, after, "earlier"), missing(after, before, "later")].concat()
}

fn row(
    (before, first): (&Cost, &Operation),
    (after, second): (&Cost, &Operation),
    comparisons: usize,
) -> Result<Row, String> {
    for (operation, which) in [(first, "earlier"), (second, "later")] {
        if operation.samples.is_empty() {
            let why = operation.failures.first().map_or("no round was measured", |failure| &failure.why);
            return Err(format!("not measured in the {which} record: {why}"));
        }
    }
    let draws = Draws::of(before, after);
    let values = |cost, operation| {
        draws.samples(cost, operation).into_iter().map(|(_, value)| value).collect::<Vec<_>>()
    };
    let found = draws.compare(&values(before, first), &values(after, second), comparisons);
    let median = |operation: &Operation| super::median(operation).map_or(0, |median| median.figure);
    Ok(Row {
        words: second.words(),
        name: second.name.clone(),
        place: second.place,
        family: second.family.clone(),
        medians: (median(first), median(second)),
        found: found.map_err(|few| draws.refusal(few))?,
    })
}

/// One figure a draw: of those in which every operation that is compared has a sample.
fn mean(before: &Cost, after: &Cost, rows: &[Row], comparisons: usize) -> Option<Comparison> {
    let draws = Draws::of(before, after);
    let of_all = |cost: &Cost| -> Vec<Value> {
        let by_row: Option<Vec<_>> = rows.iter().map(|row| figures(cost, row, draws)).collect();
        let by_row = by_row.unwrap_or_default();
        (1..=cost.plan.rounds).filter_map(|number| of_draw(rows, &by_row, number)).collect()
    };
    draws.compare(&of_all(before), &of_all(after), comparisons).ok()
}

fn of_draw(rows: &[Row], figures: &[Vec<(u32, Value)>], number: u32) -> Option<Value> {
    let mut families: Vec<&str> = rows.iter().map(|row| row.family.as_str()).collect();
    families.dedup();
    let of_family = |family: &&str| {
        let own = rows.iter().zip(figures).filter(|(row, _)| row.family == **family);
        let of_number = |figures: &Vec<(u32, Value)>| {
            figures.iter().find(|(own, _)| *own == number).map(|(_, value)| *value)
        };
        let values: Option<Vec<Value>> = own.map(|(_, figures)| of_number(figures)).collect();
        Value::mean(&values?)
    };
    let means: Option<Vec<Value>> = families.iter().map(of_family).collect();
    Value::mean(&means?)
}

fn figures(cost: &Cost, row: &Row, draws: Draws) -> Option<Vec<(u32, Value)>> {
    let is_it = |one: &&Operation| one.name == row.name && one.place == row.place;
    Some(draws.samples(cost, cost.operations.iter().find(is_it)?))
}

/// The comparison for programs.
#[derive(Serialize)]
struct Json<'a> {
    inconclusive: Option<&'a str>,
    mean: Option<Ratio>,
    worst: Option<&'a str>,
    comparisons: usize,
    operations: Vec<JsonRow<'a>>,
    not_compared: Vec<NotCompared<'a>>,
}

#[derive(Serialize)]
struct JsonRow<'a> {
    name: &'a str,
    place: record::cost::Place,
    family: &'a str,
    before_picoseconds: u64,
    after_picoseconds: u64,
    #[serde(flatten)]
    ratio: Ratio,
}

#[derive(Serialize)]
struct NotCompared<'a> {
    operation: &'a str,
    why: &'a str,
}

#[derive(Serialize)]
struct Ratio {
    ratio: f64,
    interval: (f64, f64),
    confidence: f64,
    verdict: &'static str,
}

impl<'a> From<&'a Row> for JsonRow<'a> {
    fn from(row: &'a Row) -> Self {
        Self {
            name: &row.name,
            place: row.place,
            family: &row.family,
            before_picoseconds: row.medians.0,
            after_picoseconds: row.medians.1,
            ratio: Ratio::from(&row.found),
        }
    }
}

impl From<&Comparison> for Ratio {
    fn from(found: &Comparison) -> Self {
        let Comparison { ratio, interval, confidence, .. } = *found;
        Self { ratio, interval, confidence, verdict: word(found.verdict) }
    }
}

/// What the second set-up is.
pub(super) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Higher => "slower",
        Verdict::Lower => "faster",
        Verdict::NoDifference => "no difference visible",
    }
}

/// The comparison as JSON, one line.
pub fn json(against: &Against) -> String {
    let json = Json {
        inconclusive: against.inconclusive.as_deref(),
        mean: against.mean.as_ref().map(Ratio::from),
        worst: against.worst().map(|row| row.name.as_str()),
        comparisons: against.comparisons,
        operations: against.rows.iter().map(JsonRow::from).collect(),
        not_compared: against
            .left_out
            .iter()
            .map(|(operation, why)| NotCompared { operation, why })
            .collect(),
    };
    serde_json::to_string(&json).unwrap_or_default() + "\n"
}
