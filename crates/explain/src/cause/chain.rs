//! Threads that had to run before the late one was woken: above all those of the softirqs, which on PREEMPT_RT expire timers.

use record::{Activity, Certainty, Class, Piece};
use units::Nanos;

use super::held::Stacks;
use super::{FAIR, Found, Judge, thread_words};
use crate::account::{Account, stack_after};
use crate::event::{Event, Kind, Task};
use crate::stages::wakings;
use crate::window::Window;

/// A thread on whose run the waking of another depended.
pub(super) struct Link {
    thread: Task,
    /// From when on it was to run.
    woken: Nanos,
    /// When it woke the next one.
    until: Nanos,
    waking_stack: Vec<String>,
    switch_stack: Vec<String>,
}

/// The links of a wake-up, in order of time.
pub(super) fn links(window: &Window, account: &Account) -> Vec<Link> {
    let wakings = wakings(window, account.stages.switch.unwrap_or(window.woke));
    wakings.windows(2).filter_map(|pair| link(window, pair[0], pair[1])).collect()
}

fn link(window: &Window, waking: &Event, next: &Event) -> Option<Link> {
    let Kind::Waking(thread) = &waking.kind else { return None };
    let waking_stack = stack_after(window, waking.cpu, |event| std::ptr::eq(event, waking));
    let switch_stack = stack_after(window, next.cpu, |event| {
        let is_to_it = matches!(&event.kind, Kind::Switch { next, .. } if next.tid == thread.tid);
        is_to_it && event.at >= waking.at && event.at <= next.at
    });
    Some(Link { thread: thread.clone(), woken: waking.at, until: next.at, waking_stack, switch_stack })
}

impl Judge<'_> {
    /// Whose run the late thread waited for then.
    pub(super) fn link_at(&self, piece: &Piece) -> Option<&Link> {
        let at = self.begin_of(piece);
        self.links.iter().find(|link| (link.woken..link.until).contains(&at))
    }

    /// A thread ran while a link of the chain was ready.
    pub(super) fn before_link(
        &self,
        link: &Link,
        piece: &Piece,
        thread: &str,
        priority: Option<i32>,
    ) -> Found {
        let words = thread_words(&link.thread.name, link.thread.tid, None);
        let is_itself = matches!(&piece.activity, Activity::Thread { tid, .. } if *tid == link.thread.tid);
        if is_itself || priority.is_none() {
            if self.is_usual(piece) {
                return Found::usual();
            }
            let witness = format!("{words} was to wake this one");
            return Found::new(Class::Unknown, thread, Certainty::Unknown, witness);
        }
        let is_fair = |priority: Option<i32>| priority.is_some_and(|priority| priority >= FAIR);
        if is_fair(priority) && is_fair(link.thread.priority) {
            let witness = format!(
                "it and {words}, which was to wake this one, are of the fair scheduler, which gave it its share first"
            );
            return Found::new(Class::Rival, thread, Certainty::Sure, witness);
        }
        if priority.zip(link.thread.priority).is_some_and(|(other, link)| other <= link) {
            let witness = format!(
                "its priority is the same as or higher than that of {words}, which was to wake this one"
            );
            return Found::new(Class::Rival, thread, Certainty::Sure, witness);
        }
        if self.is_usual(piece) {
            return Found::usual();
        }
        self.held_up(piece, thread, Stacks { waking: &link.waking_stack, switch: &link.switch_stack })
    }
}
