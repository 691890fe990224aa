//! What was read of the measuring threads while they measured: changes, and readings that failed.

use crate::WarningId as Id;
use crate::{Attribute, Scenario, SetUpChange, Warning};

/// Changes named one by one.
const MOST: usize = 8;

pub(super) fn of_threads(scenario: &Scenario) -> Vec<Warning> {
    let evidence = &scenario.evidence;
    let watch = &evidence.watch;
    let mut warnings: Vec<Warning> =
        watch.changes.iter().take(MOST).map(|change| of_change(scenario, change)).collect();
    let more = watch.changes.len().saturating_sub(MOST) as u64 + watch.changes_left_out;
    if more > 0 {
        let cure = "the record has them, up to a hundred (evidence.watch.changes)";
        warnings.push(Warning::inconclusive(Id::SetUpChanged, format!("{more} more changes"), cure));
    }
    if watch.readings == 0 && !evidence.threads.is_empty() {
        warnings.push(unread("nobody looked while they measured".into()));
    }
    warnings.extend(watch.failures.iter().take(MOST).map(|failure| unread(failure.clone())));
    for thread in &evidence.threads {
        let who = scenario.thread_name(thread.thread as usize);
        warnings.extend(thread.unread.iter().map(|what| unread(format!("{who} could not read its {what}"))));
    }
    warnings
}

/// A lock that was lifted can only make wake-ups later.
fn of_change(scenario: &Scenario, change: &SetUpChange) -> Warning {
    let who = change.thread.map_or("the probe".into(), |thread| scenario.thread_name(thread as usize));
    let what = match change.what {
        Attribute::Policy => "policy",
        Attribute::Priority => "priority",
        Attribute::Affinity => "allowed CPUs",
        Attribute::LockedMemory => "memory",
    };
    let seconds = |time: units::Nanos| format!("{:.2} s", time.0 as f64 / 1e9);
    let until = change.until.map_or("the end".into(), seconds);
    let evidence =
        format!("{who}: {what} {} -> {} from {} to {until}", change.was, change.became, seconds(change.from));
    let cure = "find out what changes it: audit rules on sched_setattr and sched_setaffinity, a tuning daemon, rtkit";
    match change.what {
        Attribute::LockedMemory => Warning::note(Id::SetUpChanged, evidence, cure),
        _ => Warning::inconclusive(Id::SetUpChanged, evidence, cure),
    }
}

fn unread(what: String) -> Warning {
    let cure = "without it nothing shows that the figures are those of the threads that were asked for: is /proc mounted?";
    Warning::inconclusive(Id::SetUpUnread, what, cure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Effect;
    use crate::verdict::tests::scenario;
    use units::Nanos;

    fn change(what: Attribute, was: &str, became: &str, until: Option<u64>) -> SetUpChange {
        SetUpChange {
            thread: (what != Attribute::LockedMemory).then_some(0),
            what,
            was: was.into(),
            became: became.into(),
            from: Nanos::from_secs(4),
            until: until.map(Nanos::from_secs),
        }
    }

    #[test]
    fn a_change_that_was_taken_back_makes_a_pass_inconclusive() {
        let mut scenario = scenario(&[5_000]);
        scenario.evidence.watch.changes = vec![
            change(Attribute::Priority, "98", "3", Some(5)),
            change(Attribute::LockedMemory, "locked", "not locked", None),
        ];
        let found: Vec<_> =
            of_threads(&scenario).into_iter().map(|one| (one.id, one.effect, one.evidence)).collect();
        let expected = [
            (Effect::Inconclusive, "the thread of CPU 0: priority 98 -> 3 from 4.00 s to 5.00 s"),
            (Effect::Note, "the probe: memory locked -> not locked from 4.00 s to the end"),
        ];
        assert_eq!(found, expected.map(|(effect, text)| (Id::SetUpChanged, effect, text.to_owned())));
    }

    #[test]
    fn what_could_not_be_read_is_unknown_and_said() {
        let mut one = scenario(&[5_000]);
        one.evidence.watch.failures =
            vec!["sched_getscheduler of thread 7: No such process (errno 3)".into()];
        one.evidence.threads[0].unread = vec!["timer slack: Operation not permitted".into()];
        let warnings = of_threads(&one);
        assert_eq!(warnings.len(), 2);
        assert!(warnings.iter().all(|one| (one.id, one.effect) == (Id::SetUpUnread, Effect::Inconclusive)));
        let mut nobody = scenario(&[5_000]);
        nobody.evidence.watch.readings = 0;
        assert_eq!(of_threads(&nobody).len(), 1);
    }
}
