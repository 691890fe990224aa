//! Threads that others move while they are ready, and CPUs that choose a lower thread.

use explain::{Event, Frame, Kind, Window, account};
use record::{Activity, Certainty, Class, Stage};
use units::{CpuId, Nanos};

use crate::made_up::{OTHER, OWN, Script, TO_USER, USUAL, main_cause, task};

/// Another hog, on CPU 1.
const HOG: i32 = 301;

/// The thread is woken on CPU 1, where HOG keeps it waiting for 2 ms, and is moved to CPU 0, where `last` does for 1 ms.
fn moved(last: i32) -> Window {
    let window = Script::default().switch(900_000, 0, last).switch(4_000_000, last, OWN).window(4_001_000);
    let other = |at, kind| Event { at: Nanos(at), cpu: CpuId(1), task: HOG, is_wanted: None, kind };
    let vector = || Frame::Vector("local_timer".to_owned());
    let there = vec![
        other(900_000, Kind::Switch { previous: task(0), next: task(HOG) }),
        other(1_002_000, Kind::Enter(vector())),
        other(1_002_500, Kind::Waking(task(OWN))),
        other(1_002_700, Kind::Leave(vector())),
        other(3_000_000, Kind::Migrate { tid: OWN, from: CpuId(1), to: CpuId(0) }),
        other(3_000_500, Kind::Migrate { tid: OTHER, from: CpuId(1), to: CpuId(0) }),
    ];
    Window { events: [(CpuId(0), window.of(CpuId(0)).to_vec()), (CpuId(1), there)].into(), ..window }
}

#[test]
fn a_thread_that_is_moved_while_it_is_ready_waited_on_both_cpus() {
    let account = account(&moved(302), Some(&USUAL));
    let of = |tid: i32| {
        let rivals = account
            .causes
            .iter()
            .filter(|cause| (cause.class, cause.certainty) == (Class::Rival, Certainty::Sure));
        rivals
            .filter(|cause| cause.culprit.contains(&format!("[{tid}]")))
            .map(|cause| cause.length.0)
            .sum::<u64>()
    };
    assert_eq!((of(HOG), of(302)), (1_997_300, 1_000_000), "{:#?}", account.causes);
}

#[test]
fn what_a_lower_thread_did_on_the_cpu_before_is_not_known() {
    let mut window = moved(302);
    // HOG is of the fair scheduler there.
    let there = window.events.get_mut(&CpuId(1)).unwrap();
    there[0].kind =
        Kind::Switch { previous: task(0), next: explain::Task { priority: Some(120), ..task(HOG) } };
    let account = account(&window, Some(&USUAL));
    let of_hog = account.causes.iter().find(|cause| cause.culprit.contains("[301]")).unwrap();
    assert_eq!(of_hog.class, Class::Unknown, "{of_hog:?}");
    assert!(of_hog.witness.contains("moved from CPU 1"), "{of_hog:?}");
}

#[test]
fn who_wakes_a_thread_may_choose_another_cpu_for_it_at_once() {
    let mut window = moved(302);
    let there = window.events.get_mut(&CpuId(1)).unwrap();
    there[4].at = Nanos(1_002_600);
    let account = account(&window, Some(&USUAL));
    let first = account.pieces.iter().find(|piece| piece.stage == Stage::Runnable).unwrap();
    assert!(matches!(first.activity, Activity::Thread { tid: 302, .. }), "{:#?}", account.pieces);
}

/// OTHER runs on for 8 ms in a system call, as it seems; the flag is cleared again or not.
fn lower(is_wanted: bool) -> Window {
    let script = Script::default()
        .switch(900_000, OWN, OTHER)
        .timer(1_002_000, OTHER, "")
        .at(1_100_000, OTHER, Kind::Other)
        .at(2_000_000, OTHER, Kind::Other)
        .switch(9_002_000, OTHER, OWN)
        .stack(9_002_400, OTHER, TO_USER);
    let mut window = script.window(9_003_000);
    for event in window.events.values_mut().flatten() {
        let is_over = event.at >= Nanos(2_000_000);
        event.is_wanted = Some(event.at > Nanos(1_002_500) && (is_wanted || !is_over));
        if matches!(event.kind, Kind::Switch { .. }) {
            event.is_wanted = Some(false);
        }
    }
    window
}

#[test]
fn a_lower_thread_that_the_scheduler_chose_again_is_no_code_without_a_preemption_point() {
    let (class, _, certainty, _) = main_cause(&lower(false));
    assert_eq!((class, certainty), (Class::Throttling, Certainty::Likely));
    assert_ne!(main_cause(&lower(true)).0, Class::Throttling);
}

#[test]
fn a_stopper_thread_goes_before_threads_with_deadlines() {
    let stopper = || explain::Task { name: "migration/0".to_owned(), priority: Some(0), ..task(302) };
    let own = || explain::Task { priority: Some(-1), ..task(OWN) };
    let script = Script::default()
        .at(900_000, OWN, Kind::Switch { previous: own(), next: stopper() })
        .timer(1_002_000, 302, "")
        .at(3_000_000, 302, Kind::Switch { previous: stopper(), next: own() })
        .stack(3_000_400, 302, "schedule smpboot_thread_fn");
    let window = Window { priority: Some(-1), ..script.window(3_001_000) };
    let (class, culprit, certainty, _) = main_cause(&window);
    assert_eq!((class, certainty), (Class::Rival, Certainty::Sure), "{culprit}");
}

#[test]
fn a_quota_that_is_spent_on_the_way_to_user_space_is_no_rival() {
    let period = Frame::Timer("sched_cfs_period_timer".to_owned(), 9);
    let ended_by_it = |at: u64| {
        let script = Script::default()
            .switch(900_000, OWN, 0)
            .timer(1_002_000, 0, "")
            .switch(1_010_000, 0, OWN)
            .at(1_012_000, OWN, Kind::Other)
            .switch(1_020_000, OWN, OTHER)
            .enter(at, OTHER, period.clone())
            .leave(at + 1_000, OTHER, period.clone())
            .switch(9_000_000, OTHER, OWN)
            .window(9_001_000);
        main_cause(&Window { priority: Some(120), ..script })
    };
    let found = ended_by_it(8_900_000);
    assert_eq!((found.0, found.2), (Class::Throttling, Certainty::Likely), "{found:?}");
    let found = ended_by_it(3_000_000);
    assert_eq!(found.0, Class::Unknown, "its share, or a quota: {found:?}");
}
