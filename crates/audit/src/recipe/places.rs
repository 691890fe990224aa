//! Where a text goes, as its heading comment says (`# /etc/udev/rules.d/99-rt.rules`), and what is read there: the name that a
//! file needs, the lines that its reader knows.

use super::{Remark, RemarkId, prose, reading};

/// Directories whose files count only with this end of their names.
const ENDS: [(&str, &str); 14] = [
    ("/etc/sysctl.d/", ".conf"),
    ("/usr/lib/sysctl.d/", ".conf"),
    ("/etc/modprobe.d/", ".conf"),
    ("/etc/modules-load.d/", ".conf"),
    ("/etc/tmpfiles.d/", ".conf"),
    ("/etc/security/limits.d/", ".conf"),
    ("/etc/udev/rules.d/", ".rules"),
    ("/usr/lib/udev/rules.d/", ".rules"),
    ("/etc/default/grub.d/", ".cfg"),
    ("/etc/dracut.conf.d/", ".conf"),
    ("/etc/NetworkManager/conf.d/", ".conf"),
    ("/etc/chrony/conf.d/", ".conf"),
    ("/etc/systemd/system.conf.d/", ".conf"),
    ("/boot/loader/entries/", ".conf"),
];

/// Directories that people write to and nothing reads, and those that are meant.
const NO_DIRECTORIES: [(&str, &str); 9] = [
    ("/etc/sysctl.conf.d/", "/etc/sysctl.d/"),
    ("/etc/sysctl/", "/etc/sysctl.d/"),
    ("/etc/limits.d/", "/etc/security/limits.d/"),
    ("/etc/security/limits.conf.d/", "/etc/security/limits.d/"),
    ("/etc/modprobe.conf.d/", "/etc/modprobe.d/"),
    ("/etc/udev.d/rules/", "/etc/udev/rules.d/"),
    ("/etc/udev/rules/", "/etc/udev/rules.d/"),
    ("/etc/grub.d/default/", "/etc/default/grub.d/"),
    ("/etc/systemd/systemd/", "/etc/systemd/system/"),
];

/// Kinds of units, all of which a directory of drop-ins may be for (systemd.unit(5)).
const KINDS: [&str; 8] = ["service", "socket", "slice", "scope", "timer", "mount", "target", "path"];

/// Files of /etc/tuned that are no profiles (tuned 2.20).
const TUNED: [&str; 6] =
    ["tuned-main.conf", "active_profile", "profile_mode", "bootcmdline", "post_loaded_profile", "ppd.conf"];

/// Keys of loader.conf(5).
const LOADER: [&str; 14] = [
    "default",
    "timeout",
    "console-mode",
    "editor",
    "auto-entries",
    "auto-firmware",
    "auto-poweroff",
    "auto-reboot",
    "beep",
    "secure-boot-enroll",
    "reboot-for-bitlocker",
    "random-seed-mode",
    "log-level",
    "preferred",
];

/// What is wrong with a text for the places that it names.
pub fn remarks(text: &str) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = headings(text).filter_map(|(line, path)| of_file(line, path)).collect();
    remarks.extend(written(text));
    let heading = headings(text).next().map_or("", |(_, path)| path);
    if heading.ends_with("loader/loader.conf") {
        remarks.extend(lines(text).filter_map(loader));
    }
    if is_firmware(text) {
        remarks.extend(lines(text).filter_map(firmware));
    }
    remarks.extend(drop_in(text, heading));
    remarks.extend(section_of_manager(text, heading));
    remarks.extend(ethercat(text));
    remarks.extend(colons(text));
    remarks
}

/// Lines that are neither empty nor a comment nor a sentence, from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    reading::lines(text).filter(|(_, line)| !prose::introduces(line))
}

/// The files of a text that has several, each below a comment that is its path: the first line, from 1, and its lines.
pub fn files(text: &str) -> Vec<(usize, String)> {
    let is_heading = |line: &str| {
        let Some(comment) = line.strip_prefix("# ") else { return false };
        let (path, rest) = comment.split_once([' ', ',', ':']).unwrap_or((comment, ""));
        let is_file = ["/etc/", "/boot/", "/usr/lib/", "/lib/"].iter().any(|start| path.starts_with(start));
        let is_alone =
            rest.is_empty() || comment[path.len()..].starts_with([',', ':']) || rest.starts_with(['(', ':']);
        is_file && is_alone
    };
    let mut files: Vec<(usize, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if files.is_empty()
            || is_heading(line)
                && files.last().is_some_and(|(_, text)| {
                    !text.lines().all(|line| line.starts_with('#') || line.trim().is_empty())
                })
        {
            files.push((index + 1, String::new()));
        }
        if let Some((_, file)) = files.last_mut() {
            file.push_str(line);
            file.push('\n');
        }
    }
    files
}

/// A file's path and its content in a sentence: `with one line in /etc/security/limits.d/rt.conf: @rt - rtprio 95`.
pub fn inline(line: &str) -> Option<(&str, &str)> {
    let (at, _) = line.match_indices(": ").find(|(at, _)| {
        let path = line[..*at].split_whitespace().last().unwrap_or_default();
        path.trim_start_matches(['`', '(']).starts_with("/etc/")
    })?;
    let path = line[..at].split_whitespace().last()?.trim_matches(['`', '(', ')']);
    let is_sentence = line[..at].split_whitespace().count() > 2 && prose::advises(&line[..at]);
    let content = line[at + 2..].trim().trim_matches('`');
    (is_sentence && !content.is_empty() && !content.contains('`')).then_some((path, content))
}

/// The path of the file that a text is, if its first lines name one.
pub fn heading(text: &str) -> Option<&str> {
    let first =
        reading::lines(text).find(|(_, line)| !prose::introduces(line)).map_or(usize::MAX, |(line, _)| line);
    headings(text).find(|(line, _)| *line < first).map(|(_, path)| path)
}

/// Comments that begin with a path, above lines that are no comments: what follows is that file's.
fn headings<'a>(text: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let comment = line.trim().strip_prefix('#').and_then(|comment| comment.split_whitespace().next());
        let sentence = prose::introduces(line).then_some(line);
        let mut words = comment.into_iter().chain(sentence.into_iter().flat_map(str::split_whitespace));
        let bare = |word: &'a str| word.trim_matches([':', ',', '.', '`', '"', '(', ')']);
        let path =
            words.by_ref().map(bare).find(|word| word.starts_with('/') && word.matches('/').count() > 1)?;
        Some((index + 1, path))
    })
}

/// Why a file of that name is not read, and the name that is.
fn unread(path: &str) -> Option<(String, Option<String>)> {
    if path.contains(['$', '*', '<']) || path.ends_with('/') {
        return None;
    }
    if let Some((_, end)) = ENDS.iter().find(|(directory, _)| path.starts_with(directory)) {
        let message = format!("only files that end in {end} are read there");
        return (!path.ends_with(end)).then(|| (message, Some(format!("{path}{end}"))));
    }
    if let Some((wrong, meant)) = NO_DIRECTORIES.iter().find(|(wrong, _)| path.starts_with(wrong)) {
        let instead = format!("{meant}{}", &path[wrong.len()..]);
        return Some((format!("nothing reads that directory: {meant} is meant"), Some(instead)));
    }
    let name = path.rsplit('/').next()?;
    if let Some(unit) = path
        .split_once("/systemd/system/")
        .and_then(|(_, rest)| rest.split_once(".d/"))
        .map(|(unit, _)| unit)
        .filter(|unit| !unit.contains(['.', '/']) && !KINDS.contains(unit))
    {
        let message = format!("drop-ins of a unit stand in UNIT.service.d: systemd reads no {unit}.d");
        return Some((message, Some(path.replacen(".d/", ".service.d/", 1))));
    }
    if path.contains("/systemd/system/") && path.rsplit('/').nth(1)?.ends_with(".d") {
        let message = "only files that end in .conf add to a unit".to_owned();
        return (!name.ends_with(".conf")).then(|| (message, Some(format!("{path}.conf"))));
    }
    let profile = path.strip_prefix("/etc/tuned/")?.strip_suffix(".conf")?;
    let is_profile = !profile.contains('/') && !TUNED.contains(&name) && !name.ends_with("-variables.conf");
    is_profile.then(|| {
        let message = "a profile is a directory with a tuned.conf in it: tuned does not look at this file";
        (message.to_owned(), Some(format!("/etc/tuned/{profile}/tuned.conf")))
    })
}

/// What is wrong with the name of a file.
pub fn of_file(line: usize, path: &str) -> Option<Remark> {
    let (message, instead) = unread(path)?;
    Some(Remark::error(line, RemarkId::NoEffect, path, message).perhaps_instead(instead.as_deref()))
}

/// Files that commands write where their names keep them from being read.
fn written(text: &str) -> Vec<Remark> {
    let of = |(index, line): (usize, &str)| {
        let command = line.trim_start().trim_start_matches("sudo ");
        // cloud-init's write_files, Ansible's copy and template.
        let is_key =
            ["path: /", "dest: /"].iter().any(|key| command.trim_start_matches("- ").starts_with(key));
        let writes = line.contains('>') || line.contains("tee ") || command.starts_with("cp ") || is_key;
        let mut words = line
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'', '>']))
            .filter(|_| writes && !line.trim_start().starts_with('#'));
        words.find_map(|word| of_file(index + 1, word))
    };
    text.lines().enumerate().filter_map(of).collect()
}

/// A line of loader.conf.
fn loader((number, line): (usize, &str)) -> Option<Remark> {
    let key = line.split_whitespace().next()?;
    (!LOADER.contains(&key)).then(|| {
        let message = match key {
            "options" | "linux" | "initrd" | "title" => {
                format!("{key} belongs to an entry below loader/entries: loader.conf does not have it")
            }
            _ => format!("loader.conf has no {key}"),
        };
        Remark::error(number, RemarkId::NoEffect, line, message)
    })
}

/// Settings that only the Raspberry Pi's firmware has.
const FIRMWARE: [&str; 9] = [
    "arm_64bit",
    "dtoverlay",
    "dtparam",
    "arm_boost",
    "arm_freq",
    "force_turbo",
    "over_voltage",
    "enable_uart",
    "gpu_mem",
];

/// Whether a text is the Raspberry Pi's config.txt.
pub fn is_firmware(text: &str) -> bool {
    let is_named = text.lines().any(|line| {
        let mut words = line.trim().trim_start_matches('#').split_whitespace();
        let is_comment = line.trim().starts_with('#');
        let is_file = |word: &str| word.trim_end_matches([':', ',']).ends_with("config.txt");
        is_comment && words.next().is_some_and(is_file) || prose::introduces(line) && words.any(is_file)
    });
    let is_line = |line: &str| line.contains('=') && !line.contains(' ') || line.starts_with('[');
    let has_key = lines(text).any(|(_, line)| FIRMWARE.iter().any(|key| line.starts_with(key)));
    (is_named || has_key) && lines(text).count() > 0 && lines(text).all(|(_, line)| is_line(line))
}

/// A word for the kernel in the file that the firmware reads.
fn firmware((number, line): (usize, &str)) -> Option<Remark> {
    let name = line.split('=').next()?;
    let is_firmwares =
        FIRMWARE.contains(&name) || ["kernel", "initramfs", "cmdline", "initial_turbo"].contains(&name);
    let is_kernels = !is_firmwares && machine::grammar::parameter(name).is_some();
    is_kernels.then(|| {
        let message = "config.txt is for the firmware: words for the kernel stand in cmdline.txt";
        Remark::error(number, RemarkId::NoEffect, line, message).instead("the same word in cmdline.txt")
    })
}

/// ExecStart= that a drop-in adds to the unit's own.
fn drop_in(text: &str, heading: &str) -> Option<Remark> {
    let is_drop_in = heading.contains(".service.d/") && heading.contains("/systemd/");
    let mut starts = lines(text).filter(|(_, line)| line.starts_with("ExecStart="));
    let is_oneshot = lines(text).any(|(_, line)| line == "Type=oneshot");
    let (number, line) =
        starts.next().filter(|(_, line)| is_drop_in && !is_oneshot && *line != "ExecStart=")?;
    let message = "is added to the unit's own: systemd refuses two of them, unless Type=oneshot";
    Some(
        Remark::error(number, RemarkId::Malformed, line, message)
            .instead("an empty ExecStart= on the line before, which clears the unit's own"),
    )
}

/// systemd's own settings stand in [Manager] (systemd-system.conf(5)).
fn section_of_manager(text: &str, heading: &str) -> Option<Remark> {
    let is_managers = heading.contains("/systemd/")
        && ["system.conf", "user.conf"]
            .iter()
            .any(|name| heading.ends_with(name) || heading.contains(&format!("{name}.d/")));
    let (number, line) = lines(text).find(|(_, line)| line.starts_with('[')).filter(|_| is_managers)?;
    (line != "[Manager]").then(|| {
        let message = "systemd reads [Manager] in this file, and passes over other sections";
        Remark::error(number, RemarkId::NoEffect, line, message).instead("[Manager]")
    })
}

/// ethercatctl puts `ec_` before the names itself (EtherCAT master 1.5 and 1.6).
fn ethercat(text: &str) -> Option<Remark> {
    let (number, line) = lines(text).find(|(_, line)| {
        line.strip_prefix("DEVICE_MODULES=")
            .is_some_and(|names| names.split([' ', '"']).any(|name| name.starts_with("ec_")))
    })?;
    let message = "ethercatctl puts ec_ before each name itself";
    Some(Remark::error(number, RemarkId::Malformed, line, message).instead("generic, for ec_generic"))
}

/// `kernel.nmi_watchdog: 0`: settings of sysctl.d(5) have a `=`.
fn colons(text: &str) -> Vec<Remark> {
    let setting = |line: &str| {
        let (name, value) = line.split_once(": ")?;
        let area = name.split('.').next()?;
        let is_name = name.contains('.')
            && name.bytes().all(|b| b.is_ascii_lowercase() || b"._-0123456789".contains(&b));
        (is_name && ["kernel", "vm", "net", "fs", "dev"].contains(&area))
            .then_some((name.to_owned(), value.to_owned()))
    };
    if lines(text).count() == 0 || !lines(text).all(|(_, line)| setting(line).is_some()) {
        return Vec::new();
    }
    let of = |(number, line): (usize, &str)| {
        let (name, value) = setting(line)?;
        let message = "a setting of sysctl has a = : the line is passed over";
        Some(Remark::error(number, RemarkId::Malformed, line, message).instead(format!("{name} = {value}")))
    };
    lines(text).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_its_place_reads_is_fine() {
        for fine in [
            "# /etc/udev/rules.d/99-rt.rules\nKERNEL==\"x\", MODE=\"0660\"\n",
            "# /etc/systemd/system/x.service.d/rt.conf\n[Service]\nExecStart=\nExecStart=/bin/x\n",
            "# /etc/tuned/rt/tuned.conf\n[main]\ninclude=realtime\n",
            "# /etc/tuned/realtime-variables.conf\nisolated_cores=2-3\n",
            "# /boot/loader/loader.conf\ndefault rt.conf\ntimeout 0\n",
            "# /boot/firmware/config.txt\narm_64bit=1\nkernel=kernel8-rt.img\n",
            "kernel.nmi_watchdog = 0\n",
            "image: kernel.org/x\n",
            "echo x | sudo tee /etc/sysctl.d/90-rt.conf\n",
        ] {
            assert_eq!(remarks(fine), [], "{fine}");
        }
    }

    #[test]
    fn what_its_place_does_not_read_is_wrong() {
        for wrong in [
            "# /etc/udev/rules.d/99-rt.conf\nKERNEL==\"x\", MODE=\"0660\"\n",
            "# /etc/systemd/system/x.service.d/rt.conf\n[Service]\nExecStart=/bin/x\n",
            "# /etc/systemd/system/x.service.d/rt\n[Service]\nNice=-5\n",
            "cat > /etc/tuned/rt.conf\n",
            "# /efi/loader/loader.conf\ndefault rt.conf\noptions isolcpus=2\n",
            "# /boot/config.txt\ndtparam=audio=off\nisolcpus=3\n",
            "# rt\nvm.swappiness: 1\n",
            "sudo cp rt.rules /etc/udev/rules.d/99-rt\n",
        ] {
            assert_eq!(remarks(wrong).len(), 1, "{wrong}");
        }
    }
}
