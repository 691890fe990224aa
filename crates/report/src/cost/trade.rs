//! The trade-off: what set-ups gain in latency against the first of them, and what they take from everything else.

use experiment::Effect;
use record::cost::Cost;
use record::{Record, Unit};
use serde_json::{Value as Json, json};
use statistics::{Comparison, Tail, Value, Verdict, compare};

use super::against::{self, Against};
use super::table::Table;
use crate::differences::{Weight, differences};
use crate::figures::Figures;
use crate::grid::Cell;
use crate::group::groups;
use crate::page::view::{Block, Figure, Section};
use crate::style::{Style, Tone};
use crate::svg::trade as plot;
use crate::text::wrap;

/// What stands above figures that were measured in different ways.
const NOT_COMPARABLE: &str =
    "NOT COMPARABLE: the latencies of these runs were not measured under the same conditions.";

/// For each load the tail of each run under it.
type Tails = Vec<(String, Vec<Value>)>;

/// A set-up, with what was measured in it.
#[derive(Debug)]
pub struct SetUp<'a> {
    /// The name that it goes by.
    pub name: String,
    /// For each load the tail of each run under it.
    pub tails: Vec<(String, Vec<Value>)>,
    /// What operations take.
    pub cost: Option<&'a Cost>,
}

/// Set-ups against the first of them.
#[derive(Debug)]
pub struct Trade {
    /// The figure of a run that stands for its tail: `p99.9`.
    pub tail: String,
    /// The name of the first set-up.
    pub base: String,
    /// All others.
    pub rows: Vec<Row>,
}

/// One set-up against the first.
#[derive(Debug)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Under each load that both measured; none where they may not be compared.
    pub gains: Vec<Gain>,
    /// Why its latencies may not be compared with the first set-up's: what their runs measured differently.
    pub objections: Vec<String>,
    /// What it costs; none where one of the two was not measured.
    pub cost: Option<Against>,
    /// The mean power of the first set-up and of this one while operations were measured, in watts; none where meters are missing, or
    /// said nothing of the set-up alone.
    pub watts: Option<(f64, f64)>,
}

/// How many times shorter the tail became under one load.
#[derive(Clone, Debug)]
pub struct Gain {
    /// The load.
    pub load: String,
    /// 12 where it is a twelfth of what it was.
    pub times: f64,
    /// What the runs allow; none where there are too few to compare.
    pub interval: Option<(f64, f64)>,
    /// Whether it is shorter (`Lower`) or longer beyond the spread of the runs; none where there are too few.
    pub verdict: Option<Verdict>,
}

/// A set-up as its records have it.
#[derive(Debug)]
pub struct Measured {
    /// The name that it goes by.
    pub name: String,
    /// Of latencies, one or more runs.
    pub records: Vec<Record>,
    /// Of costs.
    pub cost: Cost,
}

/// The trade-off of set-ups that were measured one by one, by the finest tail that all their runs carry.
pub fn of_records(measured: &[Measured]) -> Option<Trade> {
    let figures: Vec<Vec<(String, Figures)>> = measured.iter().map(|one| by_load(&one.records)).collect();
    let counts = figures.iter().flatten().map(|(_, figures)| figures.corrected.summary().count);
    let tail = Tail::finest(counts.min()?)?;
    let set_up = |(one, figures): (&'_ Measured, &Vec<(String, Figures)>)| {
        let mut tails: Tails = Vec::new();
        for (load, figures) in figures {
            let Some(value) = tail.of(&figures.corrected) else { continue };
            match tails.iter_mut().find(|(name, _)| name == load) {
                Some((_, values)) => values.push(value),
                None => tails.push((load.clone(), vec![value])),
            }
        }
        (one.name.clone(), tails)
    };
    let all: Vec<(String, Tails)> = measured.iter().zip(&figures).map(set_up).collect();
    let set_ups = all.into_iter().zip(measured);
    let set_ups: Vec<SetUp<'_>> =
        set_ups.map(|((name, tails), one)| SetUp { name, tails, cost: Some(&one.cost) }).collect();
    let mut trade = Trade::of(tail.to_string(), &set_ups)?;
    let (base, others) = measured.split_first()?;
    for (row, other) in trade.rows.iter_mut().zip(others) {
        row.objections = objections(base, other);
        if !row.objections.is_empty() {
            row.gains.clear();
        }
    }
    Some(trade)
}

/// What forbids to compare the latencies of two set-ups.
fn objections(base: &Measured, other: &Measured) -> Vec<String> {
    let Some((left, right)) = base.records.first().zip(other.records.first()) else { return Vec::new() };
    let differences = differences(left, right);
    let forbids = differences.iter().filter(|difference| difference.weight == Weight::Forbids);
    forbids.map(|difference| format!("{} / {}: {difference}", base.name, other.name)).collect()
}

/// Each record's figures under each of its loads, all CPUs together.
fn by_load(records: &[Record]) -> Vec<(String, Figures)> {
    let of_record = |record| {
        groups(record).iter().map(|group| (group.key.load.clone(), group.figures())).collect::<Vec<_>>()
    };
    records.iter().flat_map(of_record).collect()
}

impl Trade {
    /// Each of `set_ups` against the first; none where there is nothing to compare.
    pub fn of(tail: String, set_ups: &[SetUp<'_>]) -> Option<Self> {
        let (base, others) = set_ups.split_first()?;
        let row = |one: &SetUp<'_>| Row {
            name: one.name.clone(),
            gains: gains(base, one),
            objections: Vec::new(),
            cost: base.cost.zip(one.cost).map(|(before, after)| against::against(before, after)),
            watts: base.cost.zip(one.cost).and_then(|(before, after)| before.watts().zip(after.watts())),
        };
        let rows: Vec<Row> = others.iter().map(row).collect();
        let has_figures = rows.iter().any(|row| !row.gains.is_empty() && row.cost.is_some());
        has_figures.then(|| Self { tail, base: base.name.clone(), rows })
    }

    /// Takes what an experiment's own comparison of a set-up with the first found under a load: it may compare within rounds.
    pub(crate) fn judged(
        &mut self,
        name: &str,
        load: &str,
        ratio: f64,
        [low, high]: [f64; 2],
        effect: Option<Effect>,
    ) {
        let rows = self.rows.iter_mut().filter(|row| row.name == name);
        for gain in rows.flat_map(|row| &mut row.gains).filter(|gain| gain.load == load) {
            (gain.times, gain.interval) = (1.0 / ratio, Some((1.0 / high, 1.0 / low)));
            gain.verdict = effect.map(|effect| match effect {
                Effect::Helps => Verdict::Lower,
                Effect::Harms => Verdict::Higher,
                Effect::NoneVisible | Effect::Undecided => Verdict::NoDifference,
            });
        }
    }

    /// Why latencies are not compared.
    fn objections(&self) -> impl Iterator<Item = &String> {
        self.rows.iter().flat_map(|row| &row.objections)
    }

    /// A sentence for each set-up.
    pub fn sentences(&self) -> Vec<String> {
        self.rows.iter().map(|row| self.sentence(row)).collect()
    }

    fn sentence(&self, row: &Row) -> String {
        let Row { name, .. } = row;
        let energy = row.energy().map(|energy| format!(", {} in energy", times(energy))).unwrap_or_default();
        let (gain, cost) = (row.gain_in_words(&self.tail), row.cost_in_words());
        format!("{name} against {}: {gain}; {cost}{energy}.", self.base)
    }

    /// Loads and costs below each other, a column a set-up.
    fn table(&self) -> Table {
        let names: Vec<&str> = self.rows.iter().map(|row| row.name.as_str()).collect();
        let caption = format!(
            "How many times shorter the {} is than with {} (below 1: longer), and how many times as long operations take",
            self.tail, self.base
        );
        let mut table = Table::new(caption, "times", &names);
        let mut family = String::new();
        let gained = format!("{} shorter", self.tail);
        for load in self.loads() {
            let cell = |row: &Row| row.gain(&load).map_or_else(Cell::none, gain_cell);
            table.push(&gained, &mut family, (load.clone(), self.rows.iter().map(cell).collect()));
        }
        let of_cost = |of: &dyn Fn(&Against) -> Option<Cell>| -> Vec<Cell> {
            self.rows.iter().map(|row| row.cost.as_ref().and_then(of).unwrap_or_else(Cell::none)).collect()
        };
        let mean = of_cost(&|cost| cost.mean.as_ref().map(cost_cell));
        table.push("operations take", &mut family, ("in the mean".into(), mean));
        let worst = of_cost(&|cost| cost.worst().map(|worst| cost_cell(&worst.found)));
        table.push("operations take", &mut family, ("the worst of them".into(), worst));
        let name = of_cost(&|cost| cost.worst().map(|worst| Cell::plain(worst.words.clone())));
        table.push("operations take", &mut family, ("  which is".into(), name));
        let unknown = || Cell { text: "not measured here".into(), tone: Tone::Faint };
        let of_power = |of: &dyn Fn(&Row) -> Option<f64>, unit: &str| -> Vec<Cell> {
            let cell = |figure: f64| match unit {
                "" => Cell::plain(times(figure)),
                unit => Cell::plain(format!("{figure:.2} {unit}")),
            };
            self.rows.iter().map(|row| of(row).map_or_else(unknown, cell)).collect()
        };
        let watts = of_power(&|row| row.watts.map(|(_, after)| after), "W");
        table.push("energy", &mut family, ("mean power".into(), watts));
        let joules = of_power(&Row::energy, "");
        table.push("energy", &mut family, ("of an operation, in the mean".into(), joules));
        table
    }

    fn loads(&self) -> Vec<String> {
        let mut loads: Vec<String> = Vec::new();
        for gain in self.rows.iter().flat_map(|row| &row.gains) {
            if !loads.contains(&gain.load) {
                loads.push(gain.load.clone());
            }
        }
        loads
    }

    /// Sentences, then the table.
    pub fn text(&self, style: &Style) -> String {
        let lines = self.sentences();
        let lines = lines.iter().flat_map(|sentence| wrap("", sentence, 2, style.width));
        let lines: Vec<String> = lines.map(|line| style.paint(Tone::Strong, &line)).collect();
        let mut text = String::new();
        if self.objections().next().is_some() {
            let warning = wrap("", NOT_COMPARABLE, 0, style.width);
            text.extend(warning.iter().map(|line| style.paint(Tone::Bad, line) + "\n"));
            let reasons = self.objections().flat_map(|line| wrap("  ", line, 4, style.width));
            text.extend(reasons.map(|line| line + "\n"));
            text += "\n";
        }
        text + &format!("{}\n\n{}", lines.join("\n"), self.table().grid().render(style))
    }

    /// Sentences, plot and table.
    pub(crate) fn section(&self) -> Section {
        let mut blocks: Vec<Block> = Vec::new();
        if self.objections().next().is_some() {
            blocks.push(Block::Paragraph(NOT_COMPARABLE.into()));
            blocks.extend(self.objections().cloned().map(Block::Paragraph));
        }
        blocks.extend(self.sentences().into_iter().map(Block::Paragraph));
        let points = self.points();
        if !points.is_empty() {
            let names = self.rows.iter().map(|row| row.name.clone());
            blocks.push(Block::Figure(Figure {
                caption: format!(
                    "Each set-up and load: to the right what operations take in the mean, upwards how many times shorter the \
                     {} is; strokes are the intervals",
                    self.tail
                ),
                legend: crate::page::distribution::legend(names, true),
                svg: crate::svg::both(plot::frame(1040.0), plot::frame(400.0), |frame| plot::plot(&points, frame)),
                tables: Vec::new(),
            }));
        }
        blocks.push(Block::Table(self.table().on_page()));
        let doubts = self
            .rows
            .iter()
            .filter_map(|row| Some((row.name.clone(), row.cost.as_ref()?.inconclusive.clone()?)));
        let doubts: Vec<(String, String)> = doubts.collect();
        if !doubts.is_empty() {
            blocks.push(Block::Heading("Costs that were compared inconclusively".into()));
            blocks.push(Block::Facts(doubts));
        }
        let lead = format!("What each set-up gains and costs against {}.", self.base);
        Section::new("trade-off", "The trade-off", &lead, blocks)
    }

    /// The page: one HTML file, no network.
    ///
    /// # Errors
    /// Only if the template cannot be written into memory.
    pub fn page(&self) -> Result<String, std::fmt::Error> {
        let title = format!("What set-ups gain and cost against {}", self.base);
        crate::page::of_sections(&title, "trade-off", Vec::new(), Unit::Microseconds, vec![self.section()])
    }

    fn points(&self) -> Vec<plot::Point> {
        let of_row = |(place, row): (usize, &Row)| -> Vec<plot::Point> {
            let Some(mean) = row.cost.as_ref().and_then(|cost| cost.mean) else { return Vec::new() };
            let point = |gain: &Gain| plot::Point {
                series: place,
                name: format!(
                    "{} under {}: {} {} shorter, operations take {}",
                    row.name,
                    gain.load,
                    self.tail,
                    times(gain.times),
                    times(mean.ratio)
                ),
                cost: (mean.ratio, mean.interval),
                gain: (gain.times, gain.interval.unwrap_or((gain.times, gain.times))),
            };
            row.gains.iter().map(point).collect()
        };
        self.rows.iter().enumerate().flat_map(of_row).collect()
    }

    /// For programs.
    pub fn json(&self) -> Json {
        let gain = |gain: &Gain| {
            json!({
                "load": gain.load,
                "times_shorter": gain.times,
                "interval": gain.interval,
                "verdict": gain.verdict.map(gain_word),
            })
        };
        let ratio = |found: &Comparison| json!({ "ratio": found.ratio, "interval": found.interval });
        let cost = |cost: &Against| {
            json!({
                "inconclusive": cost.inconclusive,
                "mean": cost.mean.as_ref().map(ratio),
                "worst": cost.worst().map(|worst| json!({
                    "operation": worst.name, "ratio": worst.found.ratio, "interval": worst.found.interval,
                })),
            })
        };
        let row = |row: &Row| {
            json!({
                "name": row.name,
                "gains": row.gains.iter().map(gain).collect::<Vec<_>>(),
                "cost": row.cost.as_ref().map(cost),
                "watts": row.watts.map(|(before, after)| [before, after]),
                "energy_of_an_operation": row.energy(),
            })
        };
        json!({
            "tail": self.tail,
            "against": self.base,
            "objections": self.objections().collect::<Vec<_>>(),
            "set_ups": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }
}

impl Row {
    /// How many times the energy of an operation in the first set-up one takes in the mean: time and power together.
    pub fn energy(&self) -> Option<f64> {
        let (before, after) = self.watts.filter(|(before, _)| *before > 0.0)?;
        Some(self.cost.as_ref()?.mean.as_ref()?.ratio * after / before)
    }

    fn gain(&self, load: &str) -> Option<&Gain> {
        self.gains.iter().find(|gain| gain.load == load)
    }

    /// The load under which it helps most, and the one under which it harms most, beyond the spread.
    fn gain_in_words(&self, tail: &str) -> String {
        let of = |verdict| self.gains.iter().filter(move |gain| gain.verdict == Some(verdict));
        let by_times = |one: &&Gain, other: &&Gain| one.times.total_cmp(&other.times);
        let said = |gain: &Gain, verb: &str| {
            let is_longer = gain.times < 1.0;
            let turned = |figure: f64| if is_longer { 1.0 / figure } else { figure };
            let interval = gain.interval.map_or(String::new(), |(low, high)| {
                let (low, high) = (turned(low).min(turned(high)), turned(low).max(turned(high)));
                format!(" ({} to {})", times(low), times(high))
            });
            format!("{verb} {} at {tail} under {}{interval}", times(turned(gain.times)), gain.load)
        };
        let helped = of(Verdict::Lower).max_by(by_times).map(|gain| said(gain, "helps"));
        let harmed = of(Verdict::Higher).min_by(by_times).map(|gain| said(gain, "harms"));
        let parts: Vec<String> = helped.into_iter().chain(harmed).collect();
        if !parts.is_empty() {
            return parts.join(", ");
        }
        let undecided = || self.gains.iter().filter(|gain| gain.verdict.is_none());
        match (undecided().max_by(by_times), undecided().min_by(by_times)) {
            _ if !self.objections.is_empty() => "its latencies are not comparable".into(),
            (Some(best), Some(worst)) => of_single_runs(best, worst, tail),
            _ => format!("no visible change at {tail}"),
        }
    }

    fn cost_in_words(&self) -> String {
        let Some(cost) = &self.cost else { return "what it costs was not measured".into() };
        let mean = cost.mean.as_ref().map_or_else(
            || "too few rounds for a mean".to_owned(),
            |mean| {
                let (low, high) = mean.interval;
                format!("costs {} in the mean ({} to {})", times(mean.ratio), times(low), times(high))
            },
        );
        let worst = cost.worst().map_or_else(
            || ", no operation visibly more".to_owned(),
            |worst| format!(", {} in {}", times(worst.found.ratio), worst.words),
        );
        let doubt = if cost.inconclusive.is_some() { " (inconclusive)" } else { "" };
        format!("{mean}{worst}{doubt}")
    }
}

/// Of runs that are too few for an interval: where the tail became shorter by most, and where longer.
fn of_single_runs(best: &Gain, worst: &Gain, tail: &str) -> String {
    let said = |gain: &Gain| {
        let longer = gain.times < 1.0;
        let (ratio, word) = if longer { (1.0 / gain.times, "longer") } else { (gain.times, "shorter") };
        format!("{} {word} at {tail} under {}", times(ratio), gain.load)
    };
    let helped = Some(best).filter(|gain| gain.times >= 1.0);
    let harmed = Some(worst).filter(|gain| gain.times < 1.0);
    let both: Vec<String> = helped.into_iter().chain(harmed).map(said).collect();
    format!("{}, of too few runs for an interval", both.join(", "))
}

fn gains(base: &SetUp<'_>, other: &SetUp<'_>) -> Vec<Gain> {
    let of_load = |(load, after): &(String, Vec<Value>)| {
        let (_, before) = base.tails.iter().find(|(name, _)| name == load)?;
        gain(load, before, after)
    };
    other.tails.iter().filter_map(of_load).collect()
}

fn gain(load: &str, before: &[Value], after: &[Value]) -> Option<Gain> {
    let load = load.to_owned();
    if let Ok(found) = compare(before, after) {
        let (low, high) = found.interval;
        let interval = Some((1.0 / high, 1.0 / low));
        return Some(Gain { load, times: 1.0 / found.ratio, interval, verdict: Some(found.verdict) });
    }
    let times = Value::mean(before)?.figure() / Value::mean(after)?.figure();
    times.is_finite().then_some(Gain { load, times, interval: None, verdict: None })
}

/// `1.27x`, `12.1x`, `105x`.
fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 9.995 => format!("{ratio:.2}x"),
        ratio if ratio < 99.95 => format!("{ratio:.1}x"),
        ratio => format!("{ratio:.0}x"),
    }
}

fn gain_cell(gain: &Gain) -> Cell {
    let tone = match gain.verdict {
        Some(Verdict::Lower) => Tone::Good,
        Some(Verdict::Higher) => Tone::Bad,
        Some(Verdict::NoDifference) => Tone::Faint,
        None => Tone::Plain,
    };
    Cell { text: times(gain.times), tone }
}

fn cost_cell(found: &Comparison) -> Cell {
    let tone = match found.verdict {
        Verdict::Higher => Tone::Bad,
        Verdict::Lower => Tone::Good,
        Verdict::NoDifference => Tone::Faint,
    };
    Cell { text: times(found.ratio), tone }
}

fn gain_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Lower => "shorter",
        Verdict::Higher => "longer",
        Verdict::NoDifference => "no difference visible",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_runs_name_the_load_that_lost_beside_the_one_that_gained() {
        let gain = |load: &str, times| Gain { load: load.into(), times, interval: None, verdict: None };
        let said = |best, worst| of_single_runs(&gain("io", best), &gain("cpu", worst), "p99.9");
        assert!(
            said(7.2, 0.01).starts_with("7.20x shorter at p99.9 under io, 100x longer at p99.9 under cpu")
        );
        assert_eq!(said(7.2, 2.0), "7.20x shorter at p99.9 under io, of too few runs for an interval");
        assert_eq!(said(0.5, 0.25), "4.00x longer at p99.9 under cpu, of too few runs for an interval");
    }
}
