//! What a guard has seen, in words.

use std::fmt::Write;

use report::Style;
use units::Nanos;

use super::seen::{Seen, SeenExcess, SeenPart};

/// Rows and excesses that are shown; JSON has all.
const ROWS: usize = 40;
const EXCESSES: usize = 10;

/// A time with its unit.
fn length(time: Nanos) -> String {
    match time.0 {
        0..10_000 => format!("{} ns", time.0),
        10_000..10_000_000 => format!("{:.1} us", time.0 as f64 / 1e3),
        _ => format!("{:.1} ms", time.0 as f64 / 1e6),
    }
}

pub fn text(seen: &Seen, style: &Style) -> String {
    let mut text = String::new();
    for core in &seen.cores {
        let taken = core.taken.iter().filter(|row| !row.is_waiting()).filter_map(|row| row.time);
        let taken: u64 = taken.map(|time| time.0).sum();
        let _ = writeln!(text, "{}: {} taken in {}", core.name, length(Nanos(taken)), length(seen.time));
        let mut line = |what: &str, number: &str, time: &str, longest: &str, whose: &str| {
            let _ = writeln!(text, "  {what:<44} {number:>8} {time:>10} {longest:>10}  {whose}");
        };
        if !core.taken.is_empty() {
            line("what took the CPU", "times", "in all", "longest", "from");
        }
        let shown = |time: Option<Nanos>| time.map_or_else(|| "-".to_owned(), length);
        for row in core.taken.iter().take(ROWS) {
            let whose = if row.is_waiting() { "waiting" } else { row.whose };
            let whose = row.object.clone().unwrap_or_else(|| format!("({whose})"));
            line(&row.what, &row.number.to_string(), &shown(row.time), &shown(row.longest), &whose);
        }
        if !core.objects.is_empty() {
            line("what ran", "times", "", "longest", "");
        }
        for row in core.objects.iter().take(ROWS) {
            line(&row.object, &row.receives.to_string(), "", &length(row.longest), "");
        }
        if let Some(running) = &core.running {
            let (object, time) = (&running.object, length(running.time));
            let _ = writeln!(text, "  {object} (queue {}) has run for {time} and is not done", running.queue);
        }
        text.push('\n');
    }
    let number = seen.excesses.len() as u64 + seen.more_excesses;
    if number > 0 {
        let _ = writeln!(text, "Longer than promised: {}", report::text::count_of(number, "event"));
        seen.excesses.iter().take(EXCESSES).for_each(|excess| text += &one(excess));
        text.push('\n');
    }
    for lost in &seen.lost {
        let _ = writeln!(text, "note  {lost}");
    }
    if !seen.absent.is_empty() {
        let _ = writeln!(text, "note  this kernel's trace does not show: {}", seen.absent.join(", "));
    }
    let purpose = "what the partition still lets through".to_owned();
    text + &report::next::text(&[("worstcase partition verify --trace".to_owned(), purpose)], style)
}

fn one(excess: &SeenExcess) -> String {
    let SeenExcess { object, queue, core, .. } = excess;
    let (took, allowed) = (length(excess.took), length(excess.allowed));
    let what = if excess.exceeded == "run" { "ran" } else { "was done after" };
    let at = length(excess.at);
    let mut text = format!("  {object} (queue {queue}, core {core}) {what} {took} of {allowed}, at {at}:\n");
    let mut line = |time: Nanos, name: &str| {
        let _ = writeln!(text, "    {:>10}  {name}", length(time));
    };
    let of = |part: &SeenPart, words: &str| (part.time, format!("{}{words}", part.name));
    let before = excess.before.iter().map(|part| of(part, ", before it"));
    for (time, name) in excess.taken.iter().map(|part| of(part, "")).chain(before) {
        line(time, &name);
    }
    line(excess.own, if excess.exceeded == "run" { "its own" } else { "its own, and looks of the core" });
    if excess.is_partial {
        text += "      unknown  events were lost meanwhile: more may have been taken\n";
    }
    text
}
