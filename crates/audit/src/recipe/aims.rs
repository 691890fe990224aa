//! What a comment or a sentence says that the line below it is to reach: all threads of a process, one CPU, one priority.

use machine::grammar;
use units::{CpuId, CpuList};

use super::intent::{Explained, explained};
use super::{Remark, RemarkId};

/// What is wrong with lines for what is said of them.
pub fn remarks(text: &str) -> Vec<Remark> {
    let of = |explained: &Explained| {
        let remarks = [all_threads(explained), other_cpu(explained), other_priority(explained)];
        remarks.into_iter().flatten().collect::<Vec<_>>()
    };
    explained(text).iter().flat_map(of).collect()
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

/// Numbers behind one of these words.
fn numbers_behind(comment: &str, words: &[&str]) -> Vec<u32> {
    let lower = comment.to_lowercase();
    let parts: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    let mut found: Vec<u32> = Vec::new();
    for (at, pair) in parts.windows(2).enumerate() {
        // `each core (16 CPUs)`
        let is_count = parts.get(at + 2).is_some_and(|next| ["cpus", "cores", "threads"].contains(next));
        if words.contains(&pair[0]) && !is_count {
            found.extend(pair[1].parse::<u32>());
        }
    }
    found
}

/// Words with which a comment speaks of more than what the line does.
const OTHERS: [&str; 13] = [
    " not ", "n't", "instead", "isolated", "away", "except", "other", "leave", "from cpu", "above", "below",
    "than", "between",
];

/// The comment names one CPU, and the list of the line does not have it.
fn other_cpu(explained: &Explained) -> Option<Remark> {
    let lower = explained.comment.to_lowercase();
    let named = numbers_behind(&lower, &["cpu", "core", "cpus", "cores", "number"]);
    let [cpu] = named.as_slice() else { return None };
    let has_more = lower.contains(&format!("{cpu} and "))
        || lower.contains(&format!("{cpu}-"))
        || lower.contains(&format!("{cpu},"))
        || lower.contains(&format!("{cpu} to "))
        || lower.contains(&format!("{cpu} or "));
    if has_more || OTHERS.iter().any(|word| lower.contains(word)) {
        return None;
    }
    let list = list_of(explained)?;
    (!list.is_empty() && !list.contains(CpuId(*cpu)))
        .then(|| error(explained, format!("names CPU {list}, and the text CPU {cpu}")))
}

/// The CPUs that a line names by their numbers.
fn list_of(explained: &Explained) -> Option<CpuList> {
    let words = &explained.words;
    let option = |program: &str, letter: char, long: &str| {
        let arguments = behind(words, program)?;
        let at = arguments.iter().position(|word| {
            *word == long || word.starts_with('-') && !word.starts_with("--") && word.ends_with(letter)
        })?;
        arguments.get(at + 1).copied()
    };
    let text = option("taskset", 'c', "--cpu-list")
        .or_else(|| option("cyclictest", 'a', "--affinity"))
        .or_else(|| {
            let is_key = matches!(words.first(), Some(&("CPUAffinity" | "AllowedCPUs")));
            words.get(1).copied().filter(|_| is_key && words.len() == 2)
        })
        .or_else(|| {
            let is_list = words.last().is_some_and(|word| word.ends_with("smp_affinity_list"));
            let at = words.iter().position(|word| *word == "echo").filter(|_| is_list)?;
            words.get(at + 1).copied()
        })?;
    grammar::cpu_list(text, None, None).ok()
}

/// The comment names a priority, and the line another.
fn other_priority(explained: &Explained) -> Option<Remark> {
    let lower = explained.comment.to_lowercase();
    let named = numbers_behind(&lower, &["priority", "prio", "fifo", "rr"]);
    let [priority] = named.as_slice() else { return None };
    if OTHERS.iter().any(|word| lower.contains(word)) || !(1..=99).contains(priority) {
        return None;
    }
    let words = &explained.words;
    let given = match words.first() {
        Some(&"CPUSchedulingPriority") => words.get(1)?.parse::<u32>().ok()?,
        _ => {
            let arguments = behind(words, "chrt")?;
            arguments.iter().find(|word| !word.starts_with('-'))?.parse().ok()?
        }
    };
    let is_of_deadline = words.iter().any(|word| *word == "-d" || *word == "--deadline");
    (given != *priority && !is_of_deadline)
        .then(|| error(explained, format!("the priority is {given} here, and the text says {priority}")))
}

#[cfg(test)]
mod tests {
    use super::remarks;

    #[test]
    fn lines_that_do_what_is_said_are_fine() {
        for fine in [
            "# all threads of the process\nchrt -a -f -p 80 123\n",
            "# on CPU 3\ntaskset -c 3 ./x\n",
            "# on CPU 3 and 4\ntaskset -c 4 ./x\n",
            "# one thread of each core (16 CPUs)\ntaskset -c 0-3 ./x\n",
            "# keep it away from CPU 3\ntaskset -c 0 ./x\n",
            "# priority 80\nchrt -f 80 ./x\n",
            "# 10 below priority 80\nchrt -f 70 ./x\n",
            "# the interrupt threads have priority 50, so go above\nchrt -f 60 ./x\n",
        ] {
            assert_eq!(remarks(fine), [], "{fine}");
        }
    }

    #[test]
    fn lines_that_do_something_else_are_errors() {
        for wrong in [
            "# all threads of the process\nchrt -f -p 80 123\n",
            "# every thread of the server\ntaskset -cp 3 123\n",
            "# on CPU 3\ntaskset -c 2 ./x\n",
            "# core 3 measures\ncyclictest -m -p 90 -a 2 -t 1\n",
            "# FIFO 80\nchrt -f 90 ./x\n",
        ] {
            assert_eq!(remarks(wrong).len(), 1, "{wrong}");
        }
    }
}
