//! Trials and searches in words, in 80 columns.

use std::fmt::Write;

use record::Unit;
use trial::{Answer, Doubt, Effect, Found, Judged, Kind, Measure, Outcome};
use units::Nanos;

use super::question::{Conditions, Place, Question};

/// What is going to be measured.
pub fn plan(question: &Question) -> String {
    let Question { design, conditions: Conditions { load, duration, warm_up, wake, .. }, .. } = question;
    let place = match &question.place {
        Place::Here { release } => format!("by this machine, Linux {release}"),
        Place::Guests(guests) => format!("by guests, {}, {} time", guests.kernel, guests.time),
    };
    let settings: String =
        design.settings.iter().enumerate().map(|(place, name)| format!("\n  {} {name}", place + 1)).collect();
    let blocks = design.blocks;
    format!(
        "{blocks} blocks of {duration} an arm (and {warm_up} to warm up) under {load}, woken by {wake},\n\
         {place}; seed {}{}\nsettings:{settings}",
        design.seed,
        length(question)
    )
}

/// How long a trial takes on this machine; a search depends on what it finds, and a guest on the host.
fn length(question: &Question) -> String {
    let Question { design, conditions, .. } = question;
    match (&question.place, question.search) {
        (Place::Here { .. }, false) => {
            let blocks = u64::from(design.blocks) * (design.settings.len() as u64 + 2);
            let each = conditions.duration + conditions.warm_up;
            format!("; about {}", each.saturating_mul(blocks).rounded())
        }
        _ => String::new(),
    }
}

/// What came of a trial.
pub fn trial(question: &Question, answer: &Answer) -> String {
    let unit = question.unit();
    let mut text = head(question);
    for tried in &answer.settings {
        let verdict = tried.verdict.map_or_else(|| "inconclusive".to_owned(), |effect| effect.to_string());
        let _ = writeln!(text, "\n{}: {verdict}", tried.setting);
        tried.measures.iter().for_each(|judged| text += &row(judged, unit));
        text += &visible(tried.measures.first());
    }
    let _ = writeln!(text, "\ncontrol, rewritten to what it says already:");
    answer.control.iter().for_each(|judged| text += &row(judged, unit));
    if answer.control.first().is_some_and(|judged| judged.effect.is_difference()) {
        text += "inconclusive: the control arm differs as well, so these blocks cannot tell;\n\
                 more or longer blocks may, or a calmer machine\n";
    }
    text
}

/// What came of a search.
pub fn search(question: &Question, found: &Found) -> String {
    let unit = question.unit();
    let mut text = head(question);
    let mut part = |title: &str, judged: &Judged| {
        let _ = writeln!(text, "\n{title}");
        text += &row(judged, unit);
    };
    part("control, rewritten to what it says already, against all off", &found.control);
    part("all on against all off", &found.all);
    for step in &found.steps {
        let what = if step.dropped { "not needed" } else { "needed, or it cannot be told" };
        part(&format!("without {} against all on: {what}", step.setting), &step.without);
    }
    for (title, judged) in [("off", &found.against_off), ("on", &found.against_all)] {
        judged
            .iter()
            .for_each(|judged| part(&format!("what is left against all {title}, in fresh blocks"), judged));
    }
    text += "\n";
    if !found.kept.is_empty() {
        text += "left, and what dropping each makes of the tail:\n";
        for kept in &found.kept {
            let Judged { ratio, interval: [low, high], .. } = &kept.price;
            let price = format!("{} times ({} to {})", times(*ratio), times(*low), times(*high));
            let _ = writeln!(text, "  {}: {price}", kept.setting);
        }
    }
    text + outcome(found.outcome)
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Sufficient => "smallest set that suffices: confirmed in fresh blocks\n",
        Outcome::NothingHelps => "all together do not help: there is nothing to search\n",
        Outcome::Inconclusive(Doubt::Control) => {
            "inconclusive: the control arm differs, so these blocks cannot tell\n"
        }
        Outcome::Inconclusive(Doubt::Spread) => {
            "inconclusive: the spread hides whether all together help; more or longer\nblocks may tell\n"
        }
        Outcome::Inconclusive(Doubt::Unconfirmed) => {
            "inconclusive: in fresh blocks what is left does not surely do what all do\n"
        }
    }
}

/// The table's head. The first row of each table is the measure that decides.
fn head(question: &Question) -> String {
    let unit = question.unit().name();
    format!("{unit:16}{:>11}{:>10}{:>8} interval\n", "before", "after", "times")
}

fn row(judged: &Judged, unit: Unit) -> String {
    let Judged { measure, before, after, ratio, interval: [low, high], effect, .. } = judged;
    let interval = format!("{} to {}", times(*low), times(*high));
    let (before, after) = (figure(*measure, *before, unit), figure(*measure, *after, unit));
    let name = name(*measure, unit);
    format!("  {name:14}{before:>11}{after:>10}{:>8} {interval:16} {effect}\n", times(*ratio))
}

/// The smallest effect that would surely have been seen, where none was.
fn visible(judged: Option<&Judged>) -> String {
    match judged {
        Some(judged) if matches!(judged.effect, Effect::NoneVisible | Effect::Undecided) => {
            let percent = (judged.smallest_visible * 100.0).ceil();
            format!("  an effect of {percent:.0} % or more would have been seen\n")
        }
        _ => String::new(),
    }
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
