//! Dockerfiles: what a build runs, and what a container of the image does not have.

use super::super::reading::Reading;
use super::super::script::{commands, program};
use super::super::{Remark, RemarkId, Target};
use crate::Severity;

pub fn read(text: &str, _: Target) -> Option<Reading> {
    let mut instructions = instructions(text);
    let is_one =
        instructions.iter().find(|(_, word, _)| *word != "ARG").is_some_and(|(_, word, _)| *word == "FROM");
    if !is_one {
        return None;
    }
    let mut reading = Reading { settings: instructions.len(), ..Reading::default() };
    instructions.retain(|(_, word, _)| *word == "RUN");
    for (line, _, script) in &instructions {
        for simple in commands(script) {
            reading.add(Reading::of_command(&simple).moved(line - 1));
        }
        reading.remarks.extend(fault(*line, script, text));
    }
    Some(reading)
}

/// Each instruction with its line, lines that a backslash continues as one.
fn instructions(text: &str) -> Vec<(usize, &str, String)> {
    let mut found: Vec<(usize, &str, String)> = Vec::new();
    let mut continues = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (bare, goes_on) = line.strip_suffix('\\').map_or((line, false), |bare| (bare, true));
        match found.last_mut().filter(|_| continues) {
            Some((.., rest)) => {
                rest.push(' ');
                rest.push_str(bare);
            }
            None => {
                let (word, rest) = bare.split_once(char::is_whitespace).unwrap_or((bare, ""));
                found.push((index + 1, word, rest.to_owned()));
            }
        }
        continues = goes_on;
    }
    found
}

/// Whether a script does nothing but set limits, which end with its shell (bash(1), ulimit).
pub fn only_limits(script: &str) -> bool {
    let all = commands(script);
    !all.is_empty() && all.iter().all(|simple| program(simple.command()) == "ulimit")
}

/// What a build does for nothing.
fn fault(line: usize, script: &str, text: &str) -> Option<Remark> {
    let of = |message: &str, instead: &str| {
        let shown: String = script.chars().take(60).collect();
        Some(Remark::new(line, RemarkId::NoEffect, Severity::Error, shown, message).instead(instead))
    };
    if only_limits(script) {
        let message = "ends with the shell of this RUN: the image keeps no limits";
        return of(message, "docker run --ulimit rtprio=99");
    }
    if script.contains("/etc/security/limits") {
        let message = "no session of PAM begins in a container: limits.conf is not read";
        return of(message, "docker run --ulimit rtprio=99");
    }
    let is_set =
        script.contains("setcap") && ["sys_nice", "ipc_lock"].iter().any(|name| script.contains(name));
    let runs = text.lines().any(|line| line.contains("docker run"));
    if is_set && runs && !text.contains("--cap-add") && !text.contains("--privileged") {
        let message =
            "a container does not have the capability that the file asks for: starting it is refused";
        return of(message, "docker run --cap-add=SYS_NICE");
    }
    let is_kernels = ["/proc/sys/", "/sys/", "sysctl -w"]
        .iter()
        .any(|sign| script.contains(sign) && script.contains(['>', '-']));
    let writes =
        script.contains("> /proc/sys/") || script.contains("> /sys/") || script.contains("sysctl -w");
    if is_kernels && writes {
        let message = "a build changes its image, not the kernel under the containers that run it";
        return of(message, "the setting on the host");
    }
    None
}
