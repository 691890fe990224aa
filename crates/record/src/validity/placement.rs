//! Whether a pinned thread woke on its own CPU each time.

use crate::WarningId as Id;
use crate::{ScenarioHead, ThreadEvidence, Warning};

/// What follows from the CPUs that a pinned thread, named `who`, woke up on.
pub(super) fn of_thread(who: &str, head: &ScenarioHead, thread: &ThreadEvidence) -> Option<Warning> {
    if let Some(elsewhere) = thread.elsewhere {
        let grid = head.grid(0, 0);
        let at = |activation: u64| grid.since_first(activation).rounded();
        let times = match thread.migrations {
            0 | 1 => "moved".into(),
            times => format!("moved {times} times"),
        };
        return Some(Warning::inconclusive(
            Id::Migrated,
            format!(
                "{who} was {times}: {} wake-ups on another CPU ({}), from {} to {} after the start",
                elsewhere.wakes,
                elsewhere.cpu,
                at(elsewhere.first),
                at(elsewhere.last)
            ),
            "did another program move it (taskset, a cpuset), or did its CPU go offline?",
        ));
    }
    if thread.migrations > 0 {
        let what = format!("{who} changed CPUs {} times", thread.migrations);
        return Some(Warning::inconclusive(Id::Migrated, what, "did its CPU go offline?"));
    }
    thread.cpu_reading.is_none().then(|| {
        Warning::note(
            Id::MigrationsUnknown,
            format!("{who}: its CPU at each wake-up could only be read by a system call, and was not"),
            "a kernel with CONFIG_RSEQ (4.18 and later) tells it for nothing; a short visit to another CPU could hide",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::scenario;
    use crate::{CpuReading, Effect, Elsewhere};
    use units::CpuId;

    fn thread() -> ThreadEvidence {
        ThreadEvidence { cpu_reading: Some(CpuReading::Library), ..ThreadEvidence::default() }
    }

    #[test]
    fn a_thread_that_was_moved_and_moved_back_is_named_with_its_times() {
        let head = scenario(&[]).head;
        assert_eq!(of_thread("it", &head, &thread()), None);
        let elsewhere = Some(Elsewhere { wakes: 500, cpu: CpuId(0), first: 1_200, last: 1_699 });
        let warning = of_thread("it", &head, &ThreadEvidence { migrations: 1, elsewhere, ..thread() });
        let warning = warning.unwrap();
        assert_eq!((warning.id, warning.effect), (Id::Migrated, Effect::Inconclusive));
        assert!(
            warning.evidence.contains("500 wake-ups on another CPU (0), from 1.2 s to 1.7 s"),
            "{warning:?}"
        );
    }

    #[test]
    fn moves_that_nobody_looked_for_are_unknown() {
        let warning =
            of_thread("it", &scenario(&[]).head, &ThreadEvidence { cpu_reading: None, ..thread() }).unwrap();
        assert_eq!((warning.id, warning.effect), (Id::MigrationsUnknown, Effect::Note));
    }
}
