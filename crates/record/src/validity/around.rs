//! What happened to the machine around a scenario: CPUs, clocks, suspends, requests, the kernel's log, other threads.

use super::{NO_LATENCY_REQUEST, throttling};
use crate::WarningId as Id;
use crate::{Evidence, Header, Machine, Warning};

/// What follows from it.
pub(super) fn of_machine(header: &Header, evidence: &Evidence) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Some(online) = &evidence.online_changed {
        warnings.push(Warning::inconclusive(
            Id::Hotplug,
            format!("online after the scenario: {online}"),
            "measure again without taking CPUs offline",
        ));
    }
    if evidence.suspends.value().is_some_and(|&count| count > 0) {
        warnings.push(Warning::inconclusive(
            Id::Suspended,
            format!("{} times (/sys/power/suspend_stats)", evidence.suspends),
            "inhibit suspend while measuring",
        ));
    }
    if let Some(source) = &evidence.clock_source_changed {
        warnings.push(Warning::inconclusive(
            Id::ClockSourceChanged,
            format!("it is {source} now"),
            "the kernel found the old one unstable: see dmesg",
        ));
    }
    let messages = evidence.kernel_messages.value().into_iter().flatten();
    warnings.extend(messages.filter(|message| !throttling::is_throttling(message)).map(|message| {
        Warning::note(Id::KernelMessage, message.clone(), "see dmesg around the time of the run")
    }));
    warnings.extend(of_requests(header, evidence));
    warnings.extend(of_governors(&header.machine, evidence));
    let (kernel, others): (Vec<_>, Vec<_>) = evidence.rivals.iter().partition(|rival| rival.kernel);
    for rivals in [kernel, others] {
        let named: Vec<String> = rivals
            .iter()
            .take(5)
            .map(|rival| {
                format!(
                    "{} ({}) {} {} on {}",
                    rival.name,
                    rival.tid,
                    rival.policy,
                    rival.priority,
                    rival.cpus.named()
                )
            })
            .collect();
        if !named.is_empty() {
            let more = rivals.len() - named.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let cure = "measure at a priority above theirs, or keep them off the measured CPUs";
            warnings.push(Warning::note(Id::Rival, format!("{}{more}", named.join("; ")), cure));
        }
    }
    warnings
}

/// A latency request that somebody made while the scenario ran, and that an application would not find.
fn of_requests(header: &Header, evidence: &Evidence) -> Option<Warning> {
    let own = header.held.iter().any(|held| held.what == "/dev/cpu_dma_latency");
    let before = header.machine.dma_latency_us.value().copied().unwrap_or(NO_LATENCY_REQUEST);
    let least = evidence.watch.latency_request_us.value().filter(|&&least| least < before && !own)?;
    Some(Warning::inconclusive(
        Id::ForeignLatencyRequest,
        format!("/dev/cpu_dma_latency was at {least} us during the scenario, {before} us before the run"),
        "find who holds it (fuser /dev/cpu_dma_latency): without it the idle states are deeper",
    ))
}

/// A governor that was changed under way: the figures are those of two machines.
fn of_governors(machine: &Machine, evidence: &Evidence) -> Option<Warning> {
    let changed = evidence.cpus.iter().find_map(|cpu| {
        let now = cpu.governor.value()?;
        let before = machine.governors.iter().find(|governor| governor.cpus.contains(cpu.cpu))?;
        (before.name != *now).then(|| format!("CPU {}: {} -> {now}", cpu.cpu, before.name))
    })?;
    let cure = "measure again with one governor: is a power daemon at work?";
    Some(Warning::inconclusive(Id::GovernorChanged, changed, cure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validity::of_scenario;
    use crate::verdict::tests::{header, scenario};
    use crate::{CpuEvidence, Effect, Fact, TaskEvidence};
    use units::{CpuId, Policy};

    fn ids(warnings: &[Warning]) -> Vec<(Id, Effect)> {
        warnings.iter().map(|warning| (warning.id, warning.effect)).collect()
    }

    #[test]
    fn rivals_can_only_have_delayed_the_probe_and_are_notes() {
        let mut scenario = scenario(&[5_000]);
        let rival = |name: &str, kernel| TaskEvidence {
            name: name.into(),
            tid: 7,
            policy: Policy::Fifo,
            priority: 99,
            cpus: "0".parse().unwrap(),
            kernel,
        };
        scenario.evidence.rivals = vec![rival("migration/0", true), rival("motor", false)];
        let warnings = of_scenario(&header(), &scenario);
        assert_eq!(ids(&warnings), [(Id::Rival, Effect::Note), (Id::Rival, Effect::Note)]);
        assert!(warnings[1].evidence.contains("motor (7) fifo 99"));
    }

    #[test]
    fn a_governor_that_changed_under_way_is_seen() {
        let (mut header, mut scenario) = (header(), scenario(&[5_000]));
        let governor = |name: &str| Fact::Value(name.to_owned());
        header.machine.governors =
            vec![crate::Governor { name: "powersave".into(), cpus: "0".parse().unwrap() }];
        for (now, expected) in [("powersave", 0), ("performance", 1)] {
            scenario.evidence.cpus =
                vec![CpuEvidence { cpu: CpuId(0), governor: governor(now), ..CpuEvidence::default() }];
            assert_eq!(of_scenario(&header, &scenario).len(), expected, "{now}");
        }
    }
}
