//! What a trial or a search came to.

use std::collections::BTreeMap;
use std::path::Path;

use experiment::stolen::SetApart;
use experiment::{Arm, Design};
use lab::parameters::INERT;
use lab::replay::Replay;
use lab::state::{Kind, State};
use record::{KernelParameter, Wake};
use report::experiment::{Answer, Change, Experiment};
use serde::Serialize;
use units::Nanos;

use super::parameters;
use super::plan::{Conditions, GuestSetup, Place, TrialPlan};
use super::setting::Setting;
use crate::commands::experiments::{self, Shown, option, size};
use failure::{Error, Result};

/// What is judged with `--without-steal`.
const TRACED: &str = ", measured once more, traced, and judged without the wake-ups that the host delayed";

/// The trial or search in `directory`, with the answer that its records have.
pub fn shown(directory: &Path) -> Result<Shown> {
    let loaded = State::<TrialPlan>::load(directory, Kind::Trial);
    let state = loaded.or_else(|error| State::load(directory, Kind::Search).map_err(|_| error))?;
    let plan = &state.plan;
    let mut replay = Replay::of(&state, directory);
    let (answer, tried, apart, json) = match plan.search {
        true => {
            let found = experiment::search(&plan.design, &mut replay)?;
            let tried = tried(plan, &replay);
            let apart = set_apart(plan, &replay);
            let json = json(&state, &found, &tried, &apart)?;
            (found.map(|found| Answer::Search(Box::new(found))), tried, apart, json)
        }
        false => {
            let answer = experiment::trial(&plan.design, &mut replay)?;
            let tried = tried(plan, &replay);
            let apart = set_apart(plan, &replay);
            let json = json(&state, &answer, &tried, &apart)?;
            (answer.map(Answer::Trial), tried, apart, json)
        }
    };
    let costs = match plan.conditions.cost {
        true => replay.costs(&replay.measured.iter().map(|one| one.block.clone()).collect::<Vec<_>>())?,
        false => Vec::new(),
    };
    let notes = |arm: &Arm| apart.get(arm).map(set_apart_note).into_iter().collect();
    let begun = experiments::begin(&state, replay, directory, &|arm| Ok((what(plan, arm)?, notes(arm))))?;
    let change = |setting: &String| Change {
        name: setting.clone(),
        notes: parameters::notes(plan, setting, &tried),
        apply: apply(setting),
    };
    let mut shown = Experiment {
        title: title(plan),
        question: question(plan),
        answer,
        changes: plan.design.settings.iter().map(change).collect(),
        smallest_effect: Some(plan.design.smallest_effect),
        costs,
        unit: plan.unit(),
        ..begun
    };
    shown.conditions.extend(conditions(plan));
    again(plan, &mut shown.command);
    Ok(Shown { experiment: shown, json })
}

fn tried(plan: &TrialPlan, replay: &Replay<'_, TrialPlan>) -> Vec<KernelParameter> {
    parameters::tried(plan, &experiment::Bench::parameters(replay))
}

/// What was set apart in each arm.
fn set_apart(plan: &TrialPlan, replay: &Replay<'_, TrialPlan>) -> BTreeMap<Arm, SetApart> {
    let mut apart: BTreeMap<Arm, SetApart> = BTreeMap::new();
    for one in replay.measured.iter().filter(|_| plan.conditions.without_steal) {
        let of_arm = apart.entry(one.block.arm.clone()).or_default();
        *of_arm = of_arm.and(SetApart::of(&one.record));
    }
    apart
}

fn set_apart_note(SetApart { due, wake_ups, missed, longest, blind }: &SetApart) -> String {
    let apart = match wake_ups {
        0 => format!("none of {due} activations"),
        _ => format!(
            "{wake_ups} wake-ups of {due} activations, up to {:.1} us late, and {missed} that they made miss",
            longest.as_micros_f64()
        ),
    };
    format!("Set apart as delayed by the host: {apart}. Late, not traced, and therefore judged: {blind}.")
}

fn title(plan: &TrialPlan) -> String {
    let kind = if plan.search { "Search among" } else { "Trial of" };
    let settings = match plan.design.settings.as_slice() {
        [only] => only.clone(),
        several => format!("{} settings", several.len()),
    };
    format!("{kind} {settings} under {}", plan.conditions.load)
}

fn question(plan: &TrialPlan) -> String {
    let load = &plan.conditions.load;
    let place = match &plan.place {
        Place::Here { .. } => "on this machine".to_owned(),
        Place::Guests(guests) => format!("in guests with {}", guests.kernel),
    };
    match (plan.search, plan.design.settings.as_slice()) {
        (true, several) => format!(
            "Which of {} settings does it take for the tail that all of them together have under {load}, {place}?",
            several.len()
        ),
        (false, [only]) => format!("Does {only} make the tail shorter under {load}, {place}?"),
        (false, several) => format!(
            "Which of {} settings make the tail shorter under {load}, each by itself, {place}?",
            several.len()
        ),
    }
}

/// What is different in an arm.
fn what(plan: &TrialPlan, arm: &Arm) -> Result<String> {
    let settings = plan.settings()?;
    Ok(match arm {
        Arm::With(on) if on.is_empty() => "no setting is made, nothing is written".into(),
        Arm::With(on) => on
            .iter()
            .filter_map(|&place| Some(settings.get(place)?.to_string()))
            .collect::<Vec<_>>()
            .join(", "),
        Arm::Control => {
            let word = settings.iter().any(Setting::is_parameter);
            let word = word.then(|| format!("a parameter that nobody reads ({INERT})"));
            let written = settings.iter().any(|setting| !setting.is_parameter());
            let written = written.then(|| "each setting rewritten to what it says already".to_owned());
            word.into_iter().chain(written).collect::<Vec<_>>().join("; ")
        }
    })
}

/// The command that makes a setting that was tried, where one does.
fn apply(setting: &str) -> Option<String> {
    let is_rule = Setting::parse(setting).is_ok_and(|setting| setting.is_rule());
    is_rule.then(|| format!("worstcase tune apply --only {setting}"))
}

fn conditions(plan: &TrialPlan) -> Vec<(String, String)> {
    let Conditions { load, load_command, duration, warm_up, interval, wake, cpus, without_steal, .. } =
        &plan.conditions;
    let Design { blocks, most_blocks, seed, measure, .. } = &plan.design;
    let place = match &plan.place {
        Place::Here { release } => format!("this machine, Linux {release}"),
        Place::Guests(guests) => format!("guests, {}, clock: {}", guests.kernel, guests.time),
    };
    let rounds = match most_blocks {
        Some(most) => format!("{blocks} first, then as many as the spread asks for, at most {most}"),
        None => blocks.to_string(),
    };
    let names = experiment::Kind::NAMES.iter().find(|(_, kind)| kind == measure);
    let cpus = cpus.as_ref().map_or("all that may be used".to_owned(), ToString::to_string);
    let entry = |name: &str, value: String| (name.to_owned(), value);
    vec![
        entry("Measured by", place),
        entry("Load", load_command.clone().unwrap_or_else(|| load.clone())),
        entry(
            "Block",
            format!("{duration} after {warm_up} of warm-up{}", if *without_steal { TRACED } else { "" }),
        ),
        entry("Activations", format!("each {interval}, woken by {wake}, on CPUs: {cpus}")),
        entry("Rounds", format!("{rounds}; one block of each arm, in random order")),
        entry("Seed of the orders and of the first round", seed.to_string()),
        entry("Decides", names.map_or("", |(name, _)| name).to_owned()),
    ]
}

/// The command that asks the same.
fn again(plan: &TrialPlan, command: &mut Vec<String>) {
    let Conditions { load, load_command, duration, warm_up, interval, wake, cpus, profile, isolate, .. } =
        &plan.conditions;
    let design = &plan.design;
    command.extend(design.settings.iter().cloned());
    match load_command {
        Some(own) => option(command, "--load-command", Some(own), ""),
        None => option(command, "--load", Some(load), ""),
    }
    option(command, "--duration", Some(duration), "");
    option(command, "--warm-up", Some(warm_up), "");
    option(command, "--blocks", Some(design.blocks).filter(|_| design.most_blocks.is_none()), "");
    let measure = experiment::Kind::NAMES.iter().find(|(_, kind)| *kind == design.measure);
    option(command, "--measure", measure.map(|(name, _)| name), "quantile");
    option(command, "--threshold", design.threshold, "");
    option(command, "--smallest-effect", Some(tidy_percent(design.smallest_effect)), "20");
    option(command, "--interval", Some(interval), &Nanos::from_millis(1).to_string());
    option(command, "--wake", Some(wake), &Wake::default().to_string());
    option(command, "--cpus", cpus.as_ref(), "");
    option(command, "--profile", Some(profile.join(",")), "");
    option(command, "--isolate", isolate.as_ref(), "");
    option(command, "--seed", Some(design.seed), "");
    command.extend(plan.conditions.cost.then(|| "--cost".to_owned()));
    command.extend(plan.conditions.without_steal.then(|| "--without-steal".to_owned()));
    let Place::Guests(guests) = &plan.place else { return };
    let GuestSetup { kernel, time, words, processors, memory, disk, programs, .. } = &**guests;
    option(command, "--kernel", Some(kernel), "");
    option(command, "--time", Some(time), "instructions");
    words.iter().for_each(|word| option(command, "--append", Some(word), ""));
    option(command, "--guest-cpus", Some(processors), "1");
    option(command, "--memory", Some(size(*memory)), "512M");
    option(command, "--disk", disk.map(size), "");
    programs.iter().for_each(|program| option(command, "--with", Some(program.display()), ""));
}

/// 0.07 is 7, and not 7.000000000000001.
fn tidy_percent(effect: f64) -> f64 {
    (effect * 1e8).round() / 1e6
}

/// What was asked and the answer for programs.
fn json(
    state: &State<TrialPlan>,
    answer: &impl Serialize,
    tried: &[KernelParameter],
    apart: &BTreeMap<Arm, SetApart>,
) -> Result<String> {
    let plan = &state.plan;
    let notes = plan.design.settings.iter().map(
        |setting| serde_json::json!({ "setting": setting, "notes": parameters::notes(plan, setting, tried) }),
    );
    let of_arm = |(arm, SetApart { due, wake_ups, missed, longest, blind }): (&Arm, &SetApart)| {
        serde_json::json!({
            "arm": arm.to_string(),
            "due": due,
            "wake_ups": wake_ups,
            "missed": missed,
            "longest": longest,
            "blind": blind,
        })
    };
    let both = serde_json::json!({
        "question": state,
        "answer": answer,
        "parameters": tried,
        "notes": notes.collect::<Vec<_>>(),
        "set_apart": apart.iter().map(of_arm).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string(&both).map_err(|error| Error::new(error, ""))? + "\n")
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};
    use lab::state::Plan;

    use super::*;
    use crate::commands::tune::trial::Trial;

    /// A command line, as `worstcase tune trial` takes it.
    fn parsed(words: &[String]) -> Trial {
        let command = Trial::augment_args(Command::new("trial").no_binary_name(true));
        Trial::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
    }

    #[test]
    fn what_is_set_apart_is_asked_for_again_and_no_maxima_are_judged_without_it() {
        let words = "threadirqs --without-steal --blocks 9 --seed 12".split_whitespace().map(str::to_owned);
        let asked = parsed(&words.collect::<Vec<_>>()).plan().unwrap();
        let mut command = Vec::new();
        again(&asked, &mut command);
        assert!(
            asked.conditions.without_steal && command.contains(&"--without-steal".to_owned()),
            "{command:?}"
        );
        assert_eq!(parsed(&command).plan().unwrap(), asked);
        assert!(asked.check().is_ok());
        let maxima = [&command[..], &["--measure".to_owned(), "maxima".to_owned()]].concat();
        let refused = parsed(&maxima).plan().unwrap().check().unwrap_err();
        assert!(refused.message.contains("maxima") && refused.hint.unwrap().contains("quantile"));
    }

    #[test]
    fn the_command_that_repeats_a_trial_asks_for_the_same() {
        let words = "threadirqs /proc/sys/vm/swappiness=10 --load io --duration 1500ms --warm-up 70ms --blocks 9 --measure \
                     maxima --threshold 40us --smallest-effect 7 --interval 250us --wake timerfd --cpus 0-1 --profile rt \
                     --isolate 1 --seed 12 --cost --kernel k --time wall --append a=1 --append b --guest-cpus 2 --memory 1G --disk 64M";
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let asked = parsed(&words).plan().unwrap();
        let mut command = Vec::new();
        again(&asked, &mut command);
        assert_eq!(parsed(&command).plan().unwrap(), asked, "{command:?}");
        assert_eq!(asked.design.blocks, 9);
        let Place::Guests(guests) = asked.place else { panic!() };
        assert_eq!(guests.words, ["a=1", "b"]);
    }
}
