//! What it may do, and what is taken from it: resource limits, capabilities, quotas, a tracer.

use std::fmt::Display;

use machine::cgroups::is_v2;
use machine::facts::place::{self, in_first_user_namespace};
use machine::latency_request;
use machine::mounts::mounts;
use record::{CpuQuota, Fact};
use sysroot::parsed;

use super::about::{about, status_word};
use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Item, Reading, Value, item, reading};

/// Numbers of capabilities (include/uapi/linux/capability.h).
const DAC_OVERRIDE: u32 = 1;
const IPC_LOCK: u32 = 14;
const SYS_NICE: u32 = 23;

/// A soft limit of /proc/PID/limits: `unlimited` or a number.
fn limit(survey: &Survey, pid: impl Display, name: &str) -> Fact<String> {
    let limits = survey.root.read(&format!("/proc/{pid}/limits"));
    limits.and_then(|limits| {
        let value = limits.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
        parsed(value.map(str::to_owned).ok_or(()))
    })
}

/// How long a real-time thread of it may run without sleeping before it is sent a signal, in microseconds.
pub(super) fn run_time(survey: &Survey) -> Reading {
    about(survey, "limits", |pid| limit(survey, pid, "Max realtime timeout").map(Value::Text))
}

/// Whether it has a capability that the kernel asks of the machine: in a user namespace of its own it has none
/// (user_namespaces(7)). A kernel without user namespaces
/// has no link to one.
fn has_capability(survey: &Survey, pid: impl Display + Copy, number: u32) -> Fact<bool> {
    match in_first_user_namespace(&survey.root, pid) {
        Fact::Value(true) | Fact::Absent => {}
        outside => return outside,
    }
    let status = survey.root.read(&format!("/proc/{pid}/status"));
    status.and_then(|status| {
        let word = status_word(&status, "CapEff").ok_or(());
        parsed(word.and_then(|word| u64::from_str_radix(&word, 16).map_err(|_| ())))
            .map(|set| set >> number & 1 == 1)
    })
}

/// Whether it may give its threads a real-time policy: by capability or by limit (sched(7)).
fn real_time(survey: &Survey, pid: impl Display + Copy) -> Fact<Value> {
    let limit = limit(survey, pid, "Max realtime priority");
    has_capability(survey, pid, SYS_NICE)
        .and_then(|able| limit.map(|limit| Value::Flag(able || limit != "0")))
}

/// Whether it may open the device that keeps idle states shallow: by its user and groups, or by a capability.
pub(super) fn may_ask_for_latency(survey: &Survey) -> Reading {
    about(survey, "status", |pid| {
        let status = survey.root.read(&format!("/proc/{pid}/status"));
        let able = has_capability(survey, pid, DAC_OVERRIDE);
        latency_request::permission(&survey.root).and_then(|permission| {
            let allowed = status.and_then(|status| {
                let numbers = |name: &str| -> Vec<u32> {
                    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
                    line.into_iter()
                        .flat_map(str::split_whitespace)
                        .filter_map(|word| word.parse().ok())
                        .collect()
                };
                // The effective one is the second.
                let second = |name: &str| numbers(name).get(1).copied();
                let mut groups = numbers("Groups");
                groups.extend(second("Gid"));
                parsed(second("Uid").map(|user| permission.allows(user, &groups)).ok_or(()))
            });
            allowed.and_then(|allowed| match allowed {
                true => Fact::Value(Value::Flag(true)),
                false => able.map(Value::Flag),
            })
        })
    })
}

/// Whether it may lock all that it will ever use.
fn memory(survey: &Survey, pid: impl Display + Copy) -> Fact<Value> {
    let limit = limit(survey, pid, "Max locked memory");
    has_capability(survey, pid, IPC_LOCK)
        .and_then(|able| limit.map(|limit| Value::Flag(able || limit == "unlimited")))
}

pub(super) fn may_be_real_time(survey: &Survey) -> Reading {
    about(survey, "{status,limits}", |pid| real_time(survey, pid))
}

pub(super) fn may_lock_memory(survey: &Survey) -> Reading {
    about(survey, "{status,limits}", |pid| memory(survey, pid))
}

/// Whoever asks, which is what the programs that it starts inherit.
const OWN: &str = "self";

pub(in crate::runtime) const OWN_FACTS: &[NamedFact] = &[
    fact("limits.real-time", "whether programs started from here may choose a real-time policy", |survey| {
        reading(real_time(survey, OWN), "/proc/self/{status,limits}")
    }),
    fact("limits.memory", "whether programs started from here may lock all their memory", |survey| {
        reading(memory(survey, OWN), "/proc/self/{status,limits}")
    }),
    fact(
        "limits.run-time",
        "microseconds that a real-time thread started from here may run without sleeping, or unlimited",
        |survey| reading(limit(survey, OWN, "Max realtime timeout").map(Value::Text), "/proc/self/limits"),
    ),
    fact(
        "limits.cpu",
        "control groups whose limit on CPU time holds for programs started from here",
        |survey| {
            let shown =
                |quota: &CpuQuota| item(&quota.group, format!("{} of each {}", quota.quota, quota.period));
            let quotas = place::cpu_quotas(&survey.root);
            reading(quotas.map(|quotas| Value::List(quotas.iter().map(shown).collect())), "/proc/self/cgroup")
        },
    ),
];

/// Control groups above it whose CPU time is limited (cgroup-v2.rst, `cpu.max`), each with its limit.
pub(super) fn cpu_quotas(survey: &Survey) -> Reading {
    about(survey, "cgroup", |pid| {
        let groups = survey.root.read(&format!("/proc/{pid}/cgroup"));
        groups.and_then(|groups| {
            let path = groups.lines().find_map(|line| line.strip_prefix("0::"));
            match (path, mounts(&survey.root).into_iter().find(is_v2)) {
                (Some(path), Some(mount)) => {
                    Fact::Value(Value::List(quotas(survey, &mount.point.to_string_lossy(), path)))
                }
                _ => Fact::Absent,
            }
        })
    })
}

/// The limited ones of a group and those above it.
fn quotas(survey: &Survey, top: &str, path: &str) -> Vec<Item> {
    let ends = path.char_indices().filter(|(at, c)| *at > 0 && *c == '/').map(|(at, _)| at);
    let groups = ends.chain([path.len()]).map(|end| &path[..end]).filter(|group| group.len() > 1);
    let limited = groups.filter_map(|group| {
        let quota = survey.root.read(&format!("{}{group}/cpu.max", top.trim_end_matches('/')));
        let quota = quota.value().filter(|quota| !quota.starts_with("max"))?.clone();
        Some(item(group, quota))
    });
    limited.collect()
}

/// The process that traces it, by ptrace(2): 0 for none.
pub(super) fn tracer(survey: &Survey) -> Reading {
    about(survey, "status", |pid| {
        let status = survey.root.read(&format!("/proc/{pid}/status"));
        status.and_then(|status| {
            parsed(status_word(&status, "TracerPid").ok_or(()).and_then(|pid| pid.parse().map_err(|_| ())))
                .map(Value::Number)
        })
    })
}
