//! Every setting of the table takes effect on a machine with everything, and is undone.

use std::collections::BTreeMap;

use audit::Profile;
use record::Fact;
use serde::Deserialize;
use sysroot::{SysRoot, Tree};

use super::fixture_tests::{ALL, there_and_back};
use super::selection::Selection;

const TABLE: &str = include_str!("../../../tests/settings.toml");

/// What must be in the table, whatever else is.
const PROMISED: [&str; 26] = [
    "governor",
    "fixed frequency, raised",
    "fixed frequency, lowered",
    "turbo of intel_pstate",
    "boost of cpufreq",
    "sibling threads",
    "idle states by limit of a CPU",
    "limit on exit latencies of all CPUs",
    "irqbalance",
    "interrupts' CPUs",
    "interrupt threads' CPUs and priority",
    "workqueues",
    "RCU threads' CPUs",
    "RCU and timer threads' priority",
    "real-time throttling",
    "fair server",
    "watchdog's CPUs",
    "transparent huge pages",
    "merging of equal pages",
    "NUMA balancing",
    "swap",
    "dirty memory",
    "writeback's CPUs",
    "memory statistics' interval",
    "receive queues' CPUs",
    "transmit queues' CPUs",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    setting: Vec<Setting>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "the other half is for guests")]
struct Setting {
    name: String,
    #[serde(default)]
    profile: Vec<Profile>,
    #[serde(default)]
    rules: Vec<String>,
    #[serde(default)]
    settings: BTreeMap<String, String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    fixture: Option<String>,
    real: Option<String>,
    #[serde(default)]
    prepare: BTreeMap<String, String>,
    #[serde(default)]
    kernels: Vec<String>,
    #[serde(default)]
    alone: bool,
    elsewhere: Option<String>,
    none: Option<String>,
}

fn table() -> Vec<Setting> {
    toml::from_str::<Table>(TABLE).unwrap().setting
}

impl Setting {
    fn selection(&self) -> Selection {
        let poll = vec![Profile::Poll, Profile::Rt];
        Selection {
            profile: if self.profile.is_empty() { poll } else { self.profile.clone() },
            isolate: Some("2-3".parse().unwrap()),
            only: self.rules.clone(),
            settings: self.settings.clone(),
            ..Selection::default()
        }
    }

    fn tree(&self) -> Tree {
        let mut tree = Tree::of_text(ALL).unwrap();
        let files =
            self.files.iter().map(|(path, text)| (path.clone(), Fact::Value(text.clone().into_bytes())));
        tree.files.extend(files);
        tree
    }
}

#[test]
fn nothing_of_what_is_promised_is_forgotten() {
    let names: Vec<String> = table().into_iter().map(|setting| setting.name).collect();
    let missing: Vec<_> = PROMISED.iter().filter(|name| !names.iter().any(|own| own == *name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for Setting { name, fixture, real, elsewhere, none, .. } in table() {
        let shown = [real.is_some(), elsewhere.is_some(), none.is_some()];
        assert_eq!(shown.iter().filter(|is_there| **is_there).count(), 1, "{name}: for real, or why not");
        assert!(fixture.is_some() || elsewhere.is_some(), "{name}: on a fixture");
    }
}

#[test]
fn each_setting_takes_effect_on_a_fixture_and_is_undone() {
    for setting in table() {
        let Some(fixture) = &setting.fixture else { continue };
        let tree = setting.tree();
        let plan = setting.selection().plan_for(&SysRoot::of(tree.clone())).unwrap();
        let lines: Vec<String> =
            plan.steps.iter().map(|step| format!("{}: {} -> {}", step.target, step.old, step.new)).collect();
        assert!(
            lines.iter().any(|line| line.contains(fixture)),
            "{}: {lines:#?} {:#?}",
            setting.name,
            plan.refusals
        );
        there_and_back(&setting.name, &tree, &plan);
    }
}
