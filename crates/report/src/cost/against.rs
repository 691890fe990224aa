//! Two records of costs compared: how many times as long each operation takes, the mean of all, and the worst.

use record::cost::{Cost, Operation, Sample};
use serde::Serialize;
use statistics::{Comparison, Value, Verdict, compare_among};

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
        match row(first, second, comparisons) {
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

fn row(first: &Operation, second: &Operation, comparisons: usize) -> Result<Row, String> {
    for (operation, which) in [(first, "earlier"), (second, "later")] {
        if operation.samples.is_empty() {
            let why = operation.failures.first().map_or("no round was measured", |failure| &failure.why);
            return Err(format!("not measured in the {which} record: {why}"));
        }
    }
    let found = compare_among(&values(&first.samples), &values(&second.samples), comparisons);
    let median = |operation: &Operation| super::median(operation).map_or(0, |median| median.figure);
    Ok(Row {
        words: second.words(),
        name: second.name.clone(),
        place: second.place,
        family: second.family.clone(),
        medians: (median(first), median(second)),
        found: found.map_err(|error| error.to_string())?,
    })
}

fn values(samples: &[Sample]) -> Vec<Value> {
    samples.iter().map(|sample| Value::exact(sample.picoseconds())).collect()
}

/// One figure a round: of the rounds in which every operation that is compared has a sample.
fn mean(before: &Cost, after: &Cost, rows: &[Row], comparisons: usize) -> Option<Comparison> {
    let of_rounds = |cost: &Cost| -> Vec<Value> {
        (1..=cost.plan.rounds).filter_map(|round| of_round(cost, rows, round)).collect()
    };
    compare_among(&of_rounds(before), &of_rounds(after), comparisons).ok()
}

fn of_round(cost: &Cost, rows: &[Row], round: u32) -> Option<Value> {
    let mut families: Vec<&str> = rows.iter().map(|row| row.family.as_str()).collect();
    families.dedup();
    let of_family = |family: &&str| {
        let own = rows.iter().filter(|row| row.family == **family);
        let values: Option<Vec<Value>> = own.map(|row| value(cost, row, round)).collect();
        Value::mean(&values?)
    };
    let means: Option<Vec<Value>> = families.iter().map(of_family).collect();
    Value::mean(&means?)
}

fn value(cost: &Cost, row: &Row, round: u32) -> Option<Value> {
    let is_it = |one: &&Operation| one.name == row.name && one.place == row.place;
    let sample = cost.operations.iter().find(is_it)?.samples.iter().find(|one| one.round == round)?;
    Some(Value::exact(sample.picoseconds()))
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
