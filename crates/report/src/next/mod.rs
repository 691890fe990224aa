//! What to do next: a few commands, and what each is for.

pub mod run;

use crate::style::Style;
use crate::text::{harmless, wrap};

/// Columns of the word in front of the commands.
const HEAD: usize = 6;

/// Commands below each other, each with its purpose behind it, or below it where the line is too short. The first stands
/// behind `Next`.
pub fn steps(commands: &[(String, String)], style: &Style) -> Vec<String> {
    let width = |text: &str| text.chars().count();
    let column = commands.iter().map(|(command, _)| width(command)).max().unwrap_or(0) + 4;
    let purpose = commands.iter().map(|(_, purpose)| width(purpose)).max().unwrap_or(0);
    let fits = HEAD + column + purpose <= style.width;
    let line = |(place, (command, purpose)): (usize, &(String, String))| {
        let head = if place == 0 { "Next" } else { "" };
        let command = harmless(command);
        if fits {
            return vec![
                format!("{head:<HEAD$}{command:<column$}{}", harmless(purpose)).trim_end().to_owned(),
            ];
        }
        let mut lines = vec![format!("{head:<HEAD$}{command}")];
        lines.extend(wrap(&" ".repeat(HEAD + 2), purpose, HEAD + 2, style.width));
        lines
    };
    commands.iter().enumerate().flat_map(line).collect()
}

/// For the terminal, every line ended.
pub fn text(commands: &[(String, String)], style: &Style) -> String {
    steps(commands, style).into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_stand_behind_commands_or_below_them() {
        let commands = [("a --long".to_owned(), "why".to_owned()), ("b".to_owned(), "how".to_owned())];
        let of = |width| steps(&commands, &Style { width, ..Style::default() });
        assert_eq!(of(80), ["Next  a --long    why", "      b           how"]);
        assert_eq!(of(20), ["Next  a --long", "        why", "      b", "        how"]);
    }
}
