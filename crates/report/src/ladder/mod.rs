//! A ladder: the same loads on one kernel or kernel command line after the other, as S0 lays four kernels beside each other. A
//! table a rung, the worst case of every load on every rung, and what each step gained.
//!
//! A rung has several runs with different seeds, because a single run is one draw. Tails are compared by the method of
//! [`statistics::compare`]; a step is a gain or a loss only beyond the spread from seed to seed.

mod figures;
mod json;
mod page;
mod published;
mod text;

pub use experiment::ladder::Published;
use record::{Record, Unit};

pub use json::json;
pub use page::page;
pub use text::text;

/// A ladder that was run, or as much of it as was.
#[derive(Clone, Debug)]
pub struct Ladder {
    /// What it is, in a few words.
    pub title: String,
    /// Where it comes from.
    pub source: Option<String>,
    /// In what it differs from that, a sentence each.
    pub differs: Vec<String>,
    /// How it was run: the emulator, how long, how many seeds.
    pub conditions: Vec<String>,
    /// What latencies count.
    pub unit: Unit,
    /// The loads, in their order.
    pub loads: Vec<String>,
    /// The rungs, each a step on from the one before.
    pub rungs: Vec<Rung>,
}

/// One rung.
#[derive(Clone, Debug)]
pub struct Rung {
    /// The name in the ladder's file: `rt`.
    pub name: String,
    /// What it is, in a few words.
    pub title: String,
    /// What was booted: the kernel and its words.
    pub booted: String,
    /// A record for each seed that was measured to its end.
    pub runs: Vec<Record>,
    /// Why others are missing, a sentence each.
    pub missing: Vec<String>,
    /// What has to be known of its kernel parameters, a sentence each: not read by the kernel, not to be seen in guests.
    pub notes: Vec<String>,
    /// Figures that the source gives.
    pub published: Option<Published>,
}

/// What must be known before any of a ladder's figures is used.
const CAUTION: &str = "Instructions are the length of the path through the kernel: no caches, no other CPUs, no devices that take \
                       their own time. They put kernels and settings in an order; they are no bound for any machine.";
/// The same where guests ran in wall time.
const CAUTION_WALL: &str =
    "Guests ran in the host's time: these latencies show that things work, and mean nothing beyond that.";

impl Ladder {
    fn caution(&self) -> &'static str {
        match self.unit {
            Unit::Instructions => CAUTION,
            Unit::Microseconds => CAUTION_WALL,
        }
    }
}
