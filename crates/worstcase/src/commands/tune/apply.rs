//! `worstcase tune apply`.

use std::process::ExitCode;

use clap::Args;
use units::Nanos;

use super::StateOption;
use super::apply_options::{ApplyOptions, Beside};
use super::choice::Choice;
use super::selection::Selection;
use failure::Result;

/// Write what plan shows, read back each write, and keep a journal
///
/// If the kernel refuses a write, everything is put back. Interrupts and threads that the kernel does not let go are
/// reported and cause no rollback. --isolate cures rules of those CPUs and of the whole machine; partition create writes only
/// what keeps others off its CPUs.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase tune apply --isolate 1 --for 10m    undone by itself after 10 min\n  \
    worstcase tune apply --only rn-thp            one rule")]
pub struct Apply {
    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    options: ApplyOptions,
}

impl Apply {
    /// Of these settings, as `tune apply` does it, undone after `time` if there is one.
    pub fn of(selection: Selection, time: Option<Nanos>, state: StateOption) -> Self {
        Self {
            choice: Choice::of(selection),
            options: ApplyOptions { time, ask: false, keep_going: false, state },
        }
    }

    pub fn run(self) -> Result<ExitCode> {
        self.options.run(self.choice.begun()?, Beside::Nothing, || self.choice.plan(None))
    }
}
