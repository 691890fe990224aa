//! A table of right-aligned columns that never grows wider than the terminal: what does not fit stands below.

use crate::style::{Style, Tone};
use crate::text::{clip, clip_inside, harmless};

/// No column is wider: a load may bear the name of a whole command line.
const WIDEST: usize = 20;
/// No column is narrower, so that stacked tables look alike.
const NARROWEST: usize = 6;
const GAP: usize = 2;

/// A table: labels at the left, then columns of as many cells.
#[derive(Default)]
pub(crate) struct Grid {
    /// What stands above the labels.
    pub corner: String,
    /// One a row.
    pub labels: Vec<String>,
    /// The columns.
    pub columns: Vec<Column>,
}

/// A column: its head in one or more lines, and its cells.
#[derive(Default)]
pub(crate) struct Column {
    pub head: Vec<String>,
    pub cells: Vec<Cell>,
}

/// A cell.
#[derive(Clone, Default)]
pub(crate) struct Cell {
    pub text: String,
    pub tone: Tone,
}

impl Cell {
    /// In the ordinary colour.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Plain }
    }

    /// Nothing to say: too few samples, not measured.
    pub fn none() -> Self {
        Self { text: "-".into(), tone: Tone::Faint }
    }
}

impl Column {
    fn width(&self) -> usize {
        let heads = self.head.iter().map(String::as_str);
        let cells = self.cells.iter().map(|cell| cell.text.as_str());
        heads.chain(cells).map(|text| text.chars().count()).max().unwrap_or(0).clamp(NARROWEST, WIDEST)
    }
}

impl Grid {
    /// The rows that have a figure; none where there is none at all.
    pub fn known(mut self) -> Option<Self> {
        let known = |row: usize| {
            self.columns
                .iter()
                .any(|column| column.cells.get(row).is_some_and(|cell| cell.text != Cell::none().text))
        };
        let rows: Vec<usize> = (0..self.labels.len()).filter(|&row| known(row)).collect();
        self.labels = rows.iter().map(|&row| self.labels[row].clone()).collect();
        for column in &mut self.columns {
            column.cells = rows.iter().filter_map(|&row| column.cells.get(row).cloned()).collect();
        }
        (!rows.is_empty()).then_some(self)
    }

    /// How wide the table is where all columns stand side by side.
    pub fn width(&self) -> usize {
        self.label_width() + self.columns.iter().map(|column| column.width() + GAP).sum::<usize>()
    }

    fn label_width(&self) -> usize {
        let texts = std::iter::once(&self.corner).chain(&self.labels);
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    }

    /// The table's lines, each ended; stacked tables are parted by an empty line.
    pub fn render(&self, style: &Style) -> String {
        let label_width = self.label_width();
        let mut text = String::new();
        for (place, columns) in self.stacks(label_width, style.width).into_iter().enumerate() {
            if place > 0 {
                text.push('\n');
            }
            self.render_stack(columns, label_width, style, &mut text);
        }
        text
    }

    /// The columns in groups that fit side by side, as even as they can be.
    fn stacks(&self, label_width: usize, width: usize) -> Vec<&[Column]> {
        let room = width.saturating_sub(label_width);
        let widest = self.columns.iter().map(Column::width).max().unwrap_or(0) + GAP;
        if self.width() <= width {
            return vec![&self.columns];
        }
        let fit = (room / widest).max(1);
        let stacks = self.columns.len().div_ceil(fit);
        self.columns.chunks(self.columns.len().div_ceil(stacks)).collect()
    }

    fn render_stack(&self, columns: &[Column], label_width: usize, style: &Style, text: &mut String) {
        let heads = columns.iter().map(|column| column.head.len()).max().unwrap_or(0);
        for line in 0..heads {
            let corner = if line == 0 { self.corner.as_str() } else { "" };
            let tone = if line == 0 { Tone::Strong } else { Tone::Faint };
            let head =
                |column: &Column| Cell { text: column.head.get(line).cloned().unwrap_or_default(), tone };
            push_line(text, (corner, label_width), columns.iter().map(|c| (head(c), c.width())), style);
        }
        for (row, label) in self.labels.iter().enumerate() {
            let cell = |column: &Column| column.cells.get(row).cloned().unwrap_or_else(Cell::none);
            push_line(text, (label, label_width), columns.iter().map(|c| (cell(c), c.width())), style);
        }
    }
}

/// One line: the label, then the cells; clipped at the terminal's edge, where even one column is too much for it.
fn push_line(
    text: &mut String,
    label: (&str, usize),
    cells: impl Iterator<Item = (Cell, usize)>,
    style: &Style,
) {
    let label_text = clip(&format!("{:<1$}", harmless(label.0), label.1), style.width);
    let mut left = style.width - label_text.chars().count();
    let mut line = label_text;
    for (cell, width) in cells {
        let cell_text = format!("{:>1$}", clip_inside(&harmless(&cell.text), width), width + GAP);
        let cell_text = clip(&cell_text, left);
        left -= cell_text.chars().count();
        line.push_str(&style.paint(cell.tone, &cell_text));
    }
    text.push_str(line.trim_end());
    text.push('\n');
}
