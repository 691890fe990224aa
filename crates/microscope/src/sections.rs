//! Sections with interrupts or preemption off: which there were in the whole of a run, and what the longest did.

use std::collections::BTreeMap;

use plugin::sections::{self as found, Off};
use serde::Serialize;
use units::{InOrder, Nanos};

use crate::account::Playback;
use crate::context::Context;
use crate::machine::{Machine, begins};
use crate::stream::{Stream, Window};
use crate::symbols::Symbols;
use crate::tree::Tree;

/// Names of functions that turn something off for their caller.
const FOR_CALLERS: [&str; 9] = [
    "_raw_",
    "__raw_",
    "do_raw_",
    "queued_",
    "native_queued_",
    "__local_bh_",
    "local_bh_",
    "preempt_count_",
    "__preempt_count_",
];

/// The longest section that one function began, with how many it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What was off.
    pub off: Off,
    /// The number of the stretch of time.
    pub range: u32,
    /// The function, as far as it is known without its callers.
    pub owner: String,
    /// Instructions that had begun at the end of the longest.
    pub end: u64,
    /// From the beginning of the longest to its end, in instructions.
    pub span: u64,
    /// Its own instructions, without those of what interrupted it.
    pub length: u64,
    /// The level at which it began.
    level: u32,
    /// Sections in all.
    pub times: u64,
    /// Instructions of all.
    pub sum: u64,
}

/// A section with interrupts or preemption off: the longest that its function began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    /// What was off.
    #[serde(serialize_with = "off")]
    pub off: Off,
    /// How long, in instructions, without what interrupted it.
    pub length: Nanos,
    /// Instructions of what interrupted it.
    pub interrupted: Nanos,
    /// The function that began it; where an interrupt or an exception did, its entry.
    pub owner: String,
    /// The thread and the functions in which it began, the outermost first.
    pub path: Vec<String>,
    /// What the CPU was in when it began.
    pub context: Context,
    /// The deepest function under which more than half of it ran.
    pub function: String,
    /// Sections that this function began.
    pub times: u64,
    /// Instructions of all of them.
    pub sum: Nanos,
    /// The calls in it.
    pub calls: Tree,
}

fn off<S: serde::Serializer>(off: &Off, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match off {
        Off::Interrupts => "interrupts",
        Off::Preemption => "preemption",
    })
}

/// The sections of `stream` by function: in each stretch of time the longest first, interrupts before preemption.
pub fn places(stream: &Stream, symbols: &Symbols) -> Vec<Place> {
    let mut all: BTreeMap<(u32, Off, &str), Place> = BTreeMap::new();
    for section in &stream.sections {
        let (Some(off), owner) = (off_of(section), owner_of(section, stream.machine, symbols)) else {
            continue;
        };
        let place = all.entry((section.range, off, owner)).or_insert_with(|| Place {
            off,
            range: section.range,
            owner: owner.to_owned(),
            end: 0,
            span: 0,
            length: 0,
            level: 0,
            times: 0,
            sum: 0,
        });
        place.times = place.times.saturating_add(section.times);
        place.sum = place.sum.saturating_add(section.sum);
        if section.length >= place.length {
            (place.length, place.span, place.level) = (section.length, section.span, section.level);
            place.end = section.count.saturating_add(section.span);
        }
    }
    let mut places: Vec<Place> = all.into_values().collect();
    places.order_by(|a, b| (a.range, a.off).cmp(&(b.range, b.off)).then_with(|| b.length.cmp(&a.length)));
    places
}

fn off_of(section: &found::Section) -> Option<Off> {
    found::OFF.get(section.off as usize).copied()
}

fn owner_of<'a>(section: &found::Section, machine: &Machine, symbols: &'a Symbols) -> &'a str {
    let name = |address| symbols.function(address).and_then(|(number, _)| symbols.name(number));
    let own = name(section.address).unwrap_or("[unknown]");
    if is_for_callers(machine, own) {
        name(section.call).unwrap_or(own)
    } else {
        machine.owner(own, section.address)
    }
}

fn is_for_callers(machine: &Machine, name: &str) -> bool {
    begins(name, &FOR_CALLERS) || begins(name, machine.for_callers)
}

/// What the section of `place` did, whose window is in `stream`. None where the window is of another run.
pub fn section(stream: &Stream, place: &Place, symbols: &Symbols) -> Option<Section> {
    let is_its = |window: &&Window| (window.at.0, window.latency.0) == (place.end, place.span);
    let window = stream.windows.iter().find(is_its)?;
    let start = place.end.checked_sub(place.span)?;
    let ends = window.records.get(window.found)?.count == place.end;
    let first = window.records[..window.found].iter().rposition(|record| record.count <= start)?;
    if !ends {
        return None;
    }
    let playback = Playback::new(stream, window, symbols);
    let mut calls = Tree::default();
    let mut known: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (number, pair) in (first..).zip(window.records[first..=window.found].windows(2)) {
        let path = known.entry(playback.chain(number)).or_insert_with(|| playback.path(number));
        if found::level(pair[0].preempt) <= place.level {
            let names = path.iter().skip(1).map(String::as_str);
            calls.add(names, pair[1].count.saturating_sub(pair[0].count.max(start)));
        }
    }
    let path = playback.path(first);
    let owner = path
        .iter()
        .skip(1)
        .rev()
        .find(|name| !is_for_callers(stream.machine, name))
        .unwrap_or(&place.owner)
        .clone();
    Some(Section {
        off: place.off,
        length: Nanos(calls.total),
        interrupted: Nanos(place.span.saturating_sub(calls.total)),
        owner,
        context: playback.context_of(first),
        path,
        function: calls.heaviest_path().last().copied().unwrap_or_default().to_owned(),
        times: place.times,
        sum: Nanos(place.sum),
        calls,
    })
}

/// Sections of one function, which only its callers distinguish, are one.
pub fn merge(sections: &mut Vec<Section>) {
    let mut merged: Vec<Section> = Vec::new();
    for section in std::mem::take(sections) {
        let same = |one: &&mut Section| (one.off, &one.owner) == (section.off, &section.owner);
        match merged.iter_mut().find(same) {
            Some(one) => {
                let times = one.times.saturating_add(section.times);
                let sum = Nanos(one.sum.0.saturating_add(section.sum.0));
                if section.length > one.length {
                    *one = section;
                }
                (one.times, one.sum) = (times, sum);
            }
            None => merged.push(section),
        }
    }
    merged.order_by(|a, b| a.off.cmp(&b.off).then_with(|| b.length.cmp(&a.length)));
    *sections = merged;
}
