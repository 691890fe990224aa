//! Monitor and responder in one guest, over simulated GPIO lines that a thread of the test joins: it copies the level of an
//! output to the pull of an input, so that its own delay is in each figure and is measured by a loop-back run.
//!
//! An edge of such a line is made by the thread that writes, so these tests are of function, and say nothing about how late a
//! kernel is. The helper polls, and an answer is low for a moment only: most answers do not reach the monitor, so what they prove
//! of the way back is that each pulse is answered or missed.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use guest_tests::Guests;
use record::instrument::gpio::GpioSeries;
use record::monitor::Monitoring;
use record::{Fact, Record, WarningId};
use sys::clock::Clock;
use sys::schedule::{self, Scheduling};
use units::{CpuList, Nanos};

use crate::gpio_kernels;

const BANK: &str = "/sys/kernel/config/gpio-sim/wires/bank0";
/// Lines: the monitor drives 0 and reads 3, the responder reads 1 and drives 2.
const WIRES: [(u32, u32); 2] = [(0, 1), (2, 3)];
const LOOP_BACK: [(u32, u32); 1] = [(0, 3)];

static PLAIN: LazyLock<Guests> = LazyLock::new(|| guests(gpio_kernels::PLAIN));
static RT: LazyLock<Guests> = LazyLock::new(|| guests(gpio_kernels::RT));

/// Guests with a kernel that is built first: nothing is done where it was built from the same.
fn guests(kernel: &'static str) -> Guests {
    if guest_tests::lab_of_this_guest().is_none() {
        // Without a kernel the guests are skipped, and this says why.
        let (Ok(said) | Err(said)) = gpio_kernels::build(kernel);
        println!("{kernel}: {said}");
    }
    Guests::new(kernel, "quiet no_timer_check").processors(2).programs(&[env!("CARGO_BIN_EXE_worstcase")])
}

/// The simulated chip: its device file and the directory of its lines. Made once.
fn chip() -> (String, PathBuf) {
    if !Path::new(BANK).exists() {
        let flags = rustix::mount::MountFlags::empty();
        let _ = rustix::mount::mount("none", "/sys/kernel/config", "configfs", flags, None);
        fs::create_dir_all(BANK).unwrap();
        fs::write(format!("{BANK}/num_lines"), "4").unwrap();
    }
    let live = fs::read_to_string(format!("{BANK}/../live")).unwrap();
    if live.trim() != "1" {
        fs::write(format!("{BANK}/../live"), "1").unwrap();
    }
    let text = |path: &str| fs::read_to_string(path).unwrap().trim().to_owned();
    let chip = text(&format!("{BANK}/chip_name"));
    let device = text(&format!("{BANK}/../dev_name"));
    let lines = Path::new("/sys/devices/platform").join(device).join(&chip);
    (chip, lines)
}

/// Says that it is over when it is dropped, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Joins lines while `body` runs.
fn joined<T>(lines: &Path, wires: &[(u32, u32)], body: impl FnOnce() -> T) -> T {
    let file = |line: u32, name: &str| lines.join(format!("sim_gpio{line}/{name}"));
    let ends: Vec<(File, File)> = wires
        .iter()
        .map(|&(from, to)| {
            let to = File::options().write(true).open(file(to, "pull")).unwrap();
            (File::open(file(from, "value")).unwrap(), to)
        })
        .collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut levels = vec![b'?'; ends.len()];
            while !stop.load(Ordering::Relaxed) {
                for ((from, to), level) in ends.iter().zip(&mut levels) {
                    let mut now = [b'0'];
                    if from.read_at(&mut now, 0).is_ok() && now[0] != *level {
                        *level = now[0];
                        let pull: &[u8] = if now[0] == b'1' { b"pull-up" } else { b"pull-down" };
                        let _ = to.write_at(pull, 0);
                    }
                }
                std::thread::yield_now();
            }
        });
        let _over = Over(&stop);
        body()
    })
}

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new("worstcase");
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn monitor(chip: &str, more: &[&str]) -> Child {
    let (pulse, ack) = (format!("{chip}:0"), format!("{chip}:3"));
    let own = ["monitor", "--pulse", &pulse, "--ack", &ack, "--cpus", "0", "--seed", "1", "--json"];
    start(&[&own, more].concat())
}

fn monitored(output: &Output) -> Monitoring {
    let text = String::from_utf8_lossy(&output.stdout);
    let record: Monitoring = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(record.sent, record.answered + record.missed);
    record
}

fn responder(chip: &str, out: &str, more: &[&str]) -> Child {
    let _ = fs::remove_dir_all(out);
    let (pulse, ack) = (format!("{chip}:1"), format!("{chip}:2"));
    let own = ["measure", "--probe", "gpio", "--pulse", &pulse, "--ack", &ack, "--cpus", "1", "--out", out];
    start(&[&own, more].concat())
}

fn responded(child: Child, out: &str) -> (Record, GpioSeries, Option<i32>) {
    let output = child.wait_with_output().unwrap();
    let record: Record = record::store::load(out.as_ref())
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let gpio = record.scenarios[0].series[0].gpio().unwrap().clone();
    (record, gpio, output.status.code())
}

fn has(record: &Record, id: WarningId) -> bool {
    record.scenarios.iter().flat_map(|scenario| &scenario.warnings).any(|warning| warning.id == id)
}

/// Pulses each 20 ms for 5 s beside a responder; what both saw.
fn both(chip: &str, lines: &Path, more: &[&str]) -> (Monitoring, GpioSeries) {
    joined(lines, &WIRES, || {
        let responder = responder(chip, "responder", &[&["-D", "12s", "--warm-up", "0s"], more].concat());
        std::thread::sleep(Duration::from_secs(3));
        let monitor = monitor(chip, &["-i", "20ms", "-D", "5s"]);
        let seen = monitored(&monitor.wait_with_output().unwrap());
        let (record, gpio, _) = responded(responder, "responder");
        assert!(!has(&record, WarningId::Unaccounted), "{:?}", record.scenarios[0].warnings);
        (seen, gpio)
    })
}

#[test]
#[ignore = "long: a kernel of one's own, and half a minute of pulses in a guest"]
fn every_pulse_is_accounted_for_and_the_responder_finds_a_delay_of_known_length() {
    PLAIN.run(|| {
        let (chip, lines) = chip();
        let own = joined(&lines, &LOOP_BACK, || {
            let own = monitor(&chip, &["--loop-back", "-i", "20ms", "-D", "3s"]);
            monitored(&own.wait_with_output().unwrap())
        });
        assert!(own.loop_back && own.answered > 0, "{own:?}");
        let (sent, plain) = both(&chip, &lines, &[]);
        assert!(sent.sent > 0 && plain.expected > 0, "{sent:?} {plain:?}");
        const DELAY: u64 = 10_000_000;
        let (_, delayed) = both(&chip, &lines, &["--answer-delay", "10ms"]);
        // A busy host makes any of them longer, and none shorter.
        let least = |gpio: &GpioSeries| gpio.answer.summary().min;
        let found = least(&delayed) - least(&plain);
        println!("{} of {} pulses met; {found} ns of {DELAY} found", plain.expected, sent.sent);
        assert!(found.abs_diff(DELAY) <= DELAY / 20, "{found}");
        assert!(delayed.wake.summary().min < DELAY, "{:?}", delayed.wake.summary());
    });
}

#[test]
#[ignore = "long: a kernel of one's own, and half a minute of pulses in a guest"]
fn the_thread_of_the_interrupt_is_raised_and_a_monitor_without_answers_is_a_doubt() {
    RT.run(|| {
        let (chip, lines) = chip();
        // The answer's wire is cut.
        joined(&lines, &WIRES[..1], || {
            let monitor = monitor(&chip, &["--listen", "127.0.0.1", "-D", "20s"]);
            std::thread::sleep(Duration::from_secs(2));
            let more = ["--monitor", "127.0.0.1", "-i", "20ms", "-D", "3s", "--irq-priority", "90"];
            let (record, gpio, _) = responded(responder(&chip, "latmon", &more), "latmon");
            println!("{:?} {:?}", gpio.interrupt, gpio.monitor);
            assert!(has(&record, WarningId::MonitorFailed) && gpio.expected > 0, "{gpio:?}");
            assert!(
                matches!(&gpio.interrupt, Fact::Value(thread) if thread.priority == 90),
                "{:?}",
                gpio.interrupt
            );
            let seen = monitored(&monitor.wait_with_output().unwrap());
            assert!(seen.responder.is_some() && seen.sent > 0 && seen.answered == 0, "{seen:?}");
        });
    });
}

#[test]
#[ignore = "long: a kernel of one's own"]
fn lines_that_are_taken_go_away_or_have_no_edges_are_one_error_or_warning_each() {
    PLAIN.run(|| {
        let (chip, _) = chip();
        let held = sys::gpio::Chip::open(&format!("/dev/{chip}")).unwrap();
        let line = held.output(2, true, "somebody").unwrap();
        let output = responder(&chip, "taken", &["-D", "1s"]).wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains("somebody has the line"), "{error}");
        drop((line, held));
        let beyond = format!("{chip}:9");
        let output = start(&["monitor", "--pulse", &beyond, "--ack", &format!("{chip}:3")]);
        let output = output.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains("lines 0 to 3"), "{error}");
        let (record, _, code) = responded(responder(&chip, "silent", &["-D", "1s"]), "silent");
        assert!(has(&record, WarningId::NoEdges) && code == Some(2), "{code:?}");
        let responder = responder(&chip, "gone", &["-D", "30s"]);
        std::thread::sleep(Duration::from_secs(6));
        fs::write(format!("{BANK}/../live"), "0").unwrap();
        let (record, gpio, code) = responded(responder, "gone");
        println!("{:?} {code:?}", gpio.line_failed);
        assert!(has(&record, WarningId::LineFailed) && code == Some(2), "{code:?} {gpio:?}");
    });
}

/// Takes CPU 1 for 15 of each 37 ms at SCHED_FIFO 60 while `body` runs.
fn beside_a_rival<T>(body: impl FnOnce() -> T) -> T {
    const MS: u64 = 1_000_000;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            schedule::set_affinity(0, &"1".parse::<CpuList>().unwrap()).unwrap();
            schedule::set(Scheduling::Fifo("60".parse().unwrap())).unwrap();
            while !stop.load(Ordering::Relaxed) {
                let _ = Clock::Monotonic.sleep_until(Clock::Monotonic.now() + 22 * MS);
                let end = Clock::Monotonic.now() + 15 * MS;
                while Clock::Monotonic.now() < end {
                    std::hint::spin_loop();
                }
            }
        });
        let _over = Over(&stop);
        body()
    })
}

/// The thread of the responder's interrupt.
fn interrupts_thread() -> i32 {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_it = |id: &i32| {
        let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        name.starts_with("irq/") && name.contains("worstcase")
    };
    ids.into_iter().find(is_it).unwrap()
}

/// Of a hundred edges, how many a responder on CPU 1 had after more than 5 ms, a rival beside it and its interrupt's thread.
fn late_beside_a_rival(chip: &str, lines: &Path, more: &[&str]) -> u64 {
    joined(lines, &WIRES[..1], || {
        let responder = responder(chip, "rival", &[&["-D", "14s", "--warm-up", "0s"], more].concat());
        std::thread::sleep(Duration::from_secs(4));
        schedule::set_affinity(interrupts_thread(), &"1".parse::<CpuList>().unwrap()).unwrap();
        let sent = beside_a_rival(|| {
            monitored(&monitor(chip, &["-i", "20ms", "-D", "6s"]).wait_with_output().unwrap()).sent
        });
        let (_, gpio, _) = responded(responder, "rival");
        assert!(sent >= 100 && gpio.expected >= sent, "{sent} {gpio:?}");
        let late = gpio.wake.at_least(Nanos::from_millis(5));
        println!("{more:?}: {late} of {} edges late", gpio.expected);
        late * 100 / gpio.expected
    })
}

#[test]
#[ignore = "long: a kernel of one's own, and a minute of pulses in a guest"]
fn a_rival_delays_the_answer_unless_the_interrupts_thread_goes_before_it() {
    RT.run(|| {
        let (chip, lines) = chip();
        let after = late_beside_a_rival(&chip, &lines, &["--irq-priority", "50"]);
        let before = late_beside_a_rival(&chip, &lines, &["--irq-priority", "90"]);
        assert!(after >= 10 && before * 3 <= after, "{after} of 100 at 50, {before} at 90");
    });
}
