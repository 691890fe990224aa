//! A core of the runtime in arm64 guests: how long a message to it takes, by each way in which it waits.

use std::path::Path;
use std::process::{Command, Stdio};

use record::Record;

use crate::support::guests;

const KERNELS: [(&str, &[&str]); 2] = [
    ("debian-6.12-arm64", &["--version", "6.12", "--arch", "arm64"]),
    ("debian-6.1-rt-arm64", &["--version", "6.1", "--flavour", "rt", "--arch", "arm64"]),
];

/// What `worstcase` in a guest left; none where there is no program for arm64.
fn in_guest(directory: &Path, kernel: &str, lab: &[&str], words: &str) -> Option<Record> {
    let out = directory.join(format!("{kernel}-{}", lab.len()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_worstcase"));
    command.args(["lab", "run", "--kernel", kernel]).args(lab).arg("--out").arg(&out).arg("--");
    let output = command.args(words.split_whitespace()).stdin(Stdio::null()).output().unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("no static worstcase for arm64") {
        println!("skipped: target aarch64-unknown-linux-gnu: nothing in dist/ (cargo xtask dist)");
        return None;
    }
    Some(record::store::load(&out).unwrap_or_else(|error| panic!("{error}: {output:?}")))
}

/// Of each call: its name, how often it was made, the shortest and the longest time.
fn calls(record: &Record) -> Vec<(String, u64, u64, u64)> {
    let of = |scenario: &record::Scenario| {
        let summary = scenario.series[0].observed.summary();
        (scenario.head.planned.setup.to_string(), summary.count, summary.min, summary.max)
    };
    record.scenarios.iter().map(of).collect()
}

#[test]
#[ignore = "long: four guests of another architecture"]
fn messages_reach_a_core_of_the_runtime_on_arm64_however_it_waits() {
    let fetched = KERNELS.map(|(_, words)| words);
    if guests::hindered(&["qemu-system-aarch64"], &fetched) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for (kernel, _) in KERNELS {
        let words = "bench --probe call --calls futex,runtime-block,runtime-block-chain --partners 0 --loads idle \
                     --duration 300ms --interval 5ms --seed 1 --out .";
        let Some(record) = in_guest(directory.path(), kernel, &[], words) else { return };
        assert_eq!(record.header.machine.architecture, "aarch64");
        let found = calls(&record);
        println!("{kernel}, instructions: {found:?}");
        let [futex, one, three] = &found[..] else { panic!("{found:?}") };
        assert!([futex, one, three].iter().all(|(_, count, ..)| *count == 59), "{found:?}");
        // A core does what a thread does, and its machine; two objects more are no two wake-ups more.
        assert!(futex.2 < one.2 && one.2 < three.2 && three.2 < one.2 + futex.2, "{found:?}");

        // Those that never sleep have a CPU to themselves. In the host's time: counts say something, times do not.
        let words = "bench --probe call --calls runtime-spin,runtime-pause --cpus 1 --partners 0 --loads idle --duration 1s \
                     --interval 5ms --seed 1 --out .";
        let Some(record) = in_guest(directory.path(), kernel, &["--time", "wall", "--cpus", "2"], words)
        else {
            return;
        };
        let found = calls(&record);
        println!("{kernel}, in the host's time: {found:?}");
        let names: Vec<_> = found.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["runtime-pause across", "runtime-spin across"]);
        assert!(found.iter().all(|(_, count, ..)| *count > 20), "{found:?}");
    }
}
