//! `worstcase partition list`.

use std::process::ExitCode;

use clap::Args;
use machine::{SysRoot, partitions};

use crate::error::Result;
use crate::output;

/// Name the partitions of CPUs that this machine has, whoever made them
#[derive(Args)]
pub struct List {}

impl List {
    /// Does it.
    pub fn run(self) -> Result<ExitCode> {
        let all = partitions(&SysRoot::live());
        let line = |one: &machine::Partition| {
            format!("{}: CPUs {}, {}, {} processes\n", one.group, one.cpus, one.state, one.processes)
        };
        let text: String = all.iter().map(line).collect();
        output::final_data(if text.is_empty() { "there is no partition\n" } else { &text })?;
        Ok(ExitCode::SUCCESS)
    }
}
