//! What is said of kernel parameters after the reboot, on a real kernel that was booted with them.
#![allow(clippy::unwrap_used)]

use guest_tests::Guests;
use sysroot::SysRoot;
use tune::persist::boot::ParameterEdit;
use tune::persist::boot::effect::{Effect, effects, still_there};

const WORDS: &str = "isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1 irqaffinity=0 threadirqs transparent_hugepage=never \
     workqueue.power_efficient=1 nosoftlockup";

static BOOTED: Guests = Guests::new("debian-6.1-amd64", WORDS).processors(2);

#[test]
fn a_booted_kernel_shows_which_words_are_in_force() {
    BOOTED.run(|| {
        let root = SysRoot::live();
        let found = effects(&root, &ParameterEdit::of(WORDS).unwrap().set);
        let is_in_force = |name: &str| {
            let (_, effect) = found.iter().find(|(word, _)| word.name == name).unwrap();
            assert!(matches!(effect, Effect::InForce(_)), "{name}: {effect:?}");
        };
        let shown =
            ["isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity", "transparent_hugepage", "nosoftlockup"];
        shown.into_iter().for_each(is_in_force);
        is_in_force("workqueue.power_efficient");
        let given = found.iter().find(|(word, _)| word.name == "threadirqs").unwrap();
        assert_eq!(given.1, Effect::Given);
        assert_eq!(still_there(&root, &["threadirqs".into(), "quietly".into()]), ["threadirqs"]);
    });
}

#[test]
fn words_that_did_not_come_through_are_reported() {
    BOOTED.run(|| {
        let shown =
            effects(&SysRoot::live(), &ParameterEdit::of("nohz_full=0 skew_tick=1 isolcpus=1").unwrap().set);
        let other = |index: usize| match &shown[index].1 {
            Effect::NotGiven(what) => what.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!((other(0).as_str(), other(1).as_str()), ("nohz_full=1", "the line does not have it"));
        assert_eq!(other(2), "isolcpus=managed_irq,domain,1");
    });
}
