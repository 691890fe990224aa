//! Lines that are wrong beside other lines: a comment that says what a mask does not, a step that is missing.

use super::{Remark, RemarkId};
use crate::Severity;

/// What is wrong with the lines of a text together.
pub fn remarks(text: &str) -> Vec<Remark> {
    let mut remarks = Vec::new();
    remarks.extend(masks_beside_comments(text));
    remarks.extend(boot_loader_not_written(text));
    remarks.extend(second_line_of_cmdline_txt(text));
    remarks.extend(glued(text));
    remarks.extend(search_path(text));
    remarks.extend(replaced(text));
    remarks.extend(braces(text));
    remarks
}

fn error(line: usize, id: RemarkId, shown: &str, message: impl Into<String>) -> Remark {
    Remark::new(line, id, Severity::Error, shown.trim().chars().take(60).collect::<String>(), message)
}

/// `# pin it to CPU 3`, and then a mask of 3.
fn masks_beside_comments(text: &str) -> Vec<Remark> {
    let lines: Vec<&str> = text.lines().collect();
    let of = |index: usize, line: &str| {
        let number = mask_of(line)?;
        let bits = u64::from_str_radix(number.trim_start_matches("0x"), 16).ok()?;
        let above = index
            .checked_sub(1)
            .and_then(|above| lines.get(above))
            .filter(|above| above.trim_start().starts_with('#'));
        let comment = line.split_once(" #").map(|(_, comment)| comment).or(above.copied())?;
        let cpu = named_cpu(comment)?;
        let is_slip = number == cpu.to_string() && cpu < 64 && bits != 1 << cpu;
        is_slip.then(|| {
            let message =
                format!("is a mask, in which {number} is not CPU {cpu}: that is {:x}", 1_u64 << cpu);
            error(index + 1, RemarkId::MaskNotNumber, line, message)
        })
    };
    lines.iter().enumerate().filter_map(|(index, line)| of(index, line)).collect()
}

/// The mask that a line has: `taskset 3 ./x`, `echo 3 > .../smp_affinity`.
fn mask_of(line: &str) -> Option<&str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if let Some(at) = words.iter().position(|word| *word == "taskset") {
        let next = words.get(at + 1)?;
        let next = if *next == "-p" { words.get(at + 2)? } else { next };
        return (!next.starts_with('-')).then_some(*next);
    }
    let at = words.iter().position(|word| *word == "echo")?;
    words.iter().any(|word| word.ends_with("smp_affinity")).then(|| words.get(at + 1).copied())?
}

/// The one CPU that a comment names: `CPU 3`, `core 3`, `cpu3`.
fn named_cpu(comment: &str) -> Option<u32> {
    let lower = comment.to_ascii_lowercase();
    let at = ["cpu", "core"].into_iter().find_map(|word| Some(lower.find(word)? + word.len()))?;
    let rest = lower[at..].trim_start_matches([' ', '#']);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let behind = rest[digits.len()..].trim_start();
    let is_one = !behind.starts_with([',', '-', '/']) && !behind.starts_with("and ");
    digits.parse().ok().filter(|_| is_one)
}

/// A second assignment of a variable of /etc/default/grub without the first in it.
fn replaced(text: &str) -> Option<Remark> {
    const NAMES: [&str; 2] = ["GRUB_CMDLINE_LINUX_DEFAULT=", "GRUB_CMDLINE_LINUX="];
    // A guide may show the variable more than once, as it was and as it is to be.
    let is_of_the_file = |line: &str| {
        let name = line.split_once('=').map(|(name, _)| name.trim_start_matches("export "));
        line.is_empty() || line.starts_with('#') || name.is_some_and(|name| name.starts_with("GRUB_"))
    };
    if !text.lines().all(|line| is_of_the_file(line.trim())) {
        return None;
    }
    let all = |name: &'static str| text.lines().enumerate().filter(move |(_, line)| line.starts_with(name));
    NAMES.into_iter().find_map(|name| {
        let (index, line) = all(name).nth(1)?;
        let keeps = line.contains("$GRUB_") || line.contains("${GRUB_");
        (!keeps).then(|| {
            let message =
                "replaces what stands above: the file is a shell script, and only the last assignment counts";
            error(index + 1, RemarkId::Duplicate, line, message)
        })
    })
}

/// `{2..3}` in a script for a plain shell.
fn braces(text: &str) -> Option<Remark> {
    let is_plain = text
        .lines()
        .next()
        .is_some_and(|line| matches!(line.trim(), "#!/bin/sh" | "#! /bin/sh" | "#!/bin/dash"));
    let has = |line: &str| {
        let inside = line.split_once('{').and_then(|(_, rest)| Some(rest.split_once('}')?.0));
        !line.trim_start().starts_with('#')
            && inside.and_then(|inside| inside.split_once("..")).is_some_and(|(a, b)| {
                [a, b].iter().all(|end| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit()))
            })
    };
    let (index, line) = text.lines().enumerate().find(|(_, line)| is_plain && has(line))?;
    Some(error(
        index + 1,
        RemarkId::Malformed,
        line,
        "only bash takes {1..2} apart, /bin/sh may be another shell",
    ))
}

/// Programs that write what the boot loader reads.
const WRITERS: [&str; 7] =
    ["update-grub", "grub-mkconfig", "grub2-mkconfig", "grubby", "update-bootloader", "pbl ", "grub-update"];

/// /etc/default/grub is edited, the machine is booted, and nothing has made grub.cfg of it.
fn boot_loader_not_written(text: &str) -> Option<Remark> {
    let edits = text.lines().position(|line| {
        let changes = line.contains("sed -i") || line.contains("tee ") || line.contains(">> ");
        changes && line.contains("/etc/default/grub")
    })?;
    let boots = text.lines().skip(edits).any(|line| {
        line.trim().trim_start_matches("sudo ").trim_start_matches("systemctl ").starts_with("reboot")
    });
    let is_written = WRITERS.iter().any(|writer| text.contains(writer));
    (boots && !is_written).then(|| {
        let message =
            "the file is only what grub.cfg is made of: without update-grub the next boot changes nothing";
        let line = text.lines().nth(edits).unwrap_or_default();
        error(edits + 1, RemarkId::NoEffect, line, message).instead("update-grub before the reboot")
    })
}

/// The Raspberry Pi's firmware hands on the first line of cmdline.txt.
fn second_line_of_cmdline_txt(text: &str) -> Option<Remark> {
    let is_named =
        text.lines().any(|line| line.trim_start().starts_with('#') && line.contains("cmdline.txt"));
    let is_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        !line.starts_with(['#', '$', '`', '-'])
            && !words.is_empty()
            && words.iter().any(|word| word.contains('='))
            && words
                .iter()
                .all(|word| word.contains('=') || machine::parameters::is_taken(word, None) == Some(true))
    };
    let mut lines =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let all = lines.clone().all(|(_, line)| is_line(line));
    let (index, line) = lines.nth(1).filter(|_| is_named && all)?;
    let message = "cmdline.txt is one line: the firmware passes over the second";
    Some(error(index + 1, RemarkId::NoEffect, line, message))
}

/// Variables of BitBake that are lists of words.
const LISTS: [&str; 10] = [
    "APPEND",
    "KERNEL_FEATURES",
    "KERNEL_EXTRA_FEATURES",
    "SRC_URI",
    "IMAGE_INSTALL",
    "CORE_IMAGE_EXTRA_INSTALL",
    "CMDLINE",
    "KERNEL_MODULE_AUTOLOAD",
    "DISTRO_FEATURES",
    "EXTRA_OEMAKE",
];

/// `APPEND:append = "x"`: the operator adds no blank.
fn glued(text: &str) -> Vec<Remark> {
    let of = |line: &str| {
        let (name, value) = line.trim().split_once('=')?;
        let (name, operator) = name.trim().split_once(':')?;
        let (operator, value) = (operator.trim().split([':', ' ']).next()?, value.trim().strip_prefix('"')?);
        let is_list = LISTS.contains(&name);
        (is_list && operator == "append" && !value.starts_with([' ', '"', '\\'])).then_some(
            "append adds no blank: the first word is glued to what stands there; begin with a blank",
        )
    };
    let lines = text.lines().enumerate();
    lines.filter_map(|(index, line)| Some(error(index + 1, RemarkId::Malformed, line, of(line)?))).collect()
}

/// `FILESEXTRAPATHS:prepend := "DIRECTORY"`: directories with colons between them, put before what stands there.
fn search_path(text: &str) -> Option<Remark> {
    let of = |line: &str| {
        let (name, value) = line.trim().split_once('=')?;
        let (variable, operator) = name.split_once([':', '_'])?;
        let is_prepended = variable == "FILESEXTRAPATHS" && operator.starts_with("prepend");
        let value = value.trim().trim_matches('"');
        (is_prepended && !value.ends_with(':')).then_some(())
    };
    let (index, line) = text.lines().enumerate().find(|(_, line)| of(line).is_some())?;
    let message = "is a list with colons: without one at its end the last directory is glued to the next";
    Some(error(index + 1, RemarkId::Malformed, line, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_belong_together_are_fine() {
        for fine in [
            "# CPU 2\ntaskset 4 ./x\n",
            "# CPUs 0 and 1\ntaskset 3 ./x\n",
            "sudo sed -i s/a/b/ /etc/default/grub\nsudo update-grub\nsudo reboot\n",
            "# cmdline.txt\nconsole=tty1 isolcpus=3\n",
            "APPEND:append = \" isolcpus=3\"\n",
        ] {
            assert_eq!(remarks(fine), [], "{fine}");
        }
    }

    #[test]
    fn lines_that_contradict_others_are_wrong() {
        for wrong in [
            "# core 4\ntaskset 4 ./x\n",
            "echo 'GRUB_CMDLINE_LINUX=x' | tee -a /etc/default/grub\nreboot\n",
            "# /boot/cmdline.txt\nconsole=tty1 rootwait\nisolcpus=3\n",
            "KERNEL_FEATURES:append = \"x.scc\"\n",
        ] {
            assert_eq!(remarks(wrong).len(), 1, "{wrong}");
        }
    }
}
