//! `worstcase partition create`.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use machine::SysRoot;
use units::{CpuList, Nanos};

use super::lockout;
use crate::commands::tune::{Apply, Selection, StateOption, wait_time};
use crate::error::{CommandError, Result};
use crate::output;

/// What keeps everything else off some CPUs: the group, interrupts, movable threads and work of the kernel.
pub(super) const RULES: [&str; 12] = [
    "rn-cpuset-partition",
    "rn-kthread-affinity",
    "rn-rcu-kthreads",
    "rn-wq-cpumask",
    "rn-watchdog",
    "rn-stat-interval",
    "rn-irq-affinity",
    "rn-irq-allowed",
    "rn-irq-default",
    "rn-rps",
    "rn-rps-default",
    "rn-rq-affinity",
];

/// Take everything that can be moved off some CPUs, and put them into a partition of their own
///
/// Interrupts, threads and work of the kernel go elsewhere, programs do by the partition. partition verify counts what
/// is left, partition undo gives all of it back.
#[derive(Args)]
pub struct Create {
    /// The CPUs that are for real time alone
    #[arg(long, value_name = "CPUS")]
    rt: CpuList,

    /// How: by a partition of cgroup v2
    #[arg(long, value_enum, default_value = "cgroup")]
    kind: Kind,

    /// Undo by itself after this time, unless tune keep is typed
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true, value_parser = wait_time)]
    time: Option<Nanos>,

    #[command(flatten)]
    state: StateOption,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Cgroup,
}

impl Create {
    /// Does it.
    pub fn run(self) -> Result<ExitCode> {
        let Kind::Cgroup = self.kind;
        let root = SysRoot::live();
        let machine = machine::machine(&root);
        super::check_cpus(&self.rt, &machine.cpus.online)?;
        if let Some(who) = lockout::locked_out(&root, sys::process::own_pid().as_raw_pid(), &self.rt) {
            let message = format!("{who} may run on CPUs {} alone, which would be taken from it", self.rt);
            return Err(CommandError::new(message, "taskset -p lets it run elsewhere first"));
        }
        if let Some(other) =
            machine::partitions(&root).iter().find(|one| !one.cpus.intersection(&self.rt).is_empty())
        {
            let message = format!("CPUs {} are in the partition {} already", other.cpus, other.group);
            return Err(CommandError::new(
                message,
                "worstcase partition undo gives back what worstcase took",
            ));
        }
        let selection = Selection::of_rules(&RULES, self.rt);
        let plan = selection.plan(None)?;
        if let Some(refusal) = plan.refusals.iter().find(|refusal| refusal.rule == RULES[0]) {
            let message = format!("no partition can be made: {}", refusal.why_not);
            return Err(CommandError::new(
                message,
                "worstcase tune plan --isolate shows what else can be moved",
            ));
        }
        lockout::warn_of_starvation(&machine.throttling);
        let code = Apply::of(selection, self.time, self.state).run()?;
        output::words("worstcase partition verify counts what still runs there");
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Naming a rule is what lifts the reserve on costs of safety and security.
    #[test]
    fn no_rule_of_a_partition_costs_safety_or_security() {
        let rules = audit::Rules::built_in().unwrap();
        for id in RULES {
            let rule = rules.get(id).unwrap();
            assert!(!rule.costs.contains_key("safety") && !rule.costs.contains_key("security"), "{id}");
        }
    }
}
