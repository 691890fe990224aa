//! `worstcase lab`: the same questions put to kernels in QEMU.

pub(super) mod binary;
pub(super) mod bisect;
pub(super) mod choice;
mod kept;
mod kernels;
pub(super) mod ladder;
mod run;
pub mod several;

use std::process::ExitCode;

use clap::Subcommand;

use crate::error::Result;

/// Put the same questions to kernels that run in QEMU
#[derive(clap::Args)]
pub struct Lab {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Kernels(kernels::Kernels),
    Run(Box<run::Run>),
    Ladder(ladder::Ladder),
    Bisect(Box<bisect::Bisect>),
}

impl Lab {
    /// Does what its verb says.
    pub fn run(self) -> Result<ExitCode> {
        match self.verb {
            Verb::Kernels(kernels) => kernels.run(),
            Verb::Run(run) => run.run(),
            Verb::Ladder(ladder) => ladder.run(),
            Verb::Bisect(bisect) => bisect.run(),
        }
    }
}
