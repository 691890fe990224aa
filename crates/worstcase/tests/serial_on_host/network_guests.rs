//! The response probe between two guests: frames go over network cards, whose interrupts bring them.

use std::path::PathBuf;
use std::process::Command;

use record::Record;
use record::instrument::response::PartName;
use units::Nanos;

use crate::network::{part, response};
use crate::support;
use crate::support::guests::Started;

const MS: u64 = 1_000_000;

/// The interrupts of the card go to CPU 0, the thread that measures is on CPU 1.
const UP: &str = "ip link set eth0 up; ip addr add 10.98.0.OWN/24 dev eth0; \
    for name in /proc/irq/*/virtio0-* /proc/irq/*/eth0*; do [ -e $name ] && echo 1 > ${name%/*}/smp_affinity; done";

/// A card that stamps frames (82576). Its receiver stamps no further frame until RXSATRH has been read, by QEMU 10 at least; Linux
/// reads RXSTMPH instead, at which real cards go on. It is read when a stamp is older than the hog's turns: the driver has it by then.
const STAMPING: &str = "igb";
const GO_ON: &str = "read start rest < /sys/class/net/eth0/device/resource; \
    taskset 2 chrt -f 60 sh -c \"while sleep 0.06; do now=\\$(busybox devmem $((start + 0xb624)) 32); \
    [ x\\$now = x\\$old ] && busybox devmem $((start + 0xb630)) 32 > /dev/null; old=\\$now; done\" &";

/// Has the transmitter's stamps (TSYNCTXCTL, bit 4) printed.
const IS_STAMPING: &str = "read start rest < /sys/class/net/eth0/device/resource; \
    echo stamps $(( ($(busybox devmem $((start + 0xb614)) 32) & 16) / 16 ))";

/// Takes CPU 0 for 30 to 40 ms now and then, before threads of interrupts (SCHED_FIFO 50). A timer of timeout(1) would not end
/// it: on PREEMPT_RT a thread of SCHED_FIFO 1 serves those.
const HOG: &str = "taskset 1 chrt -f 60 sh -c \
    'now() { read up idle < /proc/uptime; up=${up%.*}${up#*.}; }; \
    while :; do sleep 0.05; now; end=$((up + 4)); while [ $up -lt $end ]; do now; done; done' &";

struct Cable {
    kernel: &'static str,
    card: &'static str,
    directory: tempfile::TempDir,
}

impl Cable {
    fn new(kernel: &'static str) -> Self {
        Self::of("network", kernel)
    }

    fn of(card: &'static str, kernel: &'static str) -> Self {
        Self { kernel, card, directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Guest 1 or 2 begins to do what `script` says.
    fn start(&self, guest: u32, script: &str) -> Started {
        let socket = |guest: u32| self.path(&format!("{guest}.socket")).display().to_string();
        let device = format!("{}:{}:{}", self.card, socket(guest), socket(3 - guest));
        let script = format!("{}; {script}", UP.replace("OWN", &guest.to_string()));
        let mut run = Command::new(env!("CARGO_BIN_EXE_worstcase"));
        run.args(["lab", "run", "--kernel", self.kernel, "--time", "wall", "--cpus", "2", "--timeout", "3m"]);
        run.args(["--with", "ip", "--with", "chrt", "--with", "taskset", "--with", "sleep"]);
        // User space may read the registers of a card that has a driver.
        run.args(["--with", "busybox", "--append", "iomem=relaxed"]);
        run.args(["--device", &device, "--out"]).arg(self.path(&format!("left-{guest}")));
        run.args(["--", "sh", "-c", &script]);
        Started::new(&mut run)
    }

    /// Responses every 50 ms for 5 s, beside what `beside` starts in the guest that measures.
    fn measure(&self, delay: &str, beside: &str) -> Record {
        let pace = "-i 50ms --patience 45ms -D 5s";
        self.respond(
            &format!("--listen 10.98.0.1 --delay {delay}"),
            &format!("--peer 10.98.0.1 {pace}"),
            beside,
        )
    }

    /// Those of a peer that answers as `echo` says, with these `options` of the probe.
    fn respond(&self, echo: &str, options: &str, beside: &str) -> Record {
        let echo = self.start(1, &format!("worstcase echo {echo}"));
        // Until the other guest has booted nobody answers, which is an error.
        let script = format!(
            "{beside} for attempt in 1 2 3 4 5 6 7 8 9; do rm -rf record; \
             worstcase measure --probe network {options} --cpus 1 --warm-up 100ms --out record; \
             [ $? -ne 2 ] && break; sleep 1; done"
        );
        let _ = std::fs::remove_dir_all(self.path("left-2"));
        let output = self.start(2, &script).output();
        drop(echo);
        let _ = std::fs::remove_dir_all(self.path("left-1"));
        record::store::load(&self.path("left-2/record"))
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// Whether there is such a card, or why not.
fn has_stamping_card() -> bool {
    let help = Command::new("qemu-system-x86_64").args(["-device", "igb,help"]).output();
    let has_it = help.is_ok_and(|help| help.status.success() && !help.stdout.is_empty());
    if !has_it {
        support::skipped("this QEMU has no network card that stamps frames (igb: 8.0 and later)");
    }
    has_it
}

/// How many of a hundred responses had at least 10 ms in this part.
fn late(record: &Record, name: PartName) -> Result<u64, String> {
    let response = response(record);
    let took = response.part(name).ok_or_else(|| format!("no {name:?}: {:?}", response.unsplit))?;
    Ok(took.at_least(Nanos(10 * MS)) * 100 / took.summary().count)
}

#[test]
#[ignore = "long: guests in pairs for minutes"]
fn between_two_guests_the_parts_are_the_whole_and_a_delay_is_the_peers() {
    const DELAY: u64 = 8 * MS;
    for kernel in ["debian-6.1-amd64", "debian-6.1-rt-amd64"] {
        let cable = Cable::new(kernel);
        support::in_one_of(3, || {
            let (quick, slow) = (cable.measure("0s", ""), cable.measure("8ms", ""));
            let parts = |record: &Record| PartName::OF_SOFTWARE.map(|name| part(response(record), name));
            let (before, after) = (parts(&quick), parts(&slow));
            println!("{kernel}: medians of send, wire, peer, receive: {before:?}, {after:?}");
            let place = PartName::OF_SOFTWARE.iter().position(|name| *name == PartName::Peer).unwrap();
            let more = |place: usize| after[place].saturating_sub(before[place]);
            let is_found = more(place).abs_diff(DELAY) <= DELAY / 20;
            let is_alone = (0..before.len()).all(|other| other == place || more(other) < DELAY / 4);
            (is_found && is_alone).then_some(()).ok_or_else(|| format!("{before:?} {after:?}"))
        });
    }
}

#[test]
#[ignore = "long: guests in pairs for minutes"]
fn between_two_guests_a_hog_on_the_softirqs_cpu_is_on_the_wire_where_threads_do_the_softirqs() {
    support::in_one_of(3, || {
        let of = |kernel, beside| -> Result<Vec<u64>, String> {
            let record = Cable::new(kernel).measure("0s", beside);
            let late: Result<Vec<u64>, _> =
                PartName::OF_SOFTWARE.iter().map(|name| late(&record, *name)).collect();
            println!("{kernel} {beside:.7}: of 100 in send, wire, peer, receive: {late:?}");
            late
        };
        let wire = PartName::OF_SOFTWARE.iter().position(|name| *name == PartName::Wire).unwrap();
        let (alone, hogged) = (of("debian-6.1-rt-amd64", "")?, of("debian-6.1-rt-amd64", HOG)?);
        let plain = of("debian-6.1-amd64", HOG)?;
        let is_found = hogged[wire] >= 10 && hogged[wire] >= 3 * alone[wire].max(plain[wire]);
        let is_alone = (0..hogged.len()).all(|other| other == wire || 3 * hogged[other] <= hogged[wire]);
        (is_found && is_alone).then_some(()).ok_or_else(|| format!("{alone:?} {hogged:?} {plain:?}"))
    });
}

#[test]
#[ignore = "long: guests in pairs for minutes"]
fn between_two_guests_what_the_card_stamps_are_parts_of_their_own() {
    if !has_stamping_card() {
        return;
    }
    let cable = Cable::of(STAMPING, "debian-6.12-amd64");
    let record = cable.respond(
        "--listen 10.98.0.1",
        "--peer 10.98.0.1 --interface eth0 --hardware-stamps -i 50ms --patience 45ms -D 5s",
        "",
    );
    let response = response(&record);
    let took = |name| response.part(name).map_or(0, |part| part.summary().count);
    // This card stamps of UDP what it sends alone.
    assert!(response.split.count >= 80, "{response:?}");
    assert_eq!((took(PartName::Transmit), took(PartName::Deliver)), (response.split.count, 0));
    assert!(record.all_warnings().any(|warning| warning.evidence.contains("frames and 0 answers")));
    let sums: u64 = response.parts.iter().map(|part| part.took.summary().sum).sum();
    assert_eq!(sums, response.split.sum);
}

#[test]
#[ignore = "long: guests in pairs for minutes"]
fn between_two_guests_a_hog_on_the_softirqs_cpu_is_between_card_and_kernel() {
    if !has_stamping_card() {
        return;
    }
    let measured = |beside: &str| -> Result<Vec<u64>, String> {
        let options = "--peer ff:ff:ff:ff:ff:ff --interface eth0 --ptp-frames --hardware-stamps -i 250ms --patience 225ms -D 10s";
        let cable = Cable::of(STAMPING, "debian-6.12-rt-amd64");
        let record = cable.respond("--interface eth0 --ptp-frames", options, &format!("{GO_ON} {beside}"));
        let late: Result<Vec<u64>, _> =
            PartName::WITH_HARDWARE.iter().map(|name| late(&record, *name)).collect();
        println!("{beside:.7}: of 100 in send, transmit, wire, peer, deliver, receive: {late:?}");
        late
    };
    support::in_one_of(3, || {
        let (alone, hogged) = (measured("")?, measured(HOG)?);
        let deliver = PartName::WITH_HARDWARE.iter().position(|name| *name == PartName::Deliver).unwrap();
        let is_found = hogged[deliver] >= 10 && hogged[deliver] >= 3 * alone[deliver];
        let is_alone =
            (0..hogged.len()).all(|other| other == deliver || 3 * hogged[other] <= hogged[deliver]);
        (is_found && is_alone).then_some(()).ok_or_else(|| format!("{alone:?} {hogged:?}"))
    });
}

#[test]
#[ignore = "long: guests in pairs for minutes"]
fn a_card_stamps_for_as_long_as_is_measured_however_that_ends() {
    if !has_stamping_card() {
        return;
    }
    let cable = Cable::of(STAMPING, "debian-6.12-amd64");
    let echo = cable.start(1, "worstcase echo --listen 10.98.0.1");
    let measure =
        "worstcase measure --probe network --peer 10.98.0.1 --interface eth0 --hardware-stamps -i 50ms";
    let script = format!(
        "look() {{ {IS_STAMPING}; }}; for attempt in 1 2 3 4 5 6 7 8 9; do {measure} -D 200ms; [ $? -ne 2 ] && break; sleep 1; done; \
         look; {measure} & sleep 3; look; kill -9 $!; sleep 1; look; {measure} & sleep 3; look; kill -2 $!; sleep 1; look"
    );
    let output = cable.start(2, &script).output();
    let text = String::from_utf8_lossy(&output.stdout);
    drop(echo);
    let seen: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("stamps ")).collect();
    assert_eq!(seen, ["0", "1", "0", "1", "0"], "{text}");
}
