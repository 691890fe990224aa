//! Any set of words that is taken comes back from the loader's reader.

use proptest::prelude::*;

use super::*;

/// Words with all characters that a kernel command line may have.
fn words() -> impl Strategy<Value = String> {
    let word = "[a-z][a-z_.]{0,6}(=[a-zA-Z0-9,.:/$;&|<>{}`#!*?~@%^()+=-]{0,8}|=\"[a-z;$ ]{1,6}\"|)";
    proptest::collection::vec(word, 1..5).prop_map(|words| words.join(" "))
}

fn machines() -> Vec<(&'static str, Machine)> {
    let entry = "title x\nlinux /v\noptions root=/dev/sda1 ro\n";
    vec![
        ("grub", grub::debian()),
        (
            "systemd-boot",
            Machine::new(&[
                ("/boot/loader/loader.conf", "timeout 3\n"),
                ("/boot/loader/entries/a.conf", entry),
            ]),
        ),
        (
            "extlinux",
            Machine::new(&[(
                "/boot/extlinux/extlinux.conf",
                "label a\nlinux /v\nappend root=/dev/sda1 ro\n",
            )]),
        ),
        ("raspberry-pi", Machine::new(&[("/boot/cmdline.txt", "root=/dev/sda1 ro")])),
        ("u-boot", Machine::new(&[("/boot/armbianEnv.txt", "extraargs=quiet\n")])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn well_formed_words_come_back_or_are_refused_and_undo_is_the_identity(text in words()) {
        let Ok(edit) = ParameterEdit::of(&text) else { return Ok(()) };
        for (name, mut machine) in machines() {
            let (before, was) = (machine.files(), machine.next());
            let plan = match machine.plan_of(&edit, Manner::Default) {
                Ok(plan) => plan,
                Err(error) => {
                    prop_assert!(error.reason.contains("hand on") || error.reason.contains("says"), "{name}: {error}");
                    continue;
                }
            };
            let written = machine.write(&plan);
            prop_assert!(written.is_ok(), "{name}: {written:?} {plan:#?}");
            let now = machine_words(&machine.next());
            prop_assert!(edit.set.iter().all(|word| now.contains(word)), "{name}: {now:?}");
            machine.undo();
            prop_assert_eq!(machine.next(), was);
            prop_assert_eq!(machine.files(), before);
        }
    }

    #[test]
    fn any_text_is_taken_or_refused_without_a_panic(text in ".{0,40}|[a-z=\" -]{0,30}") {
        if let Ok(edit) = ParameterEdit::of(&text) {
            prop_assert_eq!(machine_words(&line(&edit.set)), edit.set);
        }
    }
}

fn machine_words(text: &str) -> Vec<Word> {
    machine::CommandLine::parse(text).words
}
