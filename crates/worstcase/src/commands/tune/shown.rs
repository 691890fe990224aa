//! Plans, journals and what became of them, for people.

use std::collections::BTreeMap;

use report::paragraph;
use tune::journal::{Outcome, Taken};
use tune::status::Now;
use tune::undo::{Back, Undone};
use tune::{Plan, Refusal, Step};
use units::{InOrder, errno_in_words};

use crate::output::{self, Stream};

/// The whole plan.
pub fn plan(plan: &Plan) -> String {
    let mut text = match plan.steps.len() {
        0 => "nothing would be changed\n".to_owned(),
        count => format!("would be changed ({count}):\n"),
    };
    for mut group in groups(&plan.steps, |one, other| one.rules == other.rules) {
        group.order_by_key(|step| step.target.is_reset_by_the_kernel());
        text += &lines(&reason(group[0]), 2);
        text += &few(&group, |step| lines(&change(step), 6));
    }
    text + &refusals(&plan.refusals) + &conflicts(plan)
}

/// Who else changes what the plan changes.
pub fn conflicts(plan: &Plan) -> String {
    if plan.conflicts.is_empty() {
        return String::new();
    }
    let each = |conflict: &tune::conflict::Conflict| lines(&format!("{} {}", conflict.who, conflict.what), 2);
    "others change the same:\n".to_owned() + &plan.conflicts.iter().map(each).collect::<String>()
}

/// Who writes what a plan shows.
pub fn what_next(plan: &Plan, who: &str) -> String {
    match plan.steps.is_empty() {
        true => String::new(),
        false => lines(&who_writes(who, rustix::process::geteuid().is_root()), 0),
    }
}

/// For who is not root with the word that root must type it.
fn who_writes(command: &str, is_root: bool) -> String {
    let as_root = if is_root { "" } else { "as root, " };
    format!("{as_root}{command} writes them, worstcase tune undo takes them back")
}

/// Sentences, one a line, wrapped to the terminal.
pub fn paragraphs(text: &str) -> String {
    text.lines().map(|line| lines(line, 0)).collect()
}

/// One step: what, from what, to what; below it why and at what price.
pub fn step(step: &Step) -> String {
    lines(&change(step), 2) + &lines(&reason(step), 6)
}

fn change(step: &Step) -> String {
    format!("{}: {} -> {}", step.target, quoted(&step.old), quoted(&step.new))
}

/// Which rules ask for it, why, and at what price.
fn reason(step: &Step) -> String {
    let why = format!("{}: {}", step.rules.join(", "), step.why);
    step.effects.iter().fold(why, |text, effect| format!("{text}; {effect}"))
}

/// What is alike, together, in the order of the first of each.
fn groups<T>(things: &[T], alike: impl Fn(&T, &T) -> bool) -> Vec<Vec<&T>> {
    let mut groups: Vec<Vec<&T>> = Vec::new();
    for thing in things {
        match groups.iter_mut().find(|group| alike(group[0], thing)) {
            Some(group) => group.push(thing),
            None => groups.push(vec![thing]),
        }
    }
    groups
}

/// The first of many, and how many more there are.
fn few<T>(group: &[&T], shown: impl Fn(&T) -> String) -> String {
    const SHOWN: usize = 4;
    let mut text: String = group.iter().take(SHOWN).map(|thing| shown(thing)).collect();
    if group.len() > SHOWN {
        text += &lines(&format!("and {} more", group.len() - SHOWN), 6);
    }
    text
}

/// What became of writes; of those that are alike a few.
pub fn all_taken(all: &[Taken]) -> String {
    let alike = |one: &Taken, other: &Taken| one.rules == other.rules && mark(one) == mark(other);
    let mut groups = groups(all, alike);
    groups.iter_mut().for_each(|group| group.order_by_key(|taken| taken.target.is_reset_by_the_kernel()));
    groups.iter().map(|group| few(group, taken)).collect()
}

/// How things are now, each with what was written; of those that hold a few.
pub fn all_now(all: &[(&Taken, Now)]) -> String {
    let alike = |(one, now): &(&Taken, Now), (other, then): &(&Taken, Now)| {
        !now.is_off() && now == then && one.rules == other.rules
    };
    groups(all, alike).iter().map(|group| few(group, |(taken, state)| now(taken, state))).collect()
}

/// What became of putting things back; of those that are alike a few.
pub fn all_undone(all: &[Undone]) -> String {
    let kind = |target: &tune::Target| std::mem::discriminant(target);
    let alike = |one: &Undone, other: &Undone| {
        let is_plain = one.back.is_as_before() || matches!(one.back, Back::Waits(_));
        one.back == other.back && kind(&one.target) == kind(&other.target) && is_plain
    };
    groups(all, alike).iter().map(|group| few(group, undone)).collect()
}

/// Equal reasons stand together: what they are about in a line.
pub fn refusals(refusals: &[Refusal]) -> String {
    if refusals.is_empty() {
        return String::new();
    }
    let mut by_reason: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for refusal in refusals {
        by_reason.entry((&refusal.rule, &refusal.why_not)).or_default().push(&refusal.what);
    }
    let mut text = format!("Left as it is ({}):\n", by_reason.len());
    for ((rule, why_not), about) in by_reason {
        let first = about.first().copied().unwrap_or_default();
        let more = if about.len() > 1 { format!(" and {} more", about.len() - 1) } else { String::new() };
        text += &lines(&format!("{rule}: {first}{more}: {why_not}"), 2);
    }
    text
}

/// What became of a write.
fn taken(taken: &Taken) -> String {
    let change = format!("{}: {} -> {}", taken.target, quoted(&taken.old), quoted(&taken.new));
    let rest = match &taken.outcome {
        Some(Outcome::Exact) => String::new(),
        Some(Outcome::Equal(now)) => format!(", which reads {}", quoted(now)),
        Some(Outcome::Clamped(now)) => format!(": the kernel made it {}", quoted(now)),
        Some(Outcome::Ignored) => ": the kernel said yes and changed nothing".to_owned(),
        Some(Outcome::Refused(errno)) => match taken.target.why_refused(*errno) {
            Some(why) => format!(": {} ({why})", errno_in_words(*errno)),
            None => format!(": {}", errno_in_words(*errno)),
        },
        None => ": the command was killed here".to_owned(),
    };
    marked(mark(taken), &format!("{change}{rest}"))
}

fn mark(taken: &Taken) -> &'static str {
    match &taken.outcome {
        Some(Outcome::Exact | Outcome::Equal(_)) => "done",
        Some(Outcome::Clamped(_)) => "clamped",
        Some(Outcome::Ignored) => "ignored",
        Some(Outcome::Refused(_)) => "refused",
        None => "unknown",
    }
}

/// What became of putting something back.
fn undone(undone: &Undone) -> String {
    let Undone { target, old, back } = undone;
    let old = quoted(old);
    match back {
        Back::AsBefore => marked("as before", &format!("{target}: {old}")),
        Back::Restored => marked("restored", &format!("{target}: {old}")),
        Back::Foreign(now) => {
            marked("left", &format!("{target}: somebody else made it {}; it was {old}", quoted(now)))
        }
        Back::Gone(why) => marked("gone", &format!("{target}: {why}")),
        Back::Unclear(why) => marked("left", &format!("{target}: {why}; it was {old}")),
        Back::Refused(errno) => marked("refused", &format!("{target}: {old}: {}", errno_in_words(*errno))),
        Back::Waits(cpus) => marked("waits", &format!("{target}: {old}: CPUs {cpus} are offline")),
        Back::Differs(now) => {
            marked("differs", &format!("{target}: {old} was written, it reads {}", quoted(now)))
        }
        Back::Unreadable(errno) => marked("unread", &format!("{target}: {}", errno_in_words(*errno))),
    }
}

/// What became of putting a file back.
pub fn put_back(path: &str, back: &Back) -> String {
    match back {
        Back::AsBefore => marked("as before", path),
        Back::Restored => marked("restored", path),
        Back::Foreign(what) => marked("left", &format!("{path}: somebody else has {what} it since")),
        Back::Gone(why) => marked("gone", &format!("{path}: {why}")),
        Back::Unclear(why) => marked("left", &format!("{path}: {why}")),
        Back::Refused(errno) | Back::Unreadable(errno) => {
            marked("refused", &format!("{path}: {}", errno_in_words(*errno)))
        }
        Back::Waits(what) | Back::Differs(what) => {
            marked("differs", &format!("{path}: it was put back, and is {what}"))
        }
    }
}

/// What was planned and is not there.
pub fn left_out(target: &tune::Target) -> String {
    marked("gone", &format!("{target}: it cannot be found or read any more"))
}

/// How one thing is now.
fn now(taken: &Taken, now: &Now) -> String {
    let target = &taken.target;
    let ours = quoted(taken.ours().unwrap_or_default());
    match now {
        Now::Holds => marked("holds", &format!("{target}: {ours}")),
        Now::AsBefore => marked("reset", &format!("{target}: {} again, as before us", quoted(&taken.old))),
        Now::Drifted(now) => marked("drifted", &format!("{target}: {}, where we wrote {ours}", quoted(now))),
        Now::Pending(why) => marked("pending", &format!("{target}: {ours}: {why}")),
        Now::Ended(why) => marked("ended", &format!("{target}: {why}")),
        Now::Gone(why) => marked("gone", &format!("{target}: {why}")),
        Now::Unclear(why) => marked("unclear", &format!("{target}: {why}")),
        Now::Unreadable(errno) => marked("unread", &format!("{target}: {}", errno_in_words(*errno))),
    }
}

/// A word in front of a line.
pub fn marked(mark: &str, text: &str) -> String {
    let body = lines(text, 10);
    format!("{mark:<10}{}", body.trim_start())
}

/// Blanks that are seen.
pub fn quoted(value: &str) -> String {
    match value.is_empty() || value.contains(char::is_whitespace) {
        true => format!("'{}'", value.replace('\t', " ")),
        false => value.to_owned(),
    }
}

pub fn lines(text: &str, indent: usize) -> String {
    paragraph(text, indent, output::style(Stream::Output).width)
}

/// `1 setting`, `2 settings`.
pub fn settings(count: usize) -> String {
    format!("{count} setting{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::who_writes;

    #[test]
    fn who_writes_a_plan_is_root() {
        let words = "worstcase tune apply writes them, worstcase tune undo takes them back";
        assert_eq!(who_writes("worstcase tune apply", true), words);
        assert_eq!(who_writes("worstcase tune apply", false), format!("as root, {words}"));
    }
}
