//! Kernel parameters as a person writes them, taken apart as the kernel does.

use machine::{CommandLine, command_line, grammar};
use units::{KernelVersion, Seed};

use crate::Error;

/// A kernel parameter that nobody reads: what the control arms of guests have.
pub const INERT: &str = "worstcase.control=1";
/// How the names of parameters begin that the lab adds and nobody reads: kernels take what is in front of a dot for the name
/// of a module.
const OURS: &str = "worstcase.";
/// The longest text of [`drawn`].
const LONGEST_DRAWN: u64 = 64;

/// A kernel parameter that nobody reads, of a length that `seed` draws for the guests of `arm`. Each byte more on the command line
/// moves what a kernel does while it boots against its clock: alike in all guests, and therefore unseen, unless it is drawn.
pub fn drawn(arm: &str, seed: Seed) -> String {
    let mut random = seed.stream(&format!("command line of {arm}"));
    let length = 1 + random.below(LONGEST_DRAWN);
    let text: String = (0..length).map(|_| char::from(b'a' + random.below(26) as u8)).collect();
    format!("{OURS}draw={text}")
}

/// Whether it is a parameter that the lab adds and nobody reads.
pub fn is_ours(word: &str) -> bool {
    word.starts_with(OURS)
}

/// The parameters in `text`, each as it stands there with its quotes, in their order: blanks in quotes do not part, as for
/// `next_arg` in lib/cmdline.c.
///
/// # Errors
/// `--`, behind which the kernel reads nothing; a quote that does not end, which would take in what follows.
pub fn split(text: &str) -> Result<Vec<String>, Error> {
    let words: Vec<String> = command_line::words(text).map(|(place, _)| text[place].to_owned()).collect();
    words.iter().try_for_each(|word| check(word))?;
    Ok(words)
}

/// Of several texts, one after the other.
///
/// # Errors
/// As of [`split`].
pub fn split_all(texts: &[String]) -> Result<Vec<String>, Error> {
    texts.iter().map(|text| split(text)).collect::<Result<Vec<_>, _>>().map(|words| words.concat())
}

/// The one parameter in `text`.
///
/// # Errors
/// As of [`split`]; where there is none, or more than one.
pub fn one(text: &str) -> Result<String, Error> {
    let words = split(text)?;
    match <[String; 1]>::try_from(words) {
        Ok([word]) if word == text => Ok(word),
        _ => Err(Error::new(format!("`{text}` is not one kernel parameter"))
            .hint("blanks stand in quotes, as in dyndbg=\"file a.c +p\"")),
    }
}

/// A name as the kernel compares it: a dash is an underscore, quotes do not count.
pub fn key(word: &str) -> String {
    command_line::words(word).next().map(|(_, word)| word.name.replace('-', "_")).unwrap_or_default()
}

/// A parameter with that value, in quotes where it has blanks.
pub fn with_value(name: &str, value: &str) -> String {
    match value.contains(char::is_whitespace) && !value.contains('"') {
        true => format!("{name}=\"{value}\""),
        false => format!("{name}={value}"),
    }
}

/// What the kernel of that release makes of the parameters, where that is not what they say: a value that it does not take, words
/// that undo each other. Names that are not in the table of `machine::grammar` are not judged.
pub fn doubts(words: &[String], release: &str) -> Vec<String> {
    let version: Option<KernelVersion> = release.parse().ok();
    let line = CommandLine::parse(&words.join(" "));
    let of_one = line.words.iter().filter_map(|word| {
        let fault = grammar::judge(&word.name, word.value.as_deref(), version)?;
        Some(format!("{} {}", word.name, fault.message))
    });
    let together = grammar::together(&line, version).into_iter().filter_map(|misfit| {
        Some(format!("{} {}", line.words.get(misfit.place)?.name, misfit.fault.message))
    });
    of_one.chain(together).collect()
}

fn check(word: &str) -> Result<(), Error> {
    if word.trim_matches('"') == "--" {
        return Err(Error::new("`--` ends the kernel's own parameters: what follows is for init alone")
            .hint("leave it out"));
    }
    if word.matches('"').count() % 2 == 1 {
        return Err(Error::new(format!(
            "the quote in `{word}` does not end: the kernel takes all that follows into it"
        ))
        .hint("close it, as in dyndbg=\"file a.c +p\""));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_drawn_parameter_is_one_word_that_seed_and_arm_decide() {
        let drawn_of = |arm: &str, seed| drawn(arm, Seed(seed));
        assert_eq!(drawn_of("rt", 1), drawn_of("rt", 1));
        assert_ne!(drawn_of("rt", 1), drawn_of("stock", 1));
        let lengths: BTreeSet<usize> = (0..1000).map(|seed| drawn_of("rt", seed).len()).collect();
        assert_eq!(lengths.len() as u64, LONGEST_DRAWN);
        (0..1000).for_each(|seed| assert_eq!(one(&drawn_of("rt", seed)).ok(), Some(drawn_of("rt", seed))));
    }

    #[test]
    fn what_the_lab_adds_is_no_parameter_of_the_kernel() {
        assert!(is_ours(INERT) && is_ours(&drawn("rt", Seed(1))));
        assert!(!is_ours("worstcase") && !is_ours("preempt=full"));
    }

    #[test]
    fn quotes_keep_a_parameter_whole_and_the_order_stays() {
        let words = split("dyndbg=\"file drivers/tty/* +p\" quiet\n \"a=b c\" quiet").unwrap();
        assert_eq!(words, ["dyndbg=\"file drivers/tty/* +p\"", "quiet", "\"a=b c\"", "quiet"]);
        assert_eq!(split(&words.join(" ")).unwrap(), words, "they are the same on the command line");
    }

    #[test]
    fn what_would_swallow_others_is_refused() {
        for text in ["quiet -- single", "\"--\"", "a=\"b c quiet", "\""] {
            assert!(split(text).unwrap_err().hint.is_some(), "{text}");
        }
        assert_eq!(split("--x a=--").unwrap(), ["--x", "a=--"]);
    }

    #[test]
    fn parameters_that_do_nothing_are_doubted() {
        let doubts = |text: &str| doubts(&split(text).unwrap(), "6.12.9-rt");
        assert!(doubts("idle=sleep")[0].starts_with("idle takes poll"));
        assert_eq!(doubts("nohz=off nohz_full=1").len(), 1);
        assert!(
            doubts(&format!("{INERT} quiet isolcpus=managed_irq,1 transparent_hugepage=never")).is_empty()
        );
    }

    #[test]
    fn one_is_one() {
        assert_eq!(one("a=\"b c\"").unwrap(), "a=\"b c\"");
        for text in ["", "a b", " a", "--"] {
            assert!(one(text).is_err(), "{text:?}");
        }
        assert_eq!([key("skew-tick=1"), key("\"a-b=c d\""), key("x=\"y\"")], ["skew_tick", "a_b", "x"]);
        assert_eq!(with_value("sysctl.kernel.printk", "4 4 1 7"), "sysctl.kernel.printk=\"4 4 1 7\"");
    }
}
