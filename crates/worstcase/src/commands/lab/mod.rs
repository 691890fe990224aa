//! `worstcase lab`: the same questions put to kernels in QEMU.

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
enum Verb {}

impl Lab {
    /// Does what its verb says.
    pub fn run(self) -> Result<ExitCode> {
        match self.verb {}
    }
}
