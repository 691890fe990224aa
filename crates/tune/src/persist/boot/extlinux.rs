//! extlinux.conf: a label of our own behind the others, a copy of the default with our words; the default label itself is
//! never changed.

use machine::SysRoot;
use machine::boot_loader::{Request, Requested, cmdline_txt, labels};

use super::word::refuse_characters;
use super::{Case, Draft, Manner, OWN, cannot, edit, text};
use crate::error::{Error, Result};

pub(super) fn plan(case: &mut Case<'_>) -> Result<Draft> {
    if case.manner == Manner::Trial {
        let hint = "--entry makes a label to be chosen at the prompt; nothing falls back by itself";
        return Err(cannot("extlinux", "it cannot boot something once", hint));
    }
    // U-Boot fills in variables, and takes off what protects them.
    refuse_characters("extlinux", &case.merged.added, "$'\\")?;
    let path = &case.request.file;
    let old = text(case.root, path)?;
    let labels = labels(path, &old);
    let booted = labels.iter().find(|label| label.is_default).or_else(|| labels.first());
    let not_understood =
        |reason: &str| Error::new("change", path.as_ref(), reason, "write the label by hand");
    let booted = booted.ok_or_else(|| not_understood("it has no label"))?;
    if labels.iter().any(|label| label.name == OWN) {
        return Err(not_understood("it has a label worstcase already, and no journal tells of it"));
    }
    let line = booted.append.as_ref().map_or("", |append| append.text.as_str());
    let label = label(&old, &booted.name, &case.edited(line, true));
    let head = match case.manner {
        Manner::Default => chosen(&old),
        _ => old.clone(),
    };
    let end = if head.ends_with('\n') { "" } else { "\n" };
    let new = format!("{head}{end}\n{HEADER_OF_LABEL}\n{label}");
    let next = match case.manner {
        Manner::Default => "reboot; the old label is still there to be chosen at the prompt",
        _ => "reboot and choose the label `worstcase` at the prompt; the default is as before",
    };
    Ok(Draft {
        edits: vec![edit(path, Some(old.clone()), new)],
        notes: notes(&old),
        next,
        ..Draft::default()
    })
}

const HEADER_OF_LABEL: &str = super::HEADER;

/// u-boot-menu says so in the file that it makes.
fn notes(text: &str) -> Vec<String> {
    if !text.contains("generated automatically") && !text.contains("u-boot-update") {
        return Vec::new();
    }
    vec!["u-boot-update makes this file anew with each kernel, without these words: U_BOOT_PARAMETERS in /etc/default/u-boot keeps them".to_owned()]
}

/// Key and value of a line.
fn pair(line: &str) -> (String, &str) {
    let line = line.trim();
    let (key, value) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    (key.to_ascii_lowercase(), value.trim())
}

fn is_menu_default(line: &str) -> bool {
    let (key, value) = pair(line);
    key == "menu" && value.eq_ignore_ascii_case("default")
}

/// A copy of a label with another name and other words.
fn label(text: &str, name: &str, append: &str) -> String {
    let is_label = |line: &str| pair(line).0 == "label";
    let begins = |line: &&str| is_label(line) && pair(line).1 == name;
    let mut copy = format!("label {OWN}\n");
    let body = text.lines().skip_while(|line| !begins(line)).skip(1).take_while(|line| !is_label(line));
    for line in body.filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')) {
        let (key, value) = pair(line);
        match key.as_str() {
            "append" => {}
            "menu" if is_menu_default(line) => {}
            "menu" => match value.split_once([' ', '\t']) {
                Some((word, title)) if word.eq_ignore_ascii_case("label") => {
                    copy += &format!("\tmenu label {OWN}: {}\n", title.trim());
                }
                _ => copy += &format!("\tmenu {value}\n"),
            },
            _ => copy += &format!("\t{key} {value}\n"),
        }
    }
    copy + &format!("\tappend {append}\n")
}

/// The text with our label as what is booted if nobody chooses.
fn chosen(text: &str) -> String {
    let is_global = |line: &str| pair(line).0 == "default";
    let mut is_set = false;
    let mut lines: Vec<String> = Vec::new();
    for line in text.split_inclusive('\n').filter(|line| !is_menu_default(line)) {
        let is_it = is_global(line);
        let ours = || format!("default {OWN}\n");
        lines.push(if is_it { ours() } else { line.to_owned() });
        is_set |= is_it;
    }
    if is_set { lines.concat() } else { format!("default {OWN}\n{}", lines.concat()) }
}

pub(super) fn own(root: &SysRoot, request: &Request) -> Option<Vec<Requested>> {
    let labels = labels(&request.file, &text(root, &request.file).ok()?);
    let append = labels.into_iter().find(|label| label.name == OWN)?.append?;
    Some(cmdline_txt(&request.file, &append.text))
}
