//! Doubts about a load: whether it ran, for how long, where, and as what.

use crate::WarningId as Id;
use crate::{Exposure, Header, LoadEvidence, LoadProof, StressorEvidence, Warning};

/// Below this share of the planned time, in per mille, a load is said to have run for part of it. A tenth is what ordinary
/// starts, ends and stalls of a busy machine were seen to take at most.
const LITTLE_MISSING: u64 = 900;
/// Below this share a scenario is not the one that was asked for: a worst case had a quarter less chance to show.
pub const LEAST_EXPOSURE_PERMILLE: u64 = 750;

/// Warnings that follow from what a load did.
pub(super) fn of_load(header: &Header, load: &LoadEvidence) -> Vec<Warning> {
    let mut warnings = of_stressors(load, &to_see_it_alone(load));
    warnings.extend(outside_other(load));
    warnings.extend(elsewhere(header, load));
    warnings
}

/// The same where it runs alone already, which is no cure then.
pub(super) fn of_load_alone(load: &LoadEvidence) -> Vec<Warning> {
    let cure = if crate::is_command(&load.name) {
        "a command is to run until it is ended; try it in a shell by itself"
    } else {
        "worstcase load --list says what it needs"
    };
    of_stressors(load, cure)
}

fn to_see_it_alone(load: &LoadEvidence) -> String {
    if crate::is_command(&load.name) {
        "run it alone and see: worstcase load --load-command COMMAND".to_owned()
    } else {
        format!("run it alone and see: worstcase load {}", load.name)
    }
}

/// Warnings that follow from what each of its stressors did; `otherwise` is the cure where there is none that fits better.
fn of_stressors(load: &LoadEvidence, otherwise: &str) -> Vec<Warning> {
    load.stressors.iter().flat_map(|stressor| of_stressor(load, stressor, otherwise)).collect()
}

/// Loads of the default set that this machine cannot run. Nobody asked for them by name.
pub(super) fn left_out(header: &Header) -> impl Iterator<Item = Warning> {
    header.plan.loads_left_out.iter().map(|left_out| {
        Warning::note(
            Id::LoadLeftOut,
            format!("{}: {}", left_out.load, left_out.reason),
            "the figures say nothing of it; name a directory on a disk with --load-dir",
        )
    })
}

fn of_stressor(load: &LoadEvidence, stressor: &StressorEvidence, otherwise: &str) -> Vec<Warning> {
    let (load, name) = (&load.name, &stressor.name);
    let mut warnings = Vec::new();
    if stressor.did_nothing() {
        let evidence = match stressor.failures.first() {
            Some(failure) => format!("{load}: {name} did no work: {failure}"),
            None => format!("{load}: {name} did no work ({})", stressor.unit),
        };
        warnings.push(Warning::inconclusive(
            Id::LoadIdle,
            evidence,
            idle_cure(stressor).unwrap_or(otherwise),
        ));
        return warnings;
    }
    if let Some(failure) = stressor.failures.first() {
        let evidence = format!("{load}: {name}: {failure}");
        // How long it ran besides is no news.
        warnings.push(Warning::inconclusive(Id::LoadFailed, evidence, otherwise));
        return warnings;
    }
    if let Some(exposure) = stressor.exposure.filter(|exposure| exposure.permille() < LITTLE_MISSING) {
        let warn =
            if exposure.permille() < LEAST_EXPOSURE_PERMILLE { Warning::inconclusive } else { Warning::note };
        let evidence = format!("{load}: {name} {exposure}");
        let cure = idle_cure(stressor)
            .unwrap_or("was it stopped (SIGSTOP), frozen, or held back by a CPU quota? then measure again");
        warnings.push(warn(Id::LoadPartTime, evidence, cure));
    }
    warnings
}

/// A program is judged by its CPU time unless the user says otherwise.
fn idle_cure(stressor: &StressorEvidence) -> Option<&'static str> {
    let by_cpu = stressor.exposure.is_some_and(|exposure| exposure.proof == LoadProof::Cpu);
    (by_cpu && !stressor.built_in && stressor.failures.is_empty()).then_some(
        "a command is judged by its CPU time; if it works with little, say --load-proof work, and if it waits by design \
         --load-proof alive",
    )
}

impl std::fmt::Display for Exposure {
    /// `loaded 0.8 of 4 s`, and what of the rest is known.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [loaded, planned, held_back] = [self.loaded, self.planned, self.held_back].map(seconds);
        write!(f, "loaded {loaded} of {planned} s")?;
        if held_back != "0" {
            write!(f, " ({held_back} s with less CPU time than it could have had)")?;
        }
        Ok(())
    }
}

/// Seconds with one decimal, without one that is 0.
fn seconds(time: units::Nanos) -> String {
    let text = format!("{:.1}", time.as_secs_f64());
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn outside_other(load: &LoadEvidence) -> Option<Warning> {
    let worker = load.outside_other.first()?;
    let evidence = format!("{}: {} threads, such as {worker}", load.name, load.outside_other.len());
    // Loads that exist to be that say so.
    let warn = if load.real_time { Warning::note } else { Warning::inconclusive };
    let cure = "loads must not compete with the probe: leave out stressors that change their own policy";
    Some(warn(Id::LoadNotOther, evidence, cure))
}

fn elsewhere(header: &Header, load: &LoadEvidence) -> Option<Warning> {
    let isolated = header.machine.cpus.isolated.value().cloned().unwrap_or_default();
    let own = header.plan.partition.as_ref().map(|partition| partition.cpus.clone()).unwrap_or_default();
    let spared = header.plan.cpus.difference(&load.cpus).difference(&isolated).difference(&own);
    if load.stressors.is_empty() || spared.is_empty() {
        return None;
    }
    let evidence = format!("{}: no load ran on {}, measured and not isolated", load.name, spared.named());
    Some(Warning::note(Id::LoadElsewhere, evidence, "give the load those CPUs with --load-cpus"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::header;
    use crate::{Effect, LoadLeftOut};
    use units::Nanos;

    fn stressor(work: u64, loaded_permille: Option<u64>, proof: LoadProof) -> StressorEvidence {
        let exposure = loaded_permille.map(|permille| Exposure {
            proof,
            planned: Nanos::from_secs(4),
            loaded: Nanos::from_millis(4 * permille),
            ..Exposure::default()
        });
        let built_in = proof == LoadProof::Work;
        StressorEvidence { name: "hdd".into(), work, built_in, exposure, ..StressorEvidence::default() }
    }

    fn of(stressor: StressorEvidence) -> Vec<(Id, Effect)> {
        let load = LoadEvidence {
            name: "x".into(),
            stressors: vec![stressor],
            cpus: "0".parse().unwrap(),
            ..LoadEvidence::default()
        };
        of_load(&header(), &load).iter().map(|warning| (warning.id, warning.effect)).collect()
    }

    #[test]
    fn a_load_that_did_nothing_is_no_load() {
        for exposure in [None, Some(0)] {
            assert_eq!(of(stressor(0, exposure, LoadProof::Work)), [(Id::LoadIdle, Effect::Inconclusive)]);
        }
    }

    #[test]
    fn a_load_that_waits_by_design_needs_no_work() {
        assert_eq!(of(stressor(0, Some(1000), LoadProof::Alive)), []);
    }

    #[test]
    fn a_load_that_stood_still_for_a_quarter_of_the_time_was_not_there() {
        let effect = |permille| of(stressor(9, Some(permille), LoadProof::Work));
        assert_eq!(effect(200), [(Id::LoadPartTime, Effect::Inconclusive)]);
        assert_eq!(effect(749), [(Id::LoadPartTime, Effect::Inconclusive)]);
        assert_eq!(effect(750), [(Id::LoadPartTime, Effect::Note)]);
        assert_eq!(effect(899), [(Id::LoadPartTime, Effect::Note)]);
        assert_eq!(effect(900), []);
        assert_eq!(of(stressor(9, None, LoadProof::Work)), [], "records of versions that did not look");
    }

    #[test]
    fn part_time_is_said_in_seconds() {
        let exposure = |held_back| Exposure {
            planned: Nanos::from_secs(4),
            loaded: Nanos::from_millis(800),
            held_back: Nanos::from_millis(held_back),
            ..Exposure::default()
        };
        assert_eq!(exposure(0).to_string(), "loaded 0.8 of 4 s");
        assert_eq!(
            exposure(3000).to_string(),
            "loaded 0.8 of 4 s (3 s with less CPU time than it could have had)"
        );
    }

    #[test]
    fn a_command_that_waits_is_referred_to_its_option() {
        let cure =
            |stressor: StressorEvidence| of_stressor(&LoadEvidence::default(), &stressor, "").remove(0).cure;
        assert!(cure(stressor(0, Some(0), LoadProof::Cpu)).contains("--load-proof alive"));
        let failed =
            StressorEvidence { failures: vec!["exit 3".into()], ..stressor(0, Some(0), LoadProof::Cpu) };
        assert!(!cure(failed).contains("--load-proof"));
        assert!(!cure(stressor(0, Some(0), LoadProof::Work)).contains("--load-proof"));
    }

    #[test]
    fn a_load_that_was_left_out_is_named() {
        let mut header = header();
        let left_out = LoadLeftOut { load: "hdd".into(), reason: "/ is on tmpfs".into() };
        header.plan.loads_left_out = vec![left_out];
        let warnings: Vec<_> = super::left_out(&header).collect();
        assert_eq!((warnings[0].id, warnings[0].effect), (Id::LoadLeftOut, Effect::Note));
        assert_eq!(warnings[0].evidence, "hdd: / is on tmpfs");
    }

    #[test]
    fn real_time_workers_are_doubtful_unless_the_load_is_that() {
        for (real_time, effect) in [(true, Effect::Note), (false, Effect::Inconclusive)] {
            let load = LoadEvidence {
                real_time,
                outside_other: vec!["x (7) fifo 10".into()],
                ..LoadEvidence::default()
            };
            assert_eq!(of_load(&header(), &load)[0].effect, effect);
        }
    }

    #[test]
    fn a_load_that_runs_alone_is_not_to_be_run_alone() {
        let failed = |name: &str| {
            let stressor = StressorEvidence {
                failures: vec!["exited with 3".into()],
                work: 1,
                ..StressorEvidence::default()
            };
            LoadEvidence { name: name.into(), stressors: vec![stressor], ..LoadEvidence::default() }
        };
        let cures = |name: &str| {
            let [within, alone] = [of_load(&header(), &failed(name)), super::of_load_alone(&failed(name))]
                .map(|mut found| found.remove(0).cure);
            (within, alone)
        };
        let (within, alone) = cures("command:exit");
        assert!(within.ends_with("worstcase load --load-command COMMAND"), "{within}");
        assert!(!alone.contains("alone") && alone.contains("until it is ended"), "{alone}");
        let (within, alone) = cures("cpu");
        assert!(within.ends_with("worstcase load cpu") && !alone.contains("alone"), "{within}; {alone}");
    }
}
