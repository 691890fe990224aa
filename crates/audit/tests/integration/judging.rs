//! Facts judged by rules: every outcome, whose want counts, which profiles are chosen, and the order.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use crate::support::{Machine, audit_of_everything, audit_with, finding, machine, rules};
use audit::{Outcome, Profile, Request, Rules, Severity};
use record::Fact;
use record::verdict::Verdict;

#[test]
fn every_outcome_is_distinguished_from_the_others() {
    let audit = audit_of_everything(&rules());
    for (rule, outcome, reason) in [
        ("kc-rt", Outcome::Failed, None),
        ("kc-hz", Outcome::Failed, None),
        ("kc-balancing", Outcome::Failed, None),
        ("kc-evl", Outcome::NotApplicable, Some("nothing is wanted for stock,isolated")),
        ("rn-thp", Outcome::Failed, None),
        ("rn-governor", Outcome::Failed, None),
        ("rn-isolated", Outcome::Failed, None),
        ("rn-swappiness", Outcome::Passed, None),
        (
            "rn-stat",
            Outcome::Unreadable,
            Some("sysctl:vm.stat_interval: `many` is not a number or a version"),
        ),
        ("rn-arm", Outcome::NotApplicable, Some("only where architecture = aarch64; it is x86_64")),
        ("rn-absent", Outcome::NotApplicable, Some("absent here")),
    ] {
        let found = finding(&audit, rule);
        assert_eq!((found.outcome, found.reason.as_deref()), (outcome, reason), "{rule}");
    }
    assert_eq!(audit.verdict, Verdict::Fail);
}

#[test]
fn what_cannot_be_read_is_not_off() {
    let machine = machine();
    std::fs::remove_file(machine.root().path("/proc/sys/vm/swappiness")).unwrap();
    machine.write("/proc/sys/vm/swappiness/is-a-directory", "");
    let audit = audit_with(&rules(), &machine, "", &Request::default());
    let found = finding(&audit, "rn-swappiness");
    assert_eq!((found.outcome, found.reason.as_deref()), (Outcome::Unreadable, Some("Is a directory")));
    assert!(matches!(found.evidence[0].value, Fact::Unreadable(_)));
}

#[test]
fn a_condition_that_cannot_be_read_leaves_the_rule_open() {
    let text = r#"
        [[rule]]
        id = "rn-a"
        title = "A"
        problem = "B"
        why = "B"
        fact = "sysctl:vm.swappiness"
        applies = ["sysctl:vm.stat_interval >= 10"]
        wanted = { any = "= 60" }
        severity = "error"
        evidence = "mechanism"
        cure = { none = "C" }
        source = ["D"]
    "#;
    let rules = Rules::parse(&[("layer", text)]).unwrap();
    let audit = audit_with(&rules, &machine(), "", &Request::default());
    assert_eq!((audit.findings[0].outcome, audit.verdict), (Outcome::Unreadable, Verdict::Inconclusive));
}

#[test]
fn evidence_stands_side_by_side_with_where_it_was_read() {
    let audit = audit_of_everything(&rules());
    let evidence = &finding(&audit, "kc-rt").evidence;
    let names: Vec<&str> = evidence.iter().map(|evidence| evidence.fact.as_str()).collect();
    assert_eq!(names, ["config:PREEMPT_RT", "preemption", "boot:preempt"]);
    assert_eq!((&evidence[0].value, &evidence[2].value), (&Fact::Value("n".to_owned()), &Fact::Absent));
    assert!(evidence[0].from[0].contains("/boot/config-6.1.0-21-amd64"), "{:?}", evidence[0].from);
    assert_eq!(evidence[2].from, ["/proc/cmdline"]);
}

#[test]
fn of_a_list_the_offenders_are_named() {
    let audit = audit_of_everything(&rules());
    let found = finding(&audit, "rn-governor");
    let offenders: Vec<(&str, &str)> =
        found.offenders.iter().map(|offender| (offender.name.as_str(), offender.value.as_str())).collect();
    assert_eq!(offenders, [("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave")]);
}

#[test]
fn the_want_of_the_nearest_profile_counts() {
    let general = audit_with(&rules(), &machine(), "", &Request::default());
    assert_eq!(finding(&general, "rn-thp").outcome, Outcome::Passed);
    assert_eq!(finding(&general, "rn-isolated").outcome, Outcome::NotApplicable);
    let isolated = audit_of_everything(&rules());
    assert_eq!(finding(&isolated, "rn-thp").outcome, Outcome::Failed);
    let asked = Request { profiles: vec![Profile::Evl], rules: Vec::new() };
    let evl = audit_with(&rules(), &machine(), "2-3", &asked);
    assert_eq!(finding(&evl, "rn-thp").outcome, Outcome::NotApplicable, "EVL inherits nothing from isolated");
    assert_eq!(finding(&evl, "kc-evl").outcome, Outcome::NotApplicable, "absent, and the rule does not mind");
}

#[test]
fn severity_is_the_profiles_own() {
    let severity = |profiles: Vec<Profile>| {
        let request = Request { profiles, rules: Vec::new() };
        finding(&audit_with(&rules(), &machine(), "", &request), "kc-rt").severity
    };
    assert_eq!(severity(Vec::new()), Severity::Warning);
    assert_eq!(severity(vec![Profile::Rt]), Severity::Error);
}

#[test]
fn profiles_are_those_of_the_machine_and_the_reasons_are_said() {
    let chosen = |files: &[(&str, &str)], isolated: &str, asked: Vec<Profile>| {
        let machine = machine();
        files.iter().for_each(|(path, text)| machine.write(path, text));
        let audit = audit_with(&rules(), &machine, isolated, &Request { profiles: asked, rules: Vec::new() });
        (audit.profiles.to_string(), audit.reasons.join(", "))
    };
    let expected = |profiles: &str, reasons: &str| (profiles.to_owned(), reasons.to_owned());
    let rt = ("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian 6.1.90-1\n");
    let guest = ("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor\n");
    let tickless = ("/sys/devices/system/cpu/nohz_full", "2-3\n");
    assert_eq!(
        chosen(&[rt], "", Vec::new()),
        expected("rt,general", "rt (PREEMPT_RT), general (no CPU is isolated)")
    );
    assert_eq!(
        chosen(&[rt], "2-3", Vec::new()),
        expected("rt,isolated", "rt (PREEMPT_RT), isolated (CPUs 2-3)")
    );
    assert_eq!(chosen(&[rt, tickless], "3", Vec::new()).0, "rt,poll");
    assert_eq!(chosen(&[rt, tickless], "1", Vec::new()).0, "rt,isolated");
    assert_eq!(chosen(&[guest, rt], "", Vec::new()).0, "guest,rt,general");
    let (profiles, reasons) = chosen(&[guest], "", vec![Profile::Rt, Profile::Poll]);
    assert_eq!(profiles, "guest,rt,poll");
    assert!(reasons.ends_with("rt (asked for), poll (asked for)"), "{reasons}");
    let config = ("/boot/config-6.1.0-21-amd64", "CONFIG_EVL=y\n");
    assert_eq!(chosen(&[config], "", Vec::new()).1, "evl (CONFIG_EVL=y), general (no CPU is isolated)");
}

#[test]
fn the_worst_comes_first_and_what_was_measured_before_what_is_repeated() {
    let audit = audit_of_everything(&rules());
    let order: Vec<&str> = audit.findings.iter().map(|finding| finding.rule.as_str()).collect();
    assert_eq!(
        order,
        [
            "rn-governor",
            "kc-rt",
            "rn-thp",
            "rn-isolated",
            "kc-hz",
            "kc-balancing",
            "rn-stat",
            "rn-swappiness",
            "kc-evl",
            "rn-arm",
            "rn-absent"
        ]
    );
}

#[test]
fn the_verdict_is_that_of_rules_of_severity_error() {
    let judged = |profiles: &[Profile], rules_asked: &[&str]| {
        let rules_asked = rules_asked.iter().map(|&id| id.to_owned()).collect();
        let request = Request { profiles: profiles.to_vec(), rules: rules_asked };
        audit_with(&rules(), &machine(), "2-3", &request).verdict
    };
    let verdict = |rules_asked: &[&str]| judged(&[], rules_asked);
    assert_eq!(verdict(&["rn-governor", "rn-stat"]), Verdict::Fail);
    assert_eq!(verdict(&["rn-stat", "rn-swappiness"]), Verdict::Inconclusive);
    assert_eq!(
        verdict(&["rn-swappiness", "kc-rt", "kc-hz"]),
        Verdict::Measured,
        "warnings and notes do not fail, and without a profile nothing can pass"
    );
    assert_eq!(judged(&[Profile::General], &["rn-swappiness"]), Verdict::Pass);
    assert_eq!(verdict(&["rn-arm"]), Verdict::Inconclusive, "nothing was judged");
}

#[test]
fn the_same_machine_gets_the_same_answer() {
    assert_eq!(audit_of_everything(&rules()), audit_of_everything(&rules()));
}

#[test]
fn an_empty_machine_is_answered() {
    let audit = audit_with(&rules(), &Machine::new(&[]), "", &Request::default());
    assert!(audit.with(Outcome::Passed).next().is_none());
    assert_eq!(audit.verdict, Verdict::Inconclusive);
}

#[test]
fn where_debugfs_is_locked_a_way_through_it_comes_last() {
    let text = r#"
        [[rule]]
        id = "bt-preempt"
        title = "A"
        problem = "B"
        why = "B"
        fact = "boot:preempt"
        wanted = { any = "present" }
        severity = "error"
        evidence = "mechanism"
        cure = { runtime = [{ path = "/sys/kernel/debug/sched/preempt", value = "full" }], boot = ["preempt=full"] }
        source = ["D"]
    "#;
    let rules = Rules::parse(&[("layer", text)]).unwrap();
    let first = |lockdown: &str| {
        let machine = machine();
        machine.write("/sys/kernel/security/lockdown", lockdown);
        audit_with(&rules, &machine, "", &Request::default()).findings[0].cure[0].text.clone()
    };
    assert_eq!(first("[none] integrity confidentiality\n"), "echo full > /sys/kernel/debug/sched/preempt");
    assert_eq!(first("none [integrity] confidentiality\n"), "preempt=full");
}

const BOOT_RULES: &str = r#"
[[rule]]
id = "bt-word"
title = "Interrupts run in threads"
problem = "interrupts do not run in threads"
why = "Because."
fact = "boot:threadirqs"
wanted = { any = "present" }
severity = "warning"
evidence = "mechanism"
cure.boot = ["threadirqs"]
source = ["a kernel document"]

[[rule]]
id = "bt-effect"
title = "CPUs are isolated"
problem = "no CPU is isolated"
why = "Because."
fact = "cpus.isolated"
wanted = { any = "covers {isolated}" }
severity = "warning"
evidence = "mechanism"
cure.boot = ["isolcpus=managed_irq,domain,{isolated}"]
source = ["a kernel document"]
"#;

/// Requested, configured and effective stand side by side where they differ.
#[test]
fn what_the_next_boot_changes_is_said() {
    let rules = Rules::parse(&[("boot", BOOT_RULES)]).unwrap();
    let expected = |given: &str, requested: &str, isolated: &str| {
        let machine = machine();
        machine.write("/proc/cmdline", given);
        machine.write("/boot/extlinux/extlinux.conf", &format!("label l0\nappend quiet {requested}\n"));
        machine.write("/sys/devices/system/cpu/isolated", isolated);
        let audit = audit_with(&rules, &machine, "2-3", &Request::default());
        let expected = |rule| {
            let finding = finding(&audit, rule);
            let facts: Vec<String> =
                finding.evidence.iter().map(|of| format!("{}: {}", of.fact, of.value)).collect();
            (finding.outcome, finding.next_boot.clone().unwrap_or_default(), facts)
        };
        (expected("bt-word"), expected("bt-effect"))
    };
    let place = "/boot/extlinux/extlinux.conf, line 2";
    let (word, effect) = expected("quiet", "threadirqs isolcpus=2-3", "");
    assert_eq!(
        (word.0, word.1),
        (Outcome::Failed, format!("takes effect at the next boot: {place} asks for it"))
    );
    assert_eq!(word.2, ["boot:threadirqs: absent", "requested:threadirqs: set, without a value"]);
    assert_eq!((effect.0, effect.1.contains("takes effect at the next boot")), (Outcome::Failed, true));
    assert_eq!(effect.2, ["cpus.isolated: no CPU", "requested:isolcpus: 2-3", "boot:isolcpus: absent"]);
    let machine = machine();
    machine.write("/boot/extlinux/extlinux.conf", "label l0\nappend threadirqs\n");
    let emitted = audit::emit::emit(
        audit::emit::Form::Cmdline,
        &audit_with(&rules, &machine, "2-3", &Request::default()),
        &rules,
        &[],
    );
    assert!(emitted.contains(&format!("#   takes effect at the next boot: {place}")), "{emitted}");
    let (word, effect) = expected("quiet threadirqs isolcpus=2-3", "", "2-3");
    assert_eq!((word.0, word.1.contains("gone after the next boot")), (Outcome::Passed, true));
    assert_eq!((effect.0, effect.1.contains("gone after the next boot")), (Outcome::Passed, true));
    let (word, effect) = expected("quiet isolcpus=2-3", "isolcpus=2-3", "2-3");
    assert_eq!(
        (word.0, word.1, word.2),
        (Outcome::Failed, String::new(), vec!["boot:threadirqs: absent".into()])
    );
    assert_eq!(
        (effect.0, effect.1, effect.2),
        (Outcome::Passed, String::new(), vec!["cpus.isolated: 2-3".into()])
    );
}

#[test]
fn a_cure_that_is_done_already_is_not_offered() {
    let rule = BOOT_RULES.replacen("fact = \"boot:threadirqs\"", "fact = \"boot:nosuch\"", 1).replacen(
        "cure.boot = [\"threadirqs\"]",
        "cure.boot = [\"threadirqs\", \"idle=halt\"]\ncure.none = \"or leave it\"",
        1,
    );
    let rules = Rules::parse(&[("boot", &rule)]).unwrap();
    let cures = |line: &str| {
        let machine = machine();
        machine.write("/proc/cmdline", line);
        let audit = audit_with(&rules, &machine, "2-3", &Request::default());
        let cures = finding(&audit, "bt-word").cure.iter();
        cures.map(|cure| cure.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(cures("quiet"), ["threadirqs idle=halt", "or leave it"]);
    assert_eq!(cures("quiet threadirqs idle=poll"), ["idle=halt", "or leave it"]);
    assert_eq!(cures("threadirqs idle=halt"), ["or leave it"]);
}
