//! Machines of many kinds, read from the texts in `fixtures`: what each is, and that any of them can be judged.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::{Path, PathBuf};

use audit::{Request, Rules, audit};
use survey::{Survey, named_facts};
use sysroot::{SysRoot, Tree};
use units::CpuList;

use crate::mend;

pub fn texts() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut texts: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    texts.sort_unstable();
    texts
}

fn survey(root: SysRoot) -> Survey {
    let first = Survey::new(root.clone(), CpuList::new());
    let isolated = match first.read("cpus.isolated").value {
        record::Fact::Value(survey::Value::Cpus(cpus)) => cpus,
        _ => CpuList::new(),
    };
    Survey::new(root, isolated)
}

/// What a machine is, one fact a column.
#[test]
fn machines_are_what_they_are() {
    let columns = [
        "architecture",
        "kernel",
        "preemption",
        "guest",
        "container",
        "vendor",
        "form",
        "smt",
        "cpus.isolated",
        "lockdown",
        "cgroup",
        "bootloader",
        "boot.next",
        "boot.gone",
        "boot.waiting",
        "boot.unknown",
        "evl",
    ];
    let mut table = String::new();
    for path in texts() {
        let survey = survey(SysRoot::open_tree(&path).unwrap());
        table += &format!("{}\n", path.file_stem().unwrap().to_string_lossy());
        for column in columns {
            table += &format!("  {column}: {}\n", survey.read(column).value);
        }
    }
    mend::assert_snapshot!(table);
}

/// A snapshot of a machine is judged as the machine is: by every rule, in every word, from either form.
#[test]
fn a_snapshot_is_judged_as_its_machine() {
    let rules = Rules::built_in().unwrap();
    let judged = |root: SysRoot| {
        let survey = survey(root);
        let findings = audit(&survey, rules.all(), &Request::default());
        named_facts().for_each(|fact| drop(survey.read(fact.name)));
        serde_json::to_string(&findings).unwrap()
    };
    let roots = texts().into_iter().map(|path| SysRoot::open_tree(&path).unwrap()).chain([SysRoot::live()]);
    for root in roots {
        let remembering = root.remembering();
        let live = judged(remembering.clone());
        let taken = remembering.remembered();
        let archive = Tree::of_archive(&taken.archive().unwrap()).unwrap();
        let text = Tree::of_text(&taken.text()).unwrap();
        assert_eq!(judged(SysRoot::of(archive)), live);
        assert_eq!(judged(SysRoot::of(text)), live);
    }
}

/// Whatever a file is replaced with, the answer is no panic.
#[test]
fn damaged_machines_are_judged() {
    let rules = Rules::built_in().unwrap();
    for path in texts() {
        let whole = Tree::of_text(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for damage in
            [b"\xff\x00garbage 99999-3 [(".as_slice(), b"", b"999999999999999999999\n", b"\x1f\x8b\x08cut"]
        {
            let mut tree = whole.clone();
            let bytes = || record::Fact::Value(damage.to_vec());
            tree.files.values_mut().for_each(|file| *file = bytes());
            audit(&survey(SysRoot::of(tree)), rules.all(), &Request::default());
        }
    }
}

#[test]
fn a_boot_line_of_a_megabyte_is_judged() {
    let words = record::Fact::Value(b"isolcpus=0-9999,5 \"".repeat(55_000));
    let mut tree = Tree::default();
    tree.files.insert("/proc/cmdline".into(), words);
    audit(&survey(SysRoot::of(tree)), Rules::built_in().unwrap().all(), &Request::default());
}
