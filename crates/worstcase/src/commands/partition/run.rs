//! `worstcase partition run`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use clap::Args;
use sys::schedule::{self, Scheduling};
use sysroot::SysRoot;
use units::{Policy, Priority};

use super::lockout;
use super::systemd::{self, WayIn};
use failure::{Error, Result};
use runner::partition::{enter, named, valid};

/// Start a command inside a partition
///
/// Everything that the command starts stays inside too. Under systemd it becomes a scope in the partition's slice.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase partition run -- ./loop                                SCHED_OTHER\n  \
    worstcase partition run --policy fifo --priority 80 -- ./loop    SCHED_FIFO")]
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
        let mut command = match systemd::way_in(&root, &partition)? {
            WayIn::Here => Command::new(&self.command[0]),
            WayIn::Scope(slice) => systemd::scope(&slice, &self.command[0]),
            WayIn::Group => {
                enter(&partition)?;
                Command::new(&self.command[0])
            }
        };
        forget_binding()?;
        schedule::set(scheduling)?;
        let error = command.args(&self.command[1..]).exec();
        let program = command.get_program().to_string_lossy().into_owned();
        Err(Error::new(format!("start {program}: {error}"), ""))
    }

    fn scheduling(&self) -> Result<Scheduling> {
        match (self.policy, self.priority) {
            (Policy::Other, None) => Ok(Scheduling::Other),
            (Policy::Fifo | Policy::Rr, Some(_)) => Ok(Scheduling::new(self.policy, self.priority)),
            (Policy::Fifo | Policy::Rr, None) => {
                Err(Error::new("--policy fifo or rr without --priority", "name one, as 80"))
            }
            (Policy::Other, Some(_)) => {
                Err(Error::new("--priority means nothing to --policy other", "add --policy fifo"))
            }
            _ => Err(Error::new(format!("--policy {} cannot be started", self.policy), "take fifo or rr")),
        }
    }
}

/// Puts this process on all CPUs that its group has, whatever it was bound to. Since Linux 6.2 a thread remembers what it
/// was bound to: one bound to the partition's CPUs by name would stay on them when the partition is gone.
fn forget_binding() -> Result<()> {
    Ok(schedule::set_affinity(0, &(0..units::MAX_CPUS).collect())?)
}
