//! Programs that are not ours: how they are called, whether they are there, and what to do where they are not.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use units::{CpuList, Nanos};

use crate::stressor::about::About;

/// Debian packages of programs that loads and `--load-command` are likely to name.
const PACKAGES: [(&str, &str); 12] = [
    ("stress-ng", "stress-ng"),
    ("stress", "stress"),
    ("hackbench", "rt-tests"),
    ("cyclictest", "rt-tests"),
    ("pi_stress", "rt-tests"),
    ("iperf3", "iperf3"),
    ("iperf", "iperf"),
    ("netperf", "netperf"),
    ("fio", "fio"),
    ("sysbench", "sysbench"),
    ("memtester", "memtester"),
    ("glmark2", "glmark2-x11"),
];

/// A program and its arguments, in which `{workers}`, `{cpus}`, `{cpulist}`, `{duration}` and `{step}` stand for what
/// is known at the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name, looked up in PATH, or its path.
    pub program: String,
    /// The name to show, where that is not the program's: the first word of a shell command.
    #[serde(default)]
    pub shown: Option<String>,
    /// The Debian package that holds it.
    #[serde(default)]
    pub package: Option<String>,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Runs it again whenever it ends without an error, as `while :; do hackbench; done` does.
    #[serde(default)]
    pub again: bool,
    /// Runs it once for each of these, one after the other, each in the place of `{step}`, and from the start again.
    #[serde(default)]
    pub steps: Vec<String>,
}

/// What stands for the placeholders.
#[derive(Clone, Debug)]
pub(crate) struct Given<'a> {
    pub workers: u32,
    pub cpus: &'a CpuList,
    pub duration: Option<Nanos>,
    pub step: usize,
}

impl Program {
    /// A command for the shell.
    pub fn shell(command: &str) -> Self {
        Self {
            program: "/bin/sh".to_owned(),
            shown: Some(first_word(command)),
            package: None,
            arguments: vec!["-c".to_owned(), command.to_owned()],
            again: false,
            steps: Vec::new(),
        }
    }

    /// The name to show.
    pub fn shown(&self) -> String {
        self.shown.clone().unwrap_or_else(|| self.program.clone())
    }

    /// Its arguments with the placeholders filled in. A shell command's text is left as it is.
    pub(crate) fn filled(&self, given: &Given<'_>) -> Vec<String> {
        if self.shown.is_some() {
            return self.arguments.clone();
        }
        let seconds = given.duration.map_or(0, |duration| duration.0.div_ceil(1_000_000_000));
        let values = [
            ("{workers}", given.workers.to_string()),
            ("{cpus}", given.cpus.len().to_string()),
            ("{cpulist}", given.cpus.to_string()),
            ("{duration}", seconds.to_string()),
            ("{step}", self.steps.get(given.step).cloned().unwrap_or_default()),
        ];
        let fill = |text: &String| {
            values.iter().fold(text.clone(), |text, (place, value)| text.replace(place, value))
        };
        self.arguments.iter().map(fill).collect()
    }

    /// Whether it is not on this machine.
    pub fn missing(&self) -> Option<Missing> {
        let name = self.program.as_str();
        let there = if name.contains('/') { is_program(&PathBuf::from(name)) } else { in_path(name) };
        let missing = || match &self.shown {
            // The shell is not there, whatever it was to run.
            Some(_) => Missing { program: self.program.clone(), package: None },
            None => self.as_missing(),
        };
        (!there).then(missing)
    }

    /// This program as one that could not be found.
    pub(crate) fn as_missing(&self) -> Missing {
        let known = || PACKAGES.iter().find(|(known, _)| *known == self.shown()).map(|(_, package)| *package);
        let package = self.package.as_deref().or_else(known).map(str::to_owned);
        Missing { program: self.shown(), package }
    }

    /// A program counts nothing for us, and may make of itself as many processes as it likes.
    pub(crate) fn about(&self) -> About {
        let mut does = vec![self.program.clone()];
        does.extend(self.arguments.iter().cloned());
        let mut does = does.join(" ");
        if !self.steps.is_empty() {
            does = format!("{does}, with {} one after the other", self.steps.join(", "));
        }
        About { counters: 0, forks: true, threads: true, ..About::new(self.shown(), "ms of CPU time", does) }
    }
}

/// The first word of a shell command that can be a program's name, without its directory.
fn first_word(command: &str) -> String {
    let word = command.split_whitespace().find(|word| !word.contains('=')).unwrap_or("sh");
    word.rsplit('/').next().unwrap_or(word).to_owned()
}

fn in_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| is_program(&directory.join(name)))
}

fn is_program(path: &PathBuf) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// A program that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// As it was looked up: a name in PATH, or a path.
    pub program: String,
    /// The Debian package that holds it, where that is known.
    pub package: Option<String>,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the program {} was not found", self.program)?;
        match &self.package {
            Some(package) => write!(f, ": install the package {package} (Debian's name for it)"),
            None => f.write_str(": install it, or give its path"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_and_a_shell_command_is_left_alone() {
        let cpus = "0,2-3".parse().unwrap();
        let given = Given { workers: 3, cpus: &cpus, duration: Some(Nanos(1_500_000_000)), step: 1 };
        let program = Program {
            arguments: ["--{step}", "{workers}", "{cpus}:{cpulist}", "{duration}s"]
                .map(String::from)
                .to_vec(),
            steps: vec!["a".into(), "b".into()],
            ..Program { shown: None, ..Program::shell("") }
        };
        assert_eq!(program.filled(&given), ["--b", "3", "3:0,2-3", "2s"]);
        assert_eq!(Program::shell("echo {cpus}").filled(&given), ["-c", "echo {cpus}"]);
    }

    #[test]
    fn a_missing_program_names_its_package() {
        let text = Program::shell("iperf3 -c localhost").as_missing().to_string();
        assert!(text.contains("iperf3 was not found") && text.contains("package iperf3"), "{text}");
        assert_eq!(Program::shell("true").missing(), None);
    }

    #[test]
    fn a_shell_that_is_missing_is_named_not_its_command() {
        let program = Program { program: "/no/such/shell".into(), ..Program::shell("iperf3 -c localhost") };
        let text = program.missing().unwrap().to_string();
        assert!(text.contains("/no/such/shell was not found") && !text.contains("iperf3"), "{text}");
    }

    #[test]
    fn the_name_shown_is_the_program_of_the_command() {
        assert_eq!(Program::shell("LANG=C /usr/bin/stress -c 4").shown(), "stress");
        assert_eq!(Program::shell("").shown(), "sh");
    }
}
