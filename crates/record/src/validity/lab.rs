//! Guests of the lab: what their clocks make of the figures, and which doubts of real machines have no sense in them.

use crate::WarningId as Id;
use crate::{Header, Lab, LabTime, Warning};

/// What the lab's time does to the figures, said once a run.
pub(super) fn of_guest(header: &Header) -> Option<Warning> {
    let lab = header.machine.lab.as_ref()?;
    let guest = format!("{} in {} ({})", lab.kernel, lab.emulator, lab.cpu_model);
    Some(match lab.time {
        LabTime::Instructions => Warning::note(
            Id::LabInstructions,
            format!("{guest}: a nanosecond is an instruction; not modelled: {}", lab.not_modelled.join(", ")),
            "it is the length of the kernel's path, and one draw of it: measure several seeds, compare tails before \
             maxima, and take a bound from the machine itself",
        ),
        LabTime::Wall => Warning::inconclusive(
            Id::LabWallTime,
            format!("{guest}: not modelled: {}", lab.not_modelled.join(", ")),
            "take latencies with --time instructions, or on a machine; counts and findings of this guest stand",
        ),
    })
}

/// Doubts that [`of_guest`] says in one sentence, or that a guest of the lab cannot be cured of: it is a guest, it
/// has just booted, nothing but this run lives in it, and in instruction time its one CPU carries everything.
const SENSELESS: [(Id, &[LabTime]); 5] = [
    (Id::Guest, &[LabTime::Instructions, LabTime::Wall]),
    (Id::BusyBefore, &[LabTime::Instructions, LabTime::Wall]),
    (Id::ThrottlingOn, &[LabTime::Instructions, LabTime::Wall]),
    (Id::NotIsolated, &[LabTime::Instructions]),
    (Id::RecorderShares, &[LabTime::Instructions, LabTime::Wall]),
];

/// Whether a doubt means something for a run in this guest, or on a machine where there is none.
pub(super) fn has_sense(id: Id, lab: Option<&Lab>) -> bool {
    let Some(lab) = lab else { return true };
    !SENSELESS.iter().any(|(senseless, times)| *senseless == id && times.contains(&lab.time))
}

#[cfg(test)]
mod tests {
    use super::super::of_run;
    use super::*;
    use crate::verdict::tests::{guest, header};
    use crate::{Effect, Fact};

    /// A header with the doubts that every guest has.
    fn doubtful(time: Option<LabTime>) -> Header {
        let mut header = header();
        let machine = &mut header.machine;
        machine.lab = time.map(guest);
        machine.virtualization = Fact::Value("qemu".into());
        machine.load_average_hundredths = Fact::Value(400);
        machine.throttling.runtime_us = Fact::Value(950_000);
        machine.throttling.period_us = Fact::Value(1_000_000);
        machine.cpus.isolated = Fact::Value("".parse().unwrap_or_default());
        machine.dma_latency_us = Fact::Value(20);
        header
    }

    fn check(time: Option<LabTime>, expected: &[(Id, Effect)]) {
        let warnings = of_run(&doubtful(time), &[]);
        let ids: Vec<_> = warnings.iter().map(|warning| (warning.id, warning.effect)).collect();
        assert_eq!(ids, expected, "{time:?}");
    }

    #[test]
    fn a_guest_of_the_lab_is_spared_the_doubts_that_every_guest_has() {
        let note = |id| (id, Effect::Note);
        let common =
            [Id::Guest, Id::ThrottlingOn, Id::ForeignLatencyRequest, Id::BusyBefore, Id::NotIsolated];
        check(None, &common.map(note));
        check(Some(LabTime::Instructions), &[note(Id::LabInstructions), note(Id::ForeignLatencyRequest)]);
        let wall = (Id::LabWallTime, Effect::Inconclusive);
        check(Some(LabTime::Wall), &[wall, note(Id::ForeignLatencyRequest), note(Id::NotIsolated)]);
    }

    #[test]
    fn the_note_says_which_kernel_and_what_is_not_modelled() {
        let warning = of_guest(&doubtful(Some(LabTime::Instructions))).unwrap();
        for word in ["debian-6.1-rt-amd64", "QEMU 7.2.17", "max,-rdrand", "caches", "other CPUs"] {
            assert!(warning.evidence.contains(word), "{word}: {}", warning.evidence);
        }
    }
}
