//! Trials and searches in words, in 80 columns.

use std::fmt::Write;

use experiment::{Answer, Doubt, Effect, Found, Judged, Kind, Measure, Need, Outcome, Planned};
use record::{KernelParameter, Unit};
use units::Nanos;

use super::parameters;
use super::plan::{Conditions, Place, TrialPlan};

/// What is going to be measured.
pub fn plan(plan: &TrialPlan) -> String {
    let TrialPlan { design, conditions: Conditions { load, duration, warm_up, wake, .. }, .. } = plan;
    let place = match &plan.place {
        Place::Here { release } => format!("this machine, Linux {release}"),
        Place::Guests(guests) => format!("guests, {}, {} time", guests.kernel, guests.time),
    };
    let settings: String =
        design.settings.iter().enumerate().map(|(place, name)| format!("\n  {} {name}", place + 1)).collect();
    let (blocks, seed) = (design.blocks, design.seed);
    let arms = if plan.search { 3 } else { design.settings.len() as u64 + 2 };
    let first = if plan.search { "first phase: " } else { "" };
    let length = length(plan, u64::from(blocks) * arms);
    format!(
        "{place}; load {load}, woken by {wake}; seed {seed}\n\
         {first}{blocks} rounds of {arms} blocks in random order, {duration} each after {warm_up} of warm-up{length}\n\
         settings:{settings}"
    )
}

/// How long so many blocks take on this machine; how long a guest takes depends on the host.
fn length(plan: &TrialPlan, blocks: u64) -> String {
    let Conditions { duration, warm_up, .. } = plan.conditions;
    match &plan.place {
        Place::Here { .. } => format!(": about {}", (duration + warm_up).saturating_mul(blocks).rounded()),
        Place::Guests(_) => String::new(),
    }
}

/// What the later phases of a search take.
pub fn planned(plan: &TrialPlan, planned: &Planned) -> String {
    let Planned { enough, rounds, chance, blocks, goes_on } = *planned;
    let effect = percent(plan);
    let needed = |enough: Option<u32>| match enough {
        Some(enough) => format!("{enough} rounds"),
        None => "more than 1000 rounds".to_owned(),
    };
    let longer = "Longer blocks scatter less: --duration.";
    if !goes_on {
        return format!(
            "all on helps; to tell which settings are needed takes {} a step at this spread",
            needed(enough)
        );
    }
    let length = length(plan, u64::from(blocks));
    let text = format!(
        "all on helps; next: up to {blocks} blocks in rounds of 2 or more{length}\n\
         At this spread {rounds} rounds leave out a setting that does nothing (less than\n\
         {effect}) with a probability of {:.0} %.",
        chance * 100.0
    );
    match enough {
        Some(enough) if enough <= rounds => text,
        _ => format!("{text} For 90 %: {}. {longer}", needed(enough)),
    }
}

/// What came of a trial.
pub fn trial(plan: &TrialPlan, answer: &Answer, parameters: &[KernelParameter]) -> String {
    let unit = plan.unit();
    let mut text = head(unit, "control", "on");
    for tried in &answer.settings {
        if tried.not_read.is_some() {
            let _ = writeln!(text, "\n{}: not read by this kernel", tried.setting);
            text += "  its blocks are those of a kernel without it: what differs is chance\n";
        } else {
            let _ = writeln!(text, "\n{}: {}", tried.setting, verdict(plan, tried.verdict));
            tried.measures.iter().for_each(|judged| text += &row(judged, unit));
            if tried.verdict == Effect::Undecided {
                tried.measures.iter().take(1).for_each(|judged| text += &power(plan, judged));
            }
        }
        text += &notes(plan, &tried.setting, parameters);
    }
    text += "\n";
    text += &head(unit, "off", "control");
    text += "\ncontrol: every setting rewritten to what it says already\n";
    answer.control.iter().for_each(|judged| text += &row(judged, unit));
    text += written(answer.control.first());
    text + &method(plan)
}

/// What writing by itself does, where that is seen.
fn written(control: Option<&Judged>) -> &'static str {
    match control.and_then(|control| control.effect) {
        Some(Effect::Harms) => {
            "  Writing alone makes the tail longer: so settings are compared with control.\n"
        }
        Some(Effect::Helps) => {
            "  Writing alone makes the tail shorter: so settings are compared with control.\n"
        }
        _ => "",
    }
}

/// How it was judged, and how far that can be trusted.
fn method(plan: &TrialPlan) -> String {
    let among = match plan.design.settings.len() {
        1 => ".".to_owned(),
        settings => format!(",\nall {settings} settings together (Holm)."),
    };
    format!(
        "\nOn is compared with control within rounds, by exact signed ranks; the first row\n\
         of each table decides. A \"helps\" or \"harms\" of a setting that does nothing comes\n\
         in at most 1 of 20 trials{among}\n"
    )
}

/// What came of a search.
pub fn search(plan: &TrialPlan, found: &Found, parameters: &[KernelParameter]) -> String {
    let unit = plan.unit();
    let mut text = head(unit, "before", "after");
    let mut part = |title: &str, judged: &Judged| {
        let _ = writeln!(text, "\n{title}");
        text += &row(judged, unit);
    };
    part("control (settings rewritten to what they say) against off", &found.control);
    part("all on against control", &found.all);
    for step in &found.steps {
        let what = if step.dropped { "left out" } else { "kept" };
        part(&format!("without {} against all on: {what}", step.setting), &step.without);
    }
    for (title, judged) in [("control", &found.against_control), ("all on", &found.against_all)] {
        judged.iter().for_each(|judged| part(&format!("what is left against {title}, fresh blocks"), judged));
    }
    text += "\n";
    text += written(Some(&found.control)).trim_start();
    text += &outcome(plan, found);
    for kept in &found.kept {
        let Judged { ratio, interval: [low, high], .. } = &kept.price;
        let price = format!("{} times ({} to {})", times(*ratio), times(*low), times(*high));
        let _ = writeln!(text, "  {}\n    {price}: {}", kept.setting, need(plan, kept.need));
    }
    if found.outcome == Outcome::Sufficient {
        text += "Smaller sets may suffice as well: settings were left out one after the other.\n";
    }
    for setting in &plan.design.settings {
        let notes = notes(plan, setting, parameters);
        if !notes.is_empty() {
            let _ = write!(text, "{setting}:\n{notes}");
        }
    }
    text
}

/// What has to be known of a setting before its answer is believed, in 80 columns.
fn notes(plan: &TrialPlan, setting: &str, parameters: &[KernelParameter]) -> String {
    const WIDTH: usize = 76;
    let mut text = String::new();
    for note in parameters::notes(plan, setting, parameters) {
        let mut line = String::from("  note:");
        for word in note.split_whitespace() {
            if line.chars().count() + 1 + word.chars().count() > WIDTH {
                text += &(std::mem::replace(&mut line, "   ".into()) + "\n");
            }
            line = line + " " + word;
        }
        text += &(line + "\n");
    }
    text
}

fn need(plan: &TrialPlan, need: Need) -> String {
    match need {
        Need::Shown => "needed".to_owned(),
        Need::NotShown => "not shown to be needed".to_owned(),
        Need::Spare => format!("not needed beside the others (less than {})", percent(plan)),
    }
}

fn outcome(plan: &TrialPlan, found: &Found) -> String {
    const PRICES: &str = "and what leaving each out makes of the tail:";
    match found.outcome {
        Outcome::Sufficient => {
            let effect = percent(plan);
            format!(
                "a set that suffices: in fresh blocks it helps, and all on is not better by {effect};\n{PRICES}\n"
            )
        }
        Outcome::NothingHelps => "all together do not help: there is nothing to search\n".to_owned(),
        Outcome::Inconclusive(Doubt::Spread) => {
            format!("inconclusive: the spread hides whether all together help\n{}", power(plan, &found.all))
        }
        Outcome::Inconclusive(Doubt::TooManyBlocks) => {
            let enough = found.planned.and_then(|planned| planned.enough);
            let blocks = enough.map_or_else(|| "more than 1000".to_owned(), |enough| enough.to_string());
            format!(
                "inconclusive: all together help; to tell which are needed takes {blocks} rounds a\n\
                 step at this spread. Make blocks longer (--duration), accept a larger\n\
                 --smallest-effect, or ask for so many: --blocks\n"
            )
        }
        Outcome::Inconclusive(Doubt::Unconfirmed) => format!(
            "inconclusive: fresh blocks do not confirm that what is left does what all do;\n{PRICES}\n"
        ),
    }
}

/// `no effect of 20 % or more`.
fn verdict(plan: &TrialPlan, effect: Effect) -> String {
    match effect {
        Effect::Helps => "helps".to_owned(),
        Effect::Harms => "harms".to_owned(),
        Effect::NoneVisible => format!("no effect of {} or more", percent(plan)),
        Effect::Undecided => "undecided".to_owned(),
    }
}

/// `20 %`.
fn percent(plan: &TrialPlan) -> String {
    let percent = plan.design.smallest_effect * 100.0;
    if percent.fract() < 1e-9 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

/// The table's head.
fn head(unit: Unit, before: &str, after: &str) -> String {
    format!("{:16}{before:>11}{after:>10}{:>8} interval\n", unit.name(), "times")
}

fn row(judged: &Judged, unit: Unit) -> String {
    let Judged { measure, before, after, ratio, interval: [low, high], confidence, .. } = judged;
    let interval = format!("{} to {}", times(*low), times(*high));
    let (before, after) = (figure(*measure, *before, unit), figure(*measure, *after, unit));
    let name = name(*measure, unit);
    let confidence = confidence * 100.0;
    format!("  {name:14}{before:>11}{after:>10}{:>8} {interval:16} ({confidence:.1} %)\n", times(*ratio))
}

/// What rounds like these find, where they decided nothing.
fn power(plan: &TrialPlan, judged: &Judged) -> String {
    let effect = percent(plan);
    let rounds = match judged.rounds_for_smallest_effect {
        Some(rounds) => format!("about {rounds} rounds (--blocks)"),
        None => "more than 1000 rounds".to_owned(),
    };
    let (longer, shorter) = (times(judged.detectable), times(judged.detectable.recip()));
    format!(
        "  With this spread {} rounds find a tail {longer} or {shorter} times as long in 4 of 5\n  \
         trials; {effect} takes {rounds}, or longer blocks.\n",
        plan.design.blocks
    )
}

fn name(measure: Measure, unit: Unit) -> String {
    match measure {
        Measure::Tail(statistics::Tail::Exceedances(threshold)) => format!("from {}", unit.figure(threshold)),
        other => other.to_string(),
    }
}

fn figure(measure: Measure, figure: f64, unit: Unit) -> String {
    match measure.kind() {
        Kind::Exceedances => format!("{figure:.0}"),
        Kind::Quantile | Kind::Maxima => unit.figure(Nanos(figure.round() as u64)),
    }
}

/// A ratio, with as many digits as it takes to tell it from none and from one.
fn times(ratio: f64) -> String {
    match ratio {
        0.0..0.01 => format!("{ratio:.4}"),
        0.01..0.1 => format!("{ratio:.3}"),
        0.1..10.0 => format!("{ratio:.2}"),
        _ => format!("{ratio:.0}"),
    }
}
