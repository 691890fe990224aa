//! What makes failed rules pass, read back by those who will read it: our parser of configurations, a shell, git.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Machine, audit_with, finding, machine, rules};
use audit::emit::{FRAGMENT, Form, emit};
use audit::recipe::{Remark, Target, examine};
use audit::{Outcome, Profile, Request, Rules, Severity};
use machine::kernel_config::{KernelConfig, Setting};

fn emitted(form: Form, rules: &Rules, isolated: &str) -> String {
    let request = Request { profiles: vec![Profile::Rt], rules: Vec::new() };
    emit(form, &audit_with(rules, &machine(), isolated, &request), rules, &[])
}

/// The settings of a fragment that has nothing in it that looks like one and is none.
fn settings(fragment: &str) -> BTreeMap<String, Setting> {
    let parsed = KernelConfig::parse(fragment);
    assert!(parsed.complaints.is_empty() && parsed.overridden.is_empty(), "{:?}", parsed.complaints);
    parsed.settings().map(|(symbol, setting)| (symbol.to_owned(), setting.clone())).collect()
}

fn wanted_settings() -> BTreeMap<String, Setting> {
    let set = |symbol: &str, setting| (symbol.to_owned(), setting);
    [
        set("PREEMPT_RT", Setting::Yes),
        set("HZ_1000", Setting::Yes),
        set("HZ_250", Setting::No),
        set("HZ", Setting::Number(1000)),
    ]
    .into()
}

#[test]
fn a_fragment_is_read_back_as_what_the_rules_ask() {
    let fragment = emitted(Form::Kconfig, &rules(), "2-3");
    assert_eq!(settings(&fragment), wanted_settings());
    assert!(fragment.starts_with("# 00051-latency.cfg: "), "{fragment}");
    assert!(
        fragment.contains("# kc-rt: the kernel is built without PREEMPT_RT (here: n)\n#   Locks that sleep")
    );
    assert!(fragment.contains("# Not here, kc-balancing: it conflicts with kc-rt"), "{fragment}");
}

#[test]
fn a_kernel_built_with_the_fragment_passes() {
    let fragment = emitted(Form::Kconfig, &rules(), "2-3");
    let machine = machine();
    machine.write("/boot/config-6.1.0-21-amd64", &fragment);
    let request = Request { profiles: vec![Profile::Rt], rules: Vec::new() };
    let audit = audit_with(&rules(), &machine, "2-3", &request);
    for rule in ["kc-rt", "kc-hz"] {
        let finding = finding(&audit, rule);
        assert_eq!(finding.outcome, Outcome::Passed, "{rule} on {fragment}\n{:?}", finding.evidence);
    }
}

/// What a shell that sources `script` with `before` in front says to `after`.
fn shell(before: &str, script: &str, after: &str) -> String {
    let mut child =
        Command::new("sh").arg("-eu").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{before}\n{script}\n{after}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

const WORDS: &str = "transparent_hugepage=never isolcpus=managed_irq,domain,2-3";

/// The words of rules that fail, in the order of the findings.
fn words(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn a_boot_line_is_the_words_below_their_reasons() {
    let text = emitted_isolated(Form::Cmdline);
    assert_eq!(words(&text), WORDS);
    assert!(text.contains("# rn-thp: transparent huge pages may be made (here: madvise)\n"), "{text}");
}

/// For CPUs 2-3, so that huge pages fail too.
fn emitted_isolated(form: Form) -> String {
    let rules = rules();
    emit(form, &audit_with(&rules, &machine(), "2-3", &Request::default()), &rules, &[])
}

#[test]
fn a_shell_reads_the_grub_file_as_update_grub_does() {
    let before = "GRUB_CMDLINE_LINUX_DEFAULT='quiet splash'";
    let said = shell(before, &emitted_isolated(Form::Grub), "printf %s \"$GRUB_CMDLINE_LINUX_DEFAULT\"");
    assert_eq!(said, format!("quiet splash {WORDS}"));
}

#[test]
fn u_boot_appends_word_by_word_and_in_short_lines() {
    let text = emitted_isolated(Form::Uboot);
    assert!(text.lines().filter(|line| !line.starts_with('#')).all(|line| line.len() < 200));
    let prompt = "bootargs='console=ttyS0'; setenv() { eval \"$1=\\${2:-}\"; }; saveenv() { printf %s \"$bootargs\"; }";
    assert_eq!(shell(prompt, &text, ""), format!("console=ttyS0 {WORDS}"));
}

/// One rule, whose cure costs power and security.
fn priced() -> Rules {
    Rules::parse(&[(
        "boot",
        r#"
        [[rule]]
        id = "bt-a"
        title = "T"
        problem = "P"
        why = "W"
        fact = "boot:a"
        wanted = { any = "present" }
        severity = "error"
        evidence = "mechanism"
        costs = { power = "more of it", security = "other programs go unpunished" }
        cure = { boot = ["a"], config = ["CONFIG_A=y"] }
        source = ["S"]
    "#,
    )])
    .unwrap()
}

#[test]
fn what_costs_security_is_emitted_only_where_its_rule_is_named() {
    let rules = priced();
    let audit = audit_with(&rules, &machine(), "", &Request::default());
    for form in [Form::Cmdline, Form::Grub, Form::Uboot, Form::Kconfig] {
        let (unnamed, named) =
            (emit(form, &audit, &rules, &[]), emit(form, &audit, &rules, &["bt-a".into()]));
        assert_eq!(words(&unnamed), "", "{form:?}");
        assert!(
            unnamed.contains("# Not here, bt-a: costs security (other programs go unpunished)"),
            "{unnamed}"
        );
        assert!(!words(&named).is_empty(), "{form:?}");
    }
}

#[test]
fn what_needs_cpus_is_left_out_without_them_and_said() {
    let rules = rules();
    let request = Request { profiles: vec![Profile::Isolated], rules: Vec::new() };
    let text = emit(Form::Cmdline, &audit_with(&rules, &machine(), "", &request), &rules, &[]);
    assert_eq!(words(&text), "transparent_hugepage=never");
    assert!(!text.contains("CPUS"), "{text}");
}

#[test]
fn words_that_a_shell_would_take_apart_reach_the_kernel_whole() {
    let text = r##"
        [[rule]]
        id = "bt-a"
        title = "A title"
        problem = "A \"problem\" with $HOME and `ls`"
        why = "CONFIG_X is not set\nB"
        fact = "boot:a"
        wanted = { any = "present" }
        severity = "error"
        evidence = "mechanism"
        cure = { boot = ["a=\"$x`y\\z\"", "b='c'"], config = ["CONFIG_A=\"$x\\\\y\""] }
        source = ["C"]
    "##;
    let rules = Rules::parse(&[("boot", text)]).unwrap();
    let said = shell(
        "GRUB_CMDLINE_LINUX_DEFAULT=",
        &emitted(Form::Grub, &rules, ""),
        "printf %s \"$GRUB_CMDLINE_LINUX_DEFAULT\"",
    );
    assert_eq!(said, r#" a="$x`y\z" b='c'"#);
    let fragment = settings(&emitted(Form::Kconfig, &rules, ""));
    assert_eq!(fragment.keys().collect::<Vec<_>>(), ["A"], "a reason is never a setting");
}

#[test]
fn rules_that_contradict_each_other_are_not_both_asked() {
    let rule = |id: &str, severity: &str, word: &str, line: &str| {
        format!(
            "[[rule]]\nid = \"{id}\"\ntitle = \"T\"\nproblem = \"P\"\nwhy = \"W\"\nfact = \"boot:{id}\"\nwanted = {{ any = \"present\" }}\n\
             severity = \"{severity}\"\nevidence = \"mechanism\"\nsource = [\"S\"]\n\
             cure = {{ boot = [\"{word}\"], config = [\"{line}\"] }}\n"
        )
    };
    let text = [
        rule("bt-light", "note", "mce=off", "# CONFIG_X is not set"),
        rule("bt-grave", "error", "mce=ignore_ce", "CONFIG_X=y"),
        rule("bt-same", "note", "mce=ignore_ce", "CONFIG_X=y"),
    ];
    let rules = Rules::parse(&[("boot", &text.concat())]).unwrap();
    let boot = emitted(Form::Cmdline, &rules, "");
    assert_eq!(words(&boot), "mce=ignore_ce");
    assert!(boot.contains("# Not here, bt-light: bt-grave asks for mce=ignore_ce, not mce=off"), "{boot}");
    let fragment = emitted(Form::Kconfig, &rules, "");
    assert_eq!(settings(&fragment), [("X".to_owned(), Setting::Yes)].into());
    assert!(fragment.contains("# Not here, bt-light: bt-grave asks for CONFIG_X=y"), "{fragment}");
}

/// `split_lock_detect=off` stood there like any other word: who pastes it must see that it gives up a protection.
#[test]
fn what_a_cure_costs_stands_beside_it_in_every_form() {
    let rules = priced();
    for form in [Form::Kconfig, Form::Cmdline, Form::Grub, Form::Uboot, Form::Yocto, Form::Buildroot] {
        let request = Request { profiles: vec![Profile::Rt], rules: Vec::new() };
        let text = emit(form, &audit_with(&rules, &machine(), "", &request), &rules, &["bt-a".into()]);
        for price in
            ["#   trade-off, power: more of it\n", "#   trade-off, security: other programs go unpunished\n"]
        {
            assert!(text.contains(price), "{form:?}: {text}");
        }
    }
}

/// A word beside another for the same parameter is lost, and one of two recommendations is the worse one.
#[test]
fn rules_recommend_one_isolcpus() {
    let rules = Rules::built_in().unwrap();
    let words = rules.all().iter().flat_map(|rule| rule.cure.boot.iter());
    let isolating: Vec<&String> = words.filter(|word| word.starts_with("isolcpus=")).collect();
    assert!(isolating.len() > 2, "{isolating:?}");
    assert!(isolating.iter().all(|word| *word == "isolcpus=managed_irq,domain,{isolated}"), "{isolating:?}");
}

fn apply(patch: &str, directory: &Path) {
    let mut git = Command::new("git")
        .args(["apply", "-"])
        .current_dir(directory)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    git.stdin.take().unwrap().write_all(patch.as_bytes()).unwrap();
    assert!(git.wait().unwrap().success());
}

#[test]
fn a_patch_adds_files_to_a_layer_and_to_a_tree() {
    let layer = tempfile::tempdir().unwrap();
    apply(&emitted(Form::Yocto, &rules(), "2-3"), layer.path());
    let recipe = layer.path().join("recipes-kernel/linux");
    let fragment = std::fs::read_to_string(recipe.join("files").join(FRAGMENT)).unwrap();
    assert_eq!(settings(&fragment), wanted_settings());
    let append = std::fs::read_to_string(recipe.join("linux-%.bbappend")).unwrap();
    let code: Vec<&str> = append.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        code,
        ["FILESEXTRAPATHS:prepend := \"${THISDIR}/files:\"", "SRC_URI += \"file://00051-latency.cfg\""]
    );
    assert!(append.contains(&format!("\n#   {WORDS}\n")), "{append}");

    let tree = tempfile::tempdir().unwrap();
    apply(&emitted(Form::Buildroot, &rules(), "2-3"), tree.path());
    let fragment = std::fs::read_to_string(tree.path().join("board/latency").join(FRAGMENT)).unwrap();
    assert_eq!(settings(&fragment), wanted_settings());
    assert!(fragment.contains("BR2_LINUX_KERNEL_CONFIG_FRAGMENT_FILES=\"board/latency/00051-latency.cfg\""));
}

#[test]
fn where_nothing_fails_nothing_is_asked() {
    let audit = audit_with(&rules(), &Machine::new(&[]), "", &Request::default());
    for form in [Form::Kconfig, Form::Cmdline, Form::Grub, Form::Uboot] {
        let text = emit(form, &audit, &rules(), &[]);
        assert!(text.lines().all(|line| line.is_empty() || line.starts_with('#')), "{text}");
        assert!(text.contains("# No failed rule asks"), "{text}");
    }
}

/// Every fixture, profile and form, without CPUs set apart and with the last one.
#[test]
fn what_emit_writes_passes_check() {
    let rules = Rules::built_in().unwrap();
    let forms = [Form::Cmdline, Form::Grub, Form::Uboot, Form::Kconfig];
    for path in crate::machines::texts() {
        let root = sysroot::SysRoot::open_tree(&path).unwrap();
        let surveys = ["", "1"].map(|isolated| survey::Survey::new(root.clone(), isolated.parse().unwrap()));
        for (survey, profile) in
            surveys.iter().flat_map(|survey| Profile::ALL.map(|profile| (survey, profile)))
        {
            let request = Request { profiles: vec![profile], rules: Vec::new() };
            let audit = audit::audit(survey, rules.all(), &request);
            for form in forms {
                let text = emit(form, &audit, &rules, &[]);
                let judged = examine(&text, Target { version: version(survey), ..Target::default() });
                let bad: Vec<&Remark> =
                    judged.remarks.iter().filter(|remark| remark.severity != Severity::Note).collect();
                assert!(bad.is_empty(), "{} {profile} {form:?}: {bad:#?}\n{text}", path.display());
            }
        }
    }
}

fn version(survey: &survey::Survey) -> Option<units::KernelVersion> {
    survey.read("kernel.release").value.value()?.to_string().parse().ok()
}
