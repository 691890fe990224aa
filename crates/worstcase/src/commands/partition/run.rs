//! `worstcase partition run`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use clap::Args;
use machine::{Partition, SysRoot, partitions};
use sys::schedule::{self, Scheduling};
use tune::{Hand, Live, in_words};
use units::{Policy, Priority};

use super::lockout;
use crate::commands::tune::STATE;
use crate::error::{CommandError, Result};

/// Start a command inside the partition
///
/// What it starts is inside too.
#[derive(Args)]
pub struct Run {
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
        let partition = ours(partitions(&root))?;
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

/// The one that worstcase made.
fn ours(all: Vec<Partition>) -> Result<Partition> {
    let ours = all.into_iter().find(|one| one.group.ends_with(&format!("/{}", tune::PARTITION)));
    ours.ok_or_else(|| {
        CommandError::new("there is no partition of worstcase", "worstcase partition create --rt CPUS")
    })
}

/// Puts this process in, and on the partition's CPUs, whatever it was bound to.
fn enter(partition: &Partition) -> Result<()> {
    let file = format!("{}/cgroup.procs", partition.group);
    let own = sys::process::own_pid().as_raw_pid().to_string();
    Live::new(STATE).write_file(&file, &own).map_err(|errno| {
        CommandError::new(format!("write {file}: {}", in_words(errno.raw_os_error())), "run it as root")
    })?;
    Ok(schedule::set_affinity(0, &partition.cpus)?)
}
