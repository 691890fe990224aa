//! `worstcase partition`: CPUs for real time alone, made, used, proven and given back.

mod boot;
mod create;
mod list;
mod lockout;
mod run;
mod systemd;
mod tracing;
mod verify;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use units::CpuList;

use super::tune::Undo;
use failure::{Error, Result};

/// Set CPUs apart for real time; count what still disturbs them; undo it
///
/// create is tune apply for CPUs, with the same journal: tune status and tune keep are for it too.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase partition create --rt 1        isolate CPU 1\n  \
    worstcase partition verify               count what still disturbs it\n  \
    worstcase partition run -- my-program    run in it\n  \
    worstcase partition undo                 put back what there was")]
pub struct Partition {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Create(create::Create),
    List(list::List),
    Run(run::Run),
    Verify(verify::Verify),
    /// Put back what create, and tune apply, have changed, from their journal alone, and prove it
    ///
    /// What somebody else has changed since is left as it is and listed. Exit code 1 if something does not read as before.
    #[command(after_help = "Examples:\n  \
        worstcase partition undo    put back what there was before create")]
    Undo(Undo),
}

impl Partition {
    pub fn run(self) -> Result<ExitCode> {
        match self.verb {
            Verb::Create(create) => create.run(),
            Verb::List(list) => list.run(),
            Verb::Run(run) => run.run(),
            Verb::Verify(verify) => verify.run(),
            Verb::Undo(undo) => undo.run(),
        }
    }
}

/// Refuses CPUs that are not online, and all that are.
fn check_cpus(cpus: &CpuList, online: &CpuList) -> Result<()> {
    let absent = cpus.difference(online);
    if !absent.is_empty() {
        let message = format!("--rt names {}: not online", absent.named());
        return Err(Error::new(message, format!("online are {online}")));
    }
    if online.difference(cpus).is_empty() {
        let message = format!("--rt {cpus} leaves no CPU for everything else");
        return Err(Error::new(message, "leave one out, as a rule CPU 0"));
    }
    match cpus.is_empty() {
        true => Err(Error::new("--rt names no CPU", "name some, as in 2-3")),
        false => Ok(()),
    }
}
