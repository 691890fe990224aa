//! What a bisection came to.

use std::path::Path;

use experiment::Arm;
use experiment::bisect::bisect;
use lab::bisect::{BisectPlan, Subject};
use lab::parameters::INERT;
use lab::replay::Replay;
use lab::state::{Kind, State};
use machine::unseen;
use record::Unit;
use report::experiment::{Answer, Change, Experiment};

use crate::commands::experiments::{self, Shown, option, size};
use failure::{Error, Result};

/// The bisection in `directory`, with the answer that its records have.
pub fn shown(directory: &Path) -> Result<Shown> {
    let state = State::<BisectPlan>::load(directory, Kind::Bisection)?;
    let plan = &state.plan;
    let mut replay = Replay::of(&state, directory);
    let found = bisect(&plan.bisection(), &mut replay)?;
    let json = json(&state, found.as_ref())?;
    let begun = experiments::begin(&state, replay, directory, &|arm| Ok((what(plan, arm), Vec::new())))?;
    let parameters = found.iter().flat_map(|found| &found.parameters);
    let parameters: Vec<_> = parameters.cloned().collect();
    let change = |place| {
        let own = plan.subject.parameters(place);
        let read = parameters.iter().filter(|found| own.contains(&&found.word));
        let read = read.map(|found| format!("{}: {}", found.answer, found.evidence));
        let unseen = unseen(plan, place).map(|note| format!("these guests cannot tell: {note}"));
        Change { name: plan.subject.change(place), notes: read.chain(unseen).collect(), apply: None }
    };
    let mut shown = Experiment {
        title: format!("Bisection of {} changes under {}", plan.subject.count(), plan.load),
        question: format!(
            "Which of {} changes makes the {} under {} {} times as long or longer?",
            plan.subject.count(),
            plan.tail,
            plan.load,
            plan.ratio
        ),
        answer: found.map(|found| Answer::Bisection { found, is_ordered: plan.subject.is_ordered() }),
        changes: (0..plan.subject.count()).map(change).collect(),
        smallest_effect: Some(plan.ratio - 1.0),
        unit: Unit::Instructions,
        tail: Some(plan.tail),
        ..begun
    };
    shown.conditions.extend(conditions(plan));
    again(plan, &mut shown.command);
    Ok(Shown { experiment: shown, json })
}

/// What an arm is.
fn what(plan: &BisectPlan, arm: &Arm) -> String {
    let changes = |changes: &experiment::Changes| {
        changes.iter().map(|&place| plan.subject.change(place)).collect::<Vec<_>>().join("; ")
    };
    match arm {
        Arm::Control => format!("good, with a parameter that nobody reads ({INERT})"),
        Arm::With(made) if made.is_empty() => match &plan.subject {
            Subject::Words { kernel, .. } => {
                format!("{kernel} {}", plan.subject.parameters_of(arm).join(" "))
            }
            Subject::Kernels { names, .. } => names.first().cloned().unwrap_or_default(),
            Subject::Symbols { source, base, .. } => format!("{source}, {base}, the good fragment"),
        },
        Arm::With(made) if made.len() == plan.subject.count() => {
            format!("bad, all changes: {}", changes(made))
        }
        Arm::With(made) => changes(made),
    }
}

fn conditions(plan: &BisectPlan) -> Vec<(String, String)> {
    let disk = plan.disk.map_or_else(|| "no disk".into(), |disk| format!("a disk of {disk}"));
    let entry = |name: &str, value: String| (name.to_owned(), value);
    vec![
        entry("Guests", format!("{} an arm, a boot and a seed each; clock: instructions", plan.seeds)),
        entry("Load", plan.load.clone()),
        entry("Length", format!("{} after {} of warm-up", plan.duration, plan.warm_up)),
        entry("Memory and disk of a guest", format!("{}, {disk}", plan.memory)),
    ]
}

/// The command that asks the same. Fragments were files, of which the lines are known and not the names.
fn again(plan: &BisectPlan, command: &mut Vec<String>) {
    let side = |arm: &Arm| plan.subject.parameters_of(arm).join(" ");
    let mut with = |name: &str, value: String| command.extend([name.to_owned(), value]);
    match &plan.subject {
        Subject::Words { kernel, .. } => {
            with("--kernel", kernel.clone());
            with("--good", side(&Arm::off()));
            with("--bad", side(&plan.subject.bad()));
        }
        Subject::Kernels { names, words } => {
            with("--kernels", names.join(","));
            words.iter().for_each(|word| with("--append", word.clone()));
        }
        Subject::Symbols { source, base, words, .. } => {
            with("--source", source.clone());
            with("--base", base.clone());
            with("--good", "GOOD.cfg".into());
            with("--bad", "BAD.cfg".into());
            words.iter().for_each(|word| with("--append", word.clone()));
        }
    }
    with("--load", plan.load.clone());
    with("--duration", plan.duration.to_string());
    with("--warm-up", plan.warm_up.to_string());
    with("--seeds", plan.seeds.to_string());
    with("--ratio", plan.ratio.to_string());
    with("--tail", plan.tail.to_string());
    option(command, "--memory", Some(size(plan.memory)), "512M");
    option(command, "--disk", plan.disk.map(size), "");
}

/// What instruction time does not show of a change.
fn unseen(plan: &BisectPlan, change: usize) -> Option<&'static str> {
    plan.subject.parameters(change).into_iter().find_map(|word| unseen::note(word))
}

/// What was asked and the answer for programs.
fn json(state: &State<BisectPlan>, answer: Option<&experiment::bisect::Answer>) -> Result<String> {
    let unseen = (0..state.plan.subject.count()).filter_map(|change| {
        let note = unseen(&state.plan, change)?;
        Some(serde_json::json!({ "change": state.plan.subject.change(change), "note": note }))
    });
    let unseen: Vec<_> = unseen.collect();
    let both = serde_json::json!({ "question": state, "answer": answer, "unseen": unseen });
    let text = serde_json::to_string(&both).map_err(|error| Error::new(error, ""))?;
    Ok(text + "\n")
}
