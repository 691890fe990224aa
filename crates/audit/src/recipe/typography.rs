//! Characters that a word processor or a web page put where a machine wants ASCII.

use super::{Remark, RemarkId};
use crate::Severity;

/// Curly quotes, single and double, low and high.
const QUOTES: [char; 8] =
    ['\u{201c}', '\u{201d}', '\u{201e}', '\u{201f}', '\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}'];

/// Hyphens, dashes and the minus sign.
const DASHES: [char; 6] = ['\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2212}'];

/// What is wrong with the characters of `text`.
pub fn remarks(text: &str) -> Vec<Remark> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines
        .flat_map(|(number, line)| {
            quotes(number, line).into_iter().chain(dashes(number, line)).chain(others(number, line))
        })
        .collect()
}

/// `NAME=“value”`: the quotes become part of the value, and the shell splits it at its blanks.
fn quotes(number: usize, line: &str) -> Option<Remark> {
    let assignment = line.find('=')?;
    let name = line[..assignment].rsplit(char::is_whitespace).next()?;
    let value = &line[assignment + 1..];
    let quoted = value.starts_with(QUOTES) && is_name(name);
    quoted.then(|| {
        Remark::new(number, RemarkId::Typography, Severity::Error, excerpt(&line[assignment - name.len()..]), "curly quotes are part of the value to a shell: it splits at the first blank and the rest is lost")
            .instead(format!("{name}={}", straight(value)))
    })
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

/// ` –option`: to the program that is a file's name or an operand, not an option. One remark a line.
fn dashes(number: usize, line: &str) -> Option<Remark> {
    let is_option = |word: &&str| {
        word.starts_with(DASHES)
            && word.trim_start_matches(DASHES).starts_with(|c: char| c.is_ascii_alphanumeric())
    };
    let words: Vec<&str> = line.split_whitespace().filter(is_option).collect();
    let meant: Vec<String> = words.iter().map(|word| hyphenated(word)).collect();
    let message = "a dash is no hyphen: the program takes what follows for an operand, not for an option";
    (!words.is_empty()).then(|| {
        Remark::new(number, RemarkId::Typography, Severity::Error, words.join(" "), message)
            .instead(meant.join(" "))
    })
}

/// One letter is a short option, more are a long one, whose two hyphens became one dash.
fn hyphenated(word: &str) -> String {
    let bare = word.trim_start_matches(DASHES);
    let letters = bare.chars().take_while(char::is_ascii_alphabetic).count();
    format!("{}{bare}", if letters == 1 { "-" } else { "--" })
}

/// Blanks that are no blanks, ellipses inside commands, and a backslash-n that an editor left in a file.
fn others(number: usize, line: &str) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let machine = line.contains("bootargs") || line.contains("GRUB_CMDLINE");
    if machine && line.contains('\u{2026}') {
        remarks.push(Remark::new(number, RemarkId::Typography, Severity::Warning, excerpt(line), "the ellipsis stands for words that are left out: copied as it is, it becomes a parameter on the kernel command line"));
    }
    if line.contains('=') && line.contains(['\u{a0}', '\u{202f}', '\u{2009}']) {
        remarks.push(
            Remark::new(
                number,
                RemarkId::Typography,
                Severity::Error,
                excerpt(line),
                "a no-break space does not separate words",
            )
            .instead("an ordinary space"),
        );
    }
    if machine && line.contains("\\n") {
        remarks.push(Remark::new(number, RemarkId::Typography, Severity::Error, excerpt(line), "a written-out \\n is not a line's end: the shell keeps the letter n, and the last word is broken"));
    }
    remarks
}

fn straight(value: &str) -> String {
    value.chars().map(|c| if QUOTES.contains(&c) { '"' } else { c }).collect()
}

/// At most sixty characters of a line.
fn excerpt(line: &str) -> String {
    let line = line.trim();
    if line.chars().count() <= 60 {
        line.to_owned()
    } else {
        line.chars().take(59).chain(['\u{2026}']).collect()
    }
}
