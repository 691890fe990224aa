//! Whether the kernel held real-time threads back: RT throttling, a group's budget, the fair server.
//!
//! The kernel logs throttling once a boot. In every run counts: a real-time thread that never slept and did not get its
//! CPU all the time, beside a late wake-up of the probe; and what the scheduler's debug file says. Late wake-ups
//! alone prove nothing.

use units::{Nanos, Total};

use crate::WarningId as Id;
use crate::{Fact, Header, NeverAsleep, Scenario, Throttling, Warning};

/// Held back for less than this share of the time (per mille), a thread may have waited for others.
const LEAST_PERMILLE: u64 = 10;
/// Looks over less time than this say nothing.
const LEAST_OVER: Nanos = Nanos::from_millis(200);

pub(super) fn of_scenario(header: &Header, scenario: &Scenario) -> Vec<Warning> {
    let watch = &scenario.evidence.watch;
    let limits = watch.throttling.as_ref().unwrap_or(&header.machine.throttling);
    let probe: u64 = scenario.evidence.threads.iter().map(|thread| thread.cpu_time.0).total();
    let of_probe = Nanos(probe).0.saturating_mul(1000) / scenario.length.0.max(1);
    let held_back = watch.never_asleep.iter().filter(|one| was_held_back(one, of_probe));
    let mut warnings: Vec<Warning> = held_back.map(|one| warning(describe(one, limits))).collect();
    if let Fact::Value(cpus) = &watch.held_back {
        if !cpus.is_empty() {
            warnings.push(warning(format!(
                "rt_throttled on {} (sched/debug in debugfs); {}",
                cpus.named(),
                budget(limits)
            )));
        }
    }
    let messages = scenario.evidence.kernel_messages.value().into_iter().flatten();
    warnings
        .extend(messages.filter(|message| is_throttling(message)).map(|message| warning(message.clone())));
    warnings
}

/// Whether a line of the kernel's log says that it throttles.
pub(super) fn is_throttling(message: &str) -> bool {
    message.contains("throttling activated") || message.contains("DL replenish lagged")
}

fn warning(evidence: String) -> Warning {
    let cure = "let no real-time thread fill a CPU: have it sleep in each period. Longer wake-ups than without it are in the figures";
    Warning::note(Id::Throttled, evidence, cure)
}

/// `of_probe` is the CPU time, in per mille, that the probe took from it.
fn was_held_back(thread: &NeverAsleep, of_probe: u64) -> bool {
    let got = thread.ran.0.saturating_mul(1000) / thread.over.0.max(1);
    thread.over >= LEAST_OVER && got + of_probe + LEAST_PERMILLE < 1000
}

fn describe(thread: &NeverAsleep, limits: &Throttling) -> String {
    let NeverAsleep { name, tid, policy, priority, cpus, ran, over, worst } = thread;
    let millis = |time: &Nanos| time.0 / 1_000_000;
    format!(
        "{name} ({tid}) {policy} {priority} on {} never slept, and got {} of {} ms of CPU time while a wake-up was \
         {} ms late; {}",
        cpus.named(),
        millis(ran),
        millis(over),
        millis(worst),
        budget(limits)
    )
}

/// What may have done it.
fn budget(limits: &Throttling) -> String {
    let mut said = Vec::new();
    if let (Some(&runtime), Some(period)) = (limits.runtime_us.value(), limits.period_us.value()) {
        if runtime >= 0 {
            said.push(format!("sched_rt_runtime_us is {runtime} of {period}"));
        }
    }
    if let Some(group) = limits.group_runtime_us.value() {
        said.push(format!("the group's cpu.rt_runtime_us is {group}"));
    }
    match &limits.fair_server_runtime {
        Fact::Value(runtime) if runtime.0 > 0 => {
            said.push(format!("the fair server has {runtime} of each second"));
        }
        Fact::Unreadable(_) => said.push("the fair server may run too (its share cannot be read)".into()),
        _ => {}
    }
    if said.is_empty() { "what limits it is unknown".into() } else { said.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Effect;
    use crate::verdict::tests::{header, scenario};
    use units::Policy;

    fn spinner(ran: u64, over: u64) -> NeverAsleep {
        NeverAsleep {
            name: "spin".into(),
            tid: 7,
            policy: Policy::Fifo,
            priority: 1,
            cpus: "0".parse().unwrap(),
            ran: Nanos::from_millis(ran),
            over: Nanos::from_millis(over),
            worst: Nanos::from_millis(799),
        }
    }

    fn warnings_of(thread: NeverAsleep) -> Vec<Warning> {
        let (mut header, mut scenario) = (header(), scenario(&[5_000]));
        let throttling = &mut header.machine.throttling;
        (throttling.runtime_us, throttling.period_us) = (Fact::Value(200_000), Fact::Value(1_000_000));
        scenario.evidence.watch.never_asleep = vec![thread];
        of_scenario(&header, &scenario)
    }

    #[test]
    fn a_spinner_that_did_not_get_its_cpu_is_throttling_and_one_that_did_is_not() {
        let warnings = warnings_of(spinner(400, 2_000));
        assert_eq!((warnings[0].id, warnings[0].effect), (Id::Throttled, Effect::Note));
        let evidence = &warnings[0].evidence;
        assert!(
            evidence.contains("got 400 of 2000 ms") && evidence.contains("200000 of 1000000"),
            "{evidence}"
        );
        assert!(warnings_of(spinner(1_998, 2_000)).is_empty());
        assert!(warnings_of(spinner(10, 100)).is_empty(), "too short a look");
    }

    #[test]
    fn the_schedulers_own_word_and_the_kernels_log_count() {
        let (header, mut scenario) = (header(), scenario(&[5_000]));
        scenario.evidence.watch.held_back = Fact::Value("1".parse().unwrap());
        scenario.evidence.kernel_messages =
            Fact::Value(vec!["sched: RT throttling activated".into(), "BUG: x".into()]);
        assert_eq!(of_scenario(&header, &scenario).len(), 2);
        scenario.evidence.watch.held_back = Fact::Value(units::CpuList::new());
        assert_eq!(of_scenario(&header, &scenario).len(), 1);
    }
}
