//! `worstcase tune apply`.

use std::process::ExitCode;

use clap::Args;
use units::Nanos;

use super::StateOption;
use super::choice::Choice;
use super::course::{Beside, Course};
use super::selection::Selection;
use crate::error::Result;

/// Write what plan shows, read back each write, and keep a journal
///
/// Where the kernel refuses something, everything is put back. That it keeps interrupts and threads where they are is
/// told and no refusal.
#[derive(Args)]
pub struct Apply {
    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    course: Course,
}

impl Apply {
    /// Of these settings, as `tune apply` does it, undone after `time` if there is one.
    pub fn of(selection: Selection, time: Option<Nanos>, state: StateOption) -> Self {
        Self { choice: Choice::of(selection), course: Course { time, ask: false, keep_going: false, state } }
    }

    pub fn run(self) -> Result<ExitCode> {
        self.course.run(self.choice.source(), Beside::Nothing, || self.choice.plan(None))
    }
}
