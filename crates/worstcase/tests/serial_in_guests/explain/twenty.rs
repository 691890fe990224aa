//! Twenty delays of each sort, explained twenty times.

use super::*;

/// Kernels of two versions, plain and PREEMPT_RT, each with guests of its own for what is long.
static LONG: [Guests; 4] = [
    long("debian-6.1-amd64"),
    long("debian-6.12-amd64"),
    long("debian-6.1-rt-amd64"),
    long("debian-6.12-rt-amd64"),
];

const fn long(kernel: &'static str) -> Guests {
    in_wall_time(kernel).in_instructions()
}

const fn in_wall_time(kernel: &'static str) -> Guests {
    Guests::new(kernel, "quiet no_timer_check nowatchdog")
        .programs(&[env!("CARGO_BIN_EXE_worstcase")])
        .patience(std::time::Duration::from_secs(1_800))
}

/// With the two CPUs that a call from one to the other takes.
static LONG_OF_TWO: [Guests; 2] =
    [in_wall_time("debian-6.1-amd64").processors(2), in_wall_time("debian-6.12-amd64").processors(2)];
/// Guests that their host stops.
static STOPPED: [Guests; 2] = [in_wall_time("debian-6.1-amd64"), in_wall_time("debian-6.12-rt-amd64")];

/// How often a delay is made, and must be explained.
const TIMES: usize = 20;

/// Of one run in wall time: an emulated machine reads its traces slowly.
const AT_ONCE: usize = 7;

/// A sort of delay, and what it is to be called.
struct Sort<'a> {
    maker: Maker,
    /// What is measured beside it.
    words: &'a [&'a str],
    /// What is longer was made.
    at_least: u64,
    class: Class,
    culprit: &'a str,
}

/// What delays that are made are not: parts of each wake-up, the recording, and the tick with its softirqs, which comes when it likes.
fn is_part_of_each(cause: &Cause) -> bool {
    let is_of_the_tick =
        ["tick_sched_timer", "tick_nohz_handler", "RCU", "SCHED", "TIMER"].contains(&cause.culprit.as_str());
    is_of_the_tick || matches!(cause.class, Class::Usual | Class::Tracing)
}

/// Twenty of twenty: no host has a part in guests whose clock counts instructions.
fn each_is_explained(
    sort: &Sort<'_>,
    make: impl for<'stop> Fn(&'stop Stop) -> Result<Delay<'stop>, String> + Sync,
) {
    let Sort { maker, words, at_least, class, culprit } = *sort;
    let explanation = explained_by(|| measured_with(words, TIMES), maker, make);
    let is_it = |cause: &Cause| cause.class == class && cause.culprit.contains(culprit);
    let late: Vec<&Hit> = explanation.hits.iter().filter(|hit| hit.latency.0 >= at_least).collect();
    let share = |hit: &Hit| share(hit, is_it) * 100 / (100 - share(hit, is_part_of_each)).max(1);
    let shares: Vec<u64> = late.iter().map(|hit| share(hit)).collect();
    println!("{class:?} {culprit:?}: {shares:?} % of {} late wake-ups", late.len());
    let latencies: Vec<Nanos> = explanation.hits.iter().map(|hit| hit.latency).collect();
    assert_eq!(late.len(), TIMES, "{latencies:?} {:?}", explanation.tracing);
    let other: Vec<_> = late.iter().filter(|hit| share(hit) < 95).collect();
    let other: Vec<_> = other.iter().map(|hit| (hit.latency, &hit.causes, &hit.switch_stack)).collect();
    assert!(other.is_empty(), "{class:?} {culprit:?}: {other:#?}");
}

/// Twenty where a guest's CPUs are threads of the host: it has a part in some delays, also in what runs before and after them, and
/// others are looked at.
fn each_is_explained_or_the_hosts(
    sort: &Sort<'_>,
    make: impl for<'stop> Fn(&'stop Stop) -> Result<Delay<'stop>, String> + Sync,
) {
    let Sort { maker, words, at_least, class, culprit } = *sort;
    let is_it = |cause: &Cause| cause.class == class && cause.culprit.contains(culprit);
    let is_foreign = |cause: &Cause| matches!(cause.class, Class::Host | Class::Unknown);
    let (mut explained, mut foreign) = (0, 0);
    for _ in 0..ATTEMPTS {
        let explanation = explained_by(|| measured_with(words, AT_ONCE), maker, &make);
        for hit in explanation.hits.iter().filter(|hit| hit.latency.0 >= at_least) {
            let is_named = share(hit, is_it) >= 95;
            explained += usize::from(is_named);
            foreign += usize::from(!is_named);
            let is_main = hit.main_cause().is_some_and(is_it);
            assert!(is_main || share(hit, is_foreign) > 2, "{class:?} {culprit:?}: {hit:#?}");
        }
        println!(
            "{class:?} {culprit:?}: {explained} late wake-ups, and {foreign} in which the host had a part"
        );
        if explained >= TIMES {
            return;
        }
    }
    panic!("the host had a part in too many");
}

const TWELVE_SECONDS: &[&str] = &["--duration", "12s"];
const THREE_SECONDS: &[&str] = &["--duration", "3s"];

fn a_rival() {
    let (maker, words) = (("the-hog", MEASURED, Some("99")), TWELVE_SECONDS);
    let sort = Sort { maker, words, at_least: HELD / 2, class: Class::Rival, culprit: "the-hog [" };
    each_is_explained(&sort, |stop| Ok(injection::computing(HELD, stop)));
}

/// `ktimers` wakes the thread that measures, and the hog goes before `ktimers` alone.
fn a_chain() {
    let (maker, words) = (("the-hog", MEASURED, Some("50")), &["--wake", "timerfd", "--duration", "12s"][..]);
    let sort = Sort { maker, words, at_least: HELD / 2, class: Class::Rival, culprit: "the-hog [" };
    each_is_explained(&sort, |stop| Ok(injection::computing(HELD, stop)));
}

/// Does something in the kernel again and again for some milliseconds: where in it a period ends is chance.
fn in_a_row(mut call: impl FnMut() + Send + 'static) -> Delay<'static> {
    Box::new(move || {
        let end = Clock::Monotonic.now() + SHORT;
        while Clock::Monotonic.now() < end {
            call();
        }
    })
}

/// The kernel of 2024 waits for a third of a millisecond at most.
fn the_kernel(class: Class, culprit: &str) {
    let maker = ("the-runner", MEASURED, None);
    let sort = Sort { maker, words: TWELVE_SECONDS, at_least: MS / 20, class, culprit };
    each_is_explained(&sort, |_| injection::waiting_on(MEASURED, SHORT).map(in_a_row));
}

fn a_call() {
    let maker = ("the-sender", OTHER, None);
    let sort = Sort { maker, words: THREE_SECONDS, at_least: MS / 20, class: Class::Call, culprit: "" };
    each_is_explained_or_the_hosts(&sort, |_| injection::waiting_on(MEASURED, SHORT).map(in_a_row));
}

fn a_softirq() {
    let (maker, class) = (("the-sender", MEASURED, None), Class::Softirq);
    let sort = Sort { maker, words: TWELVE_SECONDS, at_least: MS, class, culprit: "NET_RX" };
    each_is_explained(&sort, |_| injection::one_datagram_for(6_000));
}

/// What a hypervisor does to a guest that has no CPU: stops this machine's emulators below this process, and lets them go on.
fn with_an_emulator_that_stops(body: impl FnOnce()) {
    let (stop, own) = (&Stop::new(false), std::process::id());
    std::thread::scope(|scope| {
        let _ends = Ends(stop);
        scope.spawn(move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::thread::sleep(Duration::from_nanos(PAUSE));
                let emulators = emulators_below(own);
                let signal = |signal| {
                    for emulator in &emulators {
                        let _ = rustix::process::kill_process(*emulator, signal);
                    }
                };
                signal(rustix::process::Signal::STOP);
                std::thread::sleep(Duration::from_nanos(HELD));
                signal(rustix::process::Signal::CONT);
            }
        });
        body();
    });
}

/// QEMU's processes that descend from a process.
fn emulators_below(own: u32) -> Vec<rustix::process::Pid> {
    let mut below = vec![own];
    let mut emulators = Vec::new();
    while let Some(parent) = below.pop() {
        let children = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        let children = children.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        let children: Vec<u32> = children
            .flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<_>>())
            .collect();
        for child in children {
            let name = std::fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
            if name.starts_with("qemu-system") {
                emulators.extend(rustix::process::Pid::from_raw(child as i32));
            }
            below.push(child);
        }
    }
    emulators
}

/// Nothing is made in the guest: its host stops it.
fn the_host() {
    let maker = ("the-idler", MEASURED, None);
    let sort = Sort { maker, words: THREE_SECONDS, at_least: HELD / 2, class: Class::Host, culprit: "" };
    each_is_explained_or_the_hosts(&sort, |_| Ok(Box::new(|| ())));
}

#[test]
#[ignore = "long: twenty delays of each sort"]
fn twenty_stops_by_the_host_are_explained_on_6_1() {
    with_an_emulator_that_stops(|| STOPPED[0].run(the_host));
}

#[test]
#[ignore = "long: twenty delays of each sort"]
fn twenty_stops_by_the_host_are_explained_on_6_12_rt() {
    with_an_emulator_that_stops(|| STOPPED[1].run(the_host));
}

#[test]
#[ignore = "long: twenty delays of each sort"]
fn twenty_delays_of_each_sort_are_explained_on_6_1() {
    LONG[0].run(|| {
        a_rival();
        the_kernel(Class::NoPreemption, " in the-runner [");
        a_softirq();
    });
}

#[test]
#[ignore = "long: twenty delays of each sort"]
fn twenty_calls_of_another_cpu_are_explained_on_6_1() {
    LONG_OF_TWO[0].run(a_call);
}

#[test]
#[ignore = "long: twenty delays of each sort"]
fn twenty_calls_of_another_cpu_are_explained_on_6_12() {
    LONG_OF_TWO[1].run(a_call);
}

#[test]
#[ignore = "long: twenty delays of each sort"]
fn twenty_delays_of_each_sort_are_explained_on_6_12() {
    LONG[1].run(|| {
        a_rival();
        the_kernel(Class::NoPreemption, " in the-runner [");
        a_softirq();
    });
}

#[test]
#[ignore = "long: twenty delays of each sort"]
fn twenty_delays_of_each_sort_are_explained_on_6_1_rt() {
    LONG[2].run(|| {
        a_rival();
        the_kernel(Class::PreemptionOff, "bpf_");
        a_chain();
    });
}

#[test]
#[ignore = "long: twenty delays of each sort"]
fn twenty_delays_of_each_sort_are_explained_on_6_12_rt() {
    LONG[3].run(|| {
        // Programs of BPF can be preempted there: nothing of ours holds a CPU of such a kernel for long.
        a_rival();
        a_chain();
    });
}
