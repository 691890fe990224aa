//! What the boot loader's files ask for beside what the kernel was booted with.

use machine::boot_loader::{Place, Request, Requested};
use machine::command_line::{CommandLine, Word};
use record::Fact;
use sysroot::without_machine_ids;

use crate::files;
use crate::survey::{COMMAND_LINE, NamedFact, Survey, fact};
use crate::value::{Item, Reading, Value, lost};

pub(super) const FACTS: &[NamedFact] = &[
    fact(
        "boot.next",
        "words of the boot loader's files that the kernel was not booted with, each with its place; unknown where no file tells",
        next,
    ),
    fact("boot.gone", "words that the kernel was booted with and the boot loader's files have no more", gone),
    fact(
        "boot.waiting",
        "words of /etc/default/grub or /etc/kernel/cmdline that the boot loader's own files do not have yet",
        waiting,
    ),
];

/// Where words stand, for a reader; machine ids in names of entries are nobody's business.
fn shown(place: &Place) -> String {
    without_machine_ids(&place.to_string())
}

/// What stands in the loader's files, as `boot:WORD` has it of the command line.
pub(super) fn requested(survey: &Survey, word: &str) -> Reading {
    let request = match survey.request() {
        Fact::Value(request) => request,
        Fact::Unreadable(errno) => return Reading::new::<Value>(Fact::Unreadable(*errno), &[FILES]),
        _ => return Reading::new::<Value>(Fact::Unsupported, &[FILES]),
    };
    let value = match request.line().value(word) {
        Some(text) => Fact::Value(files::number_or_text(text)),
        None if request.is_whole => Fact::Absent,
        None => Fact::Unsupported,
    };
    let place = request.place_of(word).map_or_else(|| files_of(request), shown);
    Reading { value, from: vec![place] }
}

const FILES: &str = "the boot loader's files";

/// The file in which a word would stand.
fn files_of(request: &Request) -> String {
    let path = request.words.last().map(|last| without_machine_ids(&last.place.path));
    path.unwrap_or_else(|| FILES.to_owned())
}

/// A list made of both lines.
fn of_both(survey: &Survey, make: impl FnOnce(&Request, &CommandLine) -> Fact<Vec<Item>>) -> Reading {
    match (survey.request(), survey.command_line()) {
        (Fact::Value(request), Fact::Value(line)) => {
            let from = files_of(request);
            Reading::new(make(request, line), &[from.as_str(), COMMAND_LINE])
        }
        (Fact::Value(_), other) => Reading::new::<Value>(lost(other), &[COMMAND_LINE]),
        (Fact::Absent, _) => Reading::new::<Value>(Fact::Unsupported, &[FILES]),
        (other, _) => Reading::new::<Value>(lost(other), &[FILES]),
    }
}

fn item(requested: &Requested) -> Item {
    Item { name: words(&requested.word), value: shown(&requested.place) }
}

/// As it stands on a kernel command line.
pub(super) fn words(word: &Word) -> String {
    word.value.as_ref().map_or_else(|| word.name.clone(), |value| format!("{}={value}", word.name))
}

fn next(survey: &Survey) -> Reading {
    of_both(survey, |request, line| {
        let is_given = |word: &Word| line.words.iter().any(|given| request.is_same(word, given));
        let new = request.words.iter().filter(|new| !is_given(&new.word) && !request.is_own(&new.word, line));
        Fact::Value(new.map(item).collect())
    })
}

fn gone(survey: &Survey) -> Reading {
    of_both(survey, |request, line| {
        if !request.is_whole {
            return Fact::Unsupported;
        }
        let next = request.line();
        let lost =
            line.words.iter().filter(|word| next.get(&word.name).is_none() && !request.is_own(word, line));
        Fact::Value(lost.map(|word| Item { name: words(word), value: files_of(request) }).collect())
    })
}

fn waiting(survey: &Survey) -> Reading {
    of_both(survey, |request, line| {
        if request.generator.is_empty() {
            return Fact::Unsupported;
        }
        let is_there = |word: &Word| request.words.iter().any(|other| other.word == *word);
        let missing =
            request.sources.iter().filter(|of| !is_there(&of.word) && !request.is_own(&of.word, line));
        let item = |missing: &Requested| Item {
            value: format!("{}: {} was not run since", shown(&missing.place), request.generator),
            ..item(missing)
        };
        Fact::Value(missing.map(item).collect())
    })
}
