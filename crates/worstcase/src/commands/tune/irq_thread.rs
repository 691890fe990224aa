//! `worstcase tune irq-thread`.

use std::process::ExitCode;

use clap::Args;
use machine::handlers::{self, Handlers, handlers};
use machine::tasks::Task;
use sysroot::SysRoot;
use tune::conflict::Conflict;
use tune::plan::Handlers as Wanted;
use tune::{Change, Plan, Request, Thread};
use units::{CpuList, Policy, Priority};

use tune::journal::Begin;

use super::apply_options::{ApplyOptions, Beside};
use super::shown;
use crate::output;
use failure::{Error, Result};

/// The priority at which a probe measures unless another is asked for.
const OF_PROBES: u8 = 98;

/// Raise the threads of an interrupt, of a device, or of a CPU's timers
///
/// All interrupt threads begin at priority 50, and what waits for a device goes no faster than its thread. On PREEMPT_RT
/// timers of timerfd, POSIX timers and io_uring expire in ktimers at priority 1, behind every busy real-time thread.
/// Settings applied before stay; one undo takes back everything.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase tune irq-thread eth0 --priority 90 --plan    what would change\n  \
    worstcase tune irq-thread eth0 --priority 90           all queues of eth0\n  \
    worstcase tune irq-thread ktimers --priority 95        timers, on PREEMPT_RT")]
pub struct IrqThread {
    #[command(flatten)]
    which: Which,

    /// Say what would be written and change nothing
    #[arg(long)]
    plan: bool,

    #[command(flatten)]
    options: ApplyOptions,
}

/// Which threads, and what is to become of them.
#[derive(Args)]
struct Which {
    /// An interrupt's number, a device (eth0 for all its queues), a handler as in /proc/interrupts, or ktimers, ksoftirqd
    /// or rcuc (ktimers/2 for one CPU's)
    #[arg(value_name = "NAME")]
    name: String,

    /// Real-time priority, 1 to 99: above what may not delay it, below what it may not delay
    #[arg(long, value_name = "N")]
    priority: Priority,

    /// Policy: fifo or rr
    #[arg(long, value_name = "POLICY", default_value = "fifo", value_parser = policy)]
    policy: Policy,

    /// CPUs that the interrupt may go to, its thread with it; of ktimers, ksoftirqd and rcuc those of these CPUs
    #[arg(long, value_name = "CPUS")]
    cpus: Option<CpuList>,
}

fn policy(text: &str) -> std::result::Result<Policy, String> {
    match text.parse() {
        Ok(policy @ (Policy::Fifo | Policy::Rr)) => Ok(policy),
        _ => Err(format!("`{text}` is not a policy of real time: fifo or rr")),
    }
}

impl IrqThread {
    pub fn run(self) -> Result<ExitCode> {
        let Self { which, plan, options } = self;
        if plan {
            let plan = which.plan(&SysRoot::live())?;
            output::final_data(&(shown::plan(&plan) + &shown::what_next(&plan, "the same without --plan")))?;
            return Ok(ExitCode::SUCCESS);
        }
        options.run(Begin::default(), Beside::WhatHolds, || which.plan(&SysRoot::live()))
    }
}

impl Which {
    fn plan(&self, root: &SysRoot) -> Result<Plan> {
        let found = self.chosen(root)?;
        let wanted = Wanted {
            threads: found.threads.iter().map(Thread::from).collect(),
            policy: self.policy,
            priority: self.priority,
            interrupts: found.interrupts,
            cpus: self.cpus.clone(),
        };
        let title = format!("{} {}", self.policy, self.priority);
        let request = Request {
            rule: format!("irq-thread {}", self.name),
            title: title.clone(),
            why: "asked for".to_owned(),
            changes: vec![Change::Handlers(wanted)],
            ..Request::default()
        };
        let mut plan = tune::plan(root, &[request], &CpuList::new());
        if plan.steps.is_empty() {
            // Nothing of what was found has to change: that is no refusal.
            plan.refusals.retain(|refusal| refusal.what != title);
        }
        if self.priority.get() == OF_PROBES && !plan.steps.is_empty() {
            let (who, what) =
                ("worstcase's probe", "has the same priority, 98: measure with --priority 97 or less");
            plan.conflicts.push(Conflict { who: who.to_owned(), what: what.to_owned() });
        }
        Ok(plan)
    }

    /// What the name stands for, and at least one thread.
    fn chosen(&self, root: &SysRoot) -> Result<Handlers> {
        let mut found = handlers(root, &self.name);
        if let (Some(cpus), true) = (&self.cpus, handlers::is_of_cpus(&self.name)) {
            found.threads.retain(|task| cpu(task).is_some_and(|cpu| cpus.contains(cpu)));
        }
        match found.threads.is_empty() {
            true => Err(self.nothing_found(root, &found)),
            false => Ok(found),
        }
    }

    fn nothing_found(&self, root: &SysRoot, found: &Handlers) -> Error {
        let Self { name, .. } = self;
        if handlers::is_of_cpus(name) {
            let message = format!("no CPU here has a thread {name}");
            let hint =
                "ktimers and rcuc are PREEMPT_RT's; ksoftirqd every kernel has; /proc/stat names the CPUs";
            return Error::new(message, hint);
        }
        if found.interrupts.is_empty() {
            let message = format!("no interrupt, device or thread is called {name}");
            return Error::new(message, "/proc/interrupts names them; a device must be in use: opened, up");
        }
        let message = format!("{name} has an interrupt and no thread");
        match handlers::are_threaded(root) {
            true => Error::new(
                message,
                "its driver forbids one, or handles it in a chain of other interrupts; grep irq/ /proc/*/comm shows who has one",
            ),
            false => Error::new(
                format!("{message}: interrupts are not threaded here"),
                "boot with threadirqs, or a kernel with PREEMPT_RT",
            ),
        }
    }
}

/// The CPU in a name such as `ktimers/2`.
fn cpu(task: &Task) -> Option<units::CpuId> {
    task.name.rsplit_once('/')?.1.parse().ok().map(units::CpuId)
}
