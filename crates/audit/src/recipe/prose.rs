//! Sentences around what is to be typed: `Without reboot: echo 1 > FILE`, a unit or a file of YAML below a line that introduces it.

/// Words with which a sentence says that something is not to be done, or does not work.
const DENIALS: [&str; 12] = [
    " not ",
    "n't ",
    " never ",
    "instead of",
    "rather than",
    "no longer",
    " wrong",
    "ignored",
    "refused",
    "invalid",
    "there is no ",
    "unlike ",
];

/// Whether a sentence advises what it names.
pub fn advises(line: &str) -> bool {
    // What it is good for may be denied: `so that the kernel no longer spreads interrupts`.
    let lower = line.to_lowercase();
    let lower = lower.split(" so ").next().unwrap_or_default();
    let lower = without_rivals(lower);
    !DENIALS.iter().any(|denial| lower.contains(denial))
}

/// Whether a sentence advises the code between the two: of what stands before, the clause in which the code is counts, and of what
/// stands behind, its first words, because what the code is good for may be a denial.
pub fn advises_between(before: &str, after: &str) -> bool {
    let start = [". ", "; ", ": "].iter().filter_map(|end| Some(before.rfind(end)? + end.len())).max();
    let clause = &before[start.unwrap_or(0)..];
    // Code right behind a colon belongs to the sentence before it.
    let has_verb =
        clause.split_whitespace().any(|word| word.len() > 1 && word.chars().all(char::is_alphabetic));
    let clause = if has_verb { clause } else { before };
    let judgement = after.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
    advises(&format!(" {clause} {judgement} "))
}

/// A sentence without `instead of the other one,`: what follows the comma is advised all the same.
fn without_rivals(lower: &str) -> String {
    let mut kept = lower.to_owned();
    for sign in ["instead of ", "rather than ", "unlike "] {
        let Some(at) = kept.find(sign) else { continue };
        let Some(end) = kept[at..].find(", ") else { continue };
        if !kept[at..at + end].contains(['`', '=']) {
            kept.replace_range(at..at + end, "");
        }
    }
    kept
}

/// What stands behind the colon of a sentence, if a sentence stands before it.
pub fn behind_colon(line: &str) -> Option<&str> {
    let (before, behind) = line.split_once(": ")?;
    // An apostrophe is no quote.
    let before = before.replace("'s ", "s ");
    let is_plain = !before.contains(['`', '=', '"', '\'', '>', '|', '$', '{', '<', '/']);
    let words = before.split_whitespace().count();
    let begins = before.trim_start().starts_with(|c: char| c.is_alphabetic());
    (is_plain && begins && words > 1).then(|| behind.trim()).filter(|behind| !behind.is_empty())
}

/// The line with which a text introduces what follows it: words that end in a colon, a full stop or a closing bracket.
pub fn introduces(line: &str) -> bool {
    let line = line.trim();
    // What stands between backticks is no part of the sentence's own words.
    let bare: String = line.split('`').step_by(2).collect();
    let is_plain = !bare.contains(['=', '|', '>', '$', '{', '<']) && !line.starts_with(['#', '-', '[']);
    let words = line.split_whitespace().count();
    let least = if line.contains(['"', '`']) { 5 } else { 3 };
    let names_file = line.contains('/') && words == 2 && line.ends_with(':') && !line.starts_with('/');
    is_plain && (words >= least || names_file) && line.ends_with([':', '.', ')'])
}

/// A text with the sentence that introduces it as a comment.
pub fn introduced(text: &str) -> Option<String> {
    let first = text.lines().next().filter(|line| introduces(line))?;
    let rest = text.get(first.len() + 1..)?;
    let indent =
        rest.lines().filter(|line| !line.trim().is_empty()).map(|line| line.len() - line.trim_start().len());
    let indent = indent.min()?;
    let of = |line: &str| line.get(indent..).unwrap_or_default().to_owned() + "\n";
    Some(format!("# {first}\n{}", rest.lines().map(of).collect::<String>()))
}

/// A text from its first line that opens an object of JSON, with the lines before it empty.
pub fn object(text: &str) -> Option<String> {
    let first = text.lines().position(|line| line.trim() == "{").filter(|first| *first > 0)?;
    let blank = "\n".repeat(first);
    Some(blank + &text.lines().skip(first).flat_map(|line| [line, "\n"]).collect::<String>())
}

/// The stretch of a text that is a file with sections, between sentences: its first line, from 1, and its lines.
pub fn sections(text: &str) -> Option<(usize, String)> {
    let is_section = |line: &str| {
        let name = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        name.is_some_and(|name| ["Unit", "Service", "Install", "Slice", "Scope", "Container"].contains(&name))
    };
    let is_entry = |line: &str| {
        let key = line.split_once('=').map_or("", |(key, _)| key.trim());
        line.trim().is_empty()
            || line.trim_start().starts_with(['#', ';'])
            || !key.is_empty() && key.chars().all(char::is_alphanumeric)
    };
    let first = text.lines().position(is_section).filter(|first| *first > 0)?;
    let lines = text.lines().skip(first).take_while(|line| is_section(line) || is_entry(line));
    let kept: String = lines.flat_map(|line| [line.trim(), "\n"]).collect();
    (kept.lines().count() > 1).then_some((first + 1, kept))
}

/// The rows of limits.conf among other lines, each on its own line.
pub fn rows_of_limits(text: &str) -> Option<String> {
    let is_row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_item =
            words.get(2).is_some_and(|item| ["rtprio", "memlock", "nice", "priority"].contains(item));
        words.len() == 4 && is_item && ["-", "soft", "hard"].contains(&words[1])
    };
    let kept = |line: &str| if is_row(line) { format!("{line}\n") } else { "\n".to_owned() };
    let rows: String = text.lines().map(kept).collect();
    (!rows.trim().is_empty()).then_some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_between_sentences_is_found() {
        let text =
            "The unit file:\n[Service]\nUser=x\nExecStart=/bin/x\nand then the limits:\nx - rtprio 99\n";
        assert_eq!(sections(text), Some((2, "[Service]\nUser=x\nExecStart=/bin/x\n".to_owned())));
        assert_eq!(sections("[Service]\nUser=x\n"), None);
    }

    #[test]
    fn sentences_that_warn_do_not_advise() {
        assert!(advises("Tickless on all cores: add nohz=full"));
        assert!(!advises("mitigations=no is not a value"));
    }
}
