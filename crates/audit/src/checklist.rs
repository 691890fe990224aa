//! Check-lists in the grammar of EVL's `evl check`: one rule a line, about the kernel's configuration alone.
//!
//! `[!]CONFIG_X [=value] [if [!]CONFIG_Y [=value]] [on ARCHITECTURE]`; `#` begins a comment. Without a value a rule
//! holds where the symbol is set to anything; `=n` where it is not set. `on` compares the beginning of the
//! architecture's name, in which arm64 is aarch64 and arm is aarch32. Text after a rule is passed over.

use machine::kernel_config::KernelConfig;

/// A check-list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checklist {
    /// In the file's order.
    pub rules: Vec<Line>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Which line of the file, from 1.
    pub number: usize,
    /// What must hold.
    pub wanted: Term,
    /// When: always, if there is none.
    pub condition: Option<Term>,
    /// On which architectures: all, if there is none.
    pub architecture: Option<String>,
}

/// A symbol and what is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The symbol, without `CONFIG_`.
    pub symbol: String,
    /// The value that it has; any, if there is none.
    pub value: Option<String>,
    /// Whether the opposite is said.
    pub negated: bool,
}

/// A line that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: `{found}` stands where a symbol must, which begins with CONFIG_")]
pub struct ChecklistError {
    /// Which line, from 1.
    pub line: usize,
    /// What stands there.
    pub found: String,
}

/// A rule that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The rule's line.
    pub line: usize,
    /// The symbol, without `CONFIG_`.
    pub symbol: String,
    /// What the configuration says of it; `n` where it says nothing.
    pub actual: String,
    /// The rule's condition, which held: symbol and value.
    pub condition: Option<(String, String)>,
}

impl Checklist {
    /// Reads a check-list.
    ///
    /// # Errors
    /// A rule or condition whose symbol does not begin with `CONFIG_`.
    pub fn parse(text: &str) -> Result<Self, ChecklistError> {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let rules = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        Ok(Self { rules: rules.map(|(number, line)| parse_line(number, line)).collect::<Result<_, _>>()? })
    }

    /// The rules that do not hold for `config` on `architecture` (`x86`, `arm64`; as its header says).
    pub fn failures(&self, config: &KernelConfig, architecture: &str) -> Vec<Failure> {
        self.rules.iter().filter_map(|rule| rule.failure(config, architecture)).collect()
    }
}

impl Line {
    fn failure(&self, config: &KernelConfig, architecture: &str) -> Option<Failure> {
        let elsewhere =
            |wanted: &String| !common_name(architecture).starts_with(common_name(wanted).as_str());
        if self.architecture.as_ref().is_some_and(elsewhere) {
            return None;
        }
        if self.condition.as_ref().is_some_and(|condition| !condition.holds(config))
            || self.wanted.holds(config)
        {
            return None;
        }
        let condition = self.condition.as_ref();
        let said = condition.map(|term| (term.symbol.clone(), config.value_of(&term.symbol)));
        let actual = config.value_of(&self.wanted.symbol);
        Some(Failure { line: self.number, symbol: self.wanted.symbol.clone(), actual, condition: said })
    }
}

impl Term {
    fn holds(&self, config: &KernelConfig) -> bool {
        let actual = config.value_of(&self.symbol);
        let as_said = self.value.as_ref().map_or_else(|| actual != "n", |value| *value == actual);
        as_said != self.negated
    }
}

/// The two ARM architectures have two names each.
fn common_name(architecture: &str) -> String {
    match architecture {
        "arm64" => "aarch64".to_owned(),
        "arm" => "aarch32".to_owned(),
        other => other.to_owned(),
    }
}

/// Runs of letters, digits and `_`; any other sign is a word of its own.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let run = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let end = if run == 0 { first.len_utf8() } else { run };
        if !first.is_whitespace() {
            words.push(&rest[..end]);
        }
        rest = &rest[end..];
    }
    words
}

fn parse_line(number: usize, line: &str) -> Result<Line, ChecklistError> {
    let words = words(line);
    let mut words = words.as_slice();
    let wanted = term(number, &mut words)?;
    let condition = match words.split_first() {
        Some((&"if", rest)) => {
            words = rest;
            Some(term(number, &mut words)?)
        }
        _ => None,
    };
    let architecture = match words {
        ["on", architecture, ..] => Some((*architecture).to_owned()),
        _ => None,
    };
    Ok(Line { number, wanted, condition, architecture })
}

fn term(line: usize, words: &mut &[&str]) -> Result<Term, ChecklistError> {
    let negated = words.first() == Some(&"!");
    if negated {
        *words = &words[1..];
    }
    let found = words.first().copied().unwrap_or_default();
    let symbol = found.strip_prefix("CONFIG_").filter(|symbol| !symbol.is_empty());
    let symbol = symbol.ok_or_else(|| ChecklistError { line, found: found.to_owned() })?.to_owned();
    *words = &words[1..];
    let value = match words {
        ["=", value, ..] => Some((*value).to_owned()),
        _ => None,
    };
    if value.is_some() {
        *words = &words[2..];
    }
    Ok(Term { symbol, value, negated })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CONFIG: &str = "CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\nCONFIG_CPU_FREQ=y\nCONFIG_N=250\n";

    fn failed(list: &str, architecture: &str) -> Vec<String> {
        let failures = Checklist::parse(list).unwrap().failures(&KernelConfig::parse(CONFIG), architecture);
        failures.into_iter().map(|failure| format!("{}={}", failure.symbol, failure.actual)).collect()
    }

    #[test]
    fn rules_hold_or_fail_as_evl_check_says() {
        assert_eq!(failed("CONFIG_A\nCONFIG_B\nCONFIG_C\nCONFIG_D", "x86"), ["C=n", "D=n"]);
        assert_eq!(
            failed("CONFIG_A=y\nCONFIG_B=y\nCONFIG_C=n\nCONFIG_D=n\nCONFIG_A=n", "x86"),
            ["B=m", "A=y"]
        );
        assert_eq!(failed("!CONFIG_A\n! CONFIG_C\n!CONFIG_B=y\n!CONFIG_C=n", "x86"), ["A=y", "C=n"]);
        assert_eq!(failed("CONFIG_N=250\nCONFIG_N = 1000", "x86"), ["N=250"]);
    }

    #[test]
    fn conditions_and_architectures_narrow_a_rule() {
        assert_eq!(failed("CONFIG_GOV=y if CONFIG_CPU_FREQ", "x86"), ["GOV=n"]);
        assert!(failed("CONFIG_GOV=y if !CONFIG_CPU_FREQ=y", "x86").is_empty());
        assert_eq!(failed("CONFIG_VDSO on aarch", "arm64"), ["VDSO=n"]);
        assert_eq!(failed("CONFIG_VDSO=y if CONFIG_A on aarch32", "arm"), ["VDSO=n"]);
        assert!(failed("CONFIG_VDSO on aarch32", "arm64").is_empty());
        assert_eq!(failed("CONFIG_D on x86", "x86_64"), ["D=n"]);
        assert!(failed("CONFIG_D on x86_64", "x86").is_empty());
    }

    #[test]
    fn comments_and_what_follows_a_rule_are_passed_over_and_a_wrong_symbol_is_named() {
        assert!(failed("# CONFIG_D\n\n   CONFIG_A=y and more words", "x86").is_empty());
        let error = Checklist::parse("CONFIG_A\nKASAN=n").unwrap_err();
        assert_eq!(error, ChecklistError { line: 2, found: "KASAN".to_owned() });
        assert_eq!(Checklist::parse("CONFIG_A if B").unwrap_err().found, "B");
        assert!(Checklist::parse("!").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "(CONFIG_[A-C]|[!=# \n]|if|on|\\PC){0,30}") {
            if let Ok(list) = Checklist::parse(&text) {
                let _ = list.failures(&KernelConfig::parse(CONFIG), "arm64");
            }
        }
    }
}
