//! What stands between the run and the machine: containers, CPU quotas, coarse timers, idle CPUs that poll. And what is to be done about a
//! missing privilege, which differs there.

use units::Nanos;

use crate::WarningId as Id;
use crate::{Fact, Header, Machine, Place, QuotaEvidence, Scenario, Warning};

/// Timers without high resolution expire on the tick: 1 to 10 ms.
const COARSE: Nanos = Nanos::from_micros(1);

/// What follows from the place, whatever was measured.
pub(super) fn of_machine(machine: &Machine) -> Vec<Warning> {
    let place = &machine.place;
    let container = place.container.value().filter(|maker| *maker != "none");
    let within = match (container, is_user_namespace(place)) {
        (Some(maker), true) => Some(format!("{maker}, in a user namespace")),
        (Some(maker), false) => Some(maker.clone()),
        (None, true) => Some("a user namespace of its own".into()),
        (None, false) => None,
    };
    let container = within.map(|within| {
        let cure = "what else runs on its host, and its limits, belong to the figures: they hold for this container there";
        Warning::note(Id::Container, within, cure)
    });
    let timers = &machine.timers;
    let coarse = timers.resolution.value().filter(|resolution| **resolution > COARSE).map(|resolution| {
        let devices: Vec<&str> = timers.event_devices.iter().map(|device| &*device.name).collect();
        let devices = if devices.is_empty() { "unknown".into() } else { devices.join(", ") };
        Warning::note(
            Id::CoarseTimers,
            format!(
                "clock_getres is {resolution}, clock event device {devices}: wake-ups are late by up to that"
            ),
            "CONFIG_HIGH_RES_TIMERS, a clock event device that can be programmed (one shot), no highres=off",
        )
    });
    container.into_iter().chain(coarse).chain(of_polling(machine)).collect()
}

/// An idle CPU that polls is awake already: wake-ups are as early as they can be, on any machine that is set up so.
fn of_polling(machine: &Machine) -> Option<Warning> {
    let words = machine.kernel.command_line.value().map(String::as_str).unwrap_or_default();
    let deeper = || machine.idle_states.iter().filter(|state| state.latency_us > 0);
    let evidence = if words.split_whitespace().any(|word| word == "idle=poll") {
        "idle=poll on the kernel's command line"
    } else if deeper().count() > 0 && deeper().all(|state| state.disabled) {
        "every idle state of the first CPU that takes time to leave is disabled"
    } else {
        return None;
    };
    let cure =
        "the figures hold while that is so; without it wake-ups from idle are later, and the CPUs cooler";
    Some(Warning::note(Id::PollingIdle, evidence, cure))
}

fn is_user_namespace(place: &Place) -> bool {
    place.user_namespace.value().is_some_and(|own| *own)
}

/// Real-time threads escape a quota, loads do not: the figures are better than without it.
pub(super) fn of_quotas(scenario: &Scenario) -> Vec<Warning> {
    let quotas = scenario.evidence.quotas.value().into_iter().flatten();
    quotas.filter_map(|quota| of_quota(quota, !scenario.load.stressors.is_empty())).collect()
}

fn of_quota(quota: &QuotaEvidence, loaded: bool) -> Option<Warning> {
    let limit = &quota.limit;
    let millis = |time: Nanos| time.0 / 1_000_000;
    let what = format!("{}: {} ms in each {} ms", limit.group, millis(limit.quota), millis(limit.period));
    let cure = "measure without it (cpu.max, cpu.cfs_quota_us; docker --cpus): ordinary threads are stopped by it, real-time ones are not";
    match &quota.throttled {
        Fact::Value(Nanos(0)) => None,
        Fact::Value(time) => {
            let warn = if loaded { Warning::inconclusive } else { Warning::note };
            let evidence = format!("{what}, which stopped the loads for {} ms in all", millis(*time));
            Some(warn(Id::CpuQuota, evidence, cure))
        }
        missing if loaded => {
            let evidence = format!("{what}; for how long it stopped the loads is {missing}");
            Some(Warning::inconclusive(Id::CpuQuota, evidence, cure))
        }
        _ => None,
    }
}

/// What a privilege is for.
#[derive(Clone, Copy)]
pub(super) enum Need {
    /// A real-time policy.
    Scheduling,
    /// Locked memory.
    Memory,
}

/// How the privilege is had here.
pub(super) fn cure(header: &Header, need: Need) -> &'static str {
    let place = &header.machine.place;
    let contained = place.container.value().is_some_and(|maker| maker != "none");
    match need {
        Need::Scheduling if contained => {
            "start the container with --cap-add=SYS_NICE --ulimit rtprio=99 (Kubernetes: securityContext.capabilities.add); \
             in a real-time group give it cpu.rt_runtime_us: --cpu-rt-runtime"
        }
        Need::Scheduling if is_user_namespace(place) => {
            "a user namespace's root has no say in scheduling: raise RLIMIT_RTPRIO before it is entered (ulimit -r 99)"
        }
        Need::Scheduling => {
            "run as root, or grant CAP_SYS_NICE, or raise RLIMIT_RTPRIO; in a real-time group give it cpu.rt_runtime_us"
        }
        Need::Memory if contained => "start the container with --cap-add=IPC_LOCK or --ulimit memlock=-1",
        Need::Memory if is_user_namespace(place) => {
            "raise RLIMIT_MEMLOCK before the user namespace is entered (ulimit -l unlimited)"
        }
        Need::Memory => "run as root, grant CAP_IPC_LOCK, or raise RLIMIT_MEMLOCK (ulimit -l)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::{header, scenario};
    use crate::{CpuQuota, Effect, IdleState, StressorEvidence};

    fn quota(throttled: Fact<Nanos>) -> QuotaEvidence {
        let limit = CpuQuota {
            group: "/sys/fs/cgroup/job".into(),
            quota: Nanos::from_millis(20),
            period: Nanos::from_millis(100),
        };
        QuotaEvidence { limit, periods: Fact::Value(3), throttled }
    }

    #[test]
    fn a_quota_counts_where_it_stopped_a_load() {
        let warned = |throttled, loaded: bool| {
            let mut scenario = scenario(&[5_000]);
            scenario.load.stressors = vec![StressorEvidence::default(); usize::from(loaded)];
            scenario.evidence.quotas = Fact::Value(vec![quota(throttled)]);
            of_quotas(&scenario).first().map(|warning| warning.effect)
        };
        assert_eq!(warned(Fact::Value(Nanos(0)), true), None);
        assert_eq!(warned(Fact::Value(Nanos::from_millis(300)), true), Some(Effect::Inconclusive));
        assert_eq!(warned(Fact::Value(Nanos::from_millis(300)), false), Some(Effect::Note));
        assert_eq!(warned(Fact::Absent, true), Some(Effect::Inconclusive), "unknown is not 0");
    }

    #[test]
    fn a_container_and_coarse_timers_are_noted() {
        let mut machine = Machine::default();
        assert_eq!(of_machine(&machine), vec![]);
        machine.place.container = Fact::Value("podman".into());
        machine.place.user_namespace = Fact::Value(true);
        machine.timers.resolution = Fact::Value(Nanos::from_millis(4));
        let warned: Vec<_> = of_machine(&machine).iter().map(|one| (one.id, one.effect)).collect();
        assert_eq!(warned, [(Id::Container, Effect::Note), (Id::CoarseTimers, Effect::Note)]);
    }

    #[test]
    fn idle_cpus_that_poll_are_noted_whatever_makes_them() {
        let polls = |command_line: &str, states: &[(u64, bool)]| {
            let mut machine = Machine::default();
            machine.kernel.command_line = Fact::Value(command_line.into());
            let state = |&(latency_us, disabled)| IdleState { name: "x".into(), latency_us, disabled };
            machine.idle_states = states.iter().map(state).collect();
            of_machine(&machine).iter().any(|one| (one.id, one.effect) == (Id::PollingIdle, Effect::Note))
        };
        assert!(polls("quiet idle=poll", &[]));
        assert!(polls("quiet", &[(0, false), (2, true), (100, true)]));
        assert!(!polls("idle=halt my.idle=poll", &[(0, false), (2, false), (100, true)]));
        assert!(!polls("", &[(0, false)]), "no deeper state to disable");
        assert!(!polls("", &[]));
    }

    #[test]
    fn cures_in_a_container_are_those_of_a_container() {
        let mut header = header();
        assert!(cure(&header, Need::Scheduling).contains("RLIMIT_RTPRIO"));
        header.machine.place.user_namespace = Fact::Value(true);
        assert!(cure(&header, Need::Memory).contains("before the user namespace"));
        header.machine.place.container = Fact::Value("docker".into());
        assert!(cure(&header, Need::Scheduling).contains("--cap-add=SYS_NICE"));
        assert!(cure(&header, Need::Memory).contains("memlock"));
    }
}
