//! `worstcase tune trial` and `search`: on this machine, killed in the middle, and in guests of real kernels.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use crate::support::{guests, wait_until};

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_worstcase");
/// A file that harms nobody: how often memory statistics are folded.
const INTERVAL: &str = "/proc/sys/vm/stat_interval";
const PLAIN: &str = "debian-6.1-amd64";
const REAL_TIME: &str = "debian-6.1-rt-amd64";

/// This machine, with its setting at 1 and a state directory of its own. Dropped, it is as it was.
struct Here {
    directory: tempfile::TempDir,
    before: String,
}

impl Here {
    /// None where this machine cannot be changed, which is said.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: needs root");
            return None;
        }
        let before = fs::read_to_string(INTERVAL).unwrap_or_default();
        if fs::write(INTERVAL, "1\n").is_err() {
            println!("skipped: {INTERVAL} cannot be written here");
            return None;
        }
        Some(Self { directory: tempfile::tempdir().unwrap(), before })
    }

    fn out(&self) -> PathBuf {
        self.directory.path().join("out")
    }

    /// A trial of blocks of `duration`; the same words go on with it if it was begun.
    fn command(&self, duration: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(["tune", "trial"]);
        match self.out().exists() {
            true => command.arg("--resume").arg(self.out()),
            false => {
                let setting = format!("{INTERVAL}=10");
                command.args([&setting, "--duration", duration, "--warm-up", "10ms", "--blocks", "6"]);
                command.args(["--load", "idle", "--seed", "1", "--cpus", "0", "--out"]).arg(self.out())
            }
        };
        command.arg("--json").arg("--state").arg(self.directory.path().join("state"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A trial that is in the middle of a block with the setting on.
    fn in_a_block(&self) -> Child {
        let trial = self.command("400ms").spawn().unwrap();
        wait_until("the setting is on", || read(INTERVAL) == "10");
        trial
    }

    fn status(&self) -> String {
        let mut command = Command::new(PROGRAM);
        let output =
            command.args(["tune", "status", "--state"]).arg(self.directory.path().join("state")).output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    }

    /// `report` says of the directory what the command has said, and writes the page again.
    fn is_shown_again(&self, said: &[u8]) {
        let page = self.out().join("report.html");
        let first = fs::read(&page).unwrap();
        fs::remove_file(&page).unwrap();
        let report = |option: &[&str]| {
            Command::new(PROGRAM).arg("report").arg(self.out()).args(option).output().unwrap().stdout
        };
        assert!(report(&["--json"]) == said && fs::read(&page).unwrap() == first);
        let text = String::from_utf8(report(&[])).unwrap();
        assert!(text.starts_with(&format!("Does {INTERVAL}=10 make the tail shorter under idle")), "{text}");
        let page = String::from_utf8(first).unwrap();
        assert!(page.contains("phase-1/round-6/control") && page.contains("How to repeat it"));
    }

    /// The directories of a round's whole blocks.
    fn blocks(&self, round: u32) -> Vec<PathBuf> {
        let arms = fs::read_dir(self.out().join(format!("phase-1/round-{round}")));
        let arms = arms.into_iter().flatten().flatten().map(|arm| arm.path());
        arms.filter(|arm| arm.extension().is_none() && arm.join("record.json").is_file()).collect()
    }

    /// Whole records, one a block.
    fn records(&self) -> usize {
        (1..=6).map(|round| self.blocks(round).len()).sum()
    }

    /// Whether the blocks of each round began at one phase of the tick, whenever they were measured, and rounds at others.
    fn arms_met_the_same_phases(&self) {
        let place = |block: PathBuf| {
            let record = record::store::load(&block).unwrap();
            let phases = *record.scenarios[0].series[0].timer().unwrap().tick_phases.value().unwrap();
            phases.first.0 % phases.spacing.0
        };
        let of_round = |round| self.blocks(round).into_iter().map(place).collect::<BTreeSet<_>>();
        let rounds: Vec<_> = (1..=6).map(of_round).collect();
        assert!(rounds.iter().all(|round| round.len() == 1), "{rounds:?}");
        assert!(rounds.iter().collect::<BTreeSet<_>>().len() > 1, "{rounds:?}");
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        let _ = fs::write(INTERVAL, &self.before);
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

fn child_of(pid: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.split_whitespace().next().unwrap().parse().unwrap()
}

fn shown(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    let value: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    // Both have their answer's form as the kind of their question.
    crate::support::schema::check(value["question"]["kind"].as_str().unwrap(), &value);
    value
}

#[test]
fn a_trial_here_measures_every_arm_as_often_and_leaves_nothing() {
    let Some(here) = Here::new() else { return };
    let output = here.command("50ms").output().unwrap();
    let answer = &shown(&output)["answer"];
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{output:?}");
    assert_eq!(answer["schema_version"], 3);
    assert_eq!(answer["settings"][0]["measures"].as_array().unwrap().len(), 3);
    assert_eq!(answer["control"].as_array().unwrap().len(), 3);
    assert_eq!((here.records(), read(INTERVAL).as_str()), (18, "1"));
    assert_eq!(here.status(), "nothing is applied\n");
    here.is_shown_again(&output.stdout);
}

#[test]
fn a_trial_without_steal_traces_every_arm_alike_and_says_what_it_set_apart() {
    let Some(here) = Here::new() else { return };
    let output = here.command("300ms").arg("--without-steal").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("wake-ups cannot be traced") {
        return crate::support::skipped(crate::support::refusal(&said));
    }
    let shown = shown(&output);
    let apart = shown["set_apart"].as_array().unwrap();
    let arms: Vec<_> = apart.iter().map(|one| one["arm"].as_str().unwrap()).collect();
    assert_eq!(arms.iter().copied().collect::<BTreeSet<_>>(), BTreeSet::from(["control", "off", "on-1"]));
    for one in apart {
        let of = |name: &str| one[name].as_u64().unwrap();
        assert_eq!(of("due"), 6 * 300, "{one}");
        // What is left is whole: so many latencies are in the records' repetitions, and no more.
        let (mut left, mut counted) = (0, 0);
        for round in 1..=6 {
            let place = here.out().join(format!("phase-1/round-{round}/{}", one["arm"].as_str().unwrap()));
            let record = record::store::load(&place).unwrap();
            let repeated = &record.explanations[0].scenario.series[0];
            counted += repeated.corrected().summary().count;
            let judged = experiment::stolen::without_steal(record).unwrap();
            left += judged.scenarios[0].series[0].corrected().summary().count;
        }
        assert_eq!((counted, counted - left), (of("due"), of("wake_ups") + of("missed")), "{one}");
    }
    assert_eq!((read(INTERVAL).as_str(), here.status().as_str()), ("1", "nothing is applied\n"));
    let text = Command::new(PROGRAM).arg("report").arg(here.out()).output().unwrap().stdout;
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.matches("Set apart as delayed by the host:").count(), 3, "{text}");
}

#[test]
fn a_trial_that_is_reported_to_end_leaves_the_machine_as_it_was_and_goes_on_later() {
    let Some(here) = Here::new() else { return };
    let trial = here.in_a_block();
    send(trial.id(), Signal::TERM);
    let output = trial.wait_with_output().unwrap();
    let measured = here.records();
    assert!(measured < 18);
    assert_eq!(output.status.code(), Some(if measured == 0 { 130 } else { 3 }), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("go on with: worstcase tune trial --resume"));
    assert_eq!((read(INTERVAL).as_str(), here.status().as_str()), ("1", "nothing is applied\n"));
    let resumed = here.command("").output().unwrap();
    assert_eq!(shown(&resumed)["question"]["design"]["blocks"], 6);
    assert_eq!((here.records(), read(INTERVAL).as_str()), (18, "1"));
    here.arms_met_the_same_phases();
}

#[test]
fn a_trial_that_is_interrupted_before_its_first_block_ends_with_130() {
    let Some(here) = Here::new() else { return };
    let trial = here.command("400ms").process_group(0).spawn().unwrap();
    wait_until("the first block", || here.out().join("phase-1").exists());
    // As a terminal does: trial and block get Ctrl-C at once.
    rustix::process::kill_process_group(Pid::from_raw(trial.id() as i32).unwrap(), Signal::INT).unwrap();
    let output = trial.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), here.records()), (Some(130), 0), "{said}");
    assert!(said.contains("no block was measured"), "{said}");
    assert_eq!((read(INTERVAL).as_str(), here.status().as_str()), ("1", "nothing is applied\n"));
}

#[test]
fn a_trial_that_is_killed_leaves_the_machine_as_it_was() {
    let Some(here) = Here::new() else { return };
    let mut trial = here.in_a_block();
    let block = child_of(trial.id());
    send(trial.id(), Signal::KILL);
    trial.wait().unwrap();
    wait_until("the setting's old value", || read(INTERVAL) == "1");
    wait_until("the journal's end", || here.status().contains("everything read as before"));
    wait_until("the block's end", || !is_alive(block));
}

/// A zombie that nobody has waited for yet does nothing any more.
fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}

#[test]
fn a_block_that_is_killed_ends_the_trial_and_leaves_the_machine_as_it_was() {
    let Some(here) = Here::new() else { return };
    let trial = here.in_a_block();
    send(child_of(trial.id()), Signal::KILL);
    let output = trial.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("a block was not measured: it ended with signal"), "{said}");
    assert_eq!(read(INTERVAL), "1");
}

/// What one trial in guests is asked, and what is true: setting and verdict.
struct Case {
    kernel: &'static str,
    options: &'static [&'static str],
    settings: &'static [(&'static str, &'static str)],
}

/// A hog computes for 3 ms at FIFO 10; what waits for a timerfd waits for all of it where ktimers is at FIFO 1.
const KTIMERS: Case = Case {
    kernel: REAL_TIME,
    options: &[
        "--load",
        "rt-hog",
        "--wake",
        "timerfd",
        "--blocks",
        "7",
        "--duration",
        "100ms",
        "--warm-up",
        "20ms",
    ],
    settings: &[("ktimers/*=fifo:90", "helps")],
};

/// What io has the kernel do cannot be preempted without a preemptible kernel. Nothing is there to be merged.
const PREEMPTION: Case = Case {
    kernel: PLAIN,
    options: &["--append", "preempt=none", "--load", "io", "--duration", "500ms", "--warm-up", "50ms"],
    settings: &[
        ("/sys/kernel/debug/sched/preempt=full", "helps"),
        ("/sys/kernel/mm/ksm/run=1", "none-visible"),
    ],
};

/// Each byte to the console is an interrupt, whose handler runs in a thread then.
const THREADED: Case = Case {
    kernel: PLAIN,
    options: &[
        "--append",
        "preempt=full",
        "--with",
        "busybox",
        "--load-command",
        "busybox cat /proc/kallsyms > /dev/ttyS0",
        "--duration",
        "500ms",
        "--warm-up",
        "50ms",
        "--smallest-effect",
        "5",
    ],
    settings: &[("threadirqs", "helps")],
};

impl Case {
    fn hindered(&self) -> bool {
        let flavour = if self.kernel == REAL_TIME { "rt" } else { "plain" };
        guests::hindered(
            &["qemu-system-x86_64"],
            &[&["--version", "6.1", "--flavour", flavour, "--arch", "amd64"]],
        )
    }

    /// The answer with that seed.
    fn tried(&self, seed: u64) -> (Option<i32>, Value) {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["tune", "trial", "--kernel", self.kernel, "--json", "--seed", &seed.to_string()]);
        command.args(self.options).args(self.settings.iter().map(|(setting, _)| setting));
        let output = command.arg("--out").arg(directory.path()).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), shown(&output)["answer"].clone())
    }

    /// Whether each verdict is the true one; says so, and what it is where it is not.
    fn is_right(&self, seed: u64) -> bool {
        let (_, answer) = self.tried(seed);
        let verdict = |place: usize| answer["settings"][place]["verdict"].clone();
        let wrong = |(place, (setting, truth)): (usize, &(&str, &str))| {
            let verdict = verdict(place);
            (verdict != *truth).then(|| format!("{setting}: {verdict}, and not {truth}"))
        };
        let wrong: Vec<String> = self.settings.iter().enumerate().filter_map(wrong).collect();
        println!("seed {seed}: {}", if wrong.is_empty() { "right".to_owned() } else { wrong.join(", ") });
        wrong.is_empty()
    }

    /// With seeds that no other repetition has.
    fn is_right_each_time(&self) {
        const REPETITIONS: u64 = 20;
        if self.hindered() {
            return;
        }
        let right = (1..=REPETITIONS).filter(|repetition| self.is_right(repetition * 1_000)).count();
        assert_eq!(right as u64, REPETITIONS);
    }
}

#[test]
fn raising_ktimers_above_a_hog_helps_who_waits_for_a_timerfd() {
    if KTIMERS.hindered() {
        return;
    }
    let (code, answer) = KTIMERS.tried(1);
    assert_eq!(answer["settings"][0]["verdict"], "helps", "{answer:#}");
    let ratio = answer["settings"][0]["measures"][0]["interval"][1].as_f64().unwrap();
    assert!(ratio < 0.1, "beyond doubt: {answer:#}");
    assert_eq!(code, Some(0));
}

#[test]
#[ignore = "long"]
fn raising_ktimers_is_found_to_help_each_time() {
    KTIMERS.is_right_each_time();
}

#[test]
#[ignore = "long"]
fn a_preemptible_kernel_is_found_to_help_each_time_and_what_is_inert_never() {
    PREEMPTION.is_right_each_time();
}

#[test]
#[ignore = "long"]
fn threaded_interrupts_are_found_to_help_each_time_where_a_device_interrupts() {
    THREADED.is_right_each_time();
}

#[test]
#[ignore = "long"]
fn of_three_boot_words_and_files_the_one_that_acts_is_left() {
    if PREEMPTION.hindered() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["tune", "search", "preempt=full", "threadirqs", "/sys/kernel/mm/ksm/run=1"]);
    command.args(["--kernel", PREEMPTION.kernel, "--json"]).args(PREEMPTION.options);
    let output = command.arg("--out").arg(directory.path()).stdin(Stdio::null()).output().unwrap();
    let found = &shown(&output)["answer"];
    // So short blocks find it and its price; whether they confirm that it does all is open.
    let kept: Vec<&Value> = found["kept"].as_array().unwrap().iter().map(|kept| &kept["setting"]).collect();
    assert_eq!(kept, ["preempt=full"]);
    assert!(found["kept"][0]["price"]["interval"][0].as_f64().unwrap() > 1.2, "{found:#}");
    assert_eq!(found["against_control"]["effect"], "helps", "{found:#}");
    assert_eq!(found["kept"][0]["need"], "shown", "{found:#}");
}
