//! The response probe between two guests: frames go over network cards, whose interrupts bring them.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use record::Record;
use record::instrument::response::PartName;
use units::Nanos;

use crate::network::{part, response};
use crate::support;

const MS: u64 = 1_000_000;

/// The interrupts of the card go to CPU 0, the thread that measures is on CPU 1.
const UP: &str = "ip link set eth0 up; ip addr add 10.98.0.OWN/24 dev eth0; \
    for name in /proc/irq/*/virtio0-*; do echo 1 > ${name%/*}/smp_affinity; done";

/// Takes CPU 0 for 30 to 40 ms now and then, before threads of interrupts (SCHED_FIFO 50). A timer of timeout(1) would not end
/// it: on PREEMPT_RT a thread of SCHED_FIFO 1 serves those.
const HOG: &str = "taskset 1 chrt -f 60 sh -c \
    'now() { read up idle < /proc/uptime; up=${up%.*}${up#*.}; }; \
    while :; do sleep 0.05; now; end=$((up + 4)); while [ $up -lt $end ]; do now; done; done' &";

/// Kills the guest with the command that has it.
struct Guest(Child);

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Cable {
    kernel: &'static str,
    directory: tempfile::TempDir,
}

impl Cable {
    fn new(kernel: &'static str) -> Self {
        Self { kernel, directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Guest 1 or 2 begins to do what `script` says.
    fn start(&self, guest: u32, script: &str) -> Child {
        let socket = |guest: u32| self.path(&format!("{guest}.socket")).display().to_string();
        let device = format!("network:{}:{}", socket(guest), socket(3 - guest));
        let script = format!("{}; {script}", UP.replace("OWN", &guest.to_string()));
        let mut run = Command::new(env!("CARGO_BIN_EXE_worstcase"));
        run.args(["lab", "run", "--kernel", self.kernel, "--time", "wall", "--cpus", "2", "--timeout", "3m"]);
        run.args(["--with", "ip", "--with", "chrt", "--with", "taskset", "--with", "sleep"]);
        run.args(["--device", &device, "--out"]).arg(self.path(&format!("left-{guest}")));
        run.args(["--", "sh", "-c", &script]);
        run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Responses every 50 ms for 5 s, beside what `beside` starts in the guest that measures.
    fn measure(&self, delay: &str, beside: &str) -> Record {
        let echo = Guest(self.start(1, &format!("worstcase echo --listen 10.98.0.1 --delay {delay}")));
        // Until the other guest has booted nobody answers, which is an error.
        let script = format!(
            "{beside} for attempt in 1 2 3 4 5 6 7 8 9; do rm -rf record; \
             worstcase measure --probe network --peer 10.98.0.1 --cpus 1 -i 50ms --patience 45ms --warm-up 100ms -D 5s --out record; \
             [ $? -ne 2 ] && break; sleep 1; done"
        );
        let _ = std::fs::remove_dir_all(self.path("left-2"));
        let output = self.start(2, &script).wait_with_output().unwrap();
        drop(echo);
        let _ = std::fs::remove_dir_all(self.path("left-1"));
        record::store::load(&self.path("left-2/record"))
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
    }
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
            let parts = |record: &Record| PartName::ALL.map(|name| part(response(record), name));
            let (before, after) = (parts(&quick), parts(&slow));
            println!("{kernel}: medians of send, wire, peer, receive: {before:?}, {after:?}");
            let place = PartName::ALL.iter().position(|name| *name == PartName::Peer).unwrap();
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
            let late: Result<Vec<u64>, _> = PartName::ALL.iter().map(|name| late(&record, *name)).collect();
            println!("{kernel} {beside:.7}: of 100 in send, wire, peer, receive: {late:?}");
            late
        };
        let wire = PartName::ALL.iter().position(|name| *name == PartName::Wire).unwrap();
        let (alone, hogged) = (of("debian-6.1-rt-amd64", "")?, of("debian-6.1-rt-amd64", HOG)?);
        let plain = of("debian-6.1-amd64", HOG)?;
        let is_found = hogged[wire] >= 10 && hogged[wire] >= 3 * alone[wire].max(plain[wire]);
        let is_alone = (0..hogged.len()).all(|other| other == wire || 3 * hogged[other] <= hogged[wire]);
        (is_found && is_alone).then_some(()).ok_or_else(|| format!("{alone:?} {hogged:?} {plain:?}"))
    });
}
