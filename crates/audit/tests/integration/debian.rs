//! Debian's kernels, plain and real-time, as their packages configure them: what is found of each, every finding gone
//! through by hand (`debian/reviewed.toml`).
//!
//! The configurations are those of linux-image-6.1.0-56-amd64 and -rt-amd64 (6.1.192-2) and of
//! linux-image-6.12.117+deb12-amd64 and -rt-amd64 (6.12.117-1~deb12u1).
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use audit::{Audit, Outcome, Profile, Request, Rules, Severity, audit};
use serde::Deserialize;
use survey::{Given, Survey};
use units::CpuList;

const KERNELS: [&str; 4] = ["6.1", "6.1-rt", "6.12", "6.12-rt"];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/debian")
}

/// What the rules say of a kernel, for the profiles that it suggests and `profiles`.
fn audited(kernel: &str, profiles: &[Profile]) -> Audit {
    let name = format!("{kernel}.config.gz");
    let bytes = fs::read(directory().join(&name)).unwrap();
    let survey = Survey::of(Given { config: Some((name, bytes)), ..Given::default() }, CpuList::new());
    let request = Request { profiles: profiles.to_vec(), rules: Vec::new() };
    audit(&survey, Rules::built_in().unwrap().all(), &request)
}

/// Rules that fail, with what was read.
fn failed(kernel: &str, profiles: &[Profile]) -> BTreeMap<String, (Severity, String)> {
    let value = |finding: &audit::Finding| finding.evidence[0].value.to_string();
    audited(kernel, profiles)
        .findings
        .iter()
        .filter(|finding| finding.outcome == Outcome::Failed)
        .map(|finding| (finding.rule.clone(), (finding.severity, value(finding))))
        .collect()
}

/// A finding that somebody went through.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Reviewed {
    rule: String,
    /// Of which kernels, each with what was read there.
    of: BTreeMap<String, String>,
    /// Only with this profile in the place of `general`.
    profile: Option<Profile>,
    /// Why it is so, by the kernel's own documents.
    true_because: String,
}

#[derive(Debug, Deserialize)]
struct Review {
    finding: Vec<Reviewed>,
}

fn review() -> Review {
    toml::from_str(&fs::read_to_string(directory().join("reviewed.toml")).unwrap()).unwrap()
}

/// Findings as `kernel rule: value`.
fn found(profiles: &[Profile]) -> BTreeSet<String> {
    KERNELS
        .iter()
        .flat_map(|kernel| {
            failed(kernel, profiles)
                .into_iter()
                .map(move |(rule, (_, value))| format!("{kernel} {rule}: {value}"))
        })
        .collect()
}

fn reviewed(wanted: impl Fn(&Reviewed) -> bool) -> BTreeSet<String> {
    let review = review();
    let own = review.finding.iter().filter(|finding| wanted(finding));
    own.flat_map(|finding| {
        assert!(finding.true_because.len() > 20, "{} has no reason", finding.rule);
        finding.of.iter().map(|(kernel, value)| format!("{kernel} {}: {value}", finding.rule))
    })
    .collect()
}

fn assert_same(found: &BTreeSet<String>, reviewed: &BTreeSet<String>) {
    let new: Vec<&String> = found.difference(reviewed).collect();
    let gone: Vec<&String> = reviewed.difference(found).collect();
    assert!(new.is_empty() && gone.is_empty(), "not reviewed: {new:#?}\nno longer found: {gone:#?}");
}

#[test]
fn every_finding_was_gone_through() {
    assert_same(&found(&[]), &reviewed(|finding| finding.profile.is_none()));
}

#[test]
fn what_isolated_cpus_ask_besides_was_gone_through() {
    let general = found(&[]);
    let besides: BTreeSet<String> = found(&[Profile::Isolated]).difference(&general).cloned().collect();
    assert_same(&besides, &reviewed(|finding| finding.profile == Some(Profile::Isolated)));
}

#[test]
fn plain_and_real_time_kernels_differ_as_they_should() {
    for (plain, real_time) in [("6.1", "6.1-rt"), ("6.12", "6.12-rt")] {
        let (plain, real_time) = (failed(plain, &[]), failed(real_time, &[]));
        for only_plain in
            ["kc-preempt-rt", "bt-preempt", "kc-thp-default", "kc-compact-unevictable", "kc-rcu-boost"]
        {
            assert!(plain.contains_key(only_plain) && !real_time.contains_key(only_plain), "{only_plain}");
        }
        for only_real_time in ["kc-lockup-detector-off", "kc-nohz-idle", "kc-rcu-nocb-cb-boost"] {
            assert!(
                !plain.contains_key(only_real_time) && real_time.contains_key(only_real_time),
                "{only_real_time}"
            );
        }
        assert!(plain.contains_key("kc-hz") && real_time.contains_key("kc-hz"));
    }
}

/// A distribution's kernel is no debugging kernel, and nothing that it has keeps real time from working at all.
#[test]
fn no_error_is_found_in_them() {
    for kernel in KERNELS {
        let errors: Vec<_> = failed(kernel, &[])
            .into_iter()
            .filter(|(_, (severity, _))| *severity == Severity::Error)
            .collect();
        assert!(errors.is_empty(), "{kernel}: {errors:?}");
    }
}

/// What costs nothing until it is used is never found fault with.
#[test]
fn neutral_options_are_left_alone() {
    let neutral = [
        "DEBUG_KERNEL",
        "DEBUG_INFO",
        "DEBUG_BUGVERBOSE",
        "DEBUG_FS",
        "DEBUG_ATOMIC_SLEEP",
        "KPROBES",
        "UPROBES",
        "KGDB",
        "SLUB_DEBUG",
        "SCHED_DEBUG",
        "NO_HZ_FULL",
        "FUNCTION_TRACER",
        "DYNAMIC_FTRACE",
        "PAGE_POISONING",
        "SCHEDSTATS",
        "STACK_TRACER",
        "KSM",
        "SWAP",
        "CFS_BANDWIDTH",
        "X86_DEBUG_FPU",
        "SCHED_STACK_END_CHECK",
    ];
    let base = "# Linux/x86 6.12.0 Kernel Configuration\nCONFIG_64BIT=y\nCONFIG_PREEMPT_RT=y\n";
    let findings = |lines: &str| -> BTreeSet<String> {
        let given = Given {
            config: Some(("config".into(), format!("{base}{lines}# end of Kernel hacking\n").into_bytes())),
            ..Given::default()
        };
        let audit =
            audit(&Survey::of(given, CpuList::new()), Rules::built_in().unwrap().all(), &Request::default());
        let failed = audit.findings.into_iter().filter(|finding| finding.outcome == Outcome::Failed);
        failed.map(|finding| finding.rule).collect()
    };
    let lines: String = neutral.iter().map(|symbol| format!("CONFIG_{symbol}=y\n")).collect();
    assert_eq!(findings(&lines), findings(""));
}
