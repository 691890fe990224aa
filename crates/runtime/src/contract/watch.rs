//! What is seen while the machine runs: overruns, late events, panics; and worst observed against bound.

use std::fmt;

use super::analysis::Bound;
use crate::model::{ObjectId, QueueId};

/// What went wrong with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It ran longer than its budget.
    Overrun,
    /// It was done after its deadline.
    Late,
    /// Its object panicked.
    Panic,
    /// Its group's cycle was over before it came.
    Stale,
}

/// One fault, named. The machine goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// What.
    pub fault: Fault,
    /// The object.
    pub object: ObjectId,
    /// The queue that the event was sent to.
    pub queue: QueueId,
    /// The event's first word, by which applications know it.
    pub event: u64,
    /// The core.
    pub core: usize,
    /// When it was seen, ns of the machine's time.
    pub time: u64,
    /// How long it ran, or how long its response took, ns; 0 for others.
    pub took: u64,
    /// What was allowed, ns; 0 for others.
    pub allowed: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (object, queue, core) = (self.object.number(), self.queue.number(), self.core);
        write!(f, "{} ns: ", self.time)?;
        match self.fault {
            Fault::Overrun => write!(f, "object {object} ran {} ns, budget {} ns", self.took, self.allowed)?,
            Fault::Late => {
                write!(f, "object {object} was done after {} ns, deadline {} ns", self.took, self.allowed)?
            }
            Fault::Panic => write!(f, "object {object} panicked")?,
            Fault::Stale => write!(f, "object {object} received an event of a cycle that is over")?,
        }
        write!(f, " (queue {queue}, event {:#x}, core {core})", self.event)
    }
}

/// One line of the table: a queue, its bound, and what was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The queue's name.
    pub queue: String,
    /// Events received.
    pub events: u64,
    /// The longest run, ns.
    pub worst_run: u64,
    /// What was allowed, ns; none without a contract.
    pub budget: Option<u64>,
    /// The longest response, ns.
    pub worst_response: u64,
    /// What was computed; none without a contract, or where no bound exists.
    pub bound: Option<Bound>,
    /// What was asked for, ns.
    pub deadline: Option<u64>,
    /// Events that ran longer than the budget.
    pub overruns: u64,
    /// Events done after the deadline.
    pub late: u64,
    /// Sends that the contract refused.
    pub refused: u64,
    /// Events that no running object was there for.
    pub dropped: u64,
}

/// Worst observed against bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table(pub Vec<Row>);

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<16}{:>10}{:>9}{:>9}{:>10}{:>10}{:>10}{:>9}{:>6}{:>8}  bound is made of, ns",
            "queue, ns",
            "events",
            "run",
            "budget",
            "response",
            "bound",
            "deadline",
            "overrun",
            "late",
            "refused"
        )?;
        self.0.iter().try_for_each(|row| row.line(f))
    }
}

impl Row {
    fn line(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_dash = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        write!(
            f,
            "{:<16}{:>10}{:>9}{:>9}{:>10}{:>10}{:>10}{:>9}{:>6}{:>8}",
            self.queue,
            self.events,
            self.worst_run,
            or_dash(self.budget),
            self.worst_response,
            or_dash(self.bound.map(|bound| bound.response)),
            or_dash(self.deadline),
            self.overruns,
            self.late,
            self.refused
        )?;
        match self.bound {
            Some(bound) => writeln!(
                f,
                "  blocked {} + own {} + others {} + taken {} - later {}",
                bound.blocking, bound.own, bound.others, bound.interference, bound.earlier
            ),
            None => writeln!(f),
        }
    }
}
