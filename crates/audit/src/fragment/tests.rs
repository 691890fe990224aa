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
