//! What the kernel made of the words that set CPUs apart.

use machine::facts::processors::{CPUS, cpu_file};
use machine::kernel_log;
use record::Fact;
use rustix::io::Errno;
use sysroot::parsed;
use units::{CpuId, CpuList};

use super::command_line::cpus_of;
use super::kernel::LOG;
use crate::survey::{COMMAND_LINE, NamedFact, Survey, fact};
use crate::value::{Reading, lost};

pub(super) const FACTS: &[NamedFact] = &[
    fact(
        "cpus.isolated.siblings",
        "CPUs that share a core with one for real time and are not for real time",
        siblings,
    ),
    fact("cpus.rcu_nocbs", "CPUs whose RCU callbacks run elsewhere", offloaded),
    fact("cpus.init", "CPUs that process 1 may use", init),
];

/// The CPUs that there can be.
fn possible(survey: &Survey) -> Fact<CpuList> {
    survey.root.cpu_list(&format!("{CPUS}/possible"))
}

fn siblings(survey: &Survey) -> Reading {
    let path = |cpu: CpuId| cpu_file(cpu, "topology/thread_siblings_list");
    let mut all = CpuList::new();
    for cpu in survey.isolated.iter() {
        match survey.root.cpu_list(&path(cpu)) {
            Fact::Value(cpus) => all = all.union(&cpus),
            other => return Reading::new(other, &[&path(cpu)]),
        }
    }
    let value = if survey.isolated.is_empty() {
        Fact::Unsupported
    } else {
        Fact::Value(all.difference(&survey.isolated))
    };
    Reading::new(value, &[&format!("{CPUS}/cpu*/topology/thread_siblings_list")])
}

/// What the kernel says after `Offload RCU callbacks from CPUs:` (kernel/rcu/tree_nocb.h).
const OFFLOADED: &str = "Offload RCU callbacks from CPUs:";

/// By the kernel's log; where that is lost, by what the words mean: `nohz_full=` offloads, too (from 4.13 on).
fn offloaded(survey: &Survey) -> Reading {
    let log = kernel_log::boot_log(&survey.root);
    let reading =
        log.value().and_then(|log| log.lines.iter().rev().find_map(|line| line.split_once(OFFLOADED)));
    if let Some((_, list)) = reading {
        let list = list.trim().trim_end_matches('.');
        let cpus = if list == "(none)" { Fact::Value(CpuList::new()) } else { parsed(list.parse()) };
        return Reading::new(cpus, &[LOG]);
    }
    let configuration = survey.configuration();
    let value = match (&configuration.config, survey.command_line()) {
        (Fact::Value(_), _) if !configuration.has("RCU_NOCB_CPU") => Fact::Value(CpuList::new()),
        (_, Fact::Value(_)) if log.value().is_some_and(|log| log.is_whole) => Fact::Value(CpuList::new()),
        (_, Fact::Value(line)) => possible(survey).and_then(|possible| {
            let words = ["rcu_nocbs", "nohz_full"].iter().filter_map(|word| line.value(word));
            let lists = words.filter(|value| !value.is_empty()).map(|value| cpus_of(&value, &possible));
            let lists: Option<Vec<CpuList>> = lists.collect();
            match lists {
                Some(lists) => Fact::Value(lists.iter().fold(CpuList::new(), |all, cpus| all.union(cpus))),
                None => Fact::Unreadable(Errno::BADMSG.raw_os_error()),
            }
        }),
        (_, other) => lost(other),
    };
    let mut reading = Reading::new(value, &[LOG, COMMAND_LINE]);
    reading.from.extend(configuration.from.iter().cloned());
    reading
}

fn init(survey: &Survey) -> Reading {
    const PATH: &str = "/proc/1/status";
    let value = survey.root.read(PATH).and_then(|text| {
        let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        parsed(list.unwrap_or("?").trim().parse::<CpuList>())
    });
    let value = match (value, possible(survey)) {
        (Fact::Value(cpus), Fact::Value(possible)) => Fact::Value(cpus.intersection(&possible)),
        (value, _) => value,
    };
    Reading::new(value, &[PATH])
}
