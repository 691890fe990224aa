//! What `measure` shows while it runs: a table that is drawn anew every second, or a plain line a CPU and second.

use histogram::Summary;
use record::{Block, Unit};
use units::{CpuId, InOrder, Nanos};

use crate::grid::{Cell, Column, Grid};
use crate::group::cpu_name;
use crate::style::Style;
use crate::text::aligned;

/// What is known of one measuring thread so far.
#[derive(Clone, Copy, Debug)]
pub struct LiveRow<'a> {
    /// Its CPU; none for a thread that is not pinned.
    pub cpu: Option<CpuId>,
    /// Latency of its last wake-up.
    pub now: Option<Nanos>,
    /// Its wake-ups so far.
    pub summary: Summary,
    /// p99.9 of the corrected histogram so far.
    pub p999: Option<Nanos>,
    /// Activations missed so far; none where nothing is due, and values are counted instead.
    pub missed: Option<u64>,
    /// What values are called: `samples`, `gaps`.
    pub values: &'static str,
    /// The last seconds, oldest first: as many as there are, only the last ones that fit are drawn.
    pub recent: &'a [Block],
}

/// The least room in which a sparkline says anything.
const LEAST_SPARK: usize = 8;
/// The most seconds drawn.
const MOST_SPARK: usize = 60;
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 8] = ['_', '.', ',', '-', '=', '+', '*', '#'];

/// The table: one line a CPU below the heads, every line ended. On a terminal too narrow for it the figures are
/// stacked, without sparklines.
pub fn table(rows: &[LiveRow<'_>], unit: Unit, style: &Style) -> String {
    let figures = Grid {
        corner: unit.name().into(),
        labels: rows.iter().map(|row| cpu_name(row.cpu)).collect(),
        columns: columns(rows, unit),
    };
    let room = style.width.saturating_sub(figures.width() + 2).min(MOST_SPARK);
    if room < LEAST_SPARK {
        return figures.render(style);
    }
    let scale = Scale::of(rows, room);
    let sparklines = rows.iter().map(|row| format!("  {}", scale.sparkline(row.recent, room, style)));
    let text = figures.render(style);
    text.lines()
        .zip(std::iter::once(String::new()).chain(sparklines))
        .fold(String::new(), |all, (line, spark)| all + (line.to_owned() + &spark).trim_end() + "\n")
}

/// As [`table`], in at most `lines` lines where that can be: of too many rows those with the highest maxima, and below them
/// how many are left out.
pub fn table_within(lines: usize, rows: &[LiveRow<'_>], unit: Unit, style: &Style) -> String {
    let all = table(rows, unit, style);
    if all.lines().count() <= lines {
        return all;
    }
    let drawn = |kept: usize| {
        let left_out = rows.len() - kept;
        table(&worst(rows, kept), unit, style)
            + &format!("{left_out} more, none of them with a higher maximum\n")
    };
    let (mut fit, mut most) = (1, rows.len().saturating_sub(1).max(1));
    while fit < most {
        let middle = (fit + most).div_ceil(2);
        if drawn(middle).lines().count() <= lines { fit = middle } else { most = middle - 1 }
    }
    if rows.len() > 1 { drawn(fit) } else { all }
}

/// The rows with the highest maxima, in their order.
fn worst<'a>(rows: &[LiveRow<'a>], kept: usize) -> Vec<LiveRow<'a>> {
    let mut places: Vec<usize> = (0..rows.len()).collect();
    places.order_by_key(|&place| std::cmp::Reverse(rows[place].summary.maximum()));
    places.truncate(kept);
    places.sort_unstable();
    places.into_iter().map(|place| rows[place]).collect()
}

fn columns(rows: &[LiveRow<'_>], unit: Unit) -> Vec<Column> {
    let latency = |latency: Option<Nanos>| latency.map_or_else(Cell::none, |l| Cell::plain(aligned(unit, l)));
    let column = |head: &str, cell: &dyn Fn(&LiveRow<'_>) -> Cell| Column {
        head: vec![head.to_owned()],
        cells: rows.iter().map(cell).collect(),
    };
    let mut columns = vec![
        column("now", &|row| latency(row.now)),
        column("min", &|row| latency(row.summary.minimum())),
        column("avg", &|row| latency(row.summary.average())),
        column("p99.9", &|row| latency(row.p999)),
        column("max", &|row| latency(row.summary.maximum())),
    ];
    let count = |row: &LiveRow<'_>| row.missed.unwrap_or(row.summary.count);
    let head = rows.iter().find(|row| row.missed.is_none()).map_or("missed", |row| row.values);
    columns.push(column(head, &|row| Cell::plain(count(row).to_string())));
    columns
}

/// One line without decoration, for a log: `12 s  CPU 3  now 4.1  min 1.2  avg 2.3  p99.9 12.0  max 33.1 us  missed 0`.
pub fn line(second: u64, row: &LiveRow<'_>, unit: Unit) -> String {
    let shown = |latency: Option<Nanos>| latency.map_or_else(|| "-".into(), |latency| unit.figure(latency));
    format!(
        "{second} s  {}  now {}  min {}  avg {}  p99.9 {}  max {} {}  {}",
        cpu_name(row.cpu),
        shown(row.now),
        shown(row.summary.minimum()),
        shown(row.summary.average()),
        shown(row.p999),
        shown(row.summary.maximum()),
        unit.name(),
        row.missed.map_or_else(
            || format!("{} {}", row.values, row.summary.count),
            |missed| format!("missed {missed}")
        )
    )
}

/// The logarithmic scale that all sparklines of a table share, so that CPUs can be compared.
struct Scale {
    lowest: f64,
    octaves: f64,
}

impl Scale {
    fn of(rows: &[LiveRow<'_>], room: usize) -> Self {
        let maxima =
            || rows.iter().flat_map(|row| last(row.recent, room)).filter_map(|b| b.observed.maximum());
        let lowest = maxima().min().map_or(0.0, logarithm);
        let highest = maxima().max().map_or(0.0, logarithm);
        // Less than a factor of four from foot to top would make noise look like mountains.
        Self { lowest, octaves: (highest - lowest).max(2.0) }
    }

    fn sparkline(&self, recent: &[Block], room: usize, style: &Style) -> String {
        last(recent, room).iter().map(|block| self.mark(block, style)).collect()
    }

    fn mark(&self, block: &Block, style: &Style) -> char {
        let marks = if style.unicode { BLOCKS } else { ASCII };
        block.observed.maximum().map_or(' ', |maximum| {
            let place = (logarithm(maximum) - self.lowest) / self.octaves * 7.0;
            marks[(place.round() as usize).min(7)]
        })
    }
}

fn logarithm(latency: Nanos) -> f64 {
    (latency.0.max(1) as f64).log2()
}

fn last(blocks: &[Block], room: usize) -> &[Block] {
    &blocks[blocks.len().saturating_sub(room)..]
}
