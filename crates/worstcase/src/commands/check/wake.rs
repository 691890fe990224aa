//! `worstcase check --wake`: which way a real-time thread can wait without being delayed by threads of lower priority.

use std::process::ExitCode;

use clap::Args;
use record::wake_path::WakePaths;
use sys::signal::{Signal, Signals};
use sysroot::SysRoot;
use units::{CpuId, CpuList};
use wakepath::{BURST, Plan, TRIALS, WAYS, Way};

use crate::output::{self, Stream};
use failure::{Error, Result};

/// How wake paths are tried.
#[derive(Args)]
pub struct WakeOptions {
    /// Try by which ways a real-time thread can wait without being delayed by lower priorities, for a few seconds: timerfd, pipe
    /// and so on, all or those that are named
    #[arg(long, value_name = "WAYS", num_args = 0..=1, require_equals = true, value_delimiter = ',', default_missing_value = "all", help_heading = "Wake paths")]
    wake: Option<Vec<String>>,

    /// The CPU on which wake paths are tried [default: the first that this process may use]
    #[arg(long, value_name = "CPU", requires = "wake", help_heading = "Wake paths")]
    wake_cpu: Option<u32>,

    /// The priority of the thread that waits
    #[arg(long, value_name = "N", requires = "wake", default_value = "80", value_parser = clap::value_parser!(u32).range(2..=98), help_heading = "Wake paths")]
    wake_priority: u32,
}

impl WakeOptions {
    /// Whether wake paths are asked for.
    pub fn is_asked(&self) -> bool {
        self.wake.is_some()
    }

    /// Tries them. 0: none is delayed; 1: one is; 3: some are not known.
    pub fn run(&self, json: bool) -> Result<ExitCode> {
        let machine = runner::guest::machine(&SysRoot::live())?;
        let plan =
            Plan { cpu: self.cpu(&machine.cpus.online)?, priority: self.wake_priority, ways: self.ways()? };
        if machine.lab.is_some() {
            // A guest has nobody who would do it; where it fails, the way over it is not known.
            let _ = sys::net::switch_loopback_on();
        }
        let signals = Signals::take()?;
        let root = SysRoot::live();
        let mut stopped = false;
        let mut follow = |way: &Way| {
            stopped |= signals.next().is_some_and(|signal| signal != Signal::User1);
            if output::can_redraw(Stream::Error) && !stopped {
                output::progress(way.title);
            }
            !stopped
        };
        let paths = wakepath::audit(&root, &plan, &mut follow);
        if output::can_redraw(Stream::Error) {
            output::end_progress();
        }
        let found = WakePaths {
            machine,
            cpu: plan.cpu,
            priority: plan.priority,
            burst: BURST,
            wake_ups: TRIALS as u32,
            paths: paths?,
        };
        output::final_data(&match json {
            true => serde_json::to_string(&found).unwrap_or_default() + "\n",
            false => report::wake_path::text(&found, &output::style(Stream::Output)),
        })?;
        if stopped {
            output::words("interrupted: not every way was tried");
        }
        Ok(code(&found, plan.ways.len()))
    }

    fn cpu(&self, online: &CpuList) -> Result<CpuId> {
        let reachable = sys::schedule::reachable(online)?;
        match self.wake_cpu.map(CpuId) {
            Some(cpu) if reachable.contains(cpu) => Ok(cpu),
            Some(cpu) => {
                let message = format!("--wake-cpu {cpu}: this process may use {reachable}");
                Err(Error::new(message, "choose among those"))
            }
            None => reachable.iter().next().ok_or_else(|| Error::new("there is no CPU to try it on", "")),
        }
    }

    fn ways(&self) -> Result<Vec<Way>> {
        let names = self.wake.as_deref().unwrap_or_default();
        if names == ["all"] {
            return Ok(WAYS.to_vec());
        }
        let find = |name: &String| {
            let known = WAYS.map(|way| way.name).join(", ");
            let unknown =
                || Error::new(format!("--wake {name}: there is no such way"), format!("there are {known}"));
            Way::find(name).ok_or_else(unknown)
        };
        names.iter().map(find).collect()
    }
}

fn code(found: &WakePaths, asked: usize) -> ExitCode {
    let safe = || found.paths.iter().map(record::wake_path::WakePath::is_safe);
    ExitCode::from(match () {
        () if safe().any(|safe| safe == Some(false)) => 1,
        () if found.paths.len() < asked || safe().any(|safe| safe.is_none()) => 3,
        () => 0,
    })
}
