//! The suite against our machine, and against the machine broken in 26 ways.

use runtime::conformance::{self, Ours};

#[test]
fn all_26_invariants_hold() {
    let invariants = conformance::all::<Ours>();
    assert_eq!(invariants.len(), 26);
    let broken: Vec<String> = invariants
        .iter()
        .filter_map(|invariant| {
            let finding = (invariant.check)(&Ours::new).err()?;
            Some(format!("{} ({}): {finding}", invariant.number, invariant.name))
        })
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Each of 26 machines, broken on purpose, fails the invariant of its number.
#[test]
#[cfg(feature = "breakages")]
fn each_breakage_is_found_by_its_invariant() {
    use runtime::breakage::Breakage::{self, *};

    const ALL: [Breakage; 26] = [
        LostEvents,
        AtomicAnywhere,
        Overtaking,
        Disordered,
        SkipBlocks,
        EndDrops,
        NotParallel,
        MaskIgnored,
        PriorityReversed,
        Starving,
        LocalLate,
        LastInFirstOut,
        StopIgnored,
        StartUnbuffered,
        FailureIgnored,
        NotifiedEarly,
        AbortIgnored,
        BatchCountsOne,
        RoundTooMany,
        ExitLeftOut,
        HandlersSwapped,
        TimerEarly,
        TimerDrifts,
        ExhaustedForGood,
        TeardownLeaks,
        PanicHidden,
    ];
    let invariants = conformance::all::<Ours>();
    let mut unnoticed = Vec::new();
    for (how, invariant) in ALL.into_iter().zip(&invariants) {
        assert_eq!(how as u8, invariant.number);
        match (invariant.check)(&|settings| Ours::broken(settings, how)) {
            Ok(()) => unnoticed.push(how),
            Err(finding) => println!("{how:?}: {finding}"),
        }
    }
    assert!(unnoticed.is_empty(), "no invariant noticed {unnoticed:?}");
}

#[test]
#[cfg(not(feature = "breakages"))]
fn each_breakage_is_found_by_its_invariant() {
    println!("skipped: needs the feature `breakages` (cargo xtask test has all features)");
}
