//! The events of a record's explanations, ready for tools that show traces.

use std::collections::{BTreeMap, BTreeSet};

use record::{Explanation, Hit, ThreadState, TraceEvent};

/// An event of all that were kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kept {
    /// On `CLOCK_MONOTONIC`, in nanoseconds.
    pub at: u64,
    pub cpu: u32,
    /// The thread that ran there.
    pub task: i32,
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    Switch(Thread, Thread),
    Waking(Thread),
    /// Anything else, in words.
    Words(String),
}

/// A thread as an event describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Thread {
    pub name: String,
    pub tid: i32,
    /// The kernel's priority; 120 where it is unknown.
    pub priority: i32,
    /// Of one that gives way; none where the record does not have it.
    pub state: Option<ThreadState>,
}

/// All events of all hits, in order of time for each CPU: one that stands in two hits is one. `due` and `woke` of each hit are
/// events too.
pub(crate) fn all(explanations: &[Explanation]) -> BTreeMap<u32, Vec<Kept>> {
    let mut kept = BTreeSet::new();
    for hit in explanations.iter().flat_map(|explanation| &explanation.hits) {
        kept.extend(hit.events.iter().filter_map(|event| of(hit, event)));
        kept.extend(marks(hit));
    }
    let mut by_cpu: BTreeMap<u32, Vec<Kept>> = BTreeMap::new();
    for event in kept {
        by_cpu.entry(event.cpu).or_default().push(event);
    }
    by_cpu
}

fn of(hit: &Hit, event: &TraceEvent) -> Option<Kept> {
    let at = hit.due.0.checked_add_signed(event.at)?;
    let words = || What::Words(format!("{} {}", event.name, event.text).trim_end().to_owned());
    let what = match event.name.as_str() {
        "switch" => switch(&event.text).unwrap_or_else(words),
        "waking" => thread(&event.text).map_or_else(words, What::Waking),
        _ => words(),
    };
    Some(Kept { at, cpu: event.cpu.0, task: event.task, what })
}

/// When the wake-up was due, and when it came.
fn marks(hit: &Hit) -> [Kept; 2] {
    let cause = hit.main_cause().map_or_else(String::new, |cause| match cause.culprit.as_str() {
        "" => format!(": {}", cause.class.words()),
        culprit => format!(": {}, {culprit}", cause.class.words()),
    });
    let mark = |at, words: String| Kept { at, cpu: hit.cpu.0, task: hit.tid, what: What::Words(words) };
    [
        mark(hit.due.0, format!("worstcase: activation {} is due", hit.activation)),
        mark(hit.woke().0, format!("worstcase: woke up {} ns late{cause}", hit.latency.0)),
    ]
}

fn switch(text: &str) -> Option<What> {
    // A thread's name may have an arrow in it.
    let arrows = text.match_indices(" -> ").map(|(place, _)| place);
    let parts = arrows.map(|place| (&text[..place], &text[place + 4..]));
    let mut found = parts.filter_map(|(previous, next)| Some((thread(previous)?, thread(next)?)));
    found.next().map(|(previous, next)| What::Switch(previous, next))
}

/// `hog [7] priority 0`, or without the priority.
fn thread(text: &str) -> Option<Thread> {
    let (name, rest) = text.rsplit_once(" [")?;
    let (tid, rest) = rest.split_once(']')?;
    let (priority, state) = match rest.split_once(" state ") {
        Some((priority, letters)) => (priority, Some(letters.parse().ok()?)),
        None => (rest, None),
    };
    let priority = match priority.strip_prefix(" priority ") {
        Some(priority) => priority.parse().ok()?,
        None if priority.is_empty() => 120,
        None => return None,
    };
    Some(Thread { name: name.to_owned(), tid: tid.parse().ok()?, priority, state })
}

/// What threads are called, as far as an event says it.
pub(crate) fn names(events: &BTreeMap<u32, Vec<Kept>>) -> BTreeMap<i32, &str> {
    let threads = events.values().flatten().flat_map(|event| match &event.what {
        What::Switch(previous, next) => vec![previous, next],
        What::Waking(thread) => vec![thread],
        What::Words(_) => Vec::new(),
    });
    threads.map(|thread| (thread.tid, thread.name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_read_from_the_words_of_a_record_whatever_they_are_called() {
        let known = |name: &str, tid, priority| Thread { name: name.into(), tid, priority, state: None };
        assert_eq!(thread("hog [7] priority 0"), Some(known("hog", 7, 0)));
        assert_eq!(thread("a [b] [8]"), Some(known("a [b]", 8, 120)));
        assert_eq!(thread("nothing"), None);
        assert_eq!(
            switch("a -> b [1] priority 5 -> swapper/0 [0] priority 120"),
            Some(What::Switch(known("a -> b", 1, 5), known("swapper/0", 0, 120)))
        );
        assert_eq!(switch("a [1] -> "), None);
        for (letters, bits) in [("R", 0), ("S", 1), ("D", 2), ("R+", 256), ("I", 128), ("D|T", 6)] {
            let text = format!("hog [7] priority 0 state {letters} -> b [1] priority 5");
            let Some(What::Switch(previous, next)) = switch(&text) else { panic!("{text}") };
            assert_eq!(
                (previous, next),
                (Thread { state: Some(ThreadState::of_bits(bits)), ..known("hog", 7, 0) }, known("b", 1, 5))
            );
        }
    }
}
