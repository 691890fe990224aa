//! `worstcase check --wake`: which way a real-time thread can wait without being delayed by threads of lower priority.

use std::process::ExitCode;

use clap::Args;
use record::wake_path::{Program, Waiting, WakePaths};
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

    /// The priority of the thread that waits [default: 80, or the highest of the program that --pid names]
    #[arg(long, value_name = "N", requires = "wake", value_parser = clap::value_parser!(u32).range(2..=98), help_heading = "Wake paths")]
    wake_priority: Option<u32>,
}

impl WakeOptions {
    /// Whether wake paths are asked for.
    pub fn is_asked(&self) -> bool {
        self.wake.is_some()
    }

    /// Tries them, those of a program where one is named. 0: none is delayed; 1: one is; 3: some are not known.
    pub fn run(&self, pid: Option<i32>, json: bool) -> Result<ExitCode> {
        let machine = runner::guest::machine(&SysRoot::live())?;
        let signals = Signals::take()?;
        let program = pid.map(|pid| watched(pid, &signals)).transpose()?;
        let ways = match &program {
            Some(program) => used(program, self.ways()?),
            None => self.ways()?,
        };
        let plan =
            Plan { cpu: self.cpu(&machine.cpus.online)?, priority: self.priority(program.as_ref()), ways };
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
            program,
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

    fn priority(&self, program: Option<&Program>) -> u32 {
        let threads = program.iter().flat_map(|program| &program.waits).map(|wait| &wait.thread);
        let highest = threads.filter(|one| one.policy.is_real_time()).map(|one| one.priority).max();
        self.wake_priority.or(highest.map(|priority| priority.clamp(2, 98))).unwrap_or(80)
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

/// How the threads of a program wait.
fn watched(pid: i32, signals: &Signals) -> Result<Program> {
    output::news(&format!("looking at how the threads of {pid} wait"));
    let is_stop = |signal: Signal| signal != Signal::User1;
    let program = wakepath::watch(&SysRoot::live(), pid, &mut || !signals.next().is_some_and(is_stop))?;
    match program.waits.is_empty() {
        true => Err(Error::new(
            format!("no thread of {pid} was seen waiting, in {} looks", program.looks),
            "they compute, or wait too shortly to be seen",
        )),
        false => Ok(program),
    }
}

/// Those of `ways` by which real-time threads of a program wait; all its threads, where none is.
fn used(program: &Program, mut ways: Vec<Way>) -> Vec<Way> {
    let is_real_time = |wait: &&Waiting| wait.thread.policy.is_real_time();
    let has_any = program.waits.iter().any(|wait| is_real_time(&wait));
    let of: Vec<&Waiting> = program.waits.iter().filter(|wait| !has_any || is_real_time(wait)).collect();
    ways.retain(|way| of.iter().any(|wait| wait.ways.iter().any(|name| name == way.name)));
    ways
}

fn code(found: &WakePaths, asked: usize) -> ExitCode {
    let waits = found.program.iter().flat_map(|program| &program.waits);
    let waits = waits.filter(|wait| wait.thread.policy.is_real_time()).map(|wait| wait.is_safe(&found.paths));
    let safe: Vec<Option<bool>> =
        found.paths.iter().map(record::wake_path::WakePath::is_safe).chain(waits).collect();
    let safe = || safe.iter().copied();
    ExitCode::from(match () {
        () if safe().any(|safe| safe == Some(false)) => 1,
        () if found.paths.len() < asked || safe().any(|safe| safe.is_none()) => 3,
        () => 0,
    })
}
