//! An event, what it carries, and what was lost between events.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use units::{CpuId, CpuList, Nanos};

use crate::Symbols;
use crate::format::{Format, Formats};
use crate::page::Damage;
use crate::text_details::Details;
use crate::value::Value;

/// One step of a stream of events.
#[derive(Clone, Debug)]
pub enum Item<'a> {
    /// Something happened.
    Event(Event<'a>),
    /// Something was lost: between the events of its CPU before and after this item.
    Lost(Lost),
}

/// Events that are missing from a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Of which CPU; none where only a sum over all is known.
    pub cpu: Option<CpuId>,
    /// How many; none where that is unknown: at least one.
    pub events: Option<u64>,
    /// Why.
    pub cause: Cause,
}

/// Why events are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The ring buffer was full, and they were overwritten before they were read.
    Overwritten,
    /// The page that held them cannot be read.
    Damaged(Damage),
}

/// An event of the kernel.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// When it was recorded, by the trace clock: with `mono`, that is `CLOCK_MONOTONIC`.
    pub time: Nanos,
    /// On which CPU.
    pub cpu: CpuId,
    /// The id of the thread that was running there; 0 for an idle CPU.
    pub task: i32,
    /// The name of that thread, where it is known.
    pub comm: Option<&'a str>,
    pub(crate) body: Body<'a>,
}

/// What an event carries besides, in the form in which it came.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<'a> {
    Record { id: u16, format: Option<&'a Format>, formats: &'a Formats, data: &'a [u8] },
    Text { name: &'a str, details: Details<'a> },
}

impl<'a> Event<'a> {
    /// Its name, without that of its system; `?` for a record whose format is not known.
    pub fn name(&self) -> &'a str {
        match self.body {
            Body::Record { format, .. } => format.map_or("?", |format| &format.name),
            Body::Text { name, .. } => name,
        }
    }

    /// The number of its format, which differs between kernels and boots; none for text.
    pub fn id(&self) -> Option<u16> {
        match self.body {
            Body::Record { id, .. } => Some(id),
            Body::Text { .. } => None,
        }
    }

    /// The value of a field. In text, what reads as a number is one.
    pub fn value(&self, field: &str) -> Option<Value<'a>> {
        match self.body {
            Body::Record { format, formats, data, .. } => {
                format?.field(field)?.value(formats.layout().order, data)
            }
            Body::Text { details, .. } => details.value(field),
        }
    }

    /// All fields but those that every event has, in the order of the format; none for text.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> + use<'a> {
        let record = match self.body {
            Body::Record { format: Some(format), formats, data, .. } => Some((format, formats, data)),
            _ => None,
        };
        record.into_iter().flat_map(|(format, formats, data)| {
            let order = formats.layout().order;
            format
                .fields()
                .iter()
                .filter_map(move |field| Some((field.name.as_str(), field.value(order, data)?)))
        })
    }

    /// A field that holds a number that is not negative.
    pub fn unsigned(&self, field: &str) -> Option<u64> {
        match self.value(field)? {
            Value::Unsigned(number) => Some(number),
            Value::Signed(number) => u64::try_from(number).ok(),
            Value::Text(_) | Value::Bytes(_) => None,
        }
    }

    /// A field that holds a number.
    pub fn signed(&self, field: &str) -> Option<i64> {
        match self.value(field)? {
            Value::Unsigned(number) => i64::try_from(number).ok(),
            Value::Signed(number) => Some(number),
            Value::Text(_) | Value::Bytes(_) => None,
        }
    }

    /// A field that holds a text.
    pub fn text(&self, field: &str) -> Option<Cow<'a, str>> {
        match self.body {
            Body::Text { details, .. } => details.find(field).map(Cow::Borrowed),
            Body::Record { .. } => match self.value(field)? {
                Value::Text(text) => Some(text),
                _ => None,
            },
        }
    }

    /// The name that the kernel's text has for the number in a field: `SCHED` for 4 in `tick_stop`'s `dependency`.
    pub fn label(&self, field: &str) -> Option<&'a str> {
        match self.body {
            Body::Text { details, .. } => details.find(field),
            Body::Record { format, .. } => format?.label(field, self.unsigned(field)?),
        }
    }

    /// The function at the address in a field, without the place in it. An address without a symbol is given as `0x..`.
    pub fn function<'s>(&self, field: &str, symbols: &'s Symbols) -> Option<Cow<'s, str>>
    where
        'a: 's,
    {
        match self.body {
            Body::Text { details, .. } => {
                let word = details.find(field)?.split_whitespace().next()?;
                Some(word.split('+').next()?.into())
            }
            Body::Record { .. } => {
                let address = self.unsigned(field)?;
                let name = symbols.function(address).map(|(name, _)| Cow::Borrowed(name));
                Some(name.unwrap_or_else(|| format!("{address:#x}").into()))
            }
        }
    }

    /// The addresses from a field to the end of the event: the callers of `kernel_stack`, innermost first.
    pub fn addresses(&self, field: &str) -> Vec<u64> {
        let Body::Record { format: Some(format), formats, data, .. } = self.body else { return Vec::new() };
        let Some(field) = format.field(field) else { return Vec::new() };
        let layout = formats.layout();
        let words = data.get(field.offset..).unwrap_or_default().chunks_exact(layout.long);
        let last = u64::MAX >> (64 - 8 * layout.long);
        // Kernels before 4.18 end a stack with -1.
        words.filter_map(|word| layout.order.number(word)).take_while(|address| *address != last).collect()
    }

    /// The CPUs in a mask.
    pub fn cpus(&self, field: &str) -> Option<CpuList> {
        match (self.value(field)?, self.body) {
            (Value::Bytes(bytes), Body::Record { formats, .. }) => {
                let layout = formats.layout();
                let words = bytes.chunks_exact(layout.long).filter_map(|word| layout.order.number(word));
                Some(mask(words, 8 * layout.long))
            }
            (Value::Unsigned(number), Body::Text { .. }) => {
                Some(CpuList::from_iter([CpuId(number.try_into().ok()?)]))
            }
            (Value::Text(text), _) => text.parse().ok(),
            _ => None,
        }
    }
}

/// The CPUs whose bits are set in words of `bits`.
fn mask(words: impl Iterator<Item = u64>, bits: usize) -> CpuList {
    let set = |(index, word): (usize, u64)| {
        let ones = (0..bits).filter(move |bit| word >> bit & 1 == 1);
        ones.filter_map(move |bit| u32::try_from(index * bits + bit).ok().map(CpuId))
    };
    words.enumerate().flat_map(set).take_while(|cpu| cpu.0 < units::MAX_CPUS).collect()
}

/// How many events each CPU lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses(BTreeMap<Option<CpuId>, (u64, bool)>);

impl Losses {
    /// Adds some.
    pub fn add(&mut self, lost: &Lost) {
        let sum = self.0.entry(lost.cpu).or_default();
        // Where the number is unknown there was one at least.
        *sum = (sum.0.saturating_add(lost.events.unwrap_or(1)), sum.1 || lost.events.is_none());
    }

    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The least number that was lost on all CPUs together.
    pub fn at_least(&self) -> u64 {
        self.0.values().fold(0, |sum, (events, _)| sum.saturating_add(*events))
    }
}

impl fmt::Display for Losses {
    /// `45 events on CPU 0, at least 3 on CPU 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (cpu, (events, is_least))) in self.0.iter().enumerate() {
            let (comma, least) =
                (if index == 0 { "" } else { ", " }, if *is_least { "at least " } else { "" });
            let noun = match (index, events) {
                (0, 1) => " event",
                (0, _) => " events",
                _ => "",
            };
            write!(f, "{comma}{least}{events}{noun}")?;
            match cpu {
                Some(cpu) => write!(f, " on CPU {cpu}")?,
                None => write!(f, " on any CPU")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(cpu: Option<u32>, events: Option<u64>) -> Lost {
        Lost { cpu: cpu.map(CpuId), events, cause: Cause::Overwritten }
    }

    #[test]
    fn losses_are_summed_by_cpu_and_an_unknown_number_is_at_least_one() {
        let mut losses = Losses::default();
        assert!(losses.is_empty());
        for one in
            [lost(Some(1), Some(2)), lost(Some(0), Some(44)), lost(Some(1), None), lost(Some(0), Some(1))]
        {
            losses.add(&one);
        }
        assert_eq!(losses.to_string(), "45 events on CPU 0, at least 3 on CPU 1");
        assert_eq!((losses.at_least(), losses.is_empty()), (48, false));
    }

    #[test]
    fn a_mask_is_a_list_of_cpus() {
        assert_eq!(mask([0b101, 1].into_iter(), 32).to_string(), "0,2,32");
        assert_eq!(mask([0b101, 1].into_iter(), 64).to_string(), "0,2,64");
    }
}
