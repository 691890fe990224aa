//! An experiment: trial, search, bisection and ladder in one form, as tables on a terminal and as a page.
//!
//! The answer is the engine's (`experiment`), and every figure comes from the records of the blocks. What a change is,
//! what differs between arms and how the experiment is repeated stands in its plan, and is given in words.

mod conclusion;
mod costs;
mod figures;
mod json;
mod markdown;
mod page;
mod published;
mod table;
mod text;

use experiment::Block;
pub use experiment::ladder::Published;
use record::cost::Cost;
use record::{Record, Unit};
use statistics::Tail;

pub use json::ladder as json_of_ladder;
pub use markdown::markdown;
pub use page::page;
pub use text::text;

/// An experiment, or as much of it as was measured.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// In a word: `trial`.
    pub kind: &'static str,
    /// What it is about, in a few words.
    pub title: String,
    /// When it was begun, by the clock of whoever began it.
    pub begun: String,
    /// What was asked, in one sentence.
    pub question: String,
    /// What came of it; none where it was not finished.
    pub answer: Option<Answer>,
    /// What is tried or searched; empty for a ladder, whose changes are its rungs.
    pub changes: Vec<Change>,
    /// From which effect on a change matters: 0.2 is 20 %. None where any does.
    pub smallest_effect: Option<f64>,
    /// The set-ups that are compared, in the order in which they are shown.
    pub arms: Vec<Arm>,
    /// What was measured, in its order.
    pub blocks: Vec<Measured>,
    /// What operations take in arms where that was measured too: all runs of an arm as one.
    pub costs: Vec<(experiment::Arm, Cost)>,
    /// Blocks that were asked for and are missing, a sentence each.
    pub missing: Vec<String>,
    /// The loads, in their order.
    pub loads: Vec<String>,
    /// What latencies count.
    pub unit: Unit,
    /// The figure of a block's tail, where one was asked for.
    pub tail: Option<Tail>,
    /// How blocks were measured: name and value.
    pub conditions: Vec<(String, String)>,
    /// Where figures come from that others measured, and in what this differs, a sentence each.
    pub source: Option<(String, Vec<String>)>,
    /// The command that asks the same again, in words.
    pub command: Vec<String>,
    /// The command that goes on with it: `worstcase tune trial --resume DIR`.
    pub resume: String,
}

/// What came of an experiment.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Each setting by itself.
    Trial(experiment::Answer),
    /// A set that suffices.
    Search(Box<experiment::Found>),
    /// The changes that moved the tail.
    Bisection {
        /// What was found.
        found: experiment::bisect::Answer,
        /// Whether a change can only be made after those before it.
        is_ordered: bool,
    },
    /// A ladder's steps are compared from its records.
    Ladder,
}

/// One change: a setting, or what makes a good set-up bad.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// As it was asked for.
    pub name: String,
    /// What has to be known before an answer about it is believed, a sentence each.
    pub notes: Vec<String>,
    /// The command that makes it for good, if there is one.
    pub apply: Option<String>,
}

/// A set-up that blocks were measured in.
#[derive(Clone, Debug)]
pub struct Arm {
    /// As the engine knows it.
    pub arm: experiment::Arm,
    /// The name that its records lie under.
    pub name: String,
    /// What differs from other arms.
    pub what: String,
    /// What has to be known of it, a sentence each.
    pub notes: Vec<String>,
    /// Figures that somebody else gives.
    pub published: Option<Published>,
    /// The arm that it is compared with, where that is said of the rungs of a ladder.
    pub base: Option<experiment::Arm>,
}

/// A block with its record.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Which.
    pub block: Block,
    /// Its directory, seen from the experiment's.
    pub place: String,
    /// What it left.
    pub record: Record,
}

/// What must be known before any figure of guests is used.
const CAUTION: &str = "Instructions are the length of the path through the kernel: no caches, no other CPUs, no devices that take \
                       their own time. They put kernels and settings in an order; they are no bound for any machine.";
/// The same where guests ran in wall time.
const CAUTION_WALL: &str =
    "Guests ran in the host's time: these latencies show that things work, and mean nothing beyond that.";

impl Experiment {
    fn caution(&self) -> Option<&'static str> {
        match self.unit {
            Unit::Instructions => Some(CAUTION),
            Unit::Microseconds => {
                self.blocks.iter().any(|one| one.record.header.machine.lab.is_some()).then_some(CAUTION_WALL)
            }
        }
    }

    /// The name of an arm, also of one that was not measured.
    fn name(&self, arm: &experiment::Arm) -> String {
        let known = self.arms.iter().find(|known| known.arm == *arm);
        known.map_or_else(|| arm.to_string(), |known| known.name.clone())
    }

    /// `20 %`, `2 times`.
    fn smallest(&self) -> String {
        let percent = self.smallest_effect.unwrap_or_default() * 100.0;
        match percent {
            100.0.. => format!("{} times", 1.0 + percent / 100.0),
            _ if percent.fract() < 1e-9 => format!("{percent:.0} %"),
            _ => format!("{percent:.1} %"),
        }
    }
}
