//! What the kernel says of its events: `events/SYSTEM/NAME/format`.
//!
//! Formats differ between kernels (`prev_state`, `sched_waking`'s `success`), and numbers between boots: they are read
//! from the kernel that was traced, each time.

pub(crate) mod field;
mod label;

use std::fmt;

pub use field::Field;
use field::field_line;

use crate::error::{Error, Result};
use crate::page::Layout;
use label::Labels;

/// Fields that every event has begin with this.
const COMMON: &str = "common_";

/// The layout of one event.
#[derive(Clone, Debug)]
pub struct Format {
    /// Its name, without that of its system.
    pub name: String,
    /// Its number, by which records refer to it.
    pub id: u16,
    /// Where the id of the running task stands, if that is a field.
    task: Option<usize>,
    common: Vec<Field>,
    fields: Vec<Field>,
    labels: Vec<(usize, Labels)>,
    /// Pairs of fields, by their places: the id of a task and its name.
    tasks: Vec<(usize, usize)>,
}

impl Format {
    /// Reads a format file.
    ///
    /// # Errors
    /// What is missing or makes no sense.
    pub fn parse(text: &str) -> Result<Self> {
        let head = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let name = head("name:").filter(|name| !name.is_empty());
        let wrong =
            |what: &str| Error::new("parse", format!("format of {}", name.unwrap_or("an event")), what);
        let id = head("ID:").and_then(|id| id.parse().ok()).ok_or_else(|| wrong("no number after `ID:`"))?;
        let all = text.lines().filter_map(field_line).map(Field::new);
        let (common, fields): (Vec<Field>, Vec<Field>) =
            all.partition(|field| field.name.starts_with(COMMON));
        let print = text.split_once("print fmt:").map_or("", |(_, print)| print);
        let labels = |(place, field): (usize, &Field)| Some((place, Labels::parse(print, &field.name)?));
        Ok(Self {
            name: name.ok_or_else(|| wrong("no text after `name:`"))?.to_owned(),
            id,
            labels: fields.iter().enumerate().filter_map(labels).collect(),
            tasks: tasks(&fields),
            task: common.iter().find(|field| field.name == "common_pid").map(|field| field.offset),
            common,
            fields,
        })
    }

    /// The fields, without those that every event has.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// A field by its name; `common_` ones too.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let fields = if name.starts_with(COMMON) { &self.common } else { &self.fields };
        fields.iter().find(|field| field.name == name)
    }

    /// The name that the kernel's text has for a number in a field.
    pub fn label(&self, field: &str, number: u64) -> Option<&str> {
        let place = self.fields.iter().position(|one| one.name == field)?;
        self.labels.iter().find(|(one, _)| *one == place)?.1.of(number)
    }

    /// Pairs of fields that say a task's id and its name.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = (&Field, &Field)> {
        self.tasks.iter().map(|(id, name)| (&self.fields[*id], &self.fields[*name]))
    }
}

/// `prev_pid` goes with `prev_comm`, `pid` with `comm`.
fn tasks(fields: &[Field]) -> Vec<(usize, usize)> {
    let named = |(place, field): (usize, &Field)| {
        let whose = field.name.strip_suffix("comm").filter(|_| field.is_text())?;
        let is_id = |one: &Field| one.name.strip_suffix("pid") == Some(whose);
        Some((fields.iter().position(is_id)?, place))
    };
    fields.iter().enumerate().filter_map(named).collect()
}

/// The formats of all events that a trace may hold, and the layout of its pages.
#[derive(Clone)]
pub struct Formats {
    layout: Layout,
    by_id: Vec<Option<Box<Format>>>,
}

impl Formats {
    /// None yet.
    pub fn new(layout: Layout) -> Self {
        Self { layout, by_id: Vec::new() }
    }

    /// The layout of the pages.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Adds what a format file says.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn add(&mut self, text: &str) -> Result<()> {
        let format = Format::parse(text)?;
        let place = usize::from(format.id);
        if self.by_id.len() <= place {
            self.by_id.resize_with(place + 1, || None);
        }
        self.by_id[place] = Some(Box::new(format));
        Ok(())
    }

    /// The format with a number.
    pub fn get(&self, id: u16) -> Option<&Format> {
        self.by_id.get(usize::from(id))?.as_deref()
    }

    /// Formats by their name: systems may share one.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Format> {
        self.by_id.iter().filter_map(Option::as_deref).filter(move |format| format.name == name)
    }

    /// The number of the format that a record's data begins with.
    pub(crate) fn id(&self, data: &[u8]) -> Option<u16> {
        self.layout.order.u16(data, 0)
    }

    /// The task that was running when the record was made; every format has it in the same place.
    pub(crate) fn task(&self, format: Option<&Format>, data: &[u8]) -> Option<i32> {
        const USUAL: usize = 4;
        let place = format.and_then(|format| format.task).unwrap_or(USUAL);
        self.layout.order.u32(data, place).map(|task| i32::from_ne_bytes(task.to_ne_bytes()))
    }
}

impl fmt::Debug for Formats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.by_id.iter().flatten().map(|format| &format.name);
        f.debug_struct("Formats")
            .field("layout", &self.layout)
            .field("names", &names.collect::<Vec<_>>())
            .finish()
    }
}

#[cfg(test)]
mod tests;
