//! `worstcase partition create`.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use record::Machine;
use survey::Survey;
use sysroot::SysRoot;
use units::{CpuList, Nanos};

use super::{boot, lockout};
use crate::commands::check::subject::{set, survey_of};
use crate::commands::tune::{Apply, Selection, StateOption, plan_text, wait_time, write_words};
use crate::output::{self, Stream};
use failure::{Error, Result};

/// What keeps everything else off some CPUs: the group, interrupts, movable threads and work of the kernel.
pub(super) const RULES: [&str; 13] = [
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
    "rn-xps",
    "rn-rq-affinity",
];

/// What `--kind` names.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Control groups of the running system, v2 or v1
    Cgroup,
    /// Kernel parameters, as tune persist writes them: they also cover what a running kernel cannot change, the tick above all
    Boot,
}

/// Take everything that can be moved off some CPUs, and put them into a partition of their own
///
/// Interrupts, kernel threads and kernel work are moved away, and the partition keeps programs out. partition verify counts
/// what is left, partition undo gives everything back. tune apply --isolate cures the other rules that fail too: frequencies,
/// memory, timers of the whole machine.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase partition create --rt 2-3              CPUs 2-3 for real time\n  \
    worstcase partition create --rt 2-3 --dry-run    what would be written")]
pub struct Create {
    /// The CPUs that are for real time alone
    #[arg(long, value_name = "CPUS")]
    rt: CpuList,

    /// How
    #[arg(long, value_enum, default_value = "cgroup")]
    kind: Kind,

    /// Further rules of check to make pass, such as rn-mce: no polling for corrected memory errors
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    also: Vec<String>,

    /// Undo by itself after this time, unless tune keep is typed
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true, value_parser = wait_time)]
    time: Option<Nanos>,

    /// Print what would be written
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    state: StateOption,
}

impl Create {
    pub fn run(self) -> Result<ExitCode> {
        let root = SysRoot::live();
        let machine = machine::machine(&root);
        super::check_cpus(&self.rt, &machine.cpus.online)?;
        warn_of_siblings(&survey_of(&root, Some(&self.rt))?);
        match self.kind {
            Kind::Cgroup => self.by_groups(&root, &machine),
            Kind::Boot => self.by_words(&root, &machine),
        }
    }

    fn by_words(self, root: &SysRoot, machine: &Machine) -> Result<ExitCode> {
        let survey = survey_of(root, Some(&self.rt))?;
        let others = machine.cpus.online.difference(&self.rt);
        let (line, reasons) = boot::text(&boot::words(&self.rt, &others, survey.kernel_config()));
        output::words(reasons.trim_end());
        output::final_data(&format!("{line}\n"))?;
        let code = write_words(line, self.dry_run)?;
        let rt = self.rt;
        output::words(&format!(
            "worstcase tune persist --undo takes them back; worstcase partition verify --rt {rt} counts after the boot \
             what is left there"
        ));
        Ok(code)
    }

    fn by_groups(self, root: &SysRoot, machine: &Machine) -> Result<ExitCode> {
        self.refuse_lockout(root)?;
        let rules: Vec<&str> = RULES.into_iter().chain(self.also.iter().map(String::as_str)).collect();
        let selection = Selection::of_rules(&rules, self.rt.clone());
        let plan = selection.plan(None)?;
        if let Some(refusal) = plan.refusals.iter().find(|refusal| refusal.rule == RULES[0]) {
            let message = format!("no partition can be made: {}", refusal.why_not);
            return Err(Error::new(message, "worstcase tune plan --isolate shows what else can be moved"));
        }
        let isolated = machine.cpus.isolated.value().is_some_and(|cpus| self.rt.difference(cpus).is_empty());
        if isolated {
            output::words(&format!(
                "the kernel command line isolates CPUs {} already: no group is made, and what else can be moved is; bind programs with \
                 taskset -c {}",
                self.rt, self.rt
            ));
        }
        if self.dry_run {
            output::final_data(&plan_text(&plan))?;
            return Ok(ExitCode::SUCCESS);
        }
        lockout::warn_of_starvation(&machine.throttling);
        let code = Apply::of(selection, self.time, self.state).run()?;
        let rt = if isolated { format!(" --rt {}", self.rt) } else { String::new() };
        let steps = next(&rt, &self.rt, &machine::partitions(root));
        output::final_data(&report::next::text(&steps, &output::style(Stream::Output)))?;
        Ok(code)
    }

    fn refuse_lockout(&self, root: &SysRoot) -> Result<()> {
        if let Some(who) = lockout::locked_out(root, sys::process::own_pid().as_raw_pid(), &self.rt) {
            let message = format!("{who} may run on {} alone, which would be taken from it", self.rt.named());
            return Err(Error::new(message, "taskset -p lets it run elsewhere first"));
        }
        let all = machine::partitions(root);
        let Some(other) = all.iter().find(|one| !one.cpus.intersection(&self.rt).is_empty()) else {
            return Ok(());
        };
        let message = format!("the partition {} has {} already", other.group, other.cpus.named());
        Err(Error::new(message, "worstcase partition undo gives back what worstcase took"))
    }
}

/// What to do with the partition that has these CPUs.
fn next(option: &str, cpus: &CpuList, all: &[record::Partition]) -> Vec<(String, String)> {
    let verify = (
        format!("worstcase partition verify{option}"),
        "count what still runs there, moved interrupts that are pending too".to_owned(),
    );
    let own = all.iter().find(|one| one.cpus == *cpus);
    let bench = own.map(|one| {
        (format!("worstcase bench --partition {}", printable::shell(&one.group)), "measure in it".to_owned())
    });
    std::iter::once(verify).chain(bench).collect()
}

/// A core is shared with who is on its other threads.
fn warn_of_siblings(survey: &Survey) {
    let siblings = set(survey, "cpus.isolated.siblings");
    if !siblings.is_empty() {
        output::warning(&format!(
            "CPUs {siblings} share cores with CPUs {}: what runs there slows these down; name them too, or see \
             worstcase check fw-smt-off",
            survey.isolated()
        ));
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
