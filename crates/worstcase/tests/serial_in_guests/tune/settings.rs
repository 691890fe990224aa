//! Every setting of the table that a guest has takes effect there, and is undone.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;

use super::machine_state::MachineState;
use super::{tune, tuned, undone};

const TABLE: &str = include_str!("../../settings.toml");

#[derive(Deserialize)]
struct Table {
    setting: Vec<Setting>,
}

#[derive(Deserialize)]
struct Setting {
    name: String,
    #[serde(default)]
    profile: Vec<String>,
    #[serde(default)]
    rules: Vec<String>,
    real: Option<String>,
    #[serde(default)]
    prepare: BTreeMap<String, String>,
    #[serde(default)]
    kernels: Vec<String>,
    #[serde(default)]
    alone: bool,
}

impl Setting {
    fn is_of(&self, kernel: &str) -> bool {
        self.kernels.is_empty() || self.kernels.iter().any(|part| kernel.contains(part.as_str()))
    }

    /// Those with the same are applied together.
    fn group(&self) -> (String, Option<&str>) {
        let profile = if self.profile.is_empty() { "poll,rt".to_owned() } else { self.profile.join(",") };
        (profile, self.alone.then_some(self.name.as_str()))
    }
}

/// All of them; what does not take effect is listed together.
pub fn take_effect(kernel: &str) {
    let before = MachineState::at_first();
    let table: Table = toml::from_str(TABLE).unwrap();
    let shown = table.setting.iter().filter(|setting| setting.real.is_some() && setting.is_of(kernel));
    let mut groups: BTreeMap<_, Vec<&Setting>> = BTreeMap::new();
    for setting in shown {
        groups.entry(setting.group()).or_default().push(setting);
    }
    let failed: Vec<String> =
        groups.iter().flat_map(|((profile, _), settings)| failed(profile, settings)).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    fair_server(kernel);
    assert_eq!(before.differences(&MachineState::now()), Vec::<String>::new());
}

/// Which of these settings do not take effect, and what was said.
fn failed(profile: &str, settings: &[&Setting]) -> Vec<String> {
    let found: Vec<_> = settings.iter().flat_map(|setting| prepared(&setting.prepare)).collect();
    let rules: Vec<&str> = settings.iter().flat_map(|setting| &setting.rules).map(String::as_str).collect();
    let said = tuned(&format!("apply --isolate 1 --profile {profile} --only {}", rules.join(",")));
    let is_off =
        |setting: &&&Setting| !said.contains(&format!("done      {}", setting.real.as_deref().unwrap_or("")));
    let failed = settings.iter().filter(is_off).map(|setting| format!("{}: {said}", setting.name)).collect();
    undone();
    found.iter().for_each(|(path, text)| fs::write(path, text).unwrap());
    failed
}

/// Writes what is to be there before; what was there.
fn prepared(files: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let replaced = |(path, text): (&String, &String)| {
        let old = fs::read_to_string(path).unwrap();
        fs::write(path, text).unwrap();
        // Of a choice the word in brackets is the one.
        let chosen =
            old.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word.to_owned());
        (path.clone(), chosen.unwrap_or(old))
    };
    files.iter().map(replaced).collect()
}

/// Linux 6.12 takes less for its fair servers, or says that it is busy, as it has kept count of them: reported, and undone.
fn fair_server(kernel: &str) {
    const RUNTIME: &str = "/sys/kernel/debug/sched/fair_server/cpu1/runtime";
    let words = "apply --isolate 1 --profile poll,rt --only rn-fair-server";
    let (code, said) = tune(words);
    if !kernel.contains("6.12") {
        return assert!(
            said.contains("kernel/debug/sched") || said.contains("nothing would be changed"),
            "{said}"
        );
    }
    match code {
        Some(0) => {
            assert_eq!(fs::read_to_string(RUNTIME).unwrap(), "0\n");
            undone();
        }
        _ => assert!(said.contains("lost count of what its fair servers take"), "{said}"),
    }
    assert_eq!(fs::read_to_string(RUNTIME).unwrap(), "50000000\n");
}
