//! Lines of `trace` and `trace_pipe`, and of `trace-cmd report`.
//!
//! `  kworker/1:2-47      [001] d..2.    12.345678: workqueue_execute_start: work struct 00000000c0: function vmstat_update`

use std::borrow::Cow;

use units::{CpuId, Nanos};

use crate::event::{Body, Cause, Event, Item, Lost, Value};

/// What the kernel's text calls a thread whose name it does not know.
const UNNAMED: &str = "<...>";

/// What events are called in text that have another name in their format.
const NAMES: [(&str, &str); 1] = [("tracing_mark_write", "print")];

/// Fields that have another name in an event's text than in its format.
const FIELDS: [(&str, &str, &str); 2] = [("sys_enter", "id", "NR"), ("sys_exit", "id", "NR")];

/// What a line says; none for a line that is neither an event nor lost ones: comments, frames of a stack.
pub fn parse(line: &str) -> Option<Item<'_>> {
    lost(line).map(Item::Lost).or_else(|| event(line).map(Item::Event))
}

/// Reads `CPU:1 [LOST 45 EVENTS]`, or `[LOST EVENTS]` where the kernel does not know how many.
fn lost(line: &str) -> Option<Lost> {
    if let Some(numbers) = line.strip_prefix("# entries-in-buffer/entries-written: ") {
        return overwritten(numbers);
    }
    let (cpu, rest) = line.strip_prefix("CPU:")?.split_once(" [LOST ")?;
    let events = rest.strip_suffix("EVENTS]")?.trim();
    let events = if events.is_empty() { None } else { Some(events.parse().ok()?) };
    Some(Lost { cpu: Some(CpuId(cpu.trim().parse().ok()?)), events, cause: Cause::Overwritten })
}

/// The head of `trace` has both sums, over all CPUs: `123/456   #P:2`.
fn overwritten(numbers: &str) -> Option<Lost> {
    let (left, written) = numbers.split_whitespace().next()?.split_once('/')?;
    let events = written.parse::<u64>().ok()?.checked_sub(left.parse().ok()?)?;
    (events > 0).then_some(Lost { cpu: None, events: Some(events), cause: Cause::Overwritten })
}

fn event(line: &str) -> Option<Event<'_>> {
    let (comm, task, cpu, rest) = line.match_indices(" [").find_map(|(place, _)| head(line, place))?;
    let (before, rest) = rest.split_once(": ")?;
    // Flags stand before the time where `irq-info` is on.
    let time = time(before.split_whitespace().next_back()?)?;
    let (name, details) = rest.split_once(':')?;
    let (name, details) = (name.trim(), details.trim());
    if name.is_empty() || name.contains(' ') {
        return None;
    }
    let name = NAMES.iter().find(|(text, _)| *text == name).map_or(name, |(_, format)| *format);
    let comm = Some(comm).filter(|comm| *comm != UNNAMED);
    Some(Event { time, cpu, task, comm, body: Body::Text { name, details: Details { name, text: details } } })
}

/// The thread, the CPU and what follows, where those stand at ` [` of a line: names of threads may hold brackets too.
fn head(line: &str, place: usize) -> Option<(&str, i32, CpuId, &str)> {
    let (cpu, rest) = line[place + 2..].split_once("] ")?;
    // Kernels that note process ids put them in parentheses before the CPU.
    let before = line[..place].trim_end();
    let before = match before.rsplit_once('(') {
        Some((before, process)) if process.ends_with(')') => before.trim_end(),
        _ => before,
    };
    let (comm, task) = before.rsplit_once('-')?;
    Some((comm.trim_start(), decimal(task)?, CpuId(decimal(cpu)?), rest))
}

/// Digits alone: `parse` takes signs as well.
fn decimal<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Seconds with six or nine places. Clocks that do not count seconds (`counter`, `x86-tsc`) print no point: such a
/// number is no time.
fn time(word: &str) -> Option<Nanos> {
    let (seconds, fraction) = word.split_once('.')?;
    let places = u32::try_from(fraction.len()).ok().filter(|places| (1..=9).contains(places))?;
    let fraction = decimal::<u64>(fraction)? * 10_u64.pow(9 - places);
    decimal::<u64>(seconds)?.checked_mul(1_000_000_000)?.checked_add(fraction).map(Nanos)
}

/// What stands behind the name of an event: `comm=a b pid=7 ==> ..`, in words of its own for each event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Details<'a> {
    name: &'a str,
    text: &'a str,
}

impl<'a> Details<'a> {
    /// The text of a field: what stands after `key=` up to the next key, else the word after `key`.
    pub fn find(self, field: &str) -> Option<&'a str> {
        if (self.name, field) == ("print", "buf") {
            return Some(self.text);
        }
        let is_same = |(name, format, _): &&(&str, &str, &str)| (*name, *format) == (self.name, field);
        let key = FIELDS.iter().find(is_same).map_or(field, |(.., text)| *text);
        if let Some(rest) = self.after(key, '=') {
            return Some(rest[..end(rest)].trim_end());
        }
        self.after(key, ' ')?.split_whitespace().next()
    }

    fn after(self, key: &str, sign: char) -> Option<&'a str> {
        let begins = |place: &usize| *place == 0 || self.text[..*place].ends_with(' ');
        let places = self.text.match_indices(key).map(|(place, _)| place).filter(begins);
        let mut rests = places.map(|place| &self.text[place + key.len()..]);
        rests.find_map(|rest| rest.strip_prefix(sign))
    }

    /// The same as a number, where its first word is one.
    pub fn value(self, field: &str) -> Option<Value<'a>> {
        let text = self.find(field)?;
        let word = text.split_whitespace().next().unwrap_or_default();
        let hexadecimal = word.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
        Some(match (hexadecimal, word.parse::<u64>(), word.parse::<i64>()) {
            (Some(Ok(number)), ..) | (None, Ok(number), _) => Value::Unsigned(number),
            (None, Err(_), Ok(number)) => Value::Signed(number),
            _ => Value::Text(Cow::Borrowed(text)),
        })
    }
}

/// Where a value ends: at ` key=` or ` ==> `. Names of threads hold blanks.
fn end(rest: &str) -> usize {
    let is_end = |place: &usize| {
        let word = rest[place + 1..].split(' ').next().unwrap_or_default();
        let key = word.split_once('=').map(|(key, _)| key);
        let is_name = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        word == "==>" || key.is_some_and(|key| !key.is_empty() && is_name(key))
    };
    rest.match_indices(' ').map(|(place, _)| place).find(is_end).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests;
