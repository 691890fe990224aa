use proptest::prelude::*;
use sysroot::FakeTree;

use super::*;

/// What a thread says of itself: id, name, flags, CPU, faults, nanoseconds, slices, allowed CPUs.
type Line<'a> = (i32, &'a str, u64, u32, u64, u64, u64, &'a str);

const KERNEL: u64 = 0x0020_0000;

fn activity(interrupts: &str, softirqs: &str, slices: u64, threads: &[Line<'_>]) -> Activity {
    look(&[("/proc/interrupts", interrupts), ("/proc/softirqs", softirqs)], &[(1, slices)], threads, &one())
}

/// What is seen where these files are there, and so many slices were given away by CPUs.
fn look(files: &[(&str, &str)], slices: &[(u32, u64)], threads: &[Line<'_>], cpus: &CpuList) -> Activity {
    let tree = FakeTree::new(files);
    let lines =
        slices.iter().map(|(cpu, slices)| format!("cpu{cpu} 1 0 2 3 4 5 6 7 {slices}\ndomain0 3 1 2\n"));
    tree.write("/proc/schedstat", format!("version 15\ntimestamp 1\n{}", lines.collect::<String>()));
    tree.write("/proc/self/schedstat", "1 2 3");
    tree.write("/proc/stat", "cpu1 1 0 1 9 0 0 0 4\n");
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
    Activity::take(&tree.root, cpus)
}

fn one() -> CpuList {
    "1".parse().unwrap()
}

fn shown(before: &Activity, after: &Activity) -> Vec<String> {
    let mut tally = Tally::new(one());
    tally.add(before, after);
    lines(&tally)
}

fn lines(tally: &Tally) -> Vec<String> {
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
fn a_row_that_loses_its_driver_goes_on_counting_and_that_is_said() {
    let before = activity(" CPU0 CPU1\n 1: 0 900 IO-APIC 1-edge i8042\n", "", 0, &[]);
    let after = activity(" CPU0 CPU1\n 1: 0 903 IO-APIC 1-edge\n", "", 0, &[]);
    let mut tally = Tally::new(one());
    tally.add(&before, &after);
    assert_eq!(lines(&tally), ["1 Interrupt 1 [IO-APIC 1-edge] 3 0"]);
    assert_eq!(tally.changes(), ["row 1 (IO-APIC 1-edge) was IO-APIC 1-edge i8042"]);
    assert_eq!(tally.missing(), Vec::<String>::new());
}

#[test]
fn rows_that_come_go_or_begin_anew_are_new_baselines_and_are_said() {
    let with = |rows: &str| activity(&format!(" CPU0 CPU1\n{rows}"), "", 0, &[]);
    let missing = |before: &str, after: &str| {
        let mut tally = Tally::new(one());
        tally.add(&with(before), &with(after));
        assert!(lines(&tally).is_empty(), "{:?}", lines(&tally));
        tally.missing()
    };
    let device = " 24: 0 900 PCI-MSI 1-edge eth0\n";
    assert_eq!(missing("", device), ["row 24 (PCI-MSI 1-edge eth0) from before it was there"]);
    assert_eq!(missing("", " 24: 5 0 PCI-MSI 1-edge eth0\n"), Vec::<String>::new(), "it never came here");
    assert_eq!(missing(device, ""), ["row 24 (PCI-MSI 1-edge eth0) after the last look at it: it has gone"]);
    assert_eq!(
        missing(device, " 24: 0 3 PCI-MSI 1-edge nvme0\n"),
        ["row 24 (PCI-MSI 1-edge nvme0), which began anew"]
    );
}

#[test]
fn a_cpu_that_was_away_is_not_counted_from_its_boot_and_is_missing() {
    let with = |online: &str, head: &str, counts: &str, slices: u64| {
        let interrupts = format!(" {head}\nLOC: {counts} Local timer interrupts\n");
        let files = [("/proc/interrupts", interrupts.as_str()), ("/sys/devices/system/cpu/online", online)];
        look(&files, &[(1, slices)][..usize::from(online != "0")], &[], &one())
    };
    let all = |count: u64, slices: u64| with("0-1", "CPU0 CPU1", &format!("9 {count}"), slices);
    let looks = [all(2000, 100), with("0", "CPU0", "9", 0), all(2172, 700), all(2174, 703)];
    let mut tally = Tally::new(one());
    looks.windows(2).for_each(|pair| tally.add(&pair[0], &pair[1]));
    assert_eq!(lines(&tally), ["1 Interrupt LOC [Local timer interrupts] 2 0", "1 Unseen  [] 3 0"]);
    assert_eq!(tally.missing(), ["CPU 1: it was offline at a look, or all the time"]);
}

#[test]
fn a_thread_that_runs_on_between_looks_had_no_more_slices_than_the_kernel_counted() {
    let with = |time: u64, own: u64| activity("", "", own, &[(40, "loop", 0, 1, 0, time, own, "1")]);
    let tallied = |looks: &[Activity]| {
        let mut tally = Tally::new(one());
        looks.windows(2).for_each(|pair| tally.add(&pair[0], &pair[1]));
        lines(&tally)
    };
    let looks = [with(10, 50), with(20, 50), with(30, 52), with(40, 52)];
    assert_eq!(tallied(&looks), ["1 PinnedThread loop [40] 2 30"]);
    assert_eq!(tallied(&looks[..2]), ["1 PinnedThread loop [40] 1 10"], "it had the CPU");
}

#[test]
fn a_cpu_that_was_away_between_two_looks_is_missing() {
    let with = |slices: u64| activity("", "", slices, &[(21, "cpuhp/1", KERNEL, 1, 0, slices, slices, "1")]);
    let missing = |before: u64, after: u64| {
        let mut tally = Tally::new(one());
        tally.add(&with(before), &with(after));
        tally.missing()
    };
    assert_eq!(missing(7, 7), Vec::<String>::new());
    assert_eq!(
        missing(7, 9),
        ["CPU 1 for a while: cpuhp/1 ran, so it went off between two looks, or a driver came"]
    );
}

#[test]
fn slices_counted_at_one_look_and_found_at_another_are_nobody_elses() {
    let with = |given: u64, own: u64| activity("", "", given, &[(40, "loop", 0, 1, 0, 1000 + own, own, "1")]);
    let looks = [with(100, 50), with(160, 100), with(200, 150), with(260, 210)];
    let mut tally = Tally::new(one());
    looks.windows(2).for_each(|pair| tally.add(&pair[0], &pair[1]));
    assert_eq!(lines(&tally), ["1 PinnedThread loop [40] 160 160"], "10 too many, 10 too few, none");
}

#[test]
fn what_ran_while_the_threads_were_looked_at_first_is_not_blamed_on_others() {
    let mut before = activity("", "", 100, &[(40, "loop", 0, 1, 0, 10, 50, "1")]);
    before.slices[1] = Fact::Value([(CpuId(1), 130)].into());
    let after = activity("", "", 240, &[(40, "loop", 0, 1, 0, 90, 160, "1")]);
    assert_eq!(shown(&before, &after), ["1 PinnedThread loop [40] 110 80"], "30 of 140 are on either side");
}

#[test]
fn a_resident_of_two_cpus_is_bound_on_the_one_where_it_is_not_found() {
    let cpus: CpuList = "1-2".parse().unwrap();
    let with = |first: u64, second: u64, own: u64| {
        let robot = (40, "robot", 0, 2, 0, 10 * own, own, "1-2");
        look(&[], &[(1, first), (2, second)], &[robot], &cpus)
    };
    let mut tally = Tally::new(cpus.clone());
    tally.add(&with(100, 100, 10), &with(194, 184, 188));
    assert_eq!(lines(&tally), ["2 PinnedThread robot [40] 178 1780"]);
    let mut tally = Tally::new(cpus.clone());
    tally.add(&with(100, 100, 10), &with(199, 184, 188));
    assert_eq!(lines(&tally)[0], "1 Unseen  [] 5 0", "somebody else was there too");
}

#[test]
fn time_that_the_hypervisor_took_is_counted() {
    let mut after = activity("", "", 0, &[]);
    let tree = FakeTree::new(&[("/proc/stat", "cpu1 1 0 1 9 0 0 0 7\n")]);
    after.stolen = cpu_times(&tree.root);
    assert_eq!(shown(&activity("", "", 0, &[]), &after), ["1 Steal  [] 3 30000000"]);
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
    assert_eq!(nothing.missing().len(), 5);
    assert!(nothing.missing()[0].contains("/proc/interrupts"));
    assert!(activity(" CPU0 CPU1\n", "", 0, &[]).missing().is_empty());
}

proptest! {
    #[test]
    fn any_text_is_answered_without_a_panic(text in "( {0,3}CPU[0-9]{1,3})*\n([A-Z0-9]{1,4}: [0-9 ]{0,30}[a-z]{0,5}\n){0,5}|.{0,60}") {
        let _ = (rows(&text), slices(&text), stat_field(&text, 39), stat_field(&text, 0));
    }
}

/// `verify --trace` had each tick in two rows, and both above the allowance.
#[test]
fn a_tick_counts_once_as_interrupt_and_as_timer_where_no_interrupt_is_counted() {
    let with = |interrupts: &str| {
        let rows = |count: u64| activity(&interrupts.replace("COUNT", &count.to_string()), "", 0, &[]);
        let mut tally = Tally::new(one());
        tally.add(&rows(100), &rows(350));
        for function in ["tick_nohz_handler", "tick_sched_timer", "hrtimer_wakeup"] {
            tally.add_events(CpuId(1), Kind::Timer, function, "", 7);
        }
        let named = tally.named().into_iter();
        named.map(|residue| format!("{} {}", residue.name, residue.events)).collect::<Vec<_>>()
    };
    let once = with(" CPU0 CPU1\nLOC: 800 COUNT Local timer interrupts\n");
    assert_eq!(once, ["LOC 250", "hrtimer_wakeup 7"]);
    let arm = with(" CPU0 CPU1\n11: 800 COUNT GICv3 27 Level arch_timer\n");
    assert_eq!(arm, ["11 250", "hrtimer_wakeup 7"]);
    let none = with(" CPU0 CPU1\n24: 9 COUNT PCI-MSI 1-edge eth0\n");
    assert_eq!(none, ["24 250", "hrtimer_wakeup 7", "tick_nohz_handler 7", "tick_sched_timer 7"]);
}
