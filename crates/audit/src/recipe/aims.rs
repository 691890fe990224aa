//! What a comment or a sentence says that the line below it is to reach: all threads of a process, one CPU, one priority.

use super::intent::{Explained, explained};
use super::{Remark, RemarkId};

/// What is wrong with lines for what is said of them.
pub fn remarks(text: &str) -> Vec<Remark> {
    explained(text).iter().filter_map(all_threads).collect()
}

fn error(explained: &Explained, message: impl Into<String>) -> Remark {
    Remark::error(explained.line, RemarkId::Contradiction, explained.statement, message)
}

/// A program in a command, with what stands behind it.
fn behind<'a>(words: &'a [&'a str], program: &str) -> Option<&'a [&'a str]> {
    let at = words.iter().position(|word| word.rsplit('/').next() == Some(program))?;
    Some(&words[at + 1..])
}

/// Options before the first operand, by their letters.
fn has_letter(arguments: &[&str], letter: char) -> bool {
    arguments
        .iter()
        .take_while(|word| word.starts_with('-'))
        .any(|word| !word.starts_with("--") && word.contains(letter))
}

/// chrt -p and taskset -p change one thread; -a changes all of the process.
fn all_threads(explained: &Explained) -> Option<Remark> {
    let lower = explained.comment.to_lowercase();
    let is_meant = [
        "all threads",
        "all its threads",
        "every thread",
        "all of its threads",
        "each thread",
        "whole process",
    ]
    .iter()
    .any(|phrase| lower.contains(phrase))
        && !["kernel thread", "irq thread", "interrupt thread"].iter().any(|phrase| lower.contains(phrase));
    let words = &explained.words;
    let arguments = behind(words, "chrt").or_else(|| behind(words, "taskset"))?;
    let is_of_process = has_letter(arguments, 'p') || arguments.contains(&"--pid");
    let is_all = has_letter(arguments, 'a') || arguments.contains(&"--all-tasks");
    let is_each = ["/task", "for ", "$t", "tid", "ps -L", "ps -T", "-eL"]
        .iter()
        .any(|sign| explained.statement.contains(sign));
    (is_meant && is_of_process && !is_all && !is_each)
        .then(|| error(explained, "changes the main thread alone: -a changes all threads of the process"))
}

#[cfg(test)]
mod tests {
    use super::remarks;

    #[test]
    fn lines_that_do_what_is_said_are_fine() {
        assert_eq!(remarks("# all threads of the process\nchrt -a -f -p 80 123\n"), []);
    }

    #[test]
    fn lines_that_do_something_else_are_errors() {
        for wrong in [
            "# all threads of the process\nchrt -f -p 80 123\n",
            "# every thread of the server\ntaskset -cp 3 123\n",
        ] {
            assert_eq!(remarks(wrong).len(), 1, "{wrong}");
        }
    }
}
