//! Each rule with a machine that it passes and one that fails it (`tests/cases/*.toml`).
//!
//! ```toml
//! [kc-psi]                                         # the rule
//! failed = { config = "CONFIG_PSI=y", profiles = ["rt"] }
//! passed = { config = "# CONFIG_PSI is not set", profiles = ["rt"] }
//! not-applicable = [{ config = "CONFIG_PSI=y", boot = "psi=0", profiles = ["rt"] }]
//! ```
//!
//! What is in `always` belongs to all cases of a rule: `always = { kernel = "6.1.0", isolate = "2-3" }`; tables and lists
//! of a case are added to it.
//!
//! A case with `files` is a whole machine, bare and with four CPUs, that has these files besides; one without is a
//! configuration or a kernel command line alone.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use audit::{Outcome, Profile, Request, Rule, Rules, audit};
use record::Fact;
use serde::Deserialize;
use survey::{Given, Survey};
use sysroot::{SysRoot, Tree};
use toml::{Table, Value};

/// What a case says of its machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Case {
    /// Lines of the kernel's configuration.
    config: Option<String>,
    /// The command line.
    boot: Option<String>,
    /// The kernel's release.
    #[serde(default = "kernel")]
    kernel: String,
    /// As `uname -m` says it.
    #[serde(default = "architecture")]
    architecture: String,
    /// CPUs for real time.
    #[serde(default)]
    isolate: String,
    /// Profiles that are asked for.
    #[serde(default)]
    profiles: Vec<Profile>,
    /// Files by their paths; a path that ends in `/` is an empty directory, and an empty text of another is no file.
    files: Option<BTreeMap<String, String>>,
    /// Symbolic links by their paths.
    #[serde(default)]
    links: BTreeMap<String, String>,
    /// Threads: `PROCESS/THREAD NAME POLICY PRIORITY CPUS`, in [`thread`].
    #[serde(default)]
    threads: Vec<String>,
    /// The process that is asked about.
    process: Option<i32>,
}

fn kernel() -> String {
    "6.12.0".to_owned()
}

fn architecture() -> String {
    "x86_64".to_owned()
}

type ByRule = BTreeMap<String, BTreeMap<Outcome, Vec<Case>>>;

/// Of a machine that stands on a desk: no guest, four CPUs.
const MACHINE: [(&str, &str); 5] = [
    ("/sys/class/dmi/id/sys_vendor", "Dell Inc."),
    ("/sys/class/dmi/id/chassis_type", "3"),
    ("/sys/devices/system/cpu/possible", "0-3"),
    ("/sys/devices/system/cpu/online", "0-3"),
    ("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Thu Jan 1"),
];

impl Case {
    fn survey(&self) -> Survey {
        let isolated = self.isolate.parse().unwrap();
        let config = self.config.as_ref().map(|lines| self.configuration(lines));
        let survey = match &self.files {
            Some(files) => Survey::new(SysRoot::of(self.tree(files, config)), isolated),
            None => {
                let config = config.map(|text| ("config".to_owned(), text.into_bytes()));
                let architecture = config.is_none().then(|| self.architecture.clone());
                Survey::of(
                    Given { config, command_line: self.boot.clone(), architecture, ..Given::default() },
                    isolated,
                )
            }
        };
        match self.process {
            Some(process) => survey.about(process),
            None => survey,
        }
    }

    /// With the line that kconfig writes above it, so that it tells its kernel.
    fn configuration(&self, lines: &str) -> String {
        let family = if self.architecture == "x86_64" { "x86" } else { &self.architecture };
        let width = if self.architecture == "x86_64" { "CONFIG_64BIT=y\n" } else { "" };
        format!(
            "# Linux/{family} {} Kernel Configuration\n{width}{lines}\n# Library routines\n# Kernel hacking\n# end of Kernel hacking\n",
            self.kernel
        )
    }

    fn tree(&self, files: &BTreeMap<String, String>, config: Option<String>) -> Tree {
        let mut all: BTreeMap<String, String> =
            MACHINE.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let mut put = |path: &str, text: &str| all.insert(path.to_owned(), text.to_owned());
        put("/proc/sys/kernel/osrelease", &self.kernel);
        put("/proc/sys/kernel/arch", &self.architecture);
        put("/proc/cmdline", self.boot.as_deref().unwrap_or_default());
        if let Some(config) = config {
            put("/proc/config.gz", &config);
        }
        self.threads.iter().for_each(|line| thread(&mut all, line));
        for (path, text) in files {
            match path.strip_suffix('/') {
                Some(directory) => all.insert(format!("{directory}/.empty"), String::new()),
                None if text.is_empty() => all.remove(path),
                None => all.insert(path.clone(), text.clone()),
            };
        }
        let links = self.links.iter().map(|(path, to)| (path.clone(), Fact::Value(to.clone()))).collect();
        Tree { links, ..Tree::whole(all.into_iter().map(|(path, text)| (path, bytes(&text)))) }
    }
}

/// A file's bytes: `bytes:14 00 00 00` in hexadecimal, else the text.
fn bytes(text: &str) -> Vec<u8> {
    match text.strip_prefix("bytes:") {
        Some(digits) => digits.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect(),
        None => text.as_bytes().to_vec(),
    }
}

/// Adds the files of a thread, `30/31 app fifo 80 2-3`; `30` alone is the first thread of its process. A name in brackets
/// is a thread of the kernel, one in double brackets one that the kernel keeps where it is; `\-` in a name is a blank.
fn thread(files: &mut BTreeMap<String, String>, line: &str) {
    let parts: Vec<&str> = line.split_whitespace().collect();
    let [ids, name, policy, priority, cpus] = parts[..] else { panic!("no thread: {line}") };
    let (process, id) = ids.split_once('/').unwrap_or((ids, ids));
    let flags = match name {
        name if name.starts_with("[[") => 0x0420_0040,
        name if name.starts_with('[') => 0x0020_0040,
        _ => 0,
    };
    let name = name.trim_matches(['[', ']']).replace("\\-", " ");
    let policies = ["other", "fifo", "rr", "batch", "iso", "idle", "deadline"];
    let policy =
        policies.iter().position(|known| *known == policy).unwrap_or_else(|| panic!("no policy: {line}"));
    let place = format!("/proc/{process}/task/{id}");
    let stat = format!(
        "{id} ({name}) S 1 1 1 0 -1 {flags} 0 0 0 0 5 6 0 0 -100 0 1 0 4711 0 0 18446744073709551615 \
         0 0 0 0 0 0 0 2147483647 0 0 0 0 17 0 {priority} {policy} 0 0 0 0 0 0 0 0 0 0 0"
    );
    files.insert(format!("{place}/stat"), stat);
    files.insert(format!("{place}/status"), format!("Name:\t{name}\nCpus_allowed_list:\t{cpus}\n"));
}

/// What belongs to all cases, and what to one.
fn joined(always: &Value, own: &Value) -> Value {
    match (always, own) {
        (Value::Table(always), Value::Table(own)) => {
            let mut all = always.clone();
            for (key, value) in own {
                let value = all.get(key).map_or(value.clone(), |common| joined(common, value));
                all.insert(key.clone(), value);
            }
            Value::Table(all)
        }
        (Value::Array(always), Value::Array(own)) if always.iter().all(Value::is_str) && !own.is_empty() => {
            Value::Array(always.iter().chain(own).cloned().collect())
        }
        (_, own) => own.clone(),
    }
}

/// The cases of a rule, each with what belongs to all.
fn of_rule(rule: &str, mut outcomes: Table) -> BTreeMap<Outcome, Vec<Case>> {
    let always = outcomes.remove("always").unwrap_or(Value::Table(Table::new()));
    let read = |(outcome, cases): (String, Value)| {
        let cases = match cases {
            Value::Array(cases) => cases,
            case => vec![case],
        };
        let cases = cases.iter().map(|case| joined(&always, case).try_into()).collect::<Result<_, _>>();
        let outcome = Value::String(outcome).try_into().unwrap_or_else(|error| panic!("{rule}: {error}"));
        (outcome, cases.unwrap_or_else(|error| panic!("{rule}: {error}")))
    };
    outcomes.into_iter().map(read).collect()
}

fn cases() -> ByRule {
    let mut all = ByRule::new();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let own: BTreeMap<String, Table> =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for (rule, outcomes) in own {
            let outcomes = of_rule(&rule, outcomes);
            assert!(all.insert(rule.clone(), outcomes).is_none(), "{rule} has cases in two files");
        }
    }
    all
}

/// What came out, with what was read, for the message.
fn outcome(rules: &Rules, rule: &str, case: &Case) -> (Outcome, String) {
    let request = Request { profiles: case.profiles.clone(), rules: vec![rule.to_owned()] };
    let audit = audit(&case.survey(), rules.all(), &request);
    let finding = audit.findings.into_iter().next().unwrap_or_else(|| panic!("{rule} is no rule"));
    (finding.outcome, format!("{:?}: {:?}", finding.reason, finding.evidence))
}

#[test]
fn every_case_comes_out_as_it_says() {
    let rules = Rules::built_in().unwrap();
    let mut wrong = Vec::new();
    for (rule, outcomes) in cases() {
        for (expected, cases) in outcomes {
            for (index, case) in cases.iter().enumerate() {
                let (found, why) = outcome(&rules, &rule, case);
                if found != expected {
                    wrong.push(format!("{rule}.{expected:?} [{index}] is {found:?}: {why}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

/// Nobody can make these pass or fail: no file tells.
fn is_beyond_files(rule: &Rule) -> bool {
    rule.fact == "firmware-setup"
}

#[test]
fn every_rule_can_pass_and_can_fail() {
    let rules = Rules::built_in().unwrap();
    let cases = cases();
    let lacks = |rule: &&Rule| {
        let has = |outcome| cases.get(&rule.id).is_some_and(|outcomes| outcomes.contains_key(&outcome));
        match is_beyond_files(rule) {
            true => !has(Outcome::Unsupported),
            false => !has(Outcome::Passed) || !has(Outcome::Failed),
        }
    };
    let lacking: Vec<&str> = rules.all().iter().filter(lacks).map(|rule| rule.id.as_str()).collect();
    assert!(
        lacking.is_empty(),
        "{} rules lack a case that passes or one that fails: {lacking:?}; write both into the file in \
         crates/audit/tests/cases that is named after the rule's own, in the form at the head of {}",
        lacking.len(),
        file!()
    );
}
