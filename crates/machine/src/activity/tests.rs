use proptest::prelude::*;
use sysroot::FakeTree;

use super::*;

/// What a thread says of itself: id, name, flags, CPU, faults, nanoseconds, slices, allowed CPUs.
type Line<'a> = (i32, &'a str, u64, u32, u64, u64, u64, &'a str);

const KERNEL: u64 = 0x0020_0000;

fn activity(interrupts: &str, softirqs: &str, slices: u64, threads: &[Line<'_>]) -> Activity {
    let tree = FakeTree::empty();
    tree.write("/proc/interrupts", interrupts);
    tree.write("/proc/softirqs", softirqs);
    tree.write(
        "/proc/schedstat",
        format!("version 15\ntimestamp 1\ncpu1 1 0 2 3 4 5 6 7 {slices}\ndomain0 3 1 2\n"),
    );
    tree.write("/proc/self/schedstat", "1 2 3");
    for (tid, name, flags, cpu, faults, time, slices, allowed) in threads {
        let place = format!("/proc/{tid}/task/{tid}");
        let stat = format!(
            "{tid} ({name}) S 1 1 1 0 -1 {flags} {faults} 0 0 0 5 6 0 0 20 0 1 0 4711 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 17 \
             {cpu} 0 0 0 0 0"
        );
        tree.write(&format!("{place}/stat"), stat);
        tree.write(&format!("{place}/schedstat"), format!("{time} 0 {slices}"));
        tree.write(&format!("{place}/status"), format!("Cpus_allowed_list:\t{allowed}\n"));
    }
    Activity::take(&tree.root, &one())
}

fn one() -> CpuList {
    "1".parse().unwrap()
}

fn shown(before: &Activity, after: &Activity) -> Vec<String> {
    let mut tally = Tally::new(one());
    tally.add(before, after);
    let line = |residue: Residue| {
        let Residue { cpu, kind, name, words, events, time } = residue;
        format!("{cpu} {kind:?} {name} [{words}] {events} {}", time.0)
    };
    tally.residues().into_iter().map(line).collect()
}

#[test]
fn rows_of_interrupts_and_softirqs_count_for_their_cpu() {
    let interrupts = |device: u64, tick: u64| {
        format!(
            "      CPU0   CPU1\n 24:  9  {device}  IO-APIC  4-edge  ttyS0\nLOC:  800  {tick}  Local timer interrupts\n\
             ERR:   {tick}\n"
        )
    };
    let softirqs = |timer: u64| format!("     CPU0 CPU1\n  TIMER: 5 {timer}\n  RCU: 7 7\n");
    let before = activity(&interrupts(5, 100), &softirqs(1), 0, &[]);
    let after = activity(&interrupts(8, 350), &softirqs(2), 0, &[]);
    assert_eq!(
        shown(&before, &after),
        [
            "1 Interrupt LOC [Local timer interrupts] 250 0",
            "1 Interrupt 24 [IO-APIC 4-edge ttyS0] 3 0",
            "1 Softirq TIMER [] 1 0",
        ]
    );
    assert!(shown(&after, &after).is_empty());
}

#[test]
fn a_number_that_another_device_has_now_is_counted_from_nothing() {
    let before = activity(" CPU0 CPU1\n 24: 0 900 IO-APIC 4-edge ttyS0\n", "", 0, &[]);
    let after = activity(" CPU0 CPU1\n 24: 0 3 PCI-MSI 1-edge nvme0q1\n", "", 0, &[]);
    assert_eq!(shown(&before, &after), ["1 Interrupt 24 [PCI-MSI 1-edge nvme0q1] 3 0"]);
}

#[test]
fn threads_are_distinguished_by_what_they_are_and_slices_of_nobody_are_reported() {
    let before = activity(
        "",
        "",
        100,
        &[
            (20, "kworker/1:1", KERNEL, 1, 0, 100, 10, "1"),
            (30, "daemon", 0, 0, 5, 1000, 50, "0-1"),
            (40, "robot", 0, 1, 7, 1000, 20, "1"),
            (50, "elsewhere", 0, 0, 0, 0, 0, "0"),
        ],
    );
    let after = activity(
        "",
        "",
        120,
        &[
            (20, "kworker/1:1", KERNEL, 1, 0, 600, 14, "1"),
            (30, "daemon", 0, 1, 8, 1500, 53, "0-1"),
            (40, "robot", 0, 1, 7, 9000, 26, "1"),
            (50, "elsewhere", 0, 0, 100, 900, 9, "0"),
        ],
    );
    assert_eq!(
        shown(&before, &after),
        [
            "1 KernelThread kworker/1:1 [] 4 500",
            "1 UnpinnedThread daemon [30] 3 500",
            "1 PinnedThread robot [40] 6 8000",
            "1 PageFault daemon [30] 3 0",
            "1 Unseen  [] 7 0",
        ]
    );
}

#[test]
fn a_thread_that_left_meanwhile_and_one_that_never_gives_way_are_reported() {
    let before =
        activity("", "", 0, &[(30, "left", 0, 1, 0, 10, 1, "0-1"), (31, "spins", 0, 1, 0, 10, 1, "0-1")]);
    let after =
        activity("", "", 0, &[(30, "left", 0, 0, 0, 20, 2, "0-1"), (31, "spins", 0, 1, 0, 90, 1, "0-1")]);
    assert_eq!(
        shown(&before, &after),
        ["1 UnpinnedThread left [30] 1 10", "1 UnpinnedThread spins [31] 1 80"]
    );
}

#[test]
fn a_thread_that_was_moved_while_it_slept_did_not_run_where_it_ran_last() {
    let before = activity("", "", 0, &[(30, "khugepaged", KERNEL, 1, 0, 10, 1, "0")]);
    let after = activity("", "", 0, &[(30, "khugepaged", KERNEL, 0, 0, 90, 4, "0")]);
    assert!(shown(&before, &after).is_empty());
}

#[test]
fn a_thread_that_tracing_saw_pass_by_is_reported_where_no_look_found_it() {
    let mut tally = Tally::new(one());
    let before = activity("", "", 0, &[(30, "spins", 0, 1, 0, 10, 1, "0-1")]);
    let after = activity("", "", 0, &[(30, "spins", 0, 1, 0, 90, 2, "0-1")]);
    tally.add(&before, &after);
    for (cpu, name) in [(1, "spins"), (1, "gone"), (0, "elsewhere")] {
        tally.add_events(CpuId(cpu), Kind::Passing, name, "30", 1);
    }
    let passing: Vec<Residue> =
        tally.named().into_iter().filter(|residue| residue.kind == Kind::Passing).collect();
    assert_eq!((passing.len(), passing[0].name.as_str()), (1, "gone"));
}

#[test]
fn what_cannot_be_counted_is_named() {
    let nothing = Activity::take(&FakeTree::empty().root, &one());
    assert_eq!(nothing.missing().len(), 4);
    assert!(nothing.missing()[0].contains("/proc/interrupts"));
    assert!(activity(" CPU0 CPU1\n", "", 0, &[]).missing().is_empty());
}

proptest! {
    #[test]
    fn any_text_is_answered_without_a_panic(text in "( {0,3}CPU[0-9]{1,3})*\n([A-Z0-9]{1,4}: [0-9 ]{0,30}[a-z]{0,5}\n){0,5}|.{0,60}") {
        let _ = (rows(&text), slices(&text), stat_field(&text, 39), stat_field(&text, 0));
    }
}
