//! `worstcase partition list`.

use std::process::ExitCode;

use clap::Args;
use machine::{partitions, processes_in};
use sysroot::SysRoot;

use crate::output;
use failure::Result;

/// Name the partitions of CPUs that this machine has, whoever made them
#[derive(Args)]
pub struct List {}

impl List {
    pub fn run(self) -> Result<ExitCode> {
        let root = SysRoot::live();
        let line = |one: &record::Partition| {
            let processes = processes_in(&root, &one.group);
            format!("{}: {}, {}, {processes} processes\n", one.group, one.cpus.named(), one.state)
        };
        let text: String = partitions(&root).iter().map(line).collect();
        output::final_data(if text.is_empty() { "there is no partition\n" } else { &text })?;
        Ok(ExitCode::SUCCESS)
    }
}
