//! Lines that are wrong beside other lines: a step that is missing, a form that another reader needs.

use super::loaders::{set_again, without_prompt};
use super::{Remark, RemarkId};

/// What is wrong with the lines of a text together.
pub fn remarks(text: &str) -> Vec<Remark> {
    let mut remarks = Vec::new();
    remarks.extend(second_line_of_cmdline_txt(text));
    remarks.extend(glued(text));
    remarks.extend(search_path(text));
    remarks.extend(old_override(text));
    remarks.extend(plain_shell(text));
    remarks.extend(quoted_document(text));
    remarks.extend(request_as_text(text));
    remarks.extend(no_memory_nodes(text));
    remarks.extend(managed_interrupts(text));
    remarks.extend(dropped_by_configuration(text));
    remarks.extend(not_saved(text));
    remarks.extend(libraries_of_a_capable_file(text));
    remarks.extend(fragment_of_another_name(text));
    remarks.extend(replaced(text));
    remarks.extend(braces(text));
    remarks
}

/// What is wrong with a whole text, whose parts may stand in several of its files and blocks.
pub fn of_whole(text: &str) -> Vec<Remark> {
    let found = [
        boot_loader_not_written(text),
        limits_of_a_service(text),
        set_again(text),
        undone(text),
        other_patch(text),
    ];
    found.into_iter().flatten().collect()
}

/// A setting in a file of /etc/sysctl.d that a file with a later name sets otherwise: the names decide, not the order of a text
/// (sysctl.d(5)).
fn undone(text: &str) -> Option<Remark> {
    let mut found: Vec<(&str, &str, &str)> = Vec::new();
    let mut file = "";
    for (index, line) in text.lines().enumerate() {
        let is_sign = |c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c);
        if let Some((_, rest)) = line.split_once("/etc/sysctl.d/") {
            file = rest.split(is_sign).next().unwrap_or_default().trim_end_matches('.');
            continue;
        }
        let Some((name, value)) = line.split_once('=').filter(|_| file.ends_with(".conf")) else { continue };
        let (name, value) = (name.trim(), value.trim());
        if !name.contains('.') || name.contains(char::is_whitespace) {
            continue;
        }
        let is_later =
            |(other, known, set): &&(&str, &str, &str)| *known == name && *set != value && *other > file;
        if let Some((other, ..)) = found.iter().find(is_later) {
            let message = format!("{other} comes after {file} and sets {name} again: its value counts");
            return Some(Remark::error(index + 1, RemarkId::NoEffect, line, message));
        }
        found.push((file, name, value));
    }
    None
}

/// The version in `linux-6.1.90.tar.xz` and `patch-6.6.30-rt30.patch.xz`.
fn version_in(text: &str, begin: &str, is_end: fn(&str) -> bool) -> Option<(usize, String)> {
    text.lines().enumerate().find_map(|(index, line)| {
        let (at, _) = line.match_indices(begin).find(|(at, _)| is_end(&line[at + begin.len()..]))?;
        let rest = &line[at + begin.len()..];
        let version = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.trim_end_matches('.');
        Some((index, version.to_owned()))
    })
}

/// A patch of the real-time tree for another version than that of the tree it is put on.
fn other_patch(text: &str) -> Option<Remark> {
    let (_, tree) = version_in(text, "linux-", |rest| {
        rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains(".tar")
    })?;
    let (index, patch) = version_in(text, "patch-", |rest| rest.contains("-rt"))?;
    let short = |version: &str| version.split('.').take(2).collect::<Vec<_>>().join(".");
    let line = text.lines().nth(index)?;
    (short(&tree) != short(&patch)).then(|| {
        let message = format!("is for {patch}, and the tree is {tree}: it does not apply");
        Remark::error(index + 1, RemarkId::Contradiction, line, message)
    })
}

/// A second assignment of a variable of /etc/default/grub without the first in it.
fn replaced(text: &str) -> Option<Remark> {
    const NAMES: [&str; 2] = ["GRUB_CMDLINE_LINUX_DEFAULT=", "GRUB_CMDLINE_LINUX="];
    // A guide may show the variable more than once, as it was and as it is to be.
    let is_of_the_file = |line: &str| {
        let name = line.split_once('=').map(|(name, _)| name.trim_start_matches("export "));
        line.is_empty() || line.starts_with('#') || name.is_some_and(|name| name.starts_with("GRUB_"))
    };
    let all = |name: &'static str| text.lines().enumerate().filter(move |(_, line)| line.starts_with(name));
    NAMES.into_iter().find_map(|name| {
        let (first, _) = all(name).next()?;
        let (index, line) = all(name).nth(1)?;
        let between = text.lines().skip(first).take(index - first + 1);
        let shows_both = |line: &str| {
            let lower = line.to_lowercase();
            ["before", " was ", "old ", "instead", "or:", "example"].iter().any(|word| lower.contains(word))
        };
        let is_one_file = between.clone().all(|line| is_of_the_file(line.trim()))
            && !text.lines().take(index).any(|line| line.starts_with('#') && shows_both(line));
        if !is_one_file {
            return None;
        }
        let keeps = line.contains("$GRUB_") || line.contains("${GRUB_");
        (!keeps).then(|| {
            let message =
                "replaces what stands above: the file is a shell script, and only the last assignment counts";
            Remark::error(index + 1, RemarkId::Duplicate, line, message)
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
    Some(Remark::error(
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
        let changes = ["sed -i", "tee ", ">> ", "Open ", "open ", "Edit ", "edit ", "nano ", "vi "];
        line.contains("/etc/default/grub") && changes.iter().any(|change| line.contains(change))
    })?;
    let is_sign = |c: char| c.is_ascii_digit() || c == '.' || c == ' ' || c == '-';
    let boots = text.lines().skip(edits).any(|line| {
        let line = line.trim_start_matches(is_sign);
        line.trim_start_matches("sudo ").trim_start_matches("systemctl ").to_lowercase().starts_with("reboot")
    });
    let is_written = WRITERS.iter().any(|writer| text.contains(writer));
    (boots && !is_written).then(|| {
        let message =
            "the file is only what grub.cfg is made of: without update-grub the next boot changes nothing";
        let line = text.lines().nth(edits).unwrap_or_default();
        Remark::error(edits + 1, RemarkId::NoEffect, line, message).instead("update-grub before the reboot")
    })
}

/// The Raspberry Pi's firmware hands on the first line of cmdline.txt.
fn second_line_of_cmdline_txt(text: &str) -> Option<Remark> {
    let is_named = text.lines().any(|line| {
        let is_sentence = line.trim_start().starts_with('#') || super::prose::introduces(line);
        is_sentence && line.contains("cmdline.txt")
    });
    let is_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        !line.starts_with(['#', '$', '`', '-'])
            && !words.is_empty()
            && words.iter().any(|word| word.contains('='))
            && words
                .iter()
                .all(|word| word.contains('=') || machine::parameters::is_taken(word, None) == Some(true))
    };
    let mut lines = text.lines().enumerate().filter(|(_, line)| {
        !line.trim().is_empty() && !line.starts_with('#') && !super::prose::introduces(line)
    });
    let all = lines.clone().all(|(_, line)| is_line(line));
    let (index, line) = lines.nth(1).filter(|_| is_named && all)?;
    let message = "cmdline.txt is one line: the firmware passes over the second";
    Some(Remark::error(index + 1, RemarkId::NoEffect, line, message))
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
    lines
        .filter_map(|(index, line)| Some(Remark::error(index + 1, RemarkId::Malformed, line, of(line)?)))
        .collect()
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
    Some(Remark::error(index + 1, RemarkId::Malformed, line, message))
}

/// `APPEND_append = "x"`: overrides have colons since Yocto 3.4.
fn old_override(text: &str) -> Option<Remark> {
    let is_old = |line: &str| {
        let (name, operator) = line.split_once('=')?.0.trim().rsplit_once('_')?;
        (LISTS.contains(&name) && ["append", "prepend", "remove"].contains(&operator)).then_some(())
    };
    let is_of_before = ["dunfell", "gatesgarth", "hardknott", "zeus", "warrior", "thud"]
        .iter()
        .any(|name| text.to_lowercase().contains(name));
    let (index, line) = text.lines().enumerate().find(|(_, line)| is_old(line).is_some() && !is_of_before)?;
    let message =
        "is the name of another variable since Yocto 3.4: overrides have a colon, as in NAME:append";
    Some(Remark::error(index + 1, RemarkId::NoEffect, line, message))
}

/// `+=` in /etc/default/grub where sh is dash.
fn plain_shell(text: &str) -> Option<Remark> {
    let is_debian = ["Debian", "Ubuntu", "update-grub"].iter().any(|name| text.contains(name));
    let (index, line) = text
        .lines()
        .enumerate()
        .find(|(_, line)| line.starts_with("GRUB_CMDLINE_LINUX") && line.contains("+=") && is_debian)?;
    let message = "sh is dash on Debian and Ubuntu, which has no +=: grub-mkconfig stops here";
    Some(
        Remark::error(index + 1, RemarkId::Malformed, line, message)
            .instead("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX ...\""),
    )
}

/// A variable of the script in a here-document between quotes.
fn quoted_document(text: &str) -> Option<Remark> {
    let lines: Vec<&str> = text.lines().collect();
    let (start, delimiter) = lines.iter().enumerate().find_map(|(index, line)| {
        let behind = line.split_once("<<")?.1.trim_start_matches('-').trim_start();
        let quote = behind.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        Some((index, behind[1..].split_once(quote)?.0))
    })?;
    let body = lines.iter().enumerate().skip(start + 1).take_while(|(_, line)| line.trim() != delimiter);
    let is_set = |name: &str| {
        let sign = format!("{name}=");
        !name.is_empty() && lines[..start].iter().any(|line| line.trim_start().starts_with(sign.as_str()))
    };
    let (index, line) = body.into_iter().find(|(_, line)| {
        let mut names = line.split('$').skip(1).map(|rest| {
            let rest = rest.trim_start_matches('{');
            &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())]
        });
        names.any(is_set)
    })?;
    let message =
        "stays as it is: quotes around the here-document's end keep the shell from replacing variables";
    Some(Remark::error(index + 1, RemarkId::NoEffect, line, message).instead(format!("<<{delimiter}")))
}

/// Digits for /dev/cpu_dma_latency through a descriptor that stays open: four bytes are a number in binary, others are read as
/// hexadecimal (cpu_latency_qos_write, kernel/power/qos.c).
fn request_as_text(text: &str) -> Option<Remark> {
    let descriptor = text.lines().find_map(|line| {
        let (before, _) = line.trim().strip_prefix("exec ")?.split_once("/dev/cpu_dma_latency")?;
        let digits = before.trim().trim_end_matches(['>', '<', ' ']);
        digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(digits)
    })?;
    fn value_for<'a>(line: &'a str, descriptor: &str) -> Option<&'a str> {
        let (command, target) = line.trim().split_once(">&")?;
        let value = command.trim().strip_prefix("echo ")?.trim();
        let is_bare = !value.starts_with("-n") && value.parse::<u32>().is_ok_and(|value| value > 9);
        (target.trim() == descriptor && is_bare).then_some(value)
    }
    let (index, line, value) = text
        .lines()
        .enumerate()
        .find_map(|(index, line)| Some((index, line, value_for(line, descriptor)?)))?;
    let message = match value.len() {
        3 => "three digits and a newline are four bytes, which the kernel takes for a number in binary"
            .to_owned(),
        _ => format!("the kernel reads the digits as hexadecimal: {value} is not {value} us"),
    };
    Some(
        Remark::error(index + 1, RemarkId::Malformed, line, message)
            .instead("four bytes, as printf '\\x64\\0\\0\\0' for 100 us"),
    )
}

/// A cpuset of v1 takes no task before it has memory nodes.
fn no_memory_nodes(text: &str) -> Option<Remark> {
    let writes = |name: &str| {
        text.lines().enumerate().find_map(|(index, line)| {
            let (_, path) = line.split_once('>')?;
            let path = path.trim_start_matches(['>', ' ']).split_whitespace().next()?;
            let group = path.strip_prefix("/sys/fs/cgroup/cpuset/")?.strip_suffix(name)?;
            (!group.is_empty()).then_some((index, line, group.to_owned()))
        })
    };
    let (_, _, group) = writes("/cpuset.cpus")?;
    let (index, line, _) = writes("/tasks").filter(|(_, _, other)| *other == group)?;
    let has_nodes = text.contains("cpuset.mems") || text.contains("clone_children");
    (!has_nodes).then(|| {
        let message = "a cpuset takes no task before cpuset.mems is written, too: No space left on device";
        Remark::error(index + 1, RemarkId::Malformed, line, message)
            .instead(format!("echo 0 > /sys/fs/cgroup/cpuset/{group}/cpuset.mems"))
    })
}

/// Queues of NVMe drives have managed interrupts, whose masks nobody may write.
fn managed_interrupts(text: &str) -> Option<Remark> {
    let lines: Vec<&str> = text.lines().collect();
    let (index, line) = lines.iter().enumerate().find(|(index, line)| {
        let before = &lines[index.saturating_sub(2)..=*index];
        let writes = line.contains("/proc/irq/") && line.contains("smp_affinity") && line.contains('>');
        writes && before.iter().any(|line| line.contains("nvme") && line.contains("/proc/interrupts"))
    })?;
    let message = "interrupts of NVMe queues are managed by the kernel: writing their masks is refused";
    Some(
        Remark::error(index + 1, RemarkId::NoEffect, line, message)
            .instead("isolcpus=managed_irq,domain,LIST"),
    )
}

/// limits.conf(5) is pam_limits' file: systemd starts a service without it.
fn limits_of_a_service(text: &str) -> Option<Remark> {
    let has = |sign: &str| text.lines().any(|line| line.trim().starts_with(sign));
    let is_unit = has("[Service]") && has("User=") && has("ExecStart=");
    let is_named = text.contains("User=") && text.contains("/etc/systemd/system/")
        || ["systemd service", "system service"].iter().any(|name| text.contains(name));
    let is_service = is_unit || is_named;
    let is_denied = |at: usize| text[..at].ends_with("no ") || text[..at].ends_with("without ");
    let is_named_key = |key: &&str| text.match_indices(*key).any(|(at, _)| !is_denied(at));
    let is_allowed = ["LimitRTPRIO=", "PAMName="].iter().any(is_named_key)
        || ["CPUSchedulingPolicy=", "AmbientCapabilities="].into_iter().any(has);
    let (index, line) = text.lines().enumerate().find(|(_, line)| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() == 4 && matches!(words[2], "rtprio" | "memlock" | "nice")
    })?;
    (is_service && !is_allowed).then(|| {
        let message = "limits.conf is for sessions that PAM opens: systemd starts the service without it";
        Remark::error(index + 1, RemarkId::NoEffect, line, message).instead("LimitRTPRIO= in the unit")
    })
}

/// Symbols that olddefconfig drops again: PREEMPT_RT without EXPERT, and HZ, which follows from a choice.
fn dropped_by_configuration(text: &str) -> Option<Remark> {
    let is_made =
        text.contains("defconfig") && text.contains("make ") || text.contains("CONFIG_EXPERT is not set");
    let sets = |name: &str| {
        let end = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_');
        ["-e ", "--enable ", "CONFIG_"].iter().any(|start| {
            let sign = format!("{start}{name}");
            text.match_indices(sign.as_str()).any(|(at, _)| {
                let behind = &text[at + sign.len()..];
                end(behind.chars().next()) && !behind.starts_with(" is not set")
            })
        })
    };
    let line_with = |sign: &str| text.lines().enumerate().find(|(_, line)| line.contains(sign));
    if is_made && sets("PREEMPT_RT") && !sets("EXPERT") {
        let (index, line) = line_with("PREEMPT_RT")?;
        let message = "depends on EXPERT, which defconfig leaves off: olddefconfig drops it without a word";
        return Some(
            Remark::error(index + 1, RemarkId::NotMerged, line, message).instead("-e EXPERT before it"),
        );
    }
    let is_whole = text.contains("CONFIG_CC_VERSION_TEXT") || text.lines().count() > 200;
    let rate = ["100", "250", "300", "1000"].into_iter().find(|rate| {
        let signs = [format!("CONFIG_HZ={rate}"), format!("--set-val HZ {rate}")];
        !sets(&format!("HZ_{rate}"))
            && text.lines().any(|line| line.trim() == signs[0] || line.contains(&signs[1]))
    });
    let (index, line) = line_with("HZ")?;
    rate.filter(|_| !is_whole).map(|rate| {
        let message = "HZ follows from a choice and cannot be set: the line is dropped";
        Remark::error(index + 1, RemarkId::NotMerged, line, message).instead(format!("CONFIG_HZ_{rate}=y"))
    })
}

/// U-Boot forgets at the next reset what saveenv has not stored.
fn not_saved(text: &str) -> Option<Remark> {
    let lower = text.to_lowercase();
    let is_meant_to_last =
        ["permanent", "every boot", "each boot", "from now on", "persist", "for good", "every start"]
            .iter()
            .any(|word| lower.contains(word));
    let resets = text.lines().any(|line| matches!(without_prompt(line), "reset" | "boot" | "reboot"));
    let (index, line) =
        text.lines().enumerate().find(|(_, line)| without_prompt(line).starts_with("setenv "))?;
    (is_meant_to_last && resets && !text.contains("saveenv")).then(|| {
        let message = "lasts until the next reset: U-Boot reads its stored environment then";
        Remark::error(index + 1, RemarkId::NoEffect, line, message).instead("saveenv behind it")
    })
}

/// ld.so passes over LD_LIBRARY_PATH for a file with capabilities (ld.so(8), secure-execution mode).
fn libraries_of_a_capable_file(text: &str) -> Option<Remark> {
    let (index, line) = text.lines().enumerate().find(|(_, line)| line.contains("setcap cap_"))?;
    let needs = text.contains("LD_LIBRARY_PATH") || text.contains("ros2 run") || text.contains("ros2 launch");
    let denied = |at: usize| text[..at].ends_with("no ") || text[..at].ends_with("without ");
    let is_solved = ["ld.so.conf", "ldconfig", "rpath", "patchelf"]
        .iter()
        .any(|sign| text.match_indices(sign).any(|(at, _)| !denied(at)));
    (needs && !is_solved).then(|| {
        let message =
            "a file with capabilities is started without LD_LIBRARY_PATH: its libraries are not found";
        Remark::error(index + 1, RemarkId::NoEffect, line, message)
            .instead("LimitRTPRIO= or limits.conf, or the libraries' directories in /etc/ld.so.conf.d")
    })
}

/// linux-yocto takes fragments named .cfg and .scc (kernel-yocto.bbclass).
fn fragment_of_another_name(text: &str) -> Option<Remark> {
    let is_kernels = text.contains("linux-yocto") || text.contains("linux-%");
    let is_lost = |line: &str| {
        line.trim().starts_with("SRC_URI")
            && line.split(['"', ' ']).any(|word| {
                word.starts_with("file://")
                    && [".config", ".conf", ".fragment"].iter().any(|end| word.ends_with(end))
            })
    };
    let (index, line) = text.lines().enumerate().find(|(_, line)| is_kernels && is_lost(line))?;
    let message = "the kernel's class merges .cfg and .scc only: the file is fetched and passed over";
    Some(Remark::error(index + 1, RemarkId::NotMerged, line, message).instead("the same file named .cfg"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_belong_together_are_fine() {
        for fine in [
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
            "echo 'GRUB_CMDLINE_LINUX=x' | tee -a /etc/default/grub\nreboot\n",
            "# /boot/cmdline.txt\nconsole=tty1 rootwait\nisolcpus=3\n",
            "KERNEL_FEATURES:append = \"x.scc\"\n",
            "tar xf linux-6.1.90.tar.xz\nxzcat patch-6.6.30-rt30.patch.xz | patch -p1\n",
            "# /etc/sysctl.d/99-a.conf\nvm.swappiness = 60\n# /etc/sysctl.d/10-rt.conf\nvm.swappiness = 1\n",
        ] {
            assert_eq!(remarks(wrong).len() + of_whole(wrong).len(), 1, "{wrong}");
        }
    }
}
