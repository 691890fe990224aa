//! What counts up while figures are taken, read before and after.

use std::collections::BTreeMap;

use record::{CpuEvidence, CpuShare, Evidence, Fact, FrequencyResidency, IdleResidency};
use sysroot::SysRoot;
use sysroot::parsed;
use units::{CpuId, CpuList, Nanos};

use crate::counts::{self, Counts, both};
use crate::cpu_times::{CpuTime, busy_permille, cpu_times, from_ticks};
use crate::energy::{self, Meters};
use crate::facts::processors::{cpuinfo_value, governor, idle_directories, online};
use crate::facts::{CLOCK_SOURCE, virtualization::is_guest_by_flag};
use crate::frequencies::frequencies;
use crate::heat::{temperature, throttles};
use crate::quotas::{Quota, quotas};

/// The machine's counters at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    online: CpuList,
    times: Fact<BTreeMap<CpuId, CpuTime>>,
    cpus: Vec<CpuCounters>,
    suspends: Fact<u64>,
    clock_source: Fact<String>,
    temperature: Fact<i64>,
    quotas: Fact<Vec<Quota>>,
    counts: Counts,
    meters: Meters,
}

/// A CPU's counters.
#[derive(Clone, Debug, PartialEq)]
struct CpuCounters {
    cpu: CpuId,
    smis: Fact<u32>,
    throttles: Fact<u64>,
    idle: Vec<IdleResidency>,
    frequencies: Fact<FrequencyResidency>,
    governor: Fact<String>,
}

impl Snapshot {
    /// Reads the counters of `cpus` and of the machine.
    ///
    /// Reading a CPU's SMI count interrupts that CPU: not a thing to do while it is measured.
    pub fn take(root: &SysRoot, cpus: &CpuList) -> Self {
        let smis_count = counts_smis(root.read("/proc/cpuinfo").value().map_or("", String::as_str));
        Self {
            online: online(root),
            times: cpu_times(root),
            cpus: cpus.iter().map(|cpu| CpuCounters::read(root, cpu, smis_count)).collect(),
            suspends: suspends(root),
            clock_source: root.read(CLOCK_SOURCE),
            temperature: temperature(root),
            quotas: quotas(root),
            counts: Counts::take(root, cpus),
            meters: Meters::take(root),
        }
    }

    /// The highest temperature, in thousandths of a degree Celsius.
    pub fn temperature(&self) -> &Fact<i64> {
        &self.temperature
    }
}

impl CpuCounters {
    fn read(root: &SysRoot, cpu: CpuId, smis_count: bool) -> Self {
        let smis = if smis_count { smis(root, cpu) } else { Fact::Unsupported };
        Self {
            cpu,
            smis,
            throttles: throttles(root, cpu),
            idle: idle_residencies(root, cpu),
            frequencies: frequencies(root, cpu),
            governor: governor(root, cpu),
        }
    }
}

/// Whether the CPU counts SMIs in MSR 0x34, as Intel's do since Nehalem. A guest would see its own at most, not
/// those of the host that hold it up.
fn counts_smis(cpuinfo: &str) -> bool {
    cpuinfo_value(cpuinfo, "vendor_id") == Some("GenuineIntel") && !is_guest_by_flag(cpuinfo)
}

/// MSR_SMI_COUNT through the msr driver; its upper half is reserved.
fn smis(root: &SysRoot, cpu: CpuId) -> Fact<u32> {
    root.bytes_at(&format!("/dev/cpu/{cpu}/msr"), 0x34).map(|bytes| u64::from_ne_bytes(bytes) as u32)
}

/// Time and entries of each idle state since boot; cpuidle counts the time in microseconds.
fn idle_residencies(root: &SysRoot, cpu: CpuId) -> Vec<IdleResidency> {
    let state = |directory: &String| {
        let time: u64 = *root.number(&format!("{directory}/time")).value()?;
        Some(IdleResidency {
            name: root.read(&format!("{directory}/name")).value()?.clone(),
            time: Nanos(time.saturating_mul(1000)),
            entries: *root.number(&format!("{directory}/usage")).value()?,
        })
    };
    idle_directories(root, cpu).iter().filter_map(state).collect()
}

/// How often the machine was suspended since boot: sysfs from 5.2 on, debugfs before.
fn suspends(root: &SysRoot) -> Fact<u64> {
    match root.number("/sys/power/suspend_stats/success") {
        Fact::Absent => root
            .read("/sys/kernel/debug/suspend_stats")
            .and_then(|text| parsed(suspends_of_debugfs(&text).ok_or(()))),
        fact => fact,
    }
}

fn suspends_of_debugfs(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.trim().strip_prefix("success:"))?.trim().parse().ok()
}

/// What the machine says of the time between two snapshots of the same CPUs. What others have to say (threads,
/// kernel messages, rivals, the recorder) is left empty.
pub fn evidence_between(before: &Snapshot, after: &Snapshot) -> Evidence {
    let mut counters = counts::between(&before.counts, &after.counts);
    energy::between(&before.meters, &after.meters, counters.over.duration(), &mut counters);
    let pairs = before.cpus.iter().zip(&after.cpus).filter(|(before, after)| before.cpu == after.cpu);
    Evidence {
        cpus: pairs.map(|pair| cpu_evidence(pair, steal(before, after, pair.0.cpu))).collect(),
        online_changed: (before.online != after.online).then(|| after.online.clone()),
        suspends: both(&before.suspends, &after.suspends, |before, after| increase(*before, *after)),
        temperature_millidegrees: higher(&before.temperature, &after.temperature),
        clock_source_changed: (before.clock_source != after.clock_source)
            .then(|| after.clock_source.to_string()),
        quotas: crate::quotas::between(&before.quotas, &after.quotas),
        counters,
        ..Evidence::default()
    }
}

fn cpu_evidence((before, after): (&CpuCounters, &CpuCounters), steal: Fact<Nanos>) -> CpuEvidence {
    CpuEvidence {
        cpu: after.cpu,
        steal,
        smis: both(&before.smis, &after.smis, |before, after| u64::from(after.wrapping_sub(*before))),
        thermal_throttles: both(&before.throttles, &after.throttles, |before, after| {
            increase(*before, *after)
        }),
        idle: idle_between(&before.idle, &after.idle),
        frequencies: crate::frequencies::between(&before.frequencies, &after.frequencies),
        governor: after.governor.clone(),
    }
}

/// Time that the hypervisor gave to somebody else. A kernel without paravirtual time always says 0.
fn steal(before: &Snapshot, after: &Snapshot, cpu: CpuId) -> Fact<Nanos> {
    let ticks = |times: &BTreeMap<CpuId, CpuTime>| times.get(&cpu).map(|time| time.steal);
    both(&before.times, &after.times, |before, after| (ticks(before), ticks(after))).and_then(|ticks| {
        match ticks {
            (Some(Some(before)), Some(Some(after))) => Fact::Value(from_ticks(after.saturating_sub(before))),
            (Some(None), _) | (_, Some(None)) => Fact::Unsupported,
            _ => Fact::Absent,
        }
    })
}

/// What was added in each idle state that is there before and after.
fn idle_between(before: &[IdleResidency], after: &[IdleResidency]) -> Vec<IdleResidency> {
    let added = after.iter().filter_map(|after| {
        let before = before.iter().find(|before| before.name == after.name)?;
        let time = Nanos(increase(before.time.0, after.time.0));
        Some(IdleResidency {
            name: after.name.clone(),
            time,
            entries: increase(before.entries, after.entries),
        })
    });
    added.collect()
}

/// By how much a counter grew; one that is lower than before began anew at 0.
fn increase(before: u64, after: u64) -> u64 {
    after.checked_sub(before).unwrap_or(after)
}

/// The higher of two readings; one of them is enough.
fn higher(before: &Fact<i64>, after: &Fact<i64>) -> Fact<i64> {
    match (before.value(), after.value()) {
        (Some(before), Some(after)) => Fact::Value(*before.max(after)),
        (Some(_), None) => before.clone(),
        _ => after.clone(),
    }
}

/// How busy each CPU online at both times was in between, whoever ran there: neither idle nor waiting for I/O.
/// Counters that went backwards, as the kernel's idle and wait times can, count as standing still. A CPU whose
/// counters all stood still is left out.
pub fn busy_between(before: &Snapshot, after: &Snapshot) -> Vec<CpuShare> {
    let (Fact::Value(before), Fact::Value(after)) = (&before.times, &after.times) else { return Vec::new() };
    let share = |(cpu, after): (&CpuId, &CpuTime)| {
        let busy_permille = busy_permille(before.get(cpu)?, after)?;
        Some(CpuShare { cpu: *cpu, busy_permille })
    };
    after.iter().filter_map(share).collect()
}

#[cfg(test)]
mod tests;
