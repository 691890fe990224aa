//! The tables of an experiment, once for a terminal and for a page.

use experiment::{Compared, Difference, Effect, Measure};
use record::Unit;
use statistics::Tail;
use units::Nanos;

use super::figures::{Place, Reckoned, interval, times};
use crate::figures::{LATENCIES, Row as Figure, Terms};
use crate::grid::{self, Column, Grid};
use crate::page::view::{self, DataTable, heads, unit_name};
use crate::style::Tone;
use crate::text::{aligned, clip};

/// Names of arms and of pairs of them are cut on a terminal.
const LONGEST_LABEL: usize = 34;

/// A table, its first column of words.
pub(super) struct Table {
    /// What stands above it on a page.
    pub caption: String,
    corner: String,
    heads: Vec<String>,
    rows: Vec<(String, Vec<Cell>)>,
    unit: Unit,
}

#[derive(Clone)]
enum Cell {
    Latency(Option<Nanos>),
    Count(u64),
    Words(String, Tone),
}

impl Cell {
    fn empty() -> Self {
        Self::Words(String::new(), Tone::Plain)
    }

    fn plain(text: impl Into<String>) -> Self {
        Self::Words(text.into(), Tone::Plain)
    }

    fn on_terminal(&self, unit: Unit) -> grid::Cell {
        match self {
            Self::Latency(latency) => {
                latency.map_or_else(grid::Cell::none, |one| grid::Cell::plain(aligned(unit, one)))
            }
            Self::Count(count) => grid::Cell::plain(count.to_string()),
            Self::Words(text, tone) => grid::Cell { text: text.clone(), tone: *tone },
        }
    }

    fn on_page(&self, unit: Unit) -> view::Cell {
        match self {
            Self::Latency(latency) => view::Cell::latency(*latency, Terms::of_latencies(unit)),
            Self::Count(count) => view::Cell::count(*count),
            Self::Words(text, tone) => view::Cell { text: text.clone(), class: class(*tone) },
        }
    }
}

fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "n gain",
        Tone::Bad => "n over",
        Tone::Faint => "n soft",
        Tone::Plain | Tone::Strong | Tone::Doubtful => "n",
    }
}

impl Table {
    /// For a terminal.
    pub fn grid(&self) -> Grid {
        let column = |(at, head): (usize, &String)| Column {
            head: vec![head.clone()],
            cells: self.rows.iter().map(|(_, cells)| cells[at].on_terminal(self.unit)).collect(),
        };
        Grid {
            corner: self.corner.clone(),
            labels: self.rows.iter().map(|(label, _)| clip(label, LONGEST_LABEL)).collect(),
            columns: self.heads.iter().enumerate().map(column).collect(),
        }
    }

    /// For a page.
    pub fn on_page(&self) -> DataTable {
        let row = |(label, cells): &(String, Vec<Cell>)| {
            let cells = cells.iter().map(|cell| cell.on_page(self.unit));
            std::iter::once(view::Cell::text(label.replacen("  ", "\u{2003}", 1))).chain(cells).collect()
        };
        let names: Vec<&str> = self.heads.iter().map(String::as_str).collect();
        let corner = self.corner.replace(Unit::Microseconds.name(), unit_name(Unit::Microseconds));
        DataTable::new(self.caption.clone(), heads(&corner, &names), self.rows.iter().map(row).collect())
    }

    /// Puts `rows` below the name of their load, where there are several.
    fn push(&mut self, loads: &[String], load: usize, rows: Vec<(String, Vec<Cell>)>) {
        if loads.len() > 1 && !rows.is_empty() {
            self.rows.push((format!("{}:", loads[load]), vec![Cell::empty(); self.heads.len()]));
        }
        self.rows.extend(rows);
    }
}

/// Each arm under each load: blocks, samples, exact least, mean and greatest latency, percentiles of all blocks together.
pub(super) fn arms(reckoned: &Reckoned<'_>) -> Table {
    let experiment = reckoned.experiment;
    let terms = Terms::of_latencies(experiment.unit);
    // p99.99 stands on the page only where blocks together have samples enough for it.
    let is_known =
        |row: &Figure| reckoned.places.iter().flatten().any(|place| place.together.latency(*row).is_some());
    let latencies: Vec<Figure> = LATENCIES.into_iter().filter(is_known).collect();
    let mut heads = vec!["blocks".to_owned(), "samples".to_owned()];
    heads.extend(latencies.iter().map(|row| terms.name(*row)));
    let cells = |place: &Place| {
        let counts = [Cell::Count(place.blocks as u64), Cell::Count(place.together.expected)];
        let latencies = latencies.iter().map(|row| Cell::Latency(place.together.latency(*row)));
        counts.into_iter().chain(latencies).collect()
    };
    let mut table = Table {
        caption: "Each arm, all its blocks together; percentiles are of all activations due".into(),
        corner: experiment.unit.name().into(),
        heads,
        rows: Vec::new(),
        unit: experiment.unit,
    };
    for load in 0..experiment.loads.len() {
        let places = experiment.arms.iter().zip(&reckoned.places);
        let measured = places.filter(|(_, places)| places[load].blocks > 0);
        let rows = measured.map(|(arm, places)| (arm.name.clone(), cells(&places[load]))).collect();
        table.push(&experiment.loads, load, rows);
    }
    table
}

/// What was compared with what, by which figure, and what came of it; none where nothing was.
pub(super) fn comparisons(reckoned: &Reckoned<'_>) -> Option<Table> {
    let experiment = reckoned.experiment;
    let measure = reckoned.comparisons.iter().find(|compared| compared.decides)?.measure;
    let mut table = Table {
        caption: format!(
            "How many times the {measure} of one arm is in the other's, with the interval that the blocks allow"
        ),
        corner: format!("{}, {}", short(measure, experiment.unit), experiment.unit.name()),
        heads: ["times", "interval", "tail", "sure", "before", "after"].map(str::to_owned).to_vec(),
        rows: Vec::new(),
        unit: experiment.unit,
    };
    for load in 0..experiment.loads.len() {
        let own = reckoned.comparisons.iter().filter(|compared| compared.load == load);
        let row = |compared: &Compared| {
            let fresh = if compared.is_fresh { " *" } else { "" };
            let label = match compared.decides {
                true => format!("{}{fresh}", reckoned.pair(compared)),
                false => format!("  {}", short(compared.measure, experiment.unit)),
            };
            (label, cells(compared))
        };
        table.push(&experiment.loads, load, own.map(row).collect());
    }
    Some(table)
}

fn cells(compared: &Compared) -> Vec<Cell> {
    match &compared.found {
        Err(_) => {
            let mut cells = vec![Cell::Words("-".into(), Tone::Faint); 6];
            cells[2] = Cell::Words("not measured".into(), Tone::Doubtful);
            cells
        }
        Ok(difference) => {
            let Difference { before, after, ratio, interval: range, confidence, effect, .. } = difference;
            vec![
                Cell::Words(times(*ratio), tone(*effect)),
                Cell::Words(interval(*range), Tone::Faint),
                Cell::Words(effect.map_or("", word).into(), tone(*effect)),
                Cell::Words(format!("{:.1} %", confidence * 100.0), Tone::Faint),
                figure(compared.measure, *before),
                figure(compared.measure, *after),
            ]
        }
    }
}

fn figure(measure: Measure, figure: f64) -> Cell {
    match measure {
        Measure::Tail(Tail::Exceedances(_)) => Cell::plain(format!("{figure:.0}")),
        Measure::Tail(_) | Measure::BlockMaxima => Cell::Latency(Some(Nanos(figure.round() as u64))),
    }
}

/// A measure's name in a column: `from 7.0` are exceedances.
fn short(measure: Measure, unit: Unit) -> String {
    match measure {
        Measure::Tail(Tail::Exceedances(threshold)) => format!("from {}", unit.figure(threshold)),
        other => other.to_string(),
    }
}

/// What an effect does to the tail.
pub(super) fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Helps => "shorter",
        Effect::Harms => "longer",
        Effect::NoneVisible => "no effect",
        Effect::Undecided => "undecided",
    }
}

fn tone(effect: Option<Effect>) -> Tone {
    match effect {
        Some(Effect::Helps) => Tone::Good,
        Some(Effect::Harms) => Tone::Bad,
        Some(Effect::NoneVisible | Effect::Undecided) => Tone::Faint,
        None => Tone::Plain,
    }
}

/// The figures that somebody else gives, as they stand there; none where nobody does.
pub(super) fn published(reckoned: &Reckoned<'_>) -> Option<Table> {
    let experiment = reckoned.experiment;
    let given = || {
        let all = experiment.arms.iter().filter_map(|arm| arm.published.as_ref());
        all.filter(|published| !published.latencies.is_empty())
    };
    let unit = given().next()?.unit.clone();
    let mut sources: Vec<&str> = given().map(|published| published.source.as_str()).collect();
    sources.dedup();
    let mut table = Table {
        caption: sources.join(", "),
        corner: format!("source, {unit}"),
        heads: ["min", "avg", "max"].map(str::to_owned).to_vec(),
        rows: Vec::new(),
        unit: experiment.unit,
    };
    for (place, load) in experiment.loads.iter().enumerate() {
        let row = |arm: &super::Arm| {
            let latencies = arm.published.as_ref()?.latencies.get(load)?;
            Some((arm.name.clone(), latencies.map(|one| Cell::plain(one.to_string())).to_vec()))
        };
        table.push(&experiment.loads, place, experiment.arms.iter().filter_map(row).collect());
    }
    Some(table)
}
