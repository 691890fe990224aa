//! GRUB with a menu that grub-mkconfig makes: a drop-in of our own that appends to the defaults, or a script of our own
//! among those that print the menu, for an entry beside the default.

use machine::boot_loader::{Choice, Request, Requested, Variables, menu, source, variables};
use machine::command_line::{Word, words};
use machine::mounts::mounts;
use sysroot::SysRoot;

use super::setting::Setting;
use super::word::{line, refuse_characters, written};
use super::{Case, Draft, Generated, HEADER, Manner, OWN, cannot, edit, own_file, text, text_if_any};
use crate::error::{Error, Result};
use crate::persist::Edit;

const DEFAULTS: &str = "/etc/default/grub";
const DROP_IN: &str = "/etc/default/grub.d/90-worstcase.cfg";
const SCRIPT: &str = "/etc/grub.d/42_worstcase";
const VARIABLES: [&str; 2] = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"];

/// What makes the menu, and where it is: it says itself whether it reads drop-ins.
const MAKERS: [(&str, &[&str]); 2] = [
    ("grub-mkconfig", &["/usr/sbin/grub-mkconfig", "/usr/bin/grub-mkconfig"]),
    ("grub2-mkconfig", &["/usr/sbin/grub2-mkconfig", "/usr/bin/grub2-mkconfig"]),
];

pub(super) fn plan(case: &mut Case<'_>) -> Result<Draft> {
    let path = case.request.file.clone();
    if case.request.generator.is_empty() {
        let reason = "the defaults that grub-mkconfig would make it of are not there, or only a shell could tell what they say";
        let hint = "write the words there by hand: worstcase check --emit grub shows how";
        return Err(Error::new("change", path.as_ref(), reason, hint));
    }
    refuse_characters("GRUB", &case.merged.added, "'\\")?;
    let maker = maker(case.root);
    let assignments = assignments(case)?;
    let edit = match case.manner {
        Manner::Default => defaults(case.root, maker.is_some_and(|(_, drops_in)| drops_in), &assignments)?,
        Manner::Entry | Manner::Trial => own_file(case.root, SCRIPT, script(&assignments))?.with_mode(0o755),
    };
    let generated = maker.filter(|(program, _)| case.programs.has(program));
    let generated =
        generated.map(|(program, _)| Generated { program: program.to_owned(), path: path.clone() });
    let setting = if case.manner == Manner::Trial { Some(once(case, OWN)?) } else { None };
    let mut notes = Vec::new();
    if !case.merged.dropped.is_empty() {
        notes.push(format!(
            "a word goes, so that {} sets the line whole: what is changed before it has no effect",
            edit.path
        ));
    }
    if generated.is_none() {
        // Fedora's and openSUSE's programs have a 2 in their names, as their directory has.
        let program = match path.contains("/grub2/") {
            true => format!("grub2-mkconfig -o {path}"),
            false => format!("update-grub (grub-mkconfig -o {path})"),
        };
        notes.push(format!("{path} is not made anew here: run {program} on the machine"));
    }
    let next = next(case.manner);
    Ok(Draft { edits: vec![edit], generated, setting, notes, next, ..Draft::default() })
}

pub(super) fn next(manner: Manner) -> &'static str {
    match manner {
        Manner::Default => "reboot",
        Manner::Entry => "reboot and choose the entry `worstcase` in GRUB's menu; the default is as before",
        Manner::Trial => {
            "reboot: GRUB boots the entry `worstcase` once, and the default again after that, whatever becomes of it"
        }
    }
}

/// The program that makes the menu, and whether it reads drop-ins.
fn maker(root: &SysRoot) -> Option<(&'static str, bool)> {
    let text = |path: &&str| root.read(path).value().cloned();
    let found = |(name, paths): &(&'static str, &[&str])| Some((*name, paths.iter().find_map(text)?));
    let (name, text) = MAKERS.iter().find_map(found)?;
    Some((name, text.contains("default/grub.d")))
}

/// A drop-in where drop-ins are read, else the defaults themselves with our lines behind.
fn defaults(root: &SysRoot, drops_in: bool, assignments: &str) -> Result<Edit> {
    if drops_in {
        return own_file(root, DROP_IN, format!("{HEADER}\n{assignments}"));
    }
    let before = text_if_any(root, DEFAULTS)?;
    let old = before.clone().unwrap_or_default();
    let end = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
    Ok(edit(DEFAULTS, before, format!("{old}{end}{HEADER}\n{assignments}")))
}

/// What a shell is to do: append the new words; where words go, the variables are set whole.
fn assignments(case: &Case<'_>) -> Result<String> {
    let (mut text, mut left) = (String::new(), case.merged.dropped.clone());
    let variables = variables(case.root).unwrap_or_default();
    for name in VARIABLES {
        let value = variables.text(name).unwrap_or_default();
        let goes = |word: &Word| case.merged.dropped.iter().any(|of| of.word == *word);
        if !words(&value).any(|(_, word)| goes(&word)) {
            continue;
        }
        if value.contains(['"', '\'', '\\', '$']) {
            let hint = "take the word out of it by hand";
            return Err(Error::new("change", name.as_ref(), "there are quotes in it", hint));
        }
        left.retain(|of| !words(&value).any(|(_, word)| of.word == word));
        let kept: Vec<Word> = words(&value).map(|(_, word)| word).filter(|word| !goes(word)).collect();
        text += &format!("{name}=\"{}\"\n", within_double_quotes(&line(&kept)));
    }
    if let Some(of) = left.first() {
        let reason = format!("it stands in {}, and in none of GRUB's defaults", of.place);
        return Err(Error::new(
            "take away",
            written(&of.word).as_ref(),
            reason,
            "change it where it comes from",
        ));
    }
    let name = VARIABLES[1];
    let added: Vec<String> = case.merged.added.iter().map(quoted).collect();
    if !added.is_empty() {
        let added = within_double_quotes(&added.join(" "));
        text += &format!("{name}=\"${{{name}-}} {added}\"\n");
    }
    Ok(text)
}

/// A word as GRUB's own script takes it.
fn quoted(word: &Word) -> String {
    let text = match word.text().contains(' ') {
        true => format!("{}={}", word.name, word.text()),
        false => written(word),
    };
    match text.contains(|c: char| " ;$|&<>{}\"`#".contains(c)) {
        true => format!("'{text}'"),
        false => text,
    }
}

fn within_double_quotes(text: &str) -> String {
    let escape = |c: char| if "\"\\$`".contains(c) { format!("\\{c}") } else { c.to_string() };
    text.chars().map(escape).collect()
}

/// Prints the first entry that 10_linux makes, with our words and a name of our own: made anew with each new kernel.
fn script(assignments: &str) -> String {
    let variables = VARIABLES.join(" ");
    format!(
        "#!/bin/sh\n{HEADER}\nset -e\n{assignments}export {variables}\n\
         \"${{0%/*}}/10_linux\" 2>/dev/null | sed -n '/^menuentry /,/^}}/p' | sed \\\n  \
         -e \"s/^menuentry '/menuentry '{OWN}: /\" \\\n  \
         -e \"s/menuentry_id_option '[^']*'/menuentry_id_option '{OWN}'/\" \\\n  -e '/^}}/q'\n"
    )
}

/// What makes GRUB boot our entry once. It has to write to its environment block before it boots: where it cannot, the
/// entry would be booted again and again.
pub(super) fn once(case: &Case<'_>, entry: &str) -> Result<Setting> {
    let has_block = |directory: &&str| case.root.exists(&format!("{directory}/grubenv")).value().is_some();
    let directory = ["/boot/grub", "/boot/grub2"].into_iter().find(has_block).unwrap_or("/boot/grub");
    let (block, menu) = (format!("{directory}/grubenv"), format!("{directory}/grub.cfg"));
    let program = ["grub-editenv", "grub2-editenv"].into_iter().find(|program| case.programs.has(program));
    let program = program.ok_or_else(|| {
        cannot("GRUB", "there is no grub-editenv here", "--entry makes an entry to be chosen")
    })?;
    if !text(case.root, &menu)?.contains("next_entry") {
        return Err(cannot(
            "GRUB",
            "its menu does not look at next_entry",
            "--entry makes an entry to be chosen",
        ));
    }
    text(case.root, &block)?;
    if let Some(why) = not_writable_by_grub(case.root, &block) {
        return Err(cannot("GRUB", &why, "--entry makes an entry to be chosen"));
    }
    Ok(Setting::NextEntry { program: program.to_owned(), block, entry: entry.to_owned() })
}

/// GRUB writes to plain disks alone (its manual, 15.1): not to LVM, RAID, Btrfs, ZFS or what is encrypted.
fn not_writable_by_grub(root: &SysRoot, path: &str) -> Option<String> {
    let mounts = mounts(root);
    let holds = |point: &std::path::Path| std::path::Path::new(path).starts_with(point);
    let mount =
        mounts.iter().filter(|mount| holds(&mount.point)).max_by_key(|mount| mount.point.as_os_str().len());
    let mount = mount?;
    let is_plain = ["ext2", "ext3", "ext4", "vfat", "xfs"].contains(&mount.file_system.as_str());
    let is_stacked = mount.device.starts_with("/dev/mapper/")
        || ["/dev/md", "/dev/dm-"].iter().any(|start| mount.device.starts_with(start));
    (!is_plain || is_stacked).then(|| {
        let (system, device) = (&mount.file_system, &mount.device);
        format!("it cannot write to {path} ({system} on {device}), and would boot the trial again and again")
    })
}

/// Our entry in the menu as it is.
pub(super) fn own(root: &SysRoot, request: &Request) -> Option<Vec<Requested>> {
    let mut environment = Variables::default();
    source("", &format!("next_entry={OWN}\n"), &mut environment);
    match menu(&request.file, &text(root, &request.file).ok()?, &environment) {
        Choice::Entry(entry) if entry.id == OWN => entry.words,
        _ => None,
    }
}
