//! Monitor and responder in two guests whose GPIO lines are joined by a process of the host: each has the driver of a device
//! (gpio-virtio), whose interrupt brings the edge.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use gpio_wire::{End, Wire, Wires};
use record::Record;
use record::instrument::gpio::GpioSeries;
use record::monitor::Monitoring;

use crate::gpio_kernels;
use crate::support::guests::Started;

/// Which guest is which.
const MONITOR: usize = 0;
const RESPONDER: usize = 1;
/// Their lines: the one that the monitor drives, and the one by which the responder answers.
const PULSE: usize = 0;
const ACK: usize = 1;

struct Pair {
    wires: Wires,
    directory: tempfile::TempDir,
}

impl Pair {
    /// Sockets for two guests; pulses take `delay` longer on their way.
    fn new(delay: Duration) -> Self {
        let end = |guest, line| End { guest, line };
        let wires = Wires::new(
            2,
            2,
            &[
                Wire { from: end(MONITOR, PULSE), to: end(RESPONDER, PULSE), delay },
                Wire { from: end(RESPONDER, ACK), to: end(MONITOR, ACK), delay: Duration::ZERO },
            ],
        );
        let pair = Self { wires, directory: tempfile::tempdir().unwrap() };
        for guest in [MONITOR, RESPONDER] {
            pair.wires.serve(guest, &pair.socket(guest)).unwrap();
        }
        pair
    }

    fn socket(&self, guest: usize) -> PathBuf {
        self.directory.path().join(format!("{guest}.socket"))
    }

    /// What the guest leaves.
    fn left(&self, guest: usize) -> PathBuf {
        self.directory.path().join(format!("left-{guest}"))
    }

    fn start(&self, guest: usize, kernel: &str, command: &str) -> Started {
        let mut run = Command::new(env!("CARGO_BIN_EXE_worstcase"));
        run.args(["lab", "run", "--kernel", kernel, "--time", "wall", "--timeout", "2m", "--device"]);
        run.arg(format!("gpio:{}", self.socket(guest).display()));
        run.arg("--out").arg(self.left(guest)).arg("--").args(command.split(' '));
        Started::new(&mut run)
    }

    /// Pulses each 50 ms for 5 s; what both saw. None where this QEMU's lines have no interrupts.
    fn measure(&self, kernel: &str, more: &str) -> Option<Seen> {
        let lines = "--pulse gpiochip0:0 --ack gpiochip0:1";
        let answer = format!("measure --probe gpio {lines} --warm-up 0s -D 25s --out record {more}");
        let mut responder = self.start(RESPONDER, kernel, answer.trim_end());
        let patience = Instant::now() + Duration::from_secs(60);
        while !self.wires.is_watched(End { guest: RESPONDER, line: PULSE }) {
            assert!(Instant::now() < patience, "the responder asks for edges");
            if responder.has_ended() {
                let said = responder.output().stderr;
                let said = String::from_utf8_lossy(&said);
                assert!(said.contains("the line can have no interrupt"), "{said}");
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let monitor = self.start(MONITOR, kernel, &format!("monitor {lines} -i 50ms -D 5s --seed 1 --json"));
        let monitor = monitored(&monitor.output());
        let answered = responder.output();
        let record: Record = record::store::load(&self.left(RESPONDER).join("record"))
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&answered.stderr)));
        let responder = record.scenarios[0].series[0].gpio().unwrap().clone();
        Some(Seen { monitor, responder })
    }
}

/// What the two of a pair saw of each other.
struct Seen {
    monitor: Monitoring,
    responder: GpioSeries,
}

fn monitored(output: &Output) -> Monitoring {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// What both saw with wires of this delay, each pulse accounted for; none where this cannot be had here, which is said.
fn accounted(kernel: &str, delay: Duration, more: &str) -> Option<Seen> {
    if let Err(why) = gpio_kernels::build(kernel) {
        println!("skipped: {kernel}: {why}");
        return None;
    }
    let pair = Pair::new(delay);
    let Some(seen) = pair.measure(kernel, more) else {
        println!("skipped: lines of this QEMU have no interrupts (7.2: none, 10.0: they have)");
        return None;
    };
    let Seen { monitor, responder } = &seen;
    let of = |guest, line| pair.wires.changes(End { guest, line });
    let (driven, answers) = (of(MONITOR, PULSE), of(RESPONDER, ACK));
    println!(
        "{kernel} {more}: {driven} changes of the pulse, {answers} of the answer; {} sent = {} answered + {} missed; {} expected",
        monitor.sent, monitor.answered, monitor.missed, responder.expected
    );
    assert_eq!(monitor.sent, monitor.answered + monitor.missed);
    // The monitor's own first pulses, of which its figures have none, are on the wire as well.
    assert_eq!(driven % 2, 0, "a pulse ends");
    assert!(driven / 2 >= monitor.sent && monitor.sent > 0, "{driven} {monitor:?}");
    assert_eq!(responder.expected, driven / 2, "each rising edge on the wire is one that the responder had");
    assert!(monitor.answered * 10 >= monitor.sent * 9, "{monitor:?}");
    Some(seen)
}

/// How much later the quickest answer came: a busy host makes any of them longer, and none shorter.
fn least_differs_by(after: &Monitoring, before: &Monitoring, expected: Duration) {
    let least = |seen: &Monitoring| seen.responses.summary().min;
    let (found, expected) = (least(after) - least(before), u64::try_from(expected.as_nanos()).unwrap());
    println!("{found} ns of {expected} found");
    assert!(found.abs_diff(expected) <= expected / 20, "{found}");
}

#[test]
#[ignore = "long: kernels of one's own, and guests in pairs for minutes"]
fn every_pulse_between_two_guests_is_accounted_for_and_delays_are_found_where_they_were_made() {
    const DELAY: Duration = Duration::from_millis(20);
    let Some(plain) = accounted(gpio_kernels::PLAIN, Duration::ZERO, "") else { return };
    let Some(wire) = accounted(gpio_kernels::PLAIN, DELAY, "") else { return };
    least_differs_by(&wire.monitor, &plain.monitor, DELAY);
    assert!(u128::from(wire.responder.answer.summary().min) < DELAY.as_nanos(), "not of the responder");
    let Some(slow) = accounted(gpio_kernels::PLAIN, Duration::ZERO, "--answer-delay 20ms") else { return };
    least_differs_by(&slow.monitor, &plain.monitor, DELAY);
    assert!(u128::from(slow.responder.answer.summary().min) >= DELAY.as_nanos(), "of the responder");
}

#[test]
#[ignore = "long: kernels of one's own, and guests in pairs for minutes"]
fn every_pulse_between_two_guests_of_preempt_rt_is_accounted_for() {
    let _ = accounted(gpio_kernels::RT, Duration::ZERO, "--irq-priority 90");
}
