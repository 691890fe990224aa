//! Guests of the lab: what their clocks make of the figures, and which doubts of real machines have no sense in them.

use crate::WarningId as Id;
use crate::{Header, KernelParameter, Lab, LabTime, ParameterAnswer, Warning};

/// What the lab's time does to the figures, said once a run, and which of its parameters the kernel did not read.
pub(super) fn of_guest(header: &Header) -> Vec<Warning> {
    let Some(lab) = &header.machine.lab else { return Vec::new() };
    let parameters = lab.parameters.as_deref().unwrap_or_default();
    std::iter::once(of_time(header, lab)).chain(of_parameters(parameters)).collect()
}

fn of_time(header: &Header, lab: &Lab) -> Warning {
    let under = lab.under.as_ref().map_or(String::new(), |under| format!(" under {under}"));
    let guest = format!("{}{under} in {} ({})", kernel(header, lab), lab.emulator, lab.cpu_model);
    match lab.time {
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
    }
}

/// Older records have the kernel's name in the lab, newer ones its image's hash.
fn kernel(header: &Header, lab: &Lab) -> String {
    let release = || format!("Linux {}", header.machine.kernel.release);
    match (&lab.kernel, &lab.images) {
        (Some(name), _) => name.clone(),
        (None, Some(images)) => format!("{} (image {})", release(), images.kernel.short()),
        (None, None) => release(),
    }
}

/// A parameter without effect is another set-up than the one asked for; one of which nothing is known is a note.
fn of_parameters(parameters: &[KernelParameter]) -> impl Iterator<Item = Warning> {
    let list = |wanted: fn(ParameterAnswer) -> bool| -> Option<String> {
        let chosen = parameters.iter().filter(|parameter| wanted(parameter.answer));
        let text = |parameter: &KernelParameter| {
            format!("{}: {} ({})", parameter.word, parameter.answer, parameter.evidence)
        };
        let all: Vec<String> = chosen.map(text).collect();
        (!all.is_empty()).then(|| all.join("; "))
    };
    let without_effect = list(ParameterAnswer::is_without_effect).map(|evidence| {
        Warning::inconclusive(
            Id::LabParameter,
            evidence,
            "correct the parameter, or take a kernel that was built with it; the figures are those of a guest without it",
        )
    });
    let unknown = list(|answer| answer == ParameterAnswer::Unknown).map(|evidence| {
        Warning::note(
            Id::LabParameterUnknown,
            evidence,
            "look in the guest whether the parameter has its effect, as in worstcase lab run ... -- cat /sys/module/...",
        )
    });
    without_effect.into_iter().chain(unknown)
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
        let warnings = of_run(&doubtful(time), &[crate::verdict::tests::scenario(&[5_000])]);
        let ids: Vec<_> = warnings.iter().map(|warning| (warning.id, warning.effect)).collect();
        assert_eq!(ids, expected, "{time:?}");
    }

    #[test]
    fn a_guest_of_the_lab_is_spared_the_doubts_that_every_guest_has() {
        let note = |id| (id, Effect::Note);
        let foreign = (Id::ForeignLatencyRequest, Effect::Inconclusive);
        let [guest, throttling, busy, common] =
            [Id::Guest, Id::ThrottlingOn, Id::BusyBefore, Id::NotIsolated].map(note);
        check(None, &[guest, throttling, foreign, busy, common]);
        check(Some(LabTime::Instructions), &[note(Id::LabInstructions), foreign]);
        let wall = (Id::LabWallTime, Effect::Inconclusive);
        check(Some(LabTime::Wall), &[wall, foreign, common]);
    }

    #[test]
    fn the_note_says_which_kernel_and_what_is_not_modelled() {
        let warning = of_guest(&doubtful(Some(LabTime::Instructions))).remove(0);
        for word in ["0123456789ab", "QEMU 7.2.17", "max,-rdrand", "caches", "other CPUs"] {
            assert!(warning.evidence.contains(word), "{word}: {}", warning.evidence);
        }
    }

    #[test]
    fn a_record_of_an_older_version_names_its_kernel() {
        let mut header = doubtful(Some(LabTime::Instructions));
        let lab = header.machine.lab.as_mut().unwrap();
        (lab.kernel, lab.images) = (Some("debian-6.1-rt-amd64".into()), None);
        assert!(of_guest(&header)[0].evidence.starts_with("debian-6.1-rt-amd64 in QEMU 7.2.17"));
    }

    #[test]
    fn a_parameter_that_the_kernel_did_not_read_makes_a_pass_inconclusive() {
        let parameter = |word: &str, answer| KernelParameter {
            word: word.into(),
            answer,
            evidence: "the kernel's log names it".into(),
        };
        let mut header = doubtful(Some(LabTime::Instructions));
        header.machine.lab.as_mut().unwrap().parameters = Some(vec![
            parameter("threadirqs", ParameterAnswer::Read),
            parameter("thredirqs", ParameterAnswer::NotRead),
            parameter("preempt=nonne", ParameterAnswer::Refused),
            parameter("igb.x=1", ParameterAnswer::Unknown),
        ]);
        let warnings = of_guest(&header);
        let ids: Vec<_> = warnings.iter().map(|warning| (warning.id, warning.effect)).collect();
        let expected = [
            (Id::LabInstructions, Effect::Note),
            (Id::LabParameter, Effect::Inconclusive),
            (Id::LabParameterUnknown, Effect::Note),
        ];
        assert_eq!(ids, expected);
        let evidence = &warnings[1].evidence;
        assert!(evidence.starts_with("thredirqs: not read by this kernel (the kernel's log"), "{evidence}");
        assert!(evidence.contains("; preempt=nonne: refused") && !evidence.contains("threadirqs"));
    }
}
