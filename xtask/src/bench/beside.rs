//! Figures of ours beside those of a tool that measures the same, in turn: each round is theirs, ours, theirs again. Beside our
//! ratio to theirs stands theirs to itself, which is what such a ratio is worth here.

use anyhow::Result;

use super::spread::Spread;
use crate::command;

/// A figure of ours and the tool's that should be the same.
pub struct Pair {
    /// Ours, by the name of the operation or call.
    pub ours: &'static str,
    /// The tool's, as people ask for it.
    pub theirs: &'static str,
    /// The program that must be installed.
    pub program: &'static str,
    /// The package of Debian that has it.
    pub package: &'static str,
    /// What differs between the two by design; empty where nothing is known.
    pub differs: &'static str,
}

/// A pair's figures, of each round.
#[derive(Default)]
pub struct Rounds {
    ours: Vec<Option<f64>>,
    theirs: Vec<Option<f64>>,
    again: Vec<Option<f64>>,
    /// The first error of a tool.
    error: Option<String>,
}

impl Rounds {
    /// Takes a round of a pair.
    pub fn take(&mut self, ours: impl FnOnce() -> Result<f64>, theirs: impl Fn() -> Result<f64>) {
        let first = theirs();
        let own = ours();
        for (figures, figure) in
            [(&mut self.theirs, first), (&mut self.ours, own), (&mut self.again, theirs())]
        {
            match figure {
                Ok(figure) => figures.push(Some(figure)),
                Err(error) => {
                    self.error.get_or_insert_with(|| format!("{error:#}"));
                    figures.push(None);
                }
            }
        }
    }
}

/// Whether the pair's tool is here; says what to install where it is not.
pub fn is_installed(pair: &Pair) -> bool {
    let is_here = command::find(pair.program).is_some();
    if !is_here {
        println!("skipped: {} is not installed (apt-get install {})", pair.program, pair.package);
    }
    is_here
}

/// The table, in nanoseconds and ratios.
pub fn table(pairs: &[(&Pair, Rounds)]) -> String {
    let mut text = format!(
        "{:18} {:24} {:>10} {:>10}  {:19} {:19} {}\n",
        "ours",
        "theirs",
        "ours, ns",
        "theirs, ns",
        "ours/theirs",
        "theirs/itself",
        "within their spread, or what differs"
    );
    for (pair, rounds) in pairs {
        text += &line(pair, rounds);
    }
    text
}

fn line(pair: &Pair, rounds: &Rounds) -> String {
    let median =
        |figures: &[Option<f64>]| Spread::of(figures.iter().copied().flatten()).map(|spread| spread.median);
    let ratio = Spread::of_ratios(&rounds.ours, &rounds.theirs);
    let itself = Spread::of_ratios(&rounds.again, &rounds.theirs);
    let (Some(ours), Some(theirs), Some(ratio), Some(itself)) =
        (median(&rounds.ours), median(&rounds.theirs), ratio, itself)
    else {
        let why = rounds.error.as_deref().unwrap_or("no round gave a figure");
        return format!("{:18} {:24} no figure: {why}\n", pair.ours, pair.theirs);
    };
    format!(
        "{:18} {:24} {ours:10.1} {theirs:10.1}  {:19} {:19} {}\n",
        pair.ours,
        pair.theirs,
        ratio.to_string(),
        itself.to_string(),
        verdict(pair, ratio, itself)
    )
}

/// A ratio of equals comes as far from 1 as theirs to itself does.
fn verdict(pair: &Pair, ratio: Spread, itself: Spread) -> String {
    let noise = itself.noise();
    match ((1.0 / noise..=noise).contains(&ratio.median), pair.differs.is_empty()) {
        (true, _) => "within".to_owned(),
        (false, false) => pair.differs.to_owned(),
        (false, true) => "outside, and no reason is known".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    const PAIR: Pair = Pair { ours: "a", theirs: "b", program: "b", package: "b", differs: "" };

    fn rounds(ours: f64, theirs: f64, again: f64) -> Rounds {
        let all = |figure| vec![Some(figure); 3];
        Rounds { ours: all(ours), theirs: all(theirs), again: all(again), error: None }
    }

    #[test]
    fn a_ratio_within_what_theirs_makes_of_itself_is_within() {
        assert!(line(&PAIR, &rounds(110.0, 100.0, 120.0)).ends_with("within\n"));
        assert!(line(&PAIR, &rounds(85.0, 100.0, 120.0)).ends_with("within\n"));
        assert!(line(&PAIR, &rounds(150.0, 100.0, 120.0)).ends_with("no reason is known\n"));
        let differs = Pair { differs: "theirs is 8 bytes", ..PAIR };
        assert!(line(&differs, &rounds(150.0, 100.0, 120.0)).ends_with("theirs is 8 bytes\n"));
    }

    #[test]
    fn a_tool_that_gives_no_figure_is_no_ratio() {
        let mut rounds = Rounds::default();
        rounds.take(|| Ok(1.0), || bail!("it ended with 1"));
        assert!(line(&PAIR, &rounds).contains("no figure: it ended with 1"));
    }
}
