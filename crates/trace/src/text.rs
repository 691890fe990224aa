//! Lines of `trace` and `trace_pipe`, and of `trace-cmd report`.
//!
//! `  kworker/1:2-47      [001] d..2.    12.345678: workqueue_execute_start: work struct 00000000c0: function vmstat_update`

use units::{CpuId, Nanos};

use crate::event::{Body, Cause, Event, Item, Lost};
use crate::text_details::Details;

/// What the kernel's text calls a thread whose name it does not know.
const UNNAMED: &str = "<...>";

/// What events are called in text that have another name in their format.
const NAMES: [(&str, &str); 1] = [("tracing_mark_write", "print")];

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

#[cfg(test)]
mod tests;
