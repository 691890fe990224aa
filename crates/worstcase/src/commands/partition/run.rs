//! `worstcase partition run`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use clap::Args;
use record::Partition;
use sys::schedule::{self, Scheduling};
use sysroot::SysRoot;
use units::{Policy, Priority};

use super::lockout;
use crate::error::{CommandError, Result};
use runner::partition::{named, put, valid};

/// Start a command inside a partition
///
/// What it starts is inside too.
#[derive(Args)]
pub struct Run {
    /// The partition: see partition list
    #[arg(default_value = tune::PARTITION)]
    name: String,

    /// Scheduling policy: other, fifo, rr
    #[arg(long, default_value = "other")]
    policy: Policy,

    /// Real-time priority, 1 to 99
    #[arg(long, value_name = "N")]
    priority: Option<Priority>,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Run {
    /// Becomes the command; comes back only where that fails.
    pub fn run(self) -> Result<ExitCode> {
        let scheduling = self.scheduling()?;
        let root = SysRoot::live();
        let partition = valid(named(&root, &self.name)?)?;
        if self.policy.is_real_time() {
            lockout::warn_of_starvation(&machine::machine(&root).throttling);
        }
        enter(&partition)?;
        schedule::set(scheduling)?;
        let (program, arguments) = self.command.split_first().unwrap_or((&self.command[0], &[]));
        let error = Command::new(program).args(arguments).exec();
        Err(CommandError::new(format!("start {}: {error}", program.to_string_lossy()), ""))
    }

    fn scheduling(&self) -> Result<Scheduling> {
        match (self.policy, self.priority) {
            (Policy::Other, None) => Ok(Scheduling::Other),
            (Policy::Fifo | Policy::Rr, Some(_)) => Ok(Scheduling::new(self.policy, self.priority)),
            (Policy::Fifo | Policy::Rr, None) => {
                Err(CommandError::new("--policy fifo or rr without --priority", "name one, as 80"))
            }
            (Policy::Other, Some(_)) => {
                Err(CommandError::new("--priority means nothing to --policy other", "add --policy fifo"))
            }
            _ => Err(CommandError::new(
                format!("--policy {} cannot be started", self.policy),
                "take fifo or rr",
            )),
        }
    }
}

/// Puts this process in, and on all CPUs that it finds there, whatever it was bound to. Since Linux 6.2 a thread remembers
/// what it was bound to: one bound to the partition's CPUs by name would stay on them when the partition is gone.
fn enter(partition: &Partition) -> Result<()> {
    put(partition, std::process::id())?;
    Ok(schedule::set_affinity(0, &(0..units::MAX_CPUS).collect())?)
}
