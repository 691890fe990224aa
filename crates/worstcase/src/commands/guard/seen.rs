//! What a guard has seen, as it is printed in JSON.

use capture::Guard;
use explain::guard::{Charges, Excess, Owner};
use serde::Serialize;
use units::{InOrder, Nanos};

use super::cores::Cores;

/// All of it.
#[derive(Serialize)]
pub struct Seen {
    schema_version: u32,
    /// For how long.
    pub time: Nanos,
    /// By how much the clocks of the program and of the trace may lie apart; none where nothing is published.
    clock_doubt: Option<Nanos>,
    pub cores: Vec<SeenCore>,
    /// Events that took longer than was promised, the longest first.
    pub excesses: Vec<SeenExcess>,
    /// Further ones, which are not kept.
    pub more_excesses: u64,
    /// What was lost: what was taken is a lower bound then.
    pub lost: Vec<String>,
    /// What this kernel's trace does not show.
    pub absent: Vec<String>,
}

/// A core.
#[derive(Serialize)]
pub struct SeenCore {
    /// Its number in the program; none for a thread of which nothing is published.
    core: Option<usize>,
    thread: String,
    tid: i32,
    cpus: String,
    /// What took the CPU from it, the longest time first.
    pub taken: Vec<SeenTaken>,
    /// What it ran, the longest run first.
    pub objects: Vec<SeenObject>,
    /// What it ran at the end and was not done with.
    pub running: Option<SeenRunning>,
    /// When it was seen to have ended, since the guard began.
    pub ended: Option<Nanos>,
    #[serde(skip)]
    pub name: String,
}

/// What took the CPU from an object.
#[derive(Serialize)]
pub struct SeenTaken {
    pub what: String,
    /// Whose time it was: `object`, `between` objects, or `unknown`.
    pub whose: &'static str,
    pub object: Option<String>,
    pub number: u64,
    /// All together; none of page faults, whose end no trace has.
    pub time: Option<Nanos>,
    pub longest: Option<Nanos>,
}

impl SeenTaken {
    /// Whether it is a core that sleeps because it has nothing to do: nobody took anything.
    pub fn is_waiting(&self) -> bool {
        self.whose == "between" && self.is_asleep()
    }

    /// Whether it slept by itself, or was off the CPU for what the guard did not see.
    pub fn is_asleep(&self) -> bool {
        ["slept", "off the CPU since before the guard"].iter().any(|end| self.what.ends_with(end))
    }
}

/// What an object ran.
#[derive(Serialize)]
pub struct SeenObject {
    pub object: String,
    pub receives: u64,
    pub longest: Nanos,
}

/// What is not done.
#[derive(Serialize)]
pub struct SeenRunning {
    pub object: String,
    pub queue: String,
    /// For how long.
    pub time: Nanos,
    pub budget: Option<Nanos>,
}

/// An event that took longer than was promised.
#[derive(Serialize)]
pub struct SeenExcess {
    pub core: usize,
    pub object: String,
    pub queue: String,
    /// When it was done, since the guard began.
    pub at: Nanos,
    /// `run` or `response`.
    pub exceeded: &'static str,
    pub took: Nanos,
    pub allowed: Nanos,
    /// Its own: neither taken from it nor run before it.
    pub own: Nanos,
    pub taken: Vec<SeenPart>,
    /// Of a response: what ran before it.
    pub before: Vec<SeenPart>,
    /// Whether events were lost meanwhile: more may have been taken.
    pub is_partial: bool,
}

/// A part of it.
#[derive(Serialize)]
pub struct SeenPart {
    pub name: String,
    pub time: Nanos,
}

impl Seen {
    /// Of a guard that began and ended at these times, on `CLOCK_MONOTONIC`.
    pub fn of(
        guard: &mut Guard,
        charges: &mut Charges,
        cores: &Cores,
        (began, Nanos(now)): (Nanos, Nanos),
    ) -> Self {
        let mut all: Vec<SeenCore> =
            (0..cores.len()).map(|place| core(guard, charges, cores, (place, began, now))).collect();
        for core in &mut all {
            core.objects.order_by_key(|object| std::cmp::Reverse(object.longest));
        }
        let takings = guard.takings();
        let (kept, more_excesses) = charges.excesses();
        let excesses = kept.iter().map(|one| excess(one, cores, began, &|what| takings.name(what))).collect();
        let is_published = cores.is_published();
        Self {
            schema_version: 1,
            time: Nanos(now.saturating_sub(began.0)),
            clock_doubt: is_published.then_some(Nanos(cores.doubt)),
            cores: all,
            excesses,
            more_excesses,
            lost: lost(guard, cores),
            absent: guard.absent().to_vec(),
        }
    }
}

impl SeenCore {
    /// Whether its program says what it runs.
    pub fn is_published(&self) -> bool {
        self.core.is_some()
    }

    /// Whether what it runs has run for longer than it may.
    pub fn is_over(&self) -> bool {
        let limit = self.running.as_ref().and_then(|running| Some((running.time, running.budget?)));
        limit.is_some_and(|(time, budget)| time > budget)
    }
}

fn core(
    guard: &mut Guard,
    charges: &Charges,
    cores: &Cores,
    (place, began, now): (usize, Nanos, u64),
) -> SeenCore {
    let one = &cores.all()[place];
    let is_published = cores.is_published();
    let takings = guard.takings();
    let rows = charges.rows().iter().filter(|((core, ..), _)| *core == place);
    let mut taken: Vec<SeenTaken> = rows
        .map(|((_, owner, what), row)| {
            let (whose, object) = match owner {
                Owner::Object(number) => ("object", Some(cores.object(*number))),
                Owner::Between if is_published => ("between", None),
                Owner::Between | Owner::Unknown => ("unknown", None),
            };
            let is_timed = row.time > Nanos::ZERO;
            let time = |time: Nanos| is_timed.then_some(time);
            let (what, number) = (ours(takings.name(what)), row.number);
            SeenTaken { what, whose, object, number, time: time(row.time), longest: time(row.worst) }
        })
        .collect();
    taken.order_by_key(|row| std::cmp::Reverse((row.time, row.number)));
    let ran = charges.longest().iter().filter(|((core, _), _)| *core == place);
    let objects = ran.map(|((_, number), longest)| SeenObject {
        object: cores.object(*number),
        receives: longest.number,
        longest: longest.run,
    });
    let running = one.running.map(|(object, queue, since)| SeenRunning {
        object: cores.object(object),
        queue: cores.queue(queue),
        time: Nanos(now.saturating_sub(since.0)),
        budget: charges.budget(queue),
    });
    SeenCore {
        core: is_published.then_some(one.number),
        thread: one.task.name.clone(),
        tid: one.task.tid,
        cpus: one.task.cpus.to_string(),
        taken,
        objects: objects.collect(),
        running,
        ended: one.ended.map(|at| Nanos(at.0.saturating_sub(began.0))),
        name: one.name(is_published),
    }
}

/// Says so where it is this command that took the CPU: there was no other one for it.
fn ours(what: String) -> String {
    let own = format!(" [{}]", std::process::id());
    if what.starts_with("thread ") && what.ends_with(&own) { what + ", this command" } else { what }
}

fn excess(
    excess: &Excess,
    cores: &Cores,
    began: Nanos,
    name: &dyn Fn(&explain::guard::What) -> String,
) -> SeenExcess {
    let Excess { activation, took, allowed, .. } = excess;
    let taken: Vec<SeenPart> =
        excess.taken.iter().map(|(what, time)| SeenPart { name: name(what), time: *time }).collect();
    let part = |(number, time): &(u32, Nanos)| SeenPart { name: cores.object(*number), time: *time };
    let before: Vec<SeenPart> = excess.before.iter().map(part).collect();
    let others: u64 = taken.iter().chain(&before).map(|part| part.time.0).sum();
    SeenExcess {
        core: cores.all()[excess.core].number,
        object: activation.object.map_or_else(String::new, |number| cores.object(number)),
        queue: cores.queue(activation.queue),
        at: Nanos(activation.end.0.saturating_sub(began.0)),
        exceeded: if excess.is_response { "response" } else { "run" },
        took: *took,
        allowed: *allowed,
        own: Nanos(took.0.saturating_sub(others)),
        taken,
        before,
        is_partial: excess.is_partial,
    }
}

/// What is not known.
fn lost(guard: &Guard, cores: &Cores) -> Vec<String> {
    let of_trace = (!guard.lost().is_empty())
        .then(|| format!("the trace lost {}: what was taken is a lower bound", guard.lost()));
    let overwritten: u64 = cores.all().iter().map(|core| core.overwritten).sum();
    let receives = report::text::count_of(overwritten, "receive");
    let of_cores = (overwritten > 0)
        .then(|| format!("{receives} overwritten before they were read: Config::publish wants more"));
    of_trace.into_iter().chain(of_cores).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::guard::text;

    #[test]
    fn names_of_programs_do_nothing_to_a_terminal() {
        let name = || "\u{1b}[2Jevil\u{202e}".to_owned();
        let time = Nanos(5_000);
        let core = SeenCore {
            core: Some(0),
            thread: name(),
            tid: 7,
            cpus: "1".to_owned(),
            taken: vec![SeenTaken {
                what: name(),
                whose: "object",
                object: Some(name()),
                number: 1,
                time: Some(time),
                longest: Some(time),
            }],
            objects: vec![SeenObject { object: name(), receives: 1, longest: time }],
            running: Some(SeenRunning { object: name(), queue: name(), time, budget: None }),
            ended: Some(time),
            name: name(),
        };
        let part = || SeenPart { name: name(), time };
        let excess = SeenExcess {
            core: 0,
            object: name(),
            queue: name(),
            at: time,
            exceeded: "run",
            took: time,
            allowed: time,
            own: time,
            taken: vec![part()],
            before: vec![part()],
            is_partial: true,
        };
        let seen = Seen {
            schema_version: 1,
            time,
            clock_doubt: None,
            cores: vec![core],
            excesses: vec![excess],
            more_excesses: 0,
            lost: Vec::new(),
            absent: Vec::new(),
        };
        let text = text::text(&seen, &report::Style::default());
        assert!(text.contains("evil") && !text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn this_command_is_named_as_such() {
        let own = std::process::id();
        assert_eq!(
            ours(format!("thread worstcase [{own}]")),
            format!("thread worstcase [{own}], this command")
        );
        assert_eq!(ours("thread worstcase [0]".to_owned()), "thread worstcase [0]");
    }
}
