//! The few options that tasks take.

use std::fmt::Display;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, ensure};

/// What is left of the command line; each task takes its own and [`Arguments::finish`]es.
pub struct Arguments(Vec<String>);

impl Arguments {
    /// Without the program's name.
    pub fn from_command_line() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    /// Takes the first word.
    pub fn word(&mut self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    /// Takes `--name`; says whether it was there.
    pub fn flag(&mut self, name: &str) -> bool {
        let place = self.0.iter().position(|word| word == name);
        place.map(|place| self.0.remove(place)).is_some()
    }

    /// Takes `--name VALUE`.
    pub fn value<T: FromStr<Err: Display>>(&mut self, name: &str) -> Result<Option<T>> {
        let Some(place) = self.0.iter().position(|word| word == name) else { return Ok(None) };
        self.0.remove(place);
        ensure!(place < self.0.len(), "{name} needs a value");
        let text = self.0.remove(place);
        text.parse().map(Some).map_err(|error| anyhow!("{error}")).with_context(|| format!("{name} {text}"))
    }

    /// Refuses what nobody took.
    pub fn finish(self) -> Result<()> {
        ensure!(self.0.is_empty(), "not understood: {}", self.0.join(" "));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Arguments {
        Arguments(words.iter().map(|&word| word.to_owned()).collect())
    }

    #[test]
    fn options_are_taken_in_any_order() {
        let mut arguments = of(&["--quick", "--rounds", "3"]);
        assert_eq!(arguments.value::<u32>("--rounds").unwrap(), Some(3));
        assert!(arguments.flag("--quick"));
        assert!(!arguments.flag("--full"));
        arguments.finish().unwrap();
    }

    #[test]
    fn what_nobody_took_and_values_that_do_not_parse_are_errors() {
        assert!(of(&["--qiuck"]).finish().is_err());
        assert!(of(&["--rounds"]).value::<u32>("--rounds").is_err());
        assert!(of(&["--rounds", "many"]).value::<u32>("--rounds").is_err());
    }
}
