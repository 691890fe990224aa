//! A delay that we make in a guest is explained by what we did.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod twenty;

use std::process::{Command, Stdio};
use std::time::Duration;

use guest_tests::Guests;
use record::{Cause, Class, Explanation, HandlerKind, Hit, Record};
use sys::clock::Clock;
use units::{CpuId, CpuList, Nanos};

use crate::injection::{self, Delay, Ends, MS, Stop};

/// So long that no pause of the host is taken for it.
const HELD: u64 = 60 * MS;
/// From one delay to the next.
const PAUSE: u64 = 237 * MS;
/// What a thread does in the kernel cannot be made so long.
const SHORT: u64 = 15 * MS;
/// The host has a part in many delays, because the guest's CPUs are its threads: so often others are looked for.
const ATTEMPTS: usize = 12;

/// Where wake-ups are measured.
const MEASURED: CpuId = CpuId(0);
const OTHER: CpuId = CpuId(1);

static TWO_CPUS: Guests = Guests::new("debian-6.1-amd64", "quiet no_timer_check")
    .processors(2)
    .programs(&[env!("CARGO_BIN_EXE_worstcase")]);
static ONE_OF_TWO: Guests = Guests::new("debian-6.1-amd64", "quiet no_timer_check maxcpus=1")
    .processors(2)
    .programs(&[env!("CARGO_BIN_EXE_worstcase")]);
static PLAIN: Guests = Guests::new("debian-6.1-amd64", "quiet no_timer_check")
    .in_instructions()
    .programs(&[env!("CARGO_BIN_EXE_worstcase")]);
static RT: Guests = Guests::new("debian-6.1-rt-amd64", "quiet no_timer_check")
    .in_instructions()
    .programs(&[env!("CARGO_BIN_EXE_worstcase")]);

/// A thread that makes delays: its name, its CPU, its priority if it is a real-time thread.
type Maker = (&'static str, CpuId, Option<&'static str>);

/// The hits of a traced run beside delays.
fn traced(
    maker: Maker,
    make: impl for<'stop> Fn(&'stop Stop) -> Result<Delay<'stop>, String> + Sync,
) -> Vec<Hit> {
    let explained = explained(maker, make);
    println!("{:?}", explained.tracing);
    explained.hits
}

/// A traced run beside delays.
fn explained(
    maker: Maker,
    make: impl for<'stop> Fn(&'stop Stop) -> Result<Delay<'stop>, String> + Sync,
) -> Explanation {
    explained_by(measured, maker, make)
}

/// What `measured` comes to beside delays.
fn explained_by(
    measured: impl FnOnce() -> Explanation,
    maker: Maker,
    make: impl for<'stop> Fn(&'stop Stop) -> Result<Delay<'stop>, String> + Sync,
) -> Explanation {
    let (stop, make) = (&Stop::new(false), &make);
    std::thread::scope(|scope| {
        let ends = Ends(stop);
        let (say, made) = std::sync::mpsc::channel();
        let begin = move || {
            let delay = make(stop);
            let _ = say.send(());
            delay
        };
        let delays = injection::again_and_again(scope, stop, maker, PAUSE, begin);
        // What it takes to begin is no delay that is looked for.
        let _ = made.recv();
        let explanation = measured();
        drop(ends);
        delays.join().unwrap().unwrap();
        explanation
    })
}

fn measured() -> Explanation {
    measured_with(&["--duration", "1500ms"], 3)
}

/// A run with these words of which so many wake-ups are explained.
fn measured_with(words: &[&str], hits: usize) -> Explanation {
    let cpu = MEASURED.to_string();
    let mut command = Command::new("worstcase");
    command.args(["bench", "--loads", "idle", "--cpus", &cpu, "--interval", "10ms"]).args(words);
    let output = command.arg(format!("--explain={hits}")).args(["--out", "run"]).output().unwrap();
    let words = [&output.stderr[..], &output.stdout[..]].concat();
    let words = String::from_utf8_lossy(&words);
    let record: Record =
        record::store::load("run".as_ref()).unwrap_or_else(|error| panic!("{error}: {words}"));
    let _ = std::fs::remove_dir_all("run");
    record.explanations.into_iter().next().unwrap_or_else(|| panic!("{words}"))
}

/// The share of a hit's latency, in percent, of causes that are like this.
fn share(hit: &Hit, is_it: impl Fn(&Cause) -> bool) -> u64 {
    let length: u64 = hit.causes.iter().filter(|cause| is_it(cause)).map(|cause| cause.length.0).sum();
    length * 100 / hit.latency.0.max(1)
}

/// A hit of at least so many nanoseconds of which the cause that we made is 95 % or more. Where the host stopped a CPU meanwhile,
/// another one is looked for: who takes the delay for something else finds none.
fn assert_explained(
    maker: Maker,
    at_least: u64,
    make: impl for<'stop> Fn(&'stop Stop) -> Result<Delay<'stop>, String> + Sync,
    class: Class,
    culprit: &str,
) -> Hit {
    let is_it = |cause: &Cause| cause.class == class && cause.culprit.starts_with(culprit);
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        for hit in traced(maker, &make) {
            let of_it = share(&hit, is_it);
            let main = hit.main_cause().unwrap();
            println!("{}: {:?} {} {of_it} %, {:?}", hit.latency, main.class, main.culprit, main.certainty);
            if hit.latency.0 >= at_least && of_it >= 95 {
                return hit;
            }
            seen.push((hit.latency, hit.causes, hit.waking_stack, hit.switch_stack));
        }
    }
    panic!("{seen:#?}");
}

/// A thread of a higher priority that has the CPU.
fn assert_a_hog_is_named() {
    let maker = ("the-hog", MEASURED, Some("99"));
    assert_explained(maker, HELD / 2, |stop| Ok(injection::computing(HELD, stop)), Class::Rival, "the-hog [");
}

#[test]
fn a_hog_is_named_on_a_plain_kernel() {
    PLAIN.run(assert_a_hog_is_named);
}

/// A real-time thread that never sleeps uses up what all real-time threads of its CPU may have in a second: the measuring
/// thread is throttled with it, for the rest of that second.
#[test]
fn throttling_is_named_on_a_plain_kernel() {
    const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    PLAIN.run(|| {
        let before = std::fs::read_to_string(RUNTIME).unwrap();
        // Less than by default, so that threads of the kernel, which set up the trace, get something of the CPU.
        std::fs::write(RUNTIME, "700000").unwrap();
        let maker = ("the-hog", MEASURED, Some("10"));
        assert_explained(
            maker,
            100 * MS,
            |stop| Ok(injection::computing(10_000 * MS, stop)),
            Class::Throttling,
            "",
        );
        std::fs::write(RUNTIME, before).unwrap();
    });
}

#[test]
fn an_interrupt_of_another_cpu_is_named_on_a_plain_kernel() {
    TWO_CPUS.run(|| {
        let maker = ("the-sender", OTHER, None);
        assert_explained(maker, SHORT / 2, |_| injection::waiting_on(MEASURED, SHORT), Class::Call, "");
    });
}

#[test]
fn kernel_code_that_is_not_preempted_is_named_on_a_plain_kernel() {
    PLAIN.run(|| {
        let maker = ("the-runner", MEASURED, None);
        assert_explained(
            maker,
            SHORT / 2,
            |_| injection::waiting_on(MEASURED, SHORT),
            Class::NoPreemption,
            "__x64_sys_bpf in the-runner [",
        );
    });
}

fn computing_while_another_sends(stop: &Stop) -> Result<Delay<'_>, String> {
    let mut sends = injection::waiting_on(MEASURED, SHORT)?;
    let mut computes = injection::computing(HELD, stop);
    let (begin, begun) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        sys::schedule::set_affinity(0, &CpuList::from_iter([OTHER])).unwrap();
        begun.into_iter().for_each(|()| sends());
    });
    Ok(Box::new(move || {
        let _ = begin.send(());
        computes();
    }))
}

#[test]
fn a_hog_and_an_interrupt_of_another_cpu_are_two_causes() {
    TWO_CPUS.run(|| {
        let maker = ("the-hog", MEASURED, Some("99"));
        let both = |hit: &Hit| {
            let of = |class| share(hit, |cause| cause.class == class);
            let (rival, call) = (of(Class::Rival), of(Class::Call));
            println!("{}: rival {rival} %, call {call} %", hit.latency);
            hit.latency.0 >= HELD / 2 && rival >= 20 && call >= 5 && rival + call >= 90
        };
        assert!((0..ATTEMPTS).any(|_| traced(maker, computing_while_another_sends).iter().any(both)));
    });
}

#[test]
fn a_hog_is_named_on_a_real_time_kernel() {
    RT.run(assert_a_hog_is_named);
}

#[test]
fn preemption_that_was_off_is_named_on_a_real_time_kernel() {
    RT.run(|| {
        let maker = ("the-runner", MEASURED, None);
        assert_explained(
            maker,
            SHORT / 2,
            |_| injection::waiting_on(MEASURED, SHORT),
            Class::PreemptionOff,
            "bpf_",
        );
    });
}

/// The longest call in the table of handlers is as long as the one that was made, to five percent: where the host stopped the
/// CPU meanwhile, another run is looked at.
#[test]
#[ignore = "long: needs a host that does nothing else"]
fn a_handler_of_known_length_stands_in_the_table_of_handlers() {
    TWO_CPUS.run(|| {
        let maker = ("the-sender", OTHER, None);
        let mut seen = Vec::new();
        let is_found = (0..ATTEMPTS).any(|_| {
            let overview = explained(maker, |_| injection::waiting_on(MEASURED, SHORT)).overview;
            assert!(overview.activations > 50 && overview.parts.len() == 6, "{overview:?}");
            let calls = overview.handlers.into_iter().filter(|handler| {
                matches!(handler.kind, HandlerKind::Call | HandlerKind::Vector)
                    && handler.longest_on == MEASURED
                    && handler.name.contains("call_function")
            });
            let longest = calls.max_by_key(|handler| handler.longest);
            println!("made {SHORT}, found {longest:?}");
            let is_it = longest.as_ref().is_some_and(|one| one.longest.0.abs_diff(SHORT) <= SHORT / 20);
            seen.push(longest);
            is_it
        });
        assert!(is_found, "{seen:?}");
    });
}

/// The kernel has files for the trace of every CPU that may ever be there, and no buffer for one that was never online.
#[test]
fn an_offline_cpu_hinders_no_trace() {
    const ONLINE: &str = "/sys/devices/system/cpu/cpu1/online";
    const INSTANCES: &str = "/sys/kernel/tracing/instances";
    ONE_OF_TWO.run(|| {
        let watch = |duration: &str| {
            let mut command = Command::new("worstcase");
            command.args(["explain", "--live", "-D", duration, "--threshold", "10s"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let said = |watch: std::process::Child| {
            let ended = watch.wait_with_output().unwrap();
            assert!(ended.status.success(), "{ended:?}");
            String::from_utf8(ended.stdout).unwrap()
        };
        let offline = said(watch("1s"));
        println!("{offline}");
        assert!(!offline.contains("CPU 1"), "nothing ran on it: {offline}");
        let tracing = measured_with(&["--duration", "500ms"], 1).tracing;
        assert_eq!(tracing.failure, None, "{tracing:?}");
        let comes_and_goes = watch("4s");
        while std::fs::read_dir(INSTANCES).unwrap().next().is_none() {
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_secs(1));
        for state in ["1", "0"] {
            std::fs::write(ONLINE, state).unwrap();
            std::thread::sleep(Duration::from_secs(1));
        }
        let meanwhile = said(comes_and_goes);
        println!("{meanwhile}");
        let words = meanwhile.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("CPU 1: it went offline or came online meanwhile"), "{meanwhile}");
    });
}
