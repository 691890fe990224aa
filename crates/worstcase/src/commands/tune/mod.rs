//! `worstcase tune`: changes the running system so that rules pass, proves it, and undoes it.

mod apply;
mod apply_options;
mod choice;
#[cfg(test)]
mod fixture_tests;
mod irq_thread;
mod keep;
mod leftover;
mod persist;
mod plan;
mod requests;
mod selection;
#[cfg(test)]
mod settings_tests;
mod shown;
mod status;
mod summary;
pub mod trial;
mod undo;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use tune::State;

use super::applied::STATE;
use failure::Result;

pub use apply::Apply;
pub use apply_options::time as wait_time;
pub use choice::CHOICE;
pub use leftover::warn_of_leftovers;
pub use persist::write_words;
pub use selection::Selection;
pub use shown::plan as plan_text;
pub use undo::Undo;

/// Change the running system so that rules pass; prove it, undo it
///
/// What fails in check and has a cure on the running system is written, read back and kept in a journal. undo puts back
/// what was there, from the journal alone, and never overwrites what somebody else has changed since.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase tune plan                             what could be changed\n  \
    worstcase tune trial rn-thp                     whether a setting helps here\n  \
    worstcase tune apply --only rn-thp --for 10m    change it for 10 min\n  \
    worstcase tune undo                             put back what there was")]
pub struct Tune {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Plan(plan::Plan),
    Apply(apply::Apply),
    Undo(undo::Undo),
    Status(status::Status),
    Keep(keep::Keep),
    IrqThread(irq_thread::IrqThread),
    Persist(persist::Persist),
    Trial(Box<trial::Trial>),
    Search(Box<trial::Search>),
}

impl Tune {
    pub fn run(self) -> Result<ExitCode> {
        match self.verb {
            Verb::Plan(plan) => plan.run(),
            Verb::Apply(apply) => apply.run(),
            Verb::Undo(undo) => undo.run(),
            Verb::Status(status) => status.run(),
            Verb::Keep(keep) => keep.run(),
            Verb::IrqThread(irq_thread) => irq_thread.run(),
            Verb::Persist(persist) => persist.run(),
            Verb::Trial(trial) => trial.run(),
            Verb::Search(search) => search.run(),
        }
    }
}

/// Where the journal is.
#[derive(Args)]
pub struct StateOption {
    /// Directory of the journal
    #[arg(long = "state", value_name = "DIR", default_value = STATE)]
    directory: PathBuf,
}

impl StateOption {
    /// Whole, because processes that hold something start elsewhere.
    fn state(&self) -> State {
        State::of_machine(choice::whole(&self.directory))
    }

    /// The option again, after a blank, for a command that is printed; empty where it is the usual one.
    fn argument(&self) -> String {
        match self.directory == Path::new(STATE) {
            true => String::new(),
            false => format!(" --state {}", self.directory.display()),
        }
    }
}
