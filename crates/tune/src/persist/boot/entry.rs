//! Entries of the boot loader specification as they are written: a line changed, a copy beside the original.

use machine::boot_loader::Requested;

use super::word::written;
use super::{Case, OWN, edit, text, text_if_any};
use crate::error::{Error, Result};
use crate::persist::Edit;

/// What kernel-install puts into the entries of new kernels.
const SOURCE: &str = "/etc/kernel/cmdline";

/// The entry that is booted, with its words changed, and what entries of new kernels are made of.
pub(super) fn changed(case: &Case<'_>) -> Result<Vec<Edit>> {
    let path = &case.request.file;
    let old = text(case.root, path)?;
    let new = with_words(case, &old)?;
    let mut edits = vec![edit(path, Some(old), new)];
    if let Some(old) = text_if_any(case.root, SOURCE)? {
        let line = old.trim_end_matches('\n');
        let placed = parameters(SOURCE, line);
        let merged = case.edit.merged(&placed)?;
        let new = super::edited(line, &merged) + &old[line.len()..];
        edits.push(edit(SOURCE, Some(old), new));
    }
    Ok(edits)
}

fn parameters(path: &str, line: &str) -> Vec<Requested> {
    machine::boot_loader::cmdline_txt(path, &line.replace('\n', " "))
}

/// The words that go must stand in the entry itself: GRUB's `$kernelopts` stands for words elsewhere.
fn with_words(case: &Case<'_>, old: &str) -> Result<String> {
    let is_elsewhere = |of: &&Requested| of.place.path != case.request.file;
    if let Some(of) = case.merged.dropped.iter().find(is_elsewhere) {
        let reason = format!("it stands in {}", of.place);
        return Err(Error::new(
            "take away",
            written(&of.word).as_ref(),
            reason,
            "change it where it comes from",
        ));
    }
    let last = lines(old).filter(|line| value(line, "options").is_some()).last();
    let mut new = String::with_capacity(old.len());
    for line in lines(old) {
        let Some(options) = value(line, "options") else {
            new.push_str(line);
            continue;
        };
        let is_last = last.is_some_and(|last| std::ptr::eq(last, line));
        let from = options.as_ptr() as usize - line.as_ptr() as usize;
        new.push_str(&line[..from]);
        new.push_str(&case.edited(options, is_last));
        new.push_str(&line[from + options.len()..]);
    }
    if last.is_none() {
        let end = if new.ends_with('\n') || new.is_empty() { "" } else { "\n" };
        new = format!("{new}{end}options {}\n", super::line(&case.merged.added));
    }
    Ok(new)
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
}

/// What stands behind a key.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (found, value) = line.trim_start().split_once([' ', '\t'])?;
    (found == key).then(|| value.trim())
}

/// A copy of the entry that is booted, with its words changed and a title of its own. `other` gives the values of keys
/// that are to be others; nothing takes the key away.
pub(super) fn copy(case: &Case<'_>, other: impl Fn(&str, &str) -> Option<String>) -> Result<String> {
    let old = text(case.root, &case.request.file)?;
    let changed = with_words(case, &old)?;
    let mut new = format!("{}\n", super::HEADER);
    for line in lines(&changed) {
        let key = line.split_whitespace().next().unwrap_or_default();
        let Some(value) = value(line, key) else {
            new.push_str(line);
            continue;
        };
        let value = match key {
            "title" => Some(format!("{OWN}: {value}")),
            _ => other(key, value),
        };
        if let Some(value) = value {
            new += &format!("{key} {value}\n");
        }
    }
    Ok(new)
}

/// The directory of a file.
pub(super) fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}
