//! A bisection in words: what will be done, each step, the answer.

use std::fmt::Write;

use experiment::bisect::{Answer, Doubt, Outcome, Step, name};
use experiment::{Arm, Effect};
use lab::bisect::BisectPlan;
use lab::state::State;
use machine::unseen;
use record::{KernelParameter, Unit};
use units::Nanos;

use crate::error::{CommandError, Result};

/// What is going to be measured.
pub fn plan(plan: &BisectPlan) -> String {
    let BisectPlan { load, duration, seeds, ratio, tail, subject, .. } = plan;
    let changes: String =
        (0..subject.count()).map(|place| format!("\n  {} {}", place + 1, subject.change(place))).collect();
    format!(
        "{tail} of {duration} under {load}, {seeds} guests an arm; a culprit makes it {ratio} times as long or longer;\n\
         what is found is judged by fresh guests\n\
         changes:{changes}"
    )
}

/// One line.
pub fn step(step: &Step) -> String {
    let Step { arm, against, fresh, tail, ratio, reading, failure } = step;
    let fresh = if *fresh { ", fresh guests" } else { "" };
    let (arm, against) = (name(arm), name(against));
    match (tail, ratio) {
        (Some(tail), Some((ratio, [low, high]))) => format!(
            "{arm}: {} instructions, {ratio:.2} times {against} ({low:.2} to {high:.2}): {}{fresh}",
            whole(*tail),
            word(*reading)
        ),
        _ => format!("{arm}: {}: {}", word(*reading), failure.as_deref().unwrap_or_default()),
    }
}

/// The table of all steps, and the answer below it.
pub fn answer(plan: &BisectPlan, answer: &Answer) -> String {
    let mut text = table(answer, &format!("{} under {}", plan.tail, plan.load));
    let _ = writeln!(text);
    text.push_str(&verdict(plan, answer));
    text.push_str(&notes(plan, answer));
    text
}

/// What has to be known before the answer is believed: parameters that the kernel did not take, and what instruction time
/// cannot show.
fn notes(plan: &BisectPlan, answer: &Answer) -> String {
    let mut text = String::new();
    for KernelParameter { word, answer, evidence } in &answer.parameters {
        let _ = writeln!(text, "note: {word}: {answer}: {evidence}");
    }
    for (what, note) in unseen(plan) {
        let _ = writeln!(text, "note: {what}: these guests cannot tell: {note}");
    }
    text
}

/// The changes of which instruction time does not show all.
fn unseen(plan: &BisectPlan) -> Vec<(String, &'static str)> {
    let of = |change: usize| {
        let words = plan.subject.parameters(change);
        let note = words.into_iter().find_map(|word| unseen::note(word));
        note.map(|note| (plan.subject.change(change), note))
    };
    (0..plan.subject.count()).filter_map(of).collect()
}

/// What was asked and the answer for programs.
pub fn json(state: &State<BisectPlan>, answer: &Answer) -> Result<String> {
    let unseen: Vec<_> = unseen(&state.plan)
        .into_iter()
        .map(|(change, note)| serde_json::json!({ "change": change, "note": note }))
        .collect();
    let both = serde_json::json!({ "question": state, "answer": answer, "unseen": unseen });
    let text = serde_json::to_string(&both).map_err(|error| CommandError::new(error, ""))?;
    Ok(text + "\n")
}

fn table(answer: &Answer, title: &str) -> String {
    let steps = &answer.steps;
    let width = steps.iter().map(|step| name(&step.arm).len()).chain([title.len()]).max().unwrap_or(0);
    let mut text = format!("{title:width$}  instructions   times  interval\n");
    let _ = writeln!(text, "{:width$}  {:>12}", name(&Arm::off()), whole(answer.good));
    for step in steps {
        let against =
            if step.against == Arm::off() { String::new() } else { format!(" ({})", name(&step.against)) };
        let figures = match (step.tail, step.ratio) {
            (Some(tail), Some((ratio, [low, high]))) => {
                format!("{:>12}  {ratio:>6.2}  {:<16}", whole(tail), format!("{low:.2} to {high:.2}"))
            }
            _ => format!("{:38}", ""),
        };
        let fresh = if step.fresh { ", fresh" } else { "" };
        let (arm, reading) = (name(&step.arm), word(step.reading));
        let _ = writeln!(text, "{arm:width$}  {figures}  {reading}{against}{fresh}");
    }
    text
}

fn verdict(plan: &BisectPlan, answer: &Answer) -> String {
    let names = |places: &mut dyn Iterator<Item = &usize>| {
        places.map(|&place| plan.subject.change(place)).collect::<Vec<_>>()
    };
    let groups = answer.culprits.iter().map(|group| {
        let ordered = plan.subject.is_ordered();
        let (joint, note) = match group.len() {
            1 => ("", ""),
            _ if ordered => (", ", " (one of these: what lies between could not be judged)"),
            _ => (" + ", " (together: without one of them it does not happen)"),
        };
        names(&mut group.iter()).join(joint) + note
    });
    let groups: Vec<String> = groups.collect();
    let ratio = plan.ratio;
    match answer.outcome {
        Outcome::Guilty => {
            let lines: String = groups.iter().map(|group| format!("guilty: {group}\n")).collect();
            let both_ways = if plan.subject.is_ordered() {
                "confirmed by fresh guests: the kernel after it is bad against the one before it\n"
            } else {
                "confirmed by fresh guests: good with it is bad, bad without it is not\n"
            };
            lines + both_ways
        }
        Outcome::NoneGuilty => {
            format!(
                "none guilty beyond the ratio: all changes together do not make it {ratio} times as long\n"
            )
        }
        Outcome::Inconclusive(doubt) => {
            let lines: String = groups.iter().map(|group| format!("suspect: {group}\n")).collect();
            format!("{lines}inconclusive: {}\n", doubted(doubt))
        }
    }
}

fn doubted(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::Control => {
            "a kernel parameter that nobody reads moves the tail as much: these guests cannot tell; \
             more seeds or longer runs may"
        }
        Doubt::Spread => {
            "the spread from guest to guest hides whether the bad set-up is bad; more seeds or longer runs may tell"
        }
        Doubt::Reversed => "the bad set-up is the better one: swap good and bad",
        Doubt::NotRead => {
            "the kernel read none of these changes, so that what differs is chance: is a parameter misspelt, or this \
             kernel built without it?"
        }
        Doubt::Unconfirmed => {
            "fresh guests do not confirm what was found: it was chance, or the change comes in several small steps, or \
             the spread hides it; more seeds or a smaller --ratio may tell"
        }
    }
}

fn word(reading: Option<Effect>) -> &'static str {
    match reading {
        Some(Effect::Harms) => "rose",
        Some(Effect::Helps) => "fell",
        Some(Effect::NoneVisible) => "no change",
        Some(Effect::Undecided) => "unclear",
        None => "cannot be measured",
    }
}

fn whole(figure: f64) -> String {
    Unit::Instructions.figure(Nanos(figure.round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::bisect::Subject;
    fn words() -> BisectPlan {
        BisectPlan::about(Subject::words("k".into(), &[], &["a=1".into(), "b".into(), "c".into()]))
    }

    fn empty() -> Answer {
        Answer {
            outcome: Outcome::Guilty,
            culprits: Vec::new(),
            good: 0.0,
            steps: Vec::new(),
            without_effect: [].into(),
            parameters: Vec::new(),
        }
    }

    #[test]
    fn what_was_not_read_and_what_guests_cannot_show_stand_below_the_answer() {
        let bad = ["thredirqs".to_owned(), "idle=poll".to_owned()];
        let parameter = KernelParameter {
            word: "thredirqs".into(),
            answer: record::ParameterAnswer::NotRead,
            evidence: "the log names it".into(),
        };
        let plan = BisectPlan::about(Subject::words("k".into(), &[], &bad));
        let text = answer(&plan, &Answer { parameters: vec![parameter], ..empty() });
        assert!(text.contains("\nnote: thredirqs: not read by this kernel: the log names it\n"), "{text}");
        assert!(
            text.contains("\nnote: idle=poll: these guests cannot tell: instruction time has no idle"),
            "{text}"
        );
        assert!(
            verdict(&plan, &Answer { outcome: Outcome::Inconclusive(Doubt::NotRead), ..empty() })
                .starts_with("inconclusive: the kernel read none of these changes")
        );
    }

    fn step_of(arm: Arm, reading: Effect) -> Step {
        let reading = Some(reading);
        let (tail, ratio) = (Some(12_345.0), Some((3.0, [2.5, 3.5])));
        Step { arm, against: Arm::off(), fresh: false, tail, ratio, reading, failure: None }
    }

    #[test]
    fn a_step_is_one_line() {
        let rose = step_of(Arm::With([0, 1].into()), Effect::Harms);
        assert_eq!(step(&rose), "with-1-2: 12,345 instructions, 3.00 times good (2.50 to 3.50): rose");
        let failed = Step { tail: None, ratio: None, failure: Some("panicked".into()), ..rose };
        assert_eq!(step(&Step { reading: None, ..failed }), "with-1-2: cannot be measured: panicked");
    }

    #[test]
    fn each_outcome_is_reported_in_its_own_words() {
        let text = |plan: &BisectPlan, outcome, culprits: &[&[usize]]| {
            let culprits = culprits.iter().map(|group| group.iter().copied().collect()).collect();
            verdict(plan, &Answer { outcome, culprits, good: 5_000.0, ..empty() })
        };
        let guilty = text(&words(), Outcome::Guilty, &[&[0]]);
        assert!(guilty.starts_with("guilty: a=1\nconfirmed by fresh guests"), "{guilty}");
        let pair = text(&words(), Outcome::Guilty, &[&[0, 2]]);
        assert!(pair.starts_with("guilty: a=1 + c (together"), "{pair}");
        let none = text(&words(), Outcome::NoneGuilty, &[]);
        assert!(none.starts_with("none guilty beyond the ratio"), "{none}");
        let suspect = text(&words(), Outcome::Inconclusive(Doubt::Unconfirmed), &[&[1]]);
        assert!(suspect.starts_with("suspect: b\ninconclusive: "), "{suspect}");
        let names = ["x", "y", "z"].map(str::to_owned).to_vec();
        let list = BisectPlan::about(Subject::Kernels { names, words: Vec::new() });
        let steps = text(&list, Outcome::Guilty, &[&[0, 1]]);
        assert!(steps.starts_with("guilty: x -> y, y -> z (one of these"), "{steps}");
    }

    #[test]
    fn the_table_says_what_was_compared_with_what() {
        let direct = Step {
            against: Arm::With([0].into()),
            fresh: true,
            ..step_of(Arm::With([0, 1].into()), Effect::Harms)
        };
        let steps = vec![step_of(Arm::Control, Effect::NoneVisible), direct];
        let answer = Answer { good: 4_115.0, steps, ..empty() };
        let text = table(&answer, "p99.9 under cpu");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "p99.9 under cpu  instructions   times  interval");
        assert_eq!(lines[1], "good                    4,115");
        assert_eq!(lines[2], "control                12,345    3.00  2.50 to 3.50      no change");
        assert_eq!(lines[3], "with-1-2               12,345    3.00  2.50 to 3.50      rose (with-1), fresh");
    }
}
