//! What the kernel is built to do or not, unless its command line says otherwise.

use machine::command_line::Word;
use machine::grammar;
use record::Fact;

use crate::survey::{COMMAND_LINE, Survey};
use crate::value::Reading;

/// A parameter that takes a boolean, and what holds without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Switch<'a> {
    parameter: &'a str,
    symbol: &'a str,
    /// Whether the symbol being off is what switches on: `*_DEFAULT_OFF`.
    is_off_by_symbol: bool,
}

impl<'a> Switch<'a> {
    /// Of `PARAMETER,SYMBOL` or `PARAMETER,!SYMBOL`.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let (parameter, symbol) = text.split_once(',')?;
        let plain = symbol.strip_prefix('!');
        let symbol = plain.unwrap_or(symbol);
        (!parameter.is_empty() && !symbol.is_empty()).then_some(Self {
            parameter,
            symbol,
            is_off_by_symbol: plain.is_some(),
        })
    }

    /// The symbol of the kernel's configuration.
    pub(super) fn symbol(self) -> &'a str {
        self.symbol
    }

    /// Whether it is on.
    pub(super) fn read(self, survey: &Survey) -> Reading {
        match survey.command_line() {
            Fact::Value(line) => match line.all(self.parameter).filter_map(as_switched).last() {
                Some(is_on) => Reading::new(Fact::Value(is_on), &[COMMAND_LINE]),
                None => self.by_default(survey),
            },
            // A configuration alone is judged for itself.
            _ if survey.is_of_papers => self.by_default(survey),
            unknown => Reading::new(unknown.clone().map(|_| false), &[COMMAND_LINE]),
        }
    }

    fn by_default(self, survey: &Survey) -> Reading {
        let built = survey.read(&format!("config:{}", self.symbol));
        let is_on = as_built(&built).map(|is_set| is_set != self.is_off_by_symbol);
        Reading { value: is_on.map(Into::into), from: built.from }
    }
}

/// Whether a symbol is set: one that a whole configuration does not name is not.
pub(super) fn as_built(reading: &Reading) -> Fact<bool> {
    match &reading.value {
        Fact::Absent => Fact::Value(false),
        value => value.clone().map(|setting| setting.to_string() == "y"),
    }
}

/// What a word switches; nothing where the kernel does not take its value.
fn as_switched(word: &Word) -> Option<bool> {
    match word.value.as_deref() {
        // param_set_bool (kernel/params.c); other parameters want a value.
        None => word.name.contains('.').then_some(true),
        value if grammar::judge(&word.name, value, None).is_some() => None,
        Some(value) => as_bool(value),
    }
}

/// As kstrtobool (lib/kstrtox.c) takes it, by its first letters.
fn as_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_bytes() {
        [b'y' | b't' | b'1', ..] | [b'o', b'n', ..] => Some(true),
        [b'n' | b'f' | b'0', ..] | [b'o', b'f', ..] => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use units::CpuList;

    use super::*;
    use crate::survey::Given;

    /// Whether it is on in a kernel with these lines of configuration and that command line.
    fn read(name: &str, config: &str, line: Option<&str>) -> String {
        let whole = format!("# Linux/x86 6.12.5 Kernel Configuration\n{config}# end of Kernel hacking\n");
        let given = Given {
            config: Some((".config".into(), whole.into())),
            command_line: line.map(Into::into),
            ..Given::default()
        };
        Survey::of(given, CpuList::new()).read(name).value.to_string()
    }

    const SET: &str = "CONFIG_A=y\n";
    const NOT_SET: &str = "# CONFIG_A is not set\n";

    #[test]
    fn without_a_word_it_is_as_built() {
        for line in [None, Some("quiet")] {
            for (config, is_set) in [(SET, true), (NOT_SET, false), ("CONFIG_B=y\n", false)] {
                let words = |is_on| if is_on { "yes" } else { "no" };
                assert_eq!(read("switch:a,A", config, line), words(is_set), "{config} {line:?}");
                assert_eq!(read("switch:a,!A", config, line), words(!is_set), "{config} {line:?}");
            }
        }
    }

    #[test]
    fn the_last_word_that_the_kernel_takes_counts() {
        for (line, is_on) in
            [("a=0", "no"), ("a=on", "yes"), ("a=1 a=off", "no"), ("a=0 a=maybe a", "no"), ("a=N a=y", "yes")]
        {
            for name in ["switch:a,A", "switch:a,!A"] {
                assert_eq!(read(name, SET, Some(line)), is_on, "{name} {line}");
                assert_eq!(read(name, NOT_SET, Some(line)), is_on, "{name} {line}");
            }
        }
        for (name, line, is_on) in [
            ("switch:kmemleak,A", "kmemleak=1", "no"),
            ("switch:kmemleak,A", "kmemleak=on", "yes"),
            ("switch:rt_group_sched,A", "rt_group_sched=on", "no"),
            ("switch:rt_group_sched,A", "rt_group_sched=1", "yes"),
            ("switch:rcutree.enable_rcu_lazy,A", "rcutree.enable_rcu_lazy", "yes"),
        ] {
            assert_eq!(read(name, NOT_SET, Some(line)), is_on, "{line}");
        }
    }

    #[test]
    fn a_switch_of_neither_line_nor_configuration_is_unknown() {
        let survey = Survey::of(Given::default(), CpuList::new());
        assert_eq!(survey.read("switch:a,A").value, Fact::Unsupported);
    }
}
