use machine::kernel_config::{Fragment, dropped};
use proptest::prelude::*;

use super::*;

const SOURCE: &str = "\
menu \"Timers\"
\tdepends on CLOCKS
config FAST
\tbool \"Fast\"
\tdepends on SMP && !SLOW
\thelp
\t  config NOT_ONE is text.

\t  More text.
config HIDDEN
\tbool
endmenu
config PICKER
\tbool \"Picks\"
\tselect HIDDEN
choice
\tprompt \"Frequency\"
config HZ_250
\tbool \"250\"
config HZ_1000
\tbool \"1000\"
endchoice
if EXPERT
config DEEP
\ttristate \"Deep\"
\tdepends on (A || B) && C = y
endif
config MITIGATION_PTI
\tbool \"Pti\"
";

fn why(fragment: &str, result: &str) -> Vec<Vec<String>> {
    let result = KernelConfig::parse(result);
    let source = KernelSource::of(SOURCE);
    dropped(&Fragment::parse(fragment), &result)
        .iter()
        .map(|dropped| reasons(dropped, &result, &source))
        .collect()
}

#[test]
fn a_missing_dependency_is_named_with_its_value() {
    let reasons = why("CONFIG_FAST=y\n", "CONFIG_CLOCKS=y\nCONFIG_SMP=y\nCONFIG_SLOW=y\n");
    assert_eq!(reasons, [["it needs !SLOW; SLOW is y"]]);
    let reasons = why("CONFIG_FAST=y\n", "");
    assert_eq!(reasons, [["it needs CLOCKS; CLOCKS is not set", "it needs SMP; SMP is not set"]]);
}

#[test]
fn ifs_and_parentheses_count() {
    let reasons = why("CONFIG_DEEP=m\n", "CONFIG_EXPERT=y\nCONFIG_B=m\nCONFIG_C=m\n");
    assert_eq!(reasons, [["it needs C = y; C is m"]]);
    assert_eq!(why("CONFIG_DEEP=m\n", "CONFIG_A=y\nCONFIG_C=y\n"), [["it needs EXPERT; EXPERT is not set"]]);
}

#[test]
fn the_other_option_of_a_choice_is_named() {
    assert_eq!(
        why("CONFIG_HZ_1000=y\n", "CONFIG_HZ_250=y\n"),
        [["it is one option of a choice, and HZ_250 is y"]]
    );
}

#[test]
fn a_symbol_without_a_prompt_and_one_that_is_selected() {
    assert_eq!(
        why("CONFIG_HIDDEN=y\n", "CONFIG_CLOCKS=y\n"),
        [["it has no prompt: only another symbol can select it"]]
    );
    assert_eq!(
        why("# CONFIG_HIDDEN is not set\n", "CONFIG_HIDDEN=y\nCONFIG_PICKER=y\n"),
        [["it is selected by PICKER"]]
    );
}

#[test]
fn an_unknown_symbol_is_said_to_be_unknown_and_a_renamed_one_is_found() {
    assert_eq!(why("CONFIG_NOT_ONE=y\n", ""), [["this source has no such symbol"]]);
    assert_eq!(why("CONFIG_PTI=y\n", ""), [["this source has no such symbol; MITIGATION_PTI looks like it"]]);
}

proptest! {
    #[test]
    fn any_source_is_read_without_a_panic(text in "(config |menu|if |endif|choice|endchoice|depends on |help|bool \"|select |[A-Z]{1,3}|[()!&|=\"]|[ \t\n]|\\PC){0,80}") {
        let source = KernelSource::of(&text);
        let result = KernelConfig::parse("CONFIG_A=y\n");
        for dropped in dropped(&Fragment::parse("CONFIG_AB=y\n"), &result) {
            let _ = reasons(&dropped, &result, &source);
        }
    }
}

#[test]
fn a_source_with_pipes_and_endless_files_holds_nobody_up() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("Kconfig"), SOURCE).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("Kconfig.pipe"), rustix::fs::Mode::RWXU).unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("Kconfig.zero")).unwrap();
    KernelSource::read(directory.path(), "x86").unwrap();
    std::fs::File::create(at("Kconfig.long")).unwrap().set_len(1 << 40).unwrap();
    let error = KernelSource::read(directory.path(), "x86").unwrap_err();
    assert!(error.to_string().contains("Kconfig.long: it is longer than"), "{error}");
}

const TREE: &str = "\
config X86
\tdef_bool y
\tselect CLOCK if !QUIET
\timply NICE
config 64BIT
\tbool \"64-bit\" if \"$(ARCH)\" = \"x86\"
\tdefault \"$(ARCH)\" != \"i386\"
config CLOCK
\tbool
config NICE
\tbool \"Nice\"
\tdepends on SMP
config SMP
\tbool \"Many\"
config QUIET
\tbool \"Quiet\"
config NEEDS
\tbool \"Needs\"
\tdefault y
\tdepends on SMP
config COMPILED
\tdef_bool $(cc-option,-fx)
config BEHIND
\tdef_bool COMPILED
config ROUND
\tdef_bool TRIP
config TRIP
\tdef_bool ROUND
choice
\tprompt \"Frequency\"
\tdefault HZ_100 if ARM
\tdefault HZ_250
config HZ_100
\tbool \"100\"
config HZ_250
\tbool \"250\"
config HZ_1000
\tbool \"1000\"
endchoice
config HZ
\tint
\tdefault 100 if HZ_100
\tdefault 250 if HZ_250
\tdefault 1000 if HZ_1000
config SPEED
\tint \"Speed\"
\tdepends on SMP
\tdefault 3
config NAME
\tstring \"Name\"
config TOP
\tint
\tdepends on QUIET
";

fn completed(stated: &str, symbols: &[&str]) -> (Vec<String>, Vec<String>) {
    let Completed { lines, undecided, .. } =
        complete(&KernelConfig::parse(stated), symbols.iter().copied(), &KernelSource::of(TREE));
    (lines, undecided)
}

#[test]
fn what_a_defconfig_leaves_out_follows_from_defaults_and_selections() {
    let (lines, _) =
        completed("CONFIG_SMP=y\n", &["X86", "64BIT", "CLOCK", "NICE", "NEEDS", "QUIET", "FOREIGN"]);
    let expected = ["CONFIG_X86=y", "CONFIG_64BIT=y", "CONFIG_CLOCK=y", "CONFIG_NICE=y", "CONFIG_NEEDS=y"];
    assert_eq!(lines[..5], expected);
    assert_eq!(lines[5..], ["# CONFIG_QUIET is not set"], "a symbol of another source has no line");
    let (lines, _) = completed("CONFIG_QUIET=y\n", &["CLOCK", "NICE", "NEEDS"]);
    assert!(lines.is_empty(), "nobody is asked for them: {lines:?}");
    let stated = KernelConfig::parse("CONFIG_QUIET=y\n");
    let absent = complete(&stated, ["CLOCK", "NICE", "FOREIGN", "COMPILED"], &KernelSource::of(TREE)).absent;
    assert_eq!(
        absent,
        ["CLOCK", "NICE", "FOREIGN"],
        "they are off, and what a compiler decides is not known to be"
    );
}

#[test]
fn a_choice_is_what_is_stated_else_its_default() {
    let symbols = ["HZ_100", "HZ_250", "HZ_1000", "HZ"];
    let (lines, _) = completed("", &symbols);
    assert_eq!(lines[1], "CONFIG_HZ_250=y");
    assert_eq!(lines[3], "CONFIG_HZ=250");
    let (lines, undecided) = completed("CONFIG_HZ_1000=y\n", &["SPEED", "NAME", "TOP"]);
    assert_eq!(
        (lines.len(), undecided),
        (0, vec!["NAME".to_owned()]),
        "a number without its dependencies is no symbol"
    );
    let (lines, _) = completed("CONFIG_HZ_1000=y\n", &symbols);
    assert_eq!(lines, ["# CONFIG_HZ_100 is not set", "# CONFIG_HZ_250 is not set", "CONFIG_HZ=1000"]);
}

#[test]
fn what_a_compiler_decides_and_what_goes_round_stays_unknown() {
    let (lines, undecided) = completed("", &["COMPILED", "BEHIND", "ROUND"]);
    assert!(lines.is_empty(), "{lines:?}");
    assert_eq!(undecided, ["COMPILED", "BEHIND", "ROUND"]);
}

#[test]
fn what_stands_around_a_sourced_file_holds_in_it() {
    let tree = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = tree.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "Kconfig",
        "source \"arch/$(SRCARCH)/Kconfig\"\nif NET\nsource \"net/Kconfig\"\nendif\nsource \"../above\"\n",
    );
    write("arch/arm64/Kconfig", "config ARM64\n\tdef_bool y\nconfig NET\n\tbool \"Net\"\n");
    write("net/Kconfig", "config IN_NET\n\tdef_bool y\nrsource \"below/Kconfig\"\n");
    write("net/below/Kconfig", "config BELOW\n\tdef_bool y\n");
    let source = KernelSource::read(tree.path(), "arm64").unwrap();
    let lines =
        |stated: &str| complete(&KernelConfig::parse(stated), ["ARM64", "IN_NET", "BELOW"], &source).lines;
    assert_eq!(lines("CONFIG_NET=y\n"), ["CONFIG_ARM64=y", "CONFIG_IN_NET=y", "CONFIG_BELOW=y"]);
    assert_eq!(lines("# CONFIG_NET is not set\n"), ["CONFIG_ARM64=y"]);
}
