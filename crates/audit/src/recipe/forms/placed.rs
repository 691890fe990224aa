//! Files of other programs that a text names by their paths, read by the table of `placed`: each key is known with what its value is,
//! belongs to another file, or is not understood.

use machine::grammar;

use super::super::nearest::nearest_of;
use super::super::placed::{FILES, File};
use super::super::reading::{Reading, lines};
use super::super::{Remark, RemarkId, Target, places, prose};
use crate::Severity;

/// The text below the path of a file that is known.
pub fn read(text: &str, _: Target) -> Option<Reading> {
    let path = places::heading(text).or_else(|| named(text))?;
    if path == "/etc/sysctl.conf" || path.starts_with("/etc/sysctl.d/") {
        return sysctls(text);
    }
    let file = FILES.iter().find(|file| file.is_at(path))?;
    let mut reading = Reading::default();
    for (number, line) in settings(text) {
        let Some((name, value)) = file.setting(line) else { continue };
        reading.settings += 1;
        match file.key(name) {
            Some(known) => reading.remarks.extend(known.fault_of(value).map(|message| {
                Remark::new(number, RemarkId::Malformed, Severity::Error, format!("{name}={value}"), message)
            })),
            None => unknown(file, number, line, name, &mut reading),
        }
    }
    (reading.settings > 0).then_some(reading)
}

/// The path of a file that the first comment calls by its name: `# ptp4l.conf of the grandmaster`.
fn named(text: &str) -> Option<&'static str> {
    let comment = text.lines().next()?.strip_prefix("# ")?;
    let name = comment.split_whitespace().next()?.trim_end_matches([':', ',']);
    let is_name = |path: &&&str| path.rsplit('/').next() == Some(name) && name.len() > 1;
    FILES.iter().flat_map(|file| &file.paths).find(is_name).copied()
}

fn settings(text: &str) -> impl Iterator<Item = (usize, &str)> {
    lines(text).filter(|(_, line)| !prose::introduces(line) && !line.starts_with("```"))
}

/// A key that the file does not have: of another file, nearly one, or not understood.
fn unknown(file: &File, number: usize, line: &str, name: &str, reading: &mut Reading) {
    let error = |id, message: String| Remark::error(number, id, line, message);
    let other = FILES.iter().find(|other| other.key(name).is_some() && other.program != file.program);
    let slip = file.slips.iter().find(|(slip, _)| *slip == name).map(|(_, meant)| *meant);
    let meant = slip.or_else(|| nearest_of(name, file.keys.iter().map(|(known, _)| *known)));
    match (other, meant) {
        (_, Some(meant)) => reading.remarks.push(
            error(RemarkId::Misspelt, format!("{} has no {name}: {meant} is meant", file.program))
                .instead(meant),
        ),
        (Some(other), None) => reading.remarks.push(
            error(
                RemarkId::NoEffect,
                format!("{} does not read {name} here: {} does", file.program, other.program),
            )
            .instead(other.paths[0]),
        ),
        (None, None) if file.whole => {
            reading.remarks.push(error(RemarkId::Unknown, format!("{} has no {name}", file.program)));
        }
        (None, None) => reading.unknown += 1,
    }
}

/// sysctl.d(5): names of /proc/sys, of which each has a directory.
fn sysctls(text: &str) -> Option<Reading> {
    let is_setting = |line: &str| {
        line.split_once('=')
            .is_some_and(|(name, _)| !name.trim().contains(char::is_whitespace) && !name.trim().is_empty())
    };
    if settings(text).count() == 0 || !settings(text).all(|(_, line)| is_setting(line)) {
        return None;
    }
    let mut reading = Reading::default();
    let mut before: Vec<(usize, &str, &str)> = Vec::new();
    for (number, line) in settings(text) {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let (name, value) = (name.trim().trim_start_matches('-'), value.trim());
        if let Some((other, ..)) = before.iter().find(|(_, known, set)| *known == name && *set != value) {
            let message = format!("replaces line {other}: of two lines for one setting the later counts");
            reading.remarks.push(Remark::error(number, RemarkId::Duplicate, line, message));
        }
        before.push((number, name, value));
        if name.contains(['.', '/']) {
            reading.statements.extend(super::super::statements::find(line).into_iter().map(
                |mut statement| {
                    *statement.line_mut() = number;
                    statement
                },
            ));
            reading.settings += 1;
            continue;
        }
        let message = match grammar::parameter(name) {
            Some(_) => "is a word for the kernel command line: sysctl has no such setting",
            None => "is no name below /proc/sys: sysctl passes over the line",
        };
        reading.remarks.push(Remark::error(number, RemarkId::Unknown, line, message));
    }
    Some(reading)
}

#[cfg(test)]
mod tests {
    use crate::recipe::{Target, examine};

    fn of(text: &str) -> (bool, usize) {
        let found = examine(text, Target::default());
        (found.is_understood(), found.remarks.len())
    }

    #[test]
    fn keys_of_the_file_are_fine() {
        for fine in [
            "# /etc/ethercat.conf\nMASTER0_DEVICE=\"00:11:22:33:44:55\"\nDEVICE_MODULES=\"generic\"\n",
            "# /etc/default/irqbalance\nIRQBALANCE_BANNED_CPULIST=2-3\n",
            "# /etc/chrony/chrony.conf\npool x iburst\nhwtimestamp *\nlock_all\n",
            "# /etc/linuxptp/ptp4l.conf\n[global]\ntime_stamping hardware\n",
            "# /etc/sysctl.d/90-rt.conf\nkernel.timer_migration = 0\n",
        ] {
            assert_eq!(of(fine), (true, 0), "{fine}");
        }
    }

    #[test]
    fn keys_of_other_files_are_wrong_and_unknown_ones_not_understood() {
        for wrong in [
            "# /etc/ethercat.conf\nMASTER0_DEVICE=\"eth0\"\n",
            "# /etc/tuned/tuned-main.conf\nisolated_cores=2-3\n",
            "# /etc/default/irqbalance\nIRQBALANCE_BANNED_CPUS=2-3\n",
            "# /etc/linuxptp/ptp4l.conf\ntime_stamping hw\n",
            "# /etc/sysctl.d/90-rt.conf\nnosmt = 1\nvm.swappiness = 1\n",
        ] {
            assert_eq!(of(wrong).1, 1, "{wrong}");
        }
        assert_eq!(of("# /etc/ethercat.conf\nOTHER_THING=1\n"), (false, 0));
    }
}
