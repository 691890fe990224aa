//! A step of a bisection, in words.

use experiment::Effect;
use experiment::bisect::{Step, name};
use record::Unit;
use units::Nanos;

/// One line.
pub fn step(step: &Step) -> String {
    let Step { arm, against, fresh, tail, ratio, reading, failure, .. } = step;
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
    use experiment::Arm;

    use super::*;

    #[test]
    fn a_step_is_one_line() {
        let rose = Step {
            arm: Arm::With([0, 1].into()),
            against: Arm::off(),
            fresh: false,
            tail: Some(12_345.0),
            before: Some(4_115.0),
            ratio: Some((3.0, [2.5, 3.5])),
            confidence: Some(0.97),
            reading: Some(Effect::Harms),
            failure: None,
        };
        assert_eq!(step(&rose), "with-1-2: 12,345 instructions, 3.00 times good (2.50 to 3.50): rose");
        let failed = Step { tail: None, ratio: None, failure: Some("panicked".into()), ..rose };
        assert_eq!(step(&Step { reading: None, ..failed }), "with-1-2: cannot be measured: panicked");
    }
}
