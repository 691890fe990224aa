//! extlinux.conf: a label of our own behind the others, a copy of the default with our words; the default label itself is
//! never changed.

use machine::SysRoot;
use machine::boot_loader::{
    Label, Request, Requested, cmdline_txt, is_mark, is_menu, keyword, labels, lines,
};

use super::word::refuse_characters;
use super::{Case, Draft, HEADER, Manner, OWN, cannot, edit, text};
use crate::error::{Error, Result};

/// Lines of a label that belong to what it boots. U-Boot ends a label where it does not know a line, and Syslinux where a
/// separator or a submenu begins.
const KEPT: [&str; 11] = [
    "kernel",
    "linux",
    "initrd",
    "fdt",
    "devicetree",
    "fdtdir",
    "devicetreedir",
    "fdtoverlays",
    "ipappend",
    "sysappend",
    "kaslrseed",
];

/// What a label boots that is no kernel: it has no use for words.
const OTHERS: [&str; 8] = ["localboot", "config", "com32", "comboot", "boot", "bss", "pxe", "fdimage"];

/// The line above which some of U-Boot's boards boot another label (its CONFIG_SYS_CBSIZE, with the end), in bytes.
const SMALL_ROOM: usize = 511;

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
    let not_understood =
        |reason: &str| Error::new("change", path.as_ref(), reason, "write the label by hand");
    let booted = labels.iter().find(|label| label.is_default);
    let booted = booted.ok_or_else(|| not_understood("it has no label"))?;
    if labels.iter().any(|label| label.name == OWN) {
        return Err(not_understood("it has a label worstcase already, and no journal tells of it"));
    }
    if booted.settings.iter().any(|(key, _)| OTHERS.contains(&key.as_str())) {
        return Err(not_understood("its default boots no kernel of Linux"));
    }
    let append = case.edited(&booted.line(), true);
    let head = match case.manner {
        Manner::Default => chosen(&old),
        _ => old.clone(),
    };
    let end = if head.ends_with('\n') { "" } else { "\n" };
    let new = format!("{head}{end}\n{HEADER}\n{}", copy(booted, &append));
    let next = match case.manner {
        Manner::Default => "reboot; the old label is still there to be chosen at the prompt",
        _ => "reboot and choose the label `worstcase` at the prompt; the default is as before",
    };
    Ok(Draft {
        edits: vec![edit(path, Some(old.clone()), new)],
        notes: notes(&old, &append),
        next,
        ..Draft::default()
    })
}

/// u-boot-menu says so in the file that it makes.
fn notes(text: &str, append: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if text.contains("generated automatically") || text.contains("u-boot-update") {
        notes.push("u-boot-update makes this file anew with each kernel, without these words: U_BOOT_PARAMETERS in /etc/default/u-boot keeps them".to_owned());
    }
    if append.len() > SMALL_ROOM {
        let length = append.len();
        notes.push(format!("the line has {length} bytes: where that is more than CONFIG_SYS_CBSIZE of a U-Boot, it boots another label"));
    }
    notes
}

/// A copy of a label with another name and other words. Where it names no kernel, Syslinux takes its name for one.
fn copy(label: &Label, append: &str) -> String {
    let mut copy = format!("label {OWN}\n");
    let has = |keys: &[&str]| label.settings.iter().any(|(key, _)| keys.contains(&key.as_str()));
    let append = format!("\tappend {}\n", if append.is_empty() { "-" } else { append });
    if !has(&["kernel", "linux"]) {
        let name = label.name.split_whitespace().next().unwrap_or_default();
        copy += &format!("\tkernel {name}\n");
    }
    if !has(&["append"]) {
        copy += &append;
    }
    for (key, value) in &label.settings {
        match key.as_str() {
            "append" => copy += &append,
            "menu" => copy += &of_menu(value),
            key if KEPT.contains(&key) => copy += &format!("\t{key} {value}\n"),
            _ => {}
        }
    }
    copy
}

/// What a menu shows of the copy, and what it locks the original with.
fn of_menu(value: &str) -> String {
    match keyword(value) {
        (key, title) if key == "label" => format!("\tmenu label {OWN}: {title}\n"),
        (key, secret) if key == "passwd" => format!("\tmenu passwd {secret}\n"),
        _ => String::new(),
    }
}

/// The text with our label as what is booted if nobody chooses. A menu that stands in the default's place stays a menu.
fn chosen(text: &str) -> String {
    let has = |name: &str| lines(text).any(|(line, counts)| counts && keyword(line).0 == name);
    let mut new = if has("default") { String::new() } else { format!("default {OWN}\n") };
    for (line, counts) in lines(text) {
        let (key, value) = keyword(line);
        match key.as_str() {
            _ if !counts => new += line,
            "default" if is_menu(value) && !has("ui") => new += &format!("ui {value}\ndefault {OWN}\n"),
            "default" | "ontimeout" => new += &format!("{key} {OWN}\n"),
            key if is_mark(key, value) => {}
            _ => new += line,
        }
    }
    new
}

pub(super) fn own(root: &SysRoot, request: &Request) -> Option<Vec<Requested>> {
    let labels = labels(&request.file, &text(root, &request.file).ok()?);
    let append = labels.into_iter().find(|label| label.name == OWN)?.append?;
    Some(cmdline_txt(&request.file, &append.text))
}
