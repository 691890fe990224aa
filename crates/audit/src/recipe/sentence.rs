//! A line of prose with something to type in it, taken apart: the words before it, what is to be typed, and the words behind.

use super::prose;

/// Each word of a sentence may begin or end its code, so that long lines would take long: a longer line is none, in bytes.
const LONGEST_SENTENCE: usize = 4096;

/// The parts of such a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parted<'a> {
    /// The sentence up to the code.
    pub before: &'a str,
    /// What is to be typed.
    pub code: &'a str,
    /// How the sentence goes on.
    pub after: &'a str,
}

/// The parts of a line whose sentence advises the code in it; `is_code` says what a machine would read.
pub fn parted<'a>(line: &'a str, is_code: fn(&str) -> bool) -> Option<Parted<'a>> {
    let whole = line.trim();
    if whole.len() > LONGEST_SENTENCE {
        return None;
    }
    if let Some(behind) = prose::behind_colon(whole) {
        let before = &whole[..whole.len() - behind.len()];
        if let Some(found) = quoted(whole).filter(|found| is_code(found.code)) {
            return Some(found);
        }
        let found = without_tail(before, behind);
        if is_code(found.code) {
            return Some(found);
        }
    }
    if let Some(found) = quoted(whole).filter(|found| is_code(found.code)) {
        return Some(found);
    }
    let found = without_tail("", whole);
    if is_code(found.code) {
        return Some(found).filter(|found| !found.after.is_empty());
    }
    embedded(whole, is_code)
}

/// The same lines, those with code in a sentence or behind a prompt without these.
pub fn without_sentences(text: &str, is_code: fn(&str) -> bool) -> String {
    // At root's prompt, where nothing else in the text is code.
    let bare = |line: &&str| {
        !line.trim_start().starts_with('#') && (is_code(line) || parted(line, is_code).is_some())
    };
    let is_roots = !text.lines().any(|line| bare(&line));
    let typed = |line: &str| {
        let rest = line.trim_start().strip_prefix("# ").filter(|rest| is_roots && is_code(rest))?;
        rest.contains(['>', '|', '/', '=']).then(|| rest.to_owned())
    };
    let of = |line: &str| {
        if let Some(typed) = typed(line) {
            return typed;
        }
        let code = parted(line, is_code).map(|parted| parted.code);
        code.unwrap_or_else(|| line.strip_prefix("$ ").unwrap_or(line)).to_owned()
    };
    text.lines().map(of).collect::<Vec<_>>().join("\n")
}

/// What stands between the only two backticks of a sentence that advises it.
fn quoted(line: &str) -> Option<Parted<'_>> {
    let (before, rest) = line.split_once('`')?;
    let (code, after) = rest.split_once('`')?;
    let is_words = |text: &str| text.chars().all(|c| c.is_alphanumeric() || " .,:;()'\"-/_%+".contains(c));
    let is_sentence = before.split_whitespace().count() > 1 || after.split_whitespace().count() > 1;
    let is_plain = is_words(before) && is_words(after) && !before.trim_start().starts_with('-');
    let is_advised = prose::advises_between(before, after);
    (is_sentence && is_plain && is_advised).then_some(Parted { before, code, after })
}

/// Each word with its place.
fn words(text: &str) -> Vec<(usize, &str)> {
    let start = text.as_ptr() as usize;
    text.split_whitespace().map(|word| (word.as_ptr() as usize - start, word)).collect()
}

/// A command or parameters within a sentence, without any mark around them.
fn embedded<'a>(line: &'a str, is_code: fn(&str) -> bool) -> Option<Parted<'a>> {
    let all = words(line);
    let is_plain = |word: &str| word.chars().all(|c| c.is_alphanumeric() || ".,:;()'-/".contains(c));
    let is_argument =
        |word: &str| word.starts_with(['-', '/', '.']) && word.len() > 1 || word.contains(['=', '/']);
    for (index, (at, word)) in all.iter().enumerate().skip(1) {
        // Behind two dashes stand words of a command line that are not the kernel's.
        if all[index - 1].1 == "--" || !is_plain(all[index - 1].1) {
            return None;
        }
        let next = all.get(index + 1).is_some_and(|(_, next)| is_argument(next));
        let is_setting = word.contains('.') && all.get(index + 1).is_some_and(|(_, next)| *next == "=");
        let begins = (next || word.contains('=') || is_setting)
            && word.starts_with(|c: char| c.is_ascii_lowercase() || c == '/');
        let (before, behind) = line.split_at(*at);
        let found = without_tail(before, behind);
        if begins && index > 1 && is_code(found.code) && prose::advises(before) {
            return Some(found);
        }
    }
    None
}

/// Code without the words with which its sentence goes on.
fn without_tail<'a>(before: &'a str, code: &'a str) -> Parted<'a> {
    let cut = tail(code).unwrap_or(code.len());
    let (code, after) = code.split_at(cut);
    let ends_sentence = !before.is_empty() || !after.is_empty();
    let code = code.trim_end();
    let code =
        if ends_sentence { code.trim_end_matches([',', ';', ':']).trim_end_matches(". ") } else { code };
    let code =
        if ends_sentence && !code.ends_with("..") { code.strip_suffix('.').unwrap_or(code) } else { code };
    Parted { before, code, after }
}

/// Words that sentences have and commands hardly.
const OF_SENTENCES: [&str; 26] = [
    "the", "a", "an", "of", "so", "it", "its", "that", "and", "to", "for", "is", "are", "at", "in", "each",
    "no", "which", "this", "as", "with", "from", "without", "every", "all", "then",
];

/// Words with which a sentence goes on, beside those and verbs that end in `s`.
const BEGINNINGS: [&str; 12] =
    ["on", "because", "before", "after", "while", "when", "where", "but", "or", "by", "lets", "will"];

/// Where a sentence goes on behind code: the first word of three or more that are English for the most part.
fn tail(code: &str) -> Option<usize> {
    let all = words(code);
    let is_of_shell = all.first().is_some_and(|(_, word)| ["for", "while", "if", "echo"].contains(word));
    (1..if is_of_shell { 0 } else { all.len() })
        .find(|index| is_tail(code, &all, *index))
        .map(|index| all[index].0)
}

fn is_tail(code: &str, all: &[(usize, &str)], index: usize) -> bool {
    let is_open = code[..all[index].0].matches(['"', '\'']).count() % 2 == 1;
    // A full stop, and the next sentence.
    let before = all[index - 1].1;
    let is_next = before.ends_with('.') && before.len() > 2 && !before.ends_with("..");
    if is_next && !is_open && all[index].1.starts_with(|c: char| c.is_ascii_uppercase()) {
        return true;
    }
    let is_sign = |c: char| ".,:;()\"'".contains(c);
    let rest: Vec<&str> = all[index..].iter().map(|(_, word)| word.trim_matches(is_sign)).collect();
    let first = rest[0];
    let is_verb = first.len() > 3 && first.ends_with('s') && first.chars().all(|c| c.is_ascii_lowercase());
    let begins = is_verb || OF_SENTENCES.contains(&first) || BEGINNINGS.contains(&first);
    if !begins || is_open || rest.len() < 3 {
        return false;
    }
    let has_code = |words: &[(usize, &str)]| {
        words.iter().any(|(_, word)| {
            word.starts_with('-') && word.len() > 1
                || word.contains(['|', '>', '$', '&', '{', '`', '=', '*', '['])
        })
    };
    // Six words of a sentence, whatever it goes on to name.
    let near = 6.min(rest.len());
    let is_prose = near == 6
        && rest[..near].iter().all(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase()))
        && rest[..near].iter().filter(|word| OF_SENTENCES.contains(word)).count() > 1;
    let is_whole = !has_code(&all[index..]) && is_english(&rest);
    is_prose || is_whole
}

/// Whether words are those of a sentence for the most part.
fn is_english(words: &[&str]) -> bool {
    let is_word = |word: &&&str| {
        !word.is_empty()
            && !word.starts_with(['-', '/'])
            && word.chars().all(|c| c.is_alphabetic() || "-'/".contains(c))
    };
    let is_number =
        |word: &&&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || ".%".contains(c));
    let (plain, neutral) = (words.iter().filter(is_word).count(), words.iter().filter(is_number).count());
    words.iter().any(|word| OF_SENTENCES.contains(word)) && plain * 4 >= (words.len() - neutral) * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_code(text: &str) -> bool {
        ["sysctl ", "taskset ", "ethtool ", "nosmt", "a=1 "].iter().any(|begin| text.starts_with(begin))
    }

    #[test]
    fn code_in_a_sentence_is_found_with_the_words_around_it() {
        for (line, before, code, after) in [
            ("Bind it to core 3: taskset 8 ./x", "Bind it to core 3: ", "taskset 8 ./x", ""),
            (
                "On a 6.1 kernel, sysctl -w a.b=1 turns it off, so that it runs.",
                "On a 6.1 kernel, ",
                "sysctl -w a.b=1",
                "turns it off, so that it runs.",
            ),
            (
                "ethtool -C eth0 rx-usecs 0 on the port: it fires at once.",
                "",
                "ethtool -C eth0 rx-usecs 0",
                "on the port: it fires at once.",
            ),
            (
                "a=1 b=2 reserves sixteen 1 GiB pages for it.",
                "",
                "a=1 b=2",
                "reserves sixteen 1 GiB pages for it.",
            ),
            (
                "Do it now: sysctl -w a.b=1. To make it last write a.b=1 to a file.",
                "Do it now: ",
                "sysctl -w a.b=1",
                "To make it last write a.b=1 to a file.",
            ),
            ("Then run `sysctl --system` as root.", "Then run ", "sysctl --system", " as root."),
        ] {
            assert_eq!(parted(line, is_code), Some(Parted { before, code, after }), "{line}");
        }
    }

    #[test]
    fn a_command_behind_a_sentence_is_a_command() {
        for (line, expected) in [
            ("Without reboot: echo 1 > /sys/x", "echo 1 > /sys/x"),
            ("Disable C3 and C6:  cpupower idle-set -d 2", "cpupower idle-set -d 2"),
            ("Turn throttling off: `echo -1 > /proc/x`", "echo -1 > /proc/x"),
            ("Then run `cpupower idle-info` as root.", "cpupower idle-info"),
            ("Do not run `echo 1 > /sys/x` here.", "Do not run `echo 1 > /sys/x` here."),
            ("x=`echo 1`", "x=`echo 1`"),
            ("image: registry/echo 1", "image: registry/echo 1"),
            ("echo a: b > /sys/x", "echo a: b > /sys/x"),
        ] {
            let is_command = |text: &str| text.starts_with("echo ") || text.starts_with("cpupower ");
            assert_eq!(without_sentences(line, is_command), expected);
        }
    }

    #[test]
    fn lines_without_a_sentence_stay_whole() {
        for line in [
            "ethtool -K eth0 gro off",
            "sysctl -w a.b=1",
            "taskset -c 3 ./run the loop",
            "Do not run sysctl -w a.b=1 here",
        ] {
            assert_eq!(parted(line, is_code), None, "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_taken_apart(line in "(\\PC|sysctl -w |the | a=1 |`|: ){0,20}") {
            let _ = parted(&line, is_code);
        }
    }
}
