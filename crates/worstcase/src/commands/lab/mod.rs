//! `worstcase lab`: the same questions put to kernels in QEMU.

mod kernels;

use std::process::ExitCode;

use clap::Subcommand;

use crate::error::Result;

/// Puts the same questions to kernels that run in QEMU
#[derive(clap::Args)]
pub struct Lab {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Kernels(kernels::Kernels),
}

impl Lab {
    /// Does what its verb says.
    pub fn run(self) -> Result<ExitCode> {
        match self.verb {
            Verb::Kernels(kernels) => kernels.run(),
        }
    }
}
