//! Several records side by side, as Enea lays four kernels beside each other: worst, average and least latency under
//! each load, and what each run changed. Whether they may be compared at all is said first.
//!
//! A single run is one draw, and its highest latency one sample of it. So ratios are those of the highest latencies of
//! many blocks, with their interval, and nothing here calls two single runs different.

use record::{Record, Unit};
use units::Nanos;

pub use crate::differences::{Difference, Weight, differences};
use crate::differences::{PHASES, is_of_loads};
use crate::figures::{Figures, Row, Terms};
use crate::grid::{Cell, Column, Grid};
use crate::group::{Group, HeadParts, Key, groups};
use crate::phases;
use crate::style::{Style, Tone};
use crate::tails::{Tail, uneven};
use crate::text::{aligned, harmless, wrap};

/// The comparison: legend, what forbids it, what differs, the answer, then a table each for maximum, average and minimum,
/// where p99.9 lies, and the maxima of blocks against those of the first record. `names` are those that the user knows the
/// records by, in their order; none where they have none.
pub fn compare(records: &[Record], names: &[String], style: &Style) -> String {
    let comparison = Comparison::of(records);
    let mut lines = comparison.legend(names, style);
    lines.push(String::new());
    lines.extend(comparison.objections(style));
    let answers = comparison.answers();
    if !answers.is_empty() {
        lines.push(String::new());
    }
    lines.extend(answers.iter().flat_map(|answer| wrap("", answer, 2, style.width)));
    let unit = comparison.unit();
    if unit.is_none() {
        lines.extend(wrap("", NO_COMMON_UNIT, 0, style.width));
    }
    let mut text: String = lines.into_iter().map(|line| line + "\n").collect();
    let Some(unit) = unit else { return text };
    for (row, title) in TABLES {
        text.push('\n');
        text.push_str(&comparison.latencies(row, &format!("{title}, {}", unit.name())).render(style));
    }
    if records.len() > 1 {
        let known = [comparison.intervals(unit), comparison.ratios()].into_iter().filter_map(Grid::known);
        for grid in known {
            text.push('\n');
            text.push_str(&grid.render(style));
        }
        text.push('\n');
        text.extend(
            comparison
                .cautions()
                .iter()
                .flat_map(|line| wrap("", line, 0, style.width))
                .map(|line| line + "\n"),
        );
    }
    text
}

/// What must be known of a comparison of single runs.
const ONE_RUN: &str = "One run is one draw. Intervals (95 %) and block maxima say how sure a figure is within its run; from run to run \
     it can move further. To tell two set-ups apart, measure each several times: worstcase tune trial.";

/// What the rows of block maxima say.
const BLOCKS: &str = "A block maximum is the highest latency of one of the equal stretches that a run is cut into. Their \
     ratio is that of a stretch to a stretch: the highest latencies of whole runs can have another one.";

/// The tables of a comparison, weightiest first.
pub(crate) const TABLES: [(Row, &str); 4] =
    [(Row::Maximum, "max"), (Row::Percentile(1), "p99.9"), (Row::Average, "avg"), (Row::Minimum, "min")];

/// What must be known of maxima in instructions before they are compared.
pub(crate) const ONE_DRAW: &str = "In instruction time a run is one draw, the same each time: another seed or another kernel parameter can move a maximum \
     fivefold. Compare several seeds of each, and tails before maxima.";

/// What is said of plans that agree in all that forbids a comparison.
const ALIKE: &str = "Comparable: loads, periods, lengths, priorities, CPUs and the rest of the plans agree.";

/// The same where a partition kept the loads off its CPUs.
const FEWER_LOADS: &str = "Comparable: periods, lengths, priorities, CPUs and the rest of the plans agree. The loads have other CPUs and \
     workers, as a partition leaves them.";

/// What stands where the tables would.
pub(crate) const NO_COMMON_UNIT: &str =
    "No tables: instructions of a guest and microseconds of a machine cannot stand side by side.";

/// Records with their letters, and the figures of every column that any of them has.
pub(crate) struct Comparison<'a> {
    pub records: &'a [Record],
    /// The columns of all records, in the order of the first that has each.
    pub columns: Vec<Key>,
    /// For each record, the figures of each column.
    pub figures: Vec<Vec<Option<Figures>>>,
    /// For each record, the tail of each column.
    pub tails: Vec<Vec<Tail>>,
    /// For each record but the first, in what it differs from that.
    differences: Vec<Vec<Difference>>,
    /// For each record, how the block maxima of each column relate to the first record's.
    ratios: Vec<Vec<Option<statistics::Comparison>>>,
}

impl<'a> Comparison<'a> {
    pub fn of(records: &'a [Record]) -> Self {
        let groups: Vec<_> = records.iter().map(groups).collect();
        let mut columns: Vec<Key> = Vec::new();
        for group in groups.iter().flatten() {
            if !columns.contains(&group.key) {
                columns.push(group.key.clone());
            }
        }
        let figures_of = |groups: &[Group<'_>], key: &Key| {
            groups.iter().find(|group| group.key == *key).map(Group::figures)
        };
        let figures =
            groups.iter().map(|groups| columns.iter().map(|key| figures_of(groups, key)).collect()).collect();
        let tails_of = |record| columns.iter().map(|key| Tail::of(record, key)).collect();
        let tails: Vec<Vec<Tail>> = records.iter().map(tails_of).collect();
        let others = records.iter().skip(1);
        let differences: Vec<_> = others.map(|record| differences(&records[0], record)).collect();
        // What may not be compared has no ratios.
        let is_forbidden = |record: usize| record == 0 || forbids(&differences[record - 1]);
        let ratio = |record: usize, column: usize| {
            if is_forbidden(record) { None } else { tails[record][column].against(&tails[0][column]) }
        };
        let ratios_of = |record| (0..columns.len()).map(|column| ratio(record, column)).collect();
        let ratios = (0..records.len()).map(ratios_of).collect();
        Self { records, columns, figures, tails, differences, ratios }
    }

    /// What the latencies of all records count; none where they count different things.
    pub fn unit(&self) -> Option<Unit> {
        let unit = |record: &Record| record.header.machine.unit();
        let first = self.records.first().map(unit).unwrap_or_default();
        self.records.iter().all(|record| unit(record) == first).then_some(first)
    }

    /// The heads of the columns.
    pub fn heads(&self) -> Vec<Vec<String>> {
        let parts = HeadParts::of(&self.columns);
        self.columns.iter().map(|key| key.head(parts)).collect()
    }

    fn latency(&self, record: usize, column: usize, row: Row) -> Option<Nanos> {
        self.figures[record][column].as_ref()?.latency(row)
    }

    /// How the block maxima of `record` relate to the first record's. None where that is not known, or they may not be compared.
    pub fn ratio(&self, record: usize, column: usize) -> Option<statistics::Comparison> {
        self.ratios[record][column]
    }

    /// What must be known of the figures before they are compared.
    pub fn cautions(&self) -> Vec<String> {
        let uneven = self.records.iter().enumerate().filter_map(|(place, record)| {
            let places = uneven(record);
            (!places.is_empty()).then(|| {
                format!(
                    "{} was not alike throughout, so it has no intervals: {}.",
                    letter(place),
                    places.join(", ")
                )
            })
        });
        let blocks = self.has_ratios().then(|| BLOCKS.to_owned());
        std::iter::once(ONE_RUN.to_owned()).chain(blocks).chain(self.other_phases()).chain(uneven).collect()
    }

    /// Which record has the shorter tail under which load, as far as intervals say so: what a comparison is made for. Nothing of
    /// records that may not be compared, nor of guests in instruction time, which are a draw each.
    pub fn answers(&self) -> Vec<String> {
        if self.consent().is_none() || self.unit() != Some(Unit::Microseconds) {
            return Vec::new();
        }
        (1..self.records.len()).map(|record| self.answer(record)).collect()
    }

    fn answer(&self, record: usize) -> String {
        let heads: Vec<String> = self.heads().into_iter().map(|head| head.join(" ")).collect();
        let of = |kind: Tells| -> Vec<String> {
            let columns = heads.iter().enumerate();
            let ratios = columns.map(|(column, head)| (head, self.ratio(record, column)));
            let own = ratios.filter(|(_, ratio)| Tells::of(ratio.as_ref()) == kind);
            own.map(|(head, ratio)| match ratio {
                Some(ratio) if kind != Tells::Neither => format!("{head} ({})", ratio_with_interval(&ratio)),
                _ => head.clone(),
            })
            .collect()
        };
        let parts = Tells::ALL.map(|kind| (kind, of(kind)));
        let letter = letter(record);
        if parts.iter().all(|(kind, heads)| *kind == Tells::Nothing || heads.is_empty()) {
            return format!(
                "Which tail is shorter, A's or {letter}'s, is not known: {}. Longer runs have intervals that tell, and trials: \
                 worstcase tune trial.",
                self.hindrances(record, &heads)
            );
        }
        let said = parts.iter().filter(|(_, heads)| !heads.is_empty());
        let said: Vec<String> =
            said.map(|(kind, heads)| format!("{} {}", kind.words(), heads.join(", "))).collect();
        format!("{letter}'s block maxima against A's: {}.", said.join("; "))
    }

    /// Why block maxima cannot be compared: `idle, vm: latencies changed during a run; cpu: too few block maxima`.
    fn hindrances(&self, record: usize, heads: &[String]) -> String {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for (column, head) in heads.iter().enumerate() {
            let reason = self.tails[record][column].hindrance(&self.tails[0][column]);
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, heads)) => heads.push(head),
                None => reasons.push((reason, vec![head])),
            }
        }
        let said: Vec<String> =
            reasons.iter().map(|(reason, heads)| format!("{}: {reason}", heads.join(", "))).collect();
        said.join("; ")
    }

    fn has_ratios(&self) -> bool {
        let of = |record| (0..self.columns.len()).any(|column| self.ratio(record, column).is_some());
        (1..self.records.len()).any(of)
    }

    /// Runs whose wake-ups met a few phases of the tick, and not the same ones.
    fn other_phases(&self) -> Option<String> {
        let differ = self.pairs().any(|(_, all)| all.iter().any(|difference| difference.what == PHASES));
        let limited = |(place, record)| {
            phases::is_limited(record).then(|| format!("{} {}", letter(place), phases::part(record)))
        };
        let limited: Vec<String> = self.records.iter().enumerate().filter_map(limited).collect();
        (differ && !limited.is_empty()).then(|| {
            format!(
                "The runs met different phases of the kernel's tick, and a delay that comes with the tick can be in one \
                 alone ({}). Longer runs meet more.",
                limited.join("; ")
            )
        })
    }

    fn grid(&self, corner: &str, skip: usize, cell: impl Fn(usize, usize) -> Cell) -> Grid {
        let shown = skip..self.records.len();
        let column =
            |(place, head)| Column { head, cells: shown.clone().map(|record| cell(record, place)).collect() };
        Grid {
            corner: format!("{corner:<0$}", "p99.9, ".len() + self.unit().unwrap_or_default().name().len()),
            labels: shown.clone().map(letter).collect(),
            columns: self.heads().into_iter().enumerate().map(column).collect(),
        }
    }

    fn latencies(&self, row: Row, title: &str) -> Grid {
        self.grid(title, 0, |record, column| {
            let terms = Terms::of(&self.records[record]);
            self.latency(record, column, row).map_or_else(Cell::none, |latency| Cell {
                text: aligned(terms.unit, latency),
                tone: if terms.exceeded(latency) { Tone::Bad } else { Tone::Plain },
            })
        })
    }

    /// Where p99.9 of each record lies, at 95 %.
    fn intervals(&self, unit: Unit) -> Grid {
        let cell = |record: usize, column: usize, high: bool| {
            let interval = self.tails[record][column].quantile;
            let end = interval.and_then(|interval| if high { interval.high } else { Some(interval.low) });
            end.map_or_else(Cell::none, |end| Cell::plain(aligned(unit, end)))
        };
        let records = 0..self.records.len();
        let ends = records.flat_map(|record| [(record, false), (record, true)]);
        let label =
            |(record, high)| format!("{} {}", letter(record), if high { "at most" } else { "at least" });
        let column = |(place, head)| {
            let cells = ends.clone().map(|(record, high)| cell(record, place, high)).collect();
            Column { head, cells }
        };
        Grid {
            corner: format!("p99.9, {}", unit.name()),
            labels: ends.clone().map(label).collect(),
            columns: self.heads().into_iter().enumerate().map(column).collect(),
        }
    }

    /// Block maxima against the first record's, with their interval.
    fn ratios(&self) -> Grid {
        type Part = (&'static str, fn(&statistics::Comparison) -> f64);
        let parts: [Part; 3] = [
            ("", |ratio| ratio.ratio),
            (" at least", |ratio| ratio.interval.0),
            (" at most", |ratio| ratio.interval.1),
        ];
        let lines = (1..self.records.len()).flat_map(|record| parts.map(|(name, part)| (record, name, part)));
        let cell = |record: usize, column: usize, part: fn(&statistics::Comparison) -> f64| {
            let ratio = self.ratio(record, column);
            ratio.map_or_else(Cell::none, |ratio| Cell::plain(ratio_text(part(&ratio))))
        };
        let column = |(place, head)| {
            let cells = lines.clone().map(|(record, _, part)| cell(record, place, part)).collect();
            Column { head, cells }
        };
        Grid {
            corner: "block max / A".into(),
            labels: lines.clone().map(|(record, name, _)| format!("{}{name}", letter(record))).collect(),
            columns: self.heads().into_iter().enumerate().map(column).collect(),
        }
    }

    fn legend(&self, names: &[String], style: &Style) -> Vec<String> {
        let line = |(place, record): (usize, &Record)| {
            let own = record_name(record);
            let name =
                names.get(place).map_or_else(|| own.clone(), |name| format!("{}: {own}", harmless(name)));
            wrap(&format!("{}  ", letter(place)), &name, 3, style.width)
        };
        self.records.iter().enumerate().flat_map(line).collect()
    }

    /// What each record has other than the first: what forbids a comparison, loudly, then what it may be about.
    fn objections(&self, style: &Style) -> Vec<String> {
        let pairs: Vec<_> = self.pairs().collect();
        let objections = |weight| {
            pairs.iter().flat_map(move |(letter, differences)| {
                differences
                    .iter()
                    .filter(move |difference| difference.weight == weight)
                    .map(move |difference| format!("A / {letter}: {difference}"))
            })
        };
        let mut lines = match self.consent() {
            Some(consent) => wrap("", consent, 0, style.width),
            None => {
                let warning = "NOT COMPARABLE: these runs were not made under the same conditions.";
                wrap("", warning, 0, style.width).iter().map(|line| style.paint(Tone::Bad, line)).collect()
            }
        };
        lines.extend(objections(Weight::Forbids).flat_map(|line| wrap("  ", &line, 4, style.width)));
        if objections(Weight::Note).next().is_some() {
            lines.push("What differs:".into());
        }
        lines.extend(objections(Weight::Note).flat_map(|line| wrap("  ", &line, 4, style.width)));
        if self.unit() == Some(Unit::Instructions) {
            lines.extend(wrap("", ONE_DRAW, 0, style.width));
        }
        lines
    }

    /// That all records may be compared with the first, and what agrees; none where one of them may not.
    pub fn consent(&self) -> Option<&'static str> {
        let mut all = self.differences.iter();
        if all.clone().any(|differences| forbids(differences)) {
            return None;
        }
        Some(if all.any(|differences| differences.iter().any(is_of_loads)) { FEWER_LOADS } else { ALIKE })
    }

    /// The letter of each record but the first, and in what it differs from that.
    pub fn pairs(&self) -> impl Iterator<Item = (String, &[Difference])> {
        let others = self.differences.iter().enumerate();
        others.map(|(place, differences)| (letter(place + 1), differences.as_slice()))
    }
}

/// What the ratio of two tails tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tells {
    Shorter,
    Longer,
    /// The interval has 1 in it.
    Neither,
    /// There is no interval.
    Nothing,
}

impl Tells {
    const ALL: [Self; 4] = [Self::Shorter, Self::Longer, Self::Neither, Self::Nothing];

    fn of(ratio: Option<&statistics::Comparison>) -> Self {
        match ratio.map(|ratio| ratio.interval) {
            None => Self::Nothing,
            Some((_, high)) if high < 1.0 => Self::Shorter,
            Some((low, _)) if low > 1.0 => Self::Longer,
            Some(_) => Self::Neither,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Shorter => "shorter under",
            Self::Longer => "longer under",
            Self::Neither => "not distinguished under",
            Self::Nothing => "no intervals under",
        }
    }
}

/// `0.36 x, 0.30 to 0.40`.
fn ratio_with_interval(ratio: &statistics::Comparison) -> String {
    let [ratio, low, high] = [ratio.ratio, ratio.interval.0, ratio.interval.1].map(ratio_text);
    format!("{ratio}, {} to {}", low.trim_end_matches(" x"), high.trim_end_matches(" x"))
}

fn forbids(differences: &[Difference]) -> bool {
    differences.iter().any(|difference| difference.weight == Weight::Forbids)
}

/// `0.18 x`: below one is better than the first record.
pub(crate) fn ratio_text(ratio: f64) -> String {
    match ratio {
        // A tail that is hundreds of times shorter is not 0.
        _ if ratio < 0.095 => format!("{ratio:.4} x"),
        _ if ratio < 99.95 => format!("{ratio:.2} x"),
        _ => format!("{ratio:.0} x"),
    }
}

/// A, B, ... Z, then 27, 28, ...
pub(crate) fn letter(place: usize) -> String {
    match u8::try_from(place) {
        Ok(place) if place < 26 => char::from(b'A' + place).to_string(),
        _ => (place + 1).to_string(),
    }
}

/// Machine, kernel, time and note; of a guest, whose date is always the same, what the lab booted, and the seed.
pub(crate) fn record_name(record: &Record) -> String {
    let header = &record.header;
    let name = match &header.machine.lab {
        None => {
            format!("{}, Linux {}, {}", header.machine.host, header.machine.kernel.release, header.started)
        }
        Some(lab) => {
            let release = || format!("Linux {}", header.machine.kernel.release);
            let kernel = lab.kernel.clone().unwrap_or_else(release);
            let under = lab.under.as_ref().map_or(String::new(), |under| format!(" under {under}"));
            let booted = [vec![kernel], lab.words.clone()].concat().join(" ") + &under;
            let seed = header.plan.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
            format!("{booted}, in {}, clock: {}{seed}", lab.emulator, lab.time)
        }
    };
    match &header.note {
        Some(note) => format!("{name}: {note}"),
        None => name,
    }
}
