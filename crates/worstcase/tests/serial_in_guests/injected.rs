//! What verify counts, against what is known to have happened: events that are injected, and the kernel's own sums,
//! read here by other code, before verify begins and after it ends.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use guest_tests::Guests;
use serde_json::Value;
use sys::clock::Clock;
use sys::injection::Waiting;
use sys::schedule::{self, Scheduling};

use super::partition::{NEW, OLD, PROGRAMS};

/// What is injected on CPU 1.
const CALLS: u64 = 137;
const TIMERS: u64 = 50;
const WAKES: u64 = 20;
/// The function by which they come (bpf_prog_test_run_raw_tp in net/bpf/test_run.c).
const CALLED: &str = "__bpf_prog_test_run_raw_tp";
/// Runs of each sort in the long test.
const RUNS: u32 = 20;
/// Where the host is busy a traced run takes four minutes.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// For the long test, which takes all the time that a guest has. Kernels of two versions, plain and PREEMPT_RT.
const WORDS: &str = "quiet no_timer_check nowatchdog";
const fn repeated(kernel: &'static str) -> Guests {
    Guests::new(kernel, WORDS).processors(2).programs(PROGRAMS).patience(PATIENCE)
}
static LONG: [Guests; 4] = [
    repeated("debian-6.1-amd64"),
    repeated("debian-6.1-rt-amd64"),
    repeated("debian-6.12-amd64"),
    repeated("debian-6.12-rt-amd64"),
];

/// For how long verify counts, in seconds: longer the next time, where a busy host took longer to inject than that.
const LENGTHS: [u64; 3] = [4, 16, 64];
/// With which words it says that it counts.
const COUNTING: &str = "counting ";

/// The kernel's sums for CPU 1.
struct Sums {
    interrupts: BTreeMap<String, u64>,
    slices: u64,
}

impl Sums {
    fn now() -> Self {
        Self { interrupts: interrupts(), slices: slices() }
    }
}

/// Rows of /proc/interrupts in the column of CPU 1; nothing while it is offline.
fn interrupts() -> BTreeMap<String, u64> {
    let text = fs::read_to_string("/proc/interrupts").unwrap();
    let Some(column) = text.lines().next().unwrap().split_whitespace().position(|cpu| cpu == "CPU1") else {
        return BTreeMap::new();
    };
    let row = |line: &str| {
        let (name, rest) = line.trim().split_once(':')?;
        Some((name.to_owned(), rest.split_whitespace().nth(column)?.parse().ok()?))
    };
    text.lines().skip(1).filter_map(row).collect()
}

/// How often CPU 1 was given to a thread: Documentation/scheduler/sched-stats.rst.
fn slices() -> u64 {
    let text = fs::read_to_string("/proc/schedstat").unwrap();
    let line = text.lines().find(|line| line.starts_with("cpu1 "));
    line.map_or(0, |line| line.split_whitespace().nth(9).unwrap().parse().unwrap())
}

/// What verify said, and what the kernel's sums grew by in a time that holds verify's.
struct Run {
    proof: Value,
    code: Option<i32>,
    before: Sums,
    after: Sums,
}

impl Run {
    /// Verify, with something that happens while it surely counts.
    fn with(words: &str, inject: impl Fn()) -> Self {
        for seconds in LENGTHS {
            if let Some(run) = Self::once(words, Duration::from_secs(seconds), &inject) {
                return run;
            }
            println!("again: what was injected took longer than {seconds} s");
        }
        panic!("what was injected took too long each time");
    }

    fn once(words: &str, length: Duration, inject: &impl Fn()) -> Option<Self> {
        let before = Sums::now();
        let mut verify = Command::new("worstcase");
        verify.args(["partition", "verify", "--rt", "1", "--allow", "0", "--json", "--duration"]);
        verify.arg(format!("{}ms", length.as_millis())).args(words.split_whitespace());
        let mut verify = verify.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(verify.stderr.take().unwrap()).lines();
        let heard: Vec<String> =
            said.by_ref().map_while(Result::ok).take_while(|line| !line.starts_with(COUNTING)).collect();
        let first = Clock::Monotonic.now();
        inject();
        let last = Clock::Monotonic.now();
        let output = verify.wait_with_output().unwrap();
        let proof: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{heard:?} {output:#?}"));
        let [began, counted] = ["began", "time"].map(|key| proof[key].as_u64().unwrap());
        assert!(began <= first, "it said that it counts, and did not: {heard:?} {}", proof["began"]);
        let is_inside = last <= began + length.as_nanos().min(counted.into()) as u64;
        is_inside.then(|| Self { proof, code: output.status.code(), before, after: Sums::now() })
    }

    fn residues(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        let residues = self.proof["residues"].as_array().unwrap().iter();
        residues.map(|one| {
            (one["kind"].as_str().unwrap(), one["name"].as_str().unwrap(), one["events"].as_u64().unwrap())
        })
    }

    fn events(&self, kind: &str, name: &str) -> u64 {
        self.residues().filter(|one| (one.0, one.1) == (kind, name)).map(|one| one.2).sum()
    }

    /// By how much the kernel's own sum of a row grew, from before verify was started until it had ended.
    fn at_most(&self, row: &str) -> u64 {
        let of = |sums: &Sums| sums.interrupts.get(row).copied().unwrap_or_default();
        of(&self.after).saturating_sub(of(&self.before))
    }

    fn words(&self, key: &str) -> String {
        self.proof[key].to_string()
    }

    /// No row has more than the kernel's sum grew by.
    fn is_within_the_kernels_sums(&self) {
        let own = |name: &str| name.split([' ', ':']).next().unwrap_or_default().to_owned();
        for (_, name, events) in self.residues().filter(|one| one.0 == "interrupt") {
            let most = self.at_most(&own(name));
            assert!(events <= most, "{name}: {events}, and the kernel counted {most}: {}", self.proof);
        }
    }

    /// What is ascribed to nobody is not more than the CPU was given away to others than these, who had so many slices.
    fn invents_nobody(&self, slices: u64) {
        let unseen: u64 = self.residues().filter(|one| one.0 == "unseen").map(|one| one.2).sum();
        let given = self.after.slices.saturating_sub(self.before.slices);
        assert!(
            unseen <= given.saturating_sub(slices),
            "{unseen} of {given}, {slices} known: {}",
            self.proof
        );
    }
}

/// A thread on CPU 1 that waits in a futex unless it is asked to sleep so often.
struct Helper {
    name: &'static str,
    asked: Arc<(Mutex<Asked>, Condvar)>,
    tid: i32,
}

#[derive(Clone, Copy, PartialEq)]
enum Asked {
    Begun(i32),
    Nothing,
    Sleeps(u64),
}

impl Helper {
    fn new(name: &'static str) -> Self {
        let asked = Arc::new((Mutex::new(Asked::Nothing), Condvar::new()));
        let theirs = Arc::clone(&asked);
        let body = move || {
            schedule::set_affinity(0, &"1".parse().unwrap()).unwrap();
            schedule::set(Scheduling::Fifo("50".parse().unwrap())).unwrap();
            let (mutex, condition) = &*theirs;
            *mutex.lock().unwrap() = Asked::Begun(schedule::thread_id());
            loop {
                let asked =
                    condition.wait_while(mutex.lock().unwrap(), |asked| !matches!(asked, Asked::Sleeps(_)));
                let mut asked = asked.unwrap();
                if let Asked::Sleeps(sleeps) = *asked {
                    // Shorter ones are over on a busy host before the thread has given its CPU away.
                    (0..sleeps).for_each(|_| std::thread::sleep(Duration::from_millis(5)));
                }
                *asked = Asked::Nothing;
            }
        };
        std::thread::Builder::new().name(name.to_owned()).spawn(body).unwrap();
        loop {
            if let Asked::Begun(tid) = *asked.0.lock().unwrap() {
                let helper = Self { name, asked: Arc::clone(&asked), tid };
                return helper.asleep();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn asleep(self) -> Self {
        self.wait();
        self
    }

    /// Returns when it sleeps.
    fn wait(&self) {
        let stat = || fs::read_to_string(format!("/proc/self/task/{}/stat", self.tid)).unwrap();
        while !stat().rsplit_once(") ").unwrap().1.starts_with('S') {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Wakes it up, and returns when it has slept so often and waits again.
    fn wake(&self, sleeps: u64) {
        let (mutex, condition) = &*self.asked;
        *mutex.lock().unwrap() = Asked::Sleeps(sleeps);
        condition.notify_one();
        // It holds the mutex until it is done.
        while *mutex.lock().unwrap() != Asked::Nothing {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.wait();
    }

    fn slices(&self) -> u64 {
        slices_of("self/task", self.tid)
    }
}

/// How often a thread was given a CPU, by the kernel's count of it.
fn slices_of(place: &str, tid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{place}/{tid}/schedstat")).unwrap();
    text.split_whitespace().nth(2).unwrap().parse().unwrap()
}

/// A loop that ends with the test, however that ends: the next one would find two.
struct Busy(Child);

impl Busy {
    fn on_cpu_1() -> Self {
        let child = Command::new("yes").stdout(Stdio::null()).spawn().unwrap();
        schedule::set_affinity(child.id().try_into().unwrap(), &"1".parse().unwrap()).unwrap();
        Self(child)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How often it is tried to have all of it happen.
const TRIES: u32 = 5;

/// Calls of another CPU, timers and wake-ups, beside a loop that never ends.
fn of_events(words: &str) {
    match Waiting::load() {
        Ok(waiting) => {
            assert!((0..TRIES).any(|_| all_happened(&waiting, words)), "too little happened each time");
        }
        Err(error) => println!("skipped: calls of other CPUs are made by BPF: {error}"),
    }
}

/// What verify counts is what happened; false if that was not all that was to happen: where the host is busy, a time to
/// sleep is over before the thread has given its CPU away.
fn all_happened(waiting: &Waiting, words: &str) -> bool {
    let busy = Busy::on_cpu_1();
    let pid = busy.0.id().try_into().unwrap();
    schedule::set_affinity(0, &"0".parse().unwrap()).unwrap();
    let (timers, wakes) = (Helper::new("fifty-timers"), Helper::new("twenty-wakes"));
    let all = || [timers.slices(), wakes.slices(), slices_of("", pid)];
    let tries = std::cell::Cell::new(all());
    let run = Run::with(words, || {
        // Nothing but what comes here wakes them up.
        let [of_timers, of_wakes, _] = all();
        tries.set([of_timers, of_wakes, tries.get()[2]]);
        (0..CALLS).for_each(|_| waiting.run_on(1, 1_000).unwrap());
        timers.wake(TIMERS);
        (0..WAKES).for_each(|_| wakes.wake(0));
    });
    let (before, after) = (tries.get(), all());
    drop(busy);
    let [of_timers, of_wakes, of_busy] = [0, 1, 2].map(|one| after[one] - before[one]);
    run.is_within_the_kernels_sums();
    run.invents_nobody(of_timers + of_wakes);
    let calls = run.events("interrupt", "CAL");
    assert!((CALLS..=run.at_most("CAL")).contains(&calls), "{calls} calls: {}", run.proof);
    for (helper, known) in [(&timers, of_timers), (&wakes, of_wakes)] {
        assert_eq!(run.events("pinned-thread", helper.name), known, "{}: {}", helper.name, run.proof);
    }
    assert!(run.events("pinned-thread", "yes") <= of_busy, "of {of_busy}: {}", run.proof);
    println!("{calls} calls, {of_timers} and {of_wakes} slices {words}");
    if words.contains("--trace") {
        of_trace(&run);
    }
    of_timers >= TIMERS && of_wakes >= WAKES
}

/// Each call, and each system call that sets a timer, has its name.
fn of_trace(run: &Run) {
    // Before Linux 6.5 no event has their names, and verify says so.
    let is_named = !run.words("unnamed").contains("csd_queue_cpu");
    let ours = run.events("call", CALLED);
    assert_eq!(ours, if is_named { CALLS } else { 0 }, "{CALLED}: {}", run.proof);
    let others = run.residues().filter(|one| one.0 == "call" && one.1 != CALLED);
    let others: Vec<String> = others.map(|(_, name, events)| format!("{name} {events}")).collect();
    println!("{ours} calls of {CALLED}; the kernel's own: {}", others.join(", "));
    let residues = run.proof["residues"].as_array().unwrap().iter();
    let sleeps = residues.filter(|one| {
        one["name"] == "fifty-timers" && one["words"].as_str().unwrap().ends_with("clock_nanosleep")
    });
    let sleeps: u64 = sleeps.map(|one| one["events"].as_u64().unwrap()).sum();
    assert_eq!(sleeps, TIMERS, "{}", run.proof);
    let expired = run.events("timer", "hrtimer_wakeup");
    // The kernel may have a timer run out on another CPU, which then asks this one to look for another thread.
    let least = TIMERS.saturating_sub(run.events("interrupt", "RES"));
    assert!((least..=run.at_most("LOC")).contains(&expired), "{expired} timers: {}", run.proof);
}

/// A CPU that leaves and comes back: what is said of it is that it was not counted, and its sums since boot are no events.
fn of_a_cpu_that_leaves() {
    let online = |is: &str| fs::write("/sys/devices/system/cpu/cpu1/online", is).unwrap();
    let run = Run::with("", || {
        online("0");
        std::thread::sleep(Duration::from_millis(300));
        online("1");
    });
    run.is_within_the_kernels_sums();
    assert!(run.words("missing").contains("CPU 1"), "{}", run.proof);
    assert!(matches!(run.code, Some(1 | 3)) && run.proof["verdict"] != "pass", "{}", run.proof);
}

/// A driver that lets go of its interrupt and takes it again.
fn of_a_driver() {
    const DRIVERS: [&str; 2] = ["/sys/bus/platform/drivers/i8042", "/sys/bus/pnp/drivers/rtc_cmos"];
    let devices = |driver: &str| {
        let entries = fs::read_dir(driver).into_iter().flatten().flatten();
        let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        let names = links.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| name != "module").collect::<Vec<String>>()
    };
    let found = DRIVERS.into_iter().find_map(|driver| Some((driver, devices(driver).pop()?)));
    let Some((driver, device)) = found else { return println!("skipped: no driver here lets go") };
    println!("unbinding {device} of {driver}");
    let run = Run::with("", || {
        fs::write(format!("{driver}/unbind"), &device).unwrap();
        std::thread::sleep(Duration::from_millis(1_200));
        fs::write(format!("{driver}/bind"), &device).unwrap();
    });
    run.is_within_the_kernels_sums();
}

#[test]
fn counts_are_those_of_what_was_injected() {
    OLD.run(|| {
        of_events("");
        of_a_driver();
        of_a_cpu_that_leaves();
    });
}

#[test]
fn traced_counts_are_those_of_what_was_injected() {
    NEW.run(|| of_events("--trace"));
}

/// How many of twenty runs succeed is printed; all have to.
fn counts_are_those_of_what_was_injected_twenty_times(guests: &Guests) {
    guests.run(|| {
        let succeeded = (0..RUNS).filter(|run| {
            let words = if run % 2 == 0 { "" } else { "--trace" };
            let begun = Instant::now();
            let why_not = std::panic::catch_unwind(|| of_events(words)).err();
            let why_not = why_not.as_ref().map(|why| why.downcast_ref::<String>().map_or("", String::as_str));
            // Not kept back until the end, which a guest that is given up does not reach.
            let seconds = begun.elapsed().as_secs();
            let _ = writeln!(std::io::stderr(), "run {run} {words}: after {seconds} s: {why_not:?}");
            why_not.is_none()
        });
        let succeeded = succeeded.count();
        println!("{succeeded} of {RUNS} runs");
        of_a_driver();
        of_a_cpu_that_leaves();
        assert_eq!(succeeded, RUNS as usize);
    });
}

#[test]
#[ignore = "long: twenty runs"]
fn counts_are_those_of_what_was_injected_twenty_times_on_6_1() {
    counts_are_those_of_what_was_injected_twenty_times(&LONG[0]);
}

#[test]
#[ignore = "long: twenty runs"]
fn counts_are_those_of_what_was_injected_twenty_times_on_6_1_rt() {
    counts_are_those_of_what_was_injected_twenty_times(&LONG[1]);
}

#[test]
#[ignore = "long: twenty runs"]
fn counts_are_those_of_what_was_injected_twenty_times_on_6_12() {
    counts_are_those_of_what_was_injected_twenty_times(&LONG[2]);
}

#[test]
#[ignore = "long: twenty runs"]
fn counts_are_those_of_what_was_injected_twenty_times_on_6_12_rt() {
    counts_are_those_of_what_was_injected_twenty_times(&LONG[3]);
}
