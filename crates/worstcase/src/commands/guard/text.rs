//! What a guard has seen, in words.

use std::fmt::Write;

use report::Style;
use report::text::{clip_inside, count_of, harmless};
use units::Nanos;

use super::seen::{Seen, SeenExcess, SeenPart, SeenTaken};

/// Rows and excesses that are shown; JSON has all.
const ROWS: usize = 40;
const EXCESSES: usize = 10;
/// Columns of a name, so that a row without the longest names fits 80.
const NAME: usize = 38;

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
        let sum = |is_it: &dyn Fn(&&SeenTaken) -> bool| {
            let times = core.taken.iter().filter(is_it).filter_map(|row| row.time);
            length(times.fold(Nanos::ZERO, |sum, time| sum + time))
        };
        let (taken, slept) = (sum(&|row| !row.is_asleep()), sum(&|row| row.is_asleep()));
        let at_least = if seen.lost.is_empty() { "" } else { "at least " };
        let _ = writeln!(
            text,
            "{}: {at_least}{taken} taken in {}, {slept} asleep",
            harmless(&core.name),
            length(seen.time)
        );
        if let Some(ended) = core.ended {
            let _ = writeln!(text, "  ended after {}", length(ended));
        }
        let mut line = |what: &str, number: &str, time: &str, longest: &str, whose: &str| {
            let what = clip_inside(&harmless(what), NAME);
            let row = format!("  {what:<NAME$} {number:>8} {time:>10} {longest:>10}  {whose}");
            let _ = writeln!(text, "{}", row.trim_end());
        };
        if !core.taken.is_empty() {
            let from = if core.is_published() { "from" } else { "" };
            line("what took the CPU", "times", "in all", "longest", from);
        }
        let shown = |time: Option<Nanos>| time.map_or_else(|| "-".to_owned(), length);
        for row in core.taken.iter().take(ROWS) {
            let whose = if row.is_waiting() { "waiting" } else { row.whose };
            let whose = match &row.object {
                Some(object) => harmless(object),
                None if core.is_published() => format!("({whose})"),
                None => String::new(),
            };
            line(&row.what, &row.number.to_string(), &shown(row.time), &shown(row.longest), &whose);
        }
        if !core.objects.is_empty() {
            line("what ran", "times", "", "longest", "");
        }
        for row in core.objects.iter().take(ROWS) {
            line(&row.object, &row.receives.to_string(), "", &length(row.longest), "");
        }
        if let Some(running) = &core.running {
            let [object, queue] = [&running.object, &running.queue].map(|name| harmless(name));
            let time = length(running.time);
            let _ = writeln!(text, "  {object} (queue {queue}) has run for {time} and is not done");
        }
        text.push('\n');
    }
    let number = seen.excesses.len() as u64 + seen.more_excesses;
    if number > 0 {
        let _ = writeln!(text, "Longer than promised: {}", count_of(number, "event"));
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
    let [object, queue] = [&excess.object, &excess.queue].map(|name| harmless(name));
    let core = excess.core;
    let (took, allowed) = (length(excess.took), length(excess.allowed));
    let what = if excess.exceeded == "run" { "ran" } else { "was done after" };
    let at = length(excess.at);
    let mut text = format!("  {object} (queue {queue}, core {core}) {what} {took} of {allowed}, at {at}:\n");
    let mut line = |time: Nanos, name: &str| {
        let _ = writeln!(text, "    {:>10}  {}", length(time), harmless(name));
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
