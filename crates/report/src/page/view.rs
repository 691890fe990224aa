//! What the template can show.

use askama::Template;
use record::Unit;
use units::Nanos;

use crate::figures::Terms;

/// A part of the page under a heading.
pub(crate) struct Section {
    /// Unique in the page.
    pub id: String,
    pub title: String,
    /// A sentence that says how to read it; may be empty.
    pub lead: String,
    pub blocks: Vec<Block>,
}

/// Something within a section.
pub(crate) enum Block {
    Heading(String),
    Paragraph(String),
    Table(DataTable),
    /// Several tables, folded together below one line.
    Folded(String, Vec<DataTable>),
    Figure(Figure),
    Histograms(Histograms),
    Doubts(Vec<DoubtView>),
    Facts(Vec<(String, String)>),
    Verdict(VerdictView),
    /// Commands, and what each is for.
    Commands(Vec<(String, String)>),
}

/// A verdict with its reasons.
pub(crate) struct VerdictView {
    /// A run's verdict, whose colours it has.
    pub class: String,
    /// A sign beside the words: no meaning hangs on a colour alone.
    pub sign: &'static str,
    pub headline: String,
    pub reasons: Vec<String>,
}

/// Text up to this many characters is not broken into lines.
const LONGEST_WORD: usize = 28;

/// A table. The first cell of a row is its head.
#[derive(Template)]
#[template(path = "table.html")]
pub(crate) struct DataTable {
    pub caption: String,
    pub head: Vec<Cell>,
    pub rows: Vec<Vec<Cell>>,
    /// Whether it is folded below its caption until asked for.
    pub folded: bool,
}

/// A cell.
#[derive(Clone)]
pub(crate) struct Cell {
    pub text: String,
    pub class: &'static str,
}

/// A plot, its legend, and the same figures as tables.
pub(crate) struct Figure {
    pub caption: String,
    pub legend: Vec<Key>,
    /// SVG, escaped where it was made.
    pub svg: String,
    pub tables: Vec<DataTable>,
}

/// One entry of a legend.
pub(crate) struct Key {
    /// A small drawing of the line and its marker; SVG.
    pub sample: String,
    pub name: String,
}

/// The histograms of all loads, summed or for each CPU.
pub(crate) struct Histograms {
    /// The name of the switch; unique in the page.
    pub name: String,
    /// Whether there is more than one CPU to tell apart.
    pub switch: bool,
    /// What the second way of drawing shows.
    pub each: &'static str,
    pub legend: Vec<Key>,
    pub plots: Vec<HistogramView>,
}

/// The histogram of one load.
pub(crate) struct HistogramView {
    pub name: String,
    pub summed: String,
    pub each: String,
    pub table: DataTable,
}

/// A kind of doubt.
pub(crate) struct DoubtView {
    pub id: &'static str,
    pub title: &'static str,
    pub effect: &'static str,
    pub class: &'static str,
    pub findings: Vec<String>,
    pub cures: Vec<String>,
}

impl Cell {
    /// A word, kept on one line, or a sentence.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        let class = if text.chars().count() <= LONGEST_WORD { "w" } else { "t" };
        Self { text, class }
    }

    /// A figure, set at the right.
    pub fn number(text: impl Into<String>) -> Self {
        Self { text: text.into(), class: "n" }
    }

    /// A count with its thousands parted.
    pub fn count(count: u64) -> Self {
        Self::number(grouped(count))
    }

    /// A latency without its unit; `-` where there is none. Over the limit, it is set apart.
    pub fn latency(latency: Option<Nanos>, terms: Terms) -> Self {
        match latency {
            None => Self::number("–"),
            Some(latency) if terms.exceeded(latency) => {
                Self { text: figure(terms.unit, latency), class: "n over" }
            }
            Some(latency) => Self::number(figure(terms.unit, latency)),
        }
    }
}

impl DataTable {
    /// An open table.
    pub fn new(caption: impl Into<String>, head: Vec<Cell>, rows: Vec<Vec<Cell>>) -> Self {
        Self { caption: caption.into(), head, rows, folded: false }
    }

    /// Without the last column, where nothing stands in it.
    pub fn drop_empty_last(&mut self) {
        if self.rows.iter().all(|row| row.last().is_none_or(|cell| cell.text.is_empty())) {
            self.head.pop();
            self.rows.iter_mut().for_each(|row| drop(row.pop()));
        }
    }

    /// The same table, folded.
    pub fn fold(self) -> Self {
        Self { folded: true, ..self }
    }

    /// At most `most` rows; how many were left out stands in the caption.
    pub fn at_most(mut self, most: usize) -> Self {
        if self.rows.len() > most {
            let left_out = self.rows.len() - most;
            self.caption = format!("{} (the first {most}; {left_out} more are in the record)", self.caption);
            self.rows.truncate(most);
        }
        self
    }
}

impl Section {
    /// A section of some blocks.
    pub fn new(id: &str, title: &str, lead: &str, blocks: Vec<Block>) -> Self {
        Self { id: id.into(), title: title.into(), lead: lead.into(), blocks }
    }
}

/// Heads of columns of figures after one column of words.
pub(crate) fn heads(first: &str, rest: &[&str]) -> Vec<Cell> {
    std::iter::once(Cell::text(first)).chain(rest.iter().map(|head| Cell::number(*head))).collect()
}

/// A count with a narrow no-break space between thousands.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// For the caption of a plot whose axis does not name its unit at every label.
pub(crate) fn in_unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Microseconds => "",
        Unit::Instructions => ", in instructions",
    }
}

/// The unit's name as the page writes it.
pub(crate) fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Microseconds => "µs",
        Unit::Instructions => unit.name(),
    }
}

/// A latency without its unit, thousands parted. Microseconds without a decimal are padded by blanks as wide as a
/// point and a digit, so that units stand below units.
pub(crate) fn figure(unit: Unit, latency: Nanos) -> String {
    if unit == Unit::Instructions {
        return grouped(latency.0);
    }
    let text = unit.figure(latency);
    let (whole, decimal) = match text.split_once('.') {
        Some((whole, decimal)) => (whole, format!(".{decimal}")),
        None => (text.as_str(), "\u{2008}\u{2007}".to_owned()),
    };
    whole.parse().map_or_else(|_| text.clone(), grouped) + &decimal
}
