//! Options of programs.

use super::nearest::nearest_of;
use super::script::{program, unwrapped};
use super::{Remark, RemarkId};
use crate::Severity;

/// Long options of programs, complete enough to say that another is none.
const OPTIONS: [(&str, &[&str]); 4] = [
    (
        "cyclictest",
        &[
            "--affinity",
            "--aligned",
            "--breaktrace",
            "--clock",
            "--default-system",
            "--deepest-idle-state",
            "--distance",
            "--duration",
            "--laptop",
            "--latency",
            "--fifo",
            "--histogram",
            "--histofall",
            "--histfile",
            "--help",
            "--interval",
            "--json",
            "--loops",
            "--mainaffinity",
            "--mlockall",
            "--nanosleep",
            "--nsecs",
            "--nsec-dist",
            "--oscope",
            "--policy",
            "--priority",
            "--prio-spread",
            "--priospread",
            "--posix_timers",
            "--quiet",
            "--rttime",
            "--relative",
            "--resolution",
            "--secaligned",
            "--smi",
            "--smp",
            "--spike",
            "--spike-nodes",
            "--system",
            "--threads",
            "--tracemark",
            "--unbuffered",
            "--verbose",
            "--dbg_cyclictest",
            "--notrace",
            "--broadcast",
            "--numa",
        ],
    ),
    (
        "hwlatdetect",
        &[
            "--duration",
            "--threshold",
            "--hardlimit",
            "--window",
            "--width",
            "--report",
            "--debug",
            "--quiet",
            "--watch",
            "--cpu-list",
            "--help",
            "--cleanup",
        ],
    ),
    (
        "stress-ng",
        &[
            "--cpu",
            "--cpu-load",
            "--cpu-method",
            "--vm",
            "--vm-bytes",
            "--vm-method",
            "--hdd",
            "--hdd-bytes",
            "--io",
            "--timeout",
            "--metrics",
            "--metrics-brief",
            "--fork",
            "--switch",
            "--timer",
            "--sock",
            "--taskset",
            "--all",
            "--class",
            "--matrix",
            "--cache",
            "--stream",
            "--aggressive",
            "--verify",
            "--times",
            "--sched",
        ],
    ),
    (
        "ethtool",
        &["--coalesce", "--set-eee", "--show-eee", "--set-ring", "--features", "--offload", "--set-channels"],
    ),
];

/// Parameters of `ethtool -C`.
const COALESCE: [&str; 22] = [
    "adaptive-rx",
    "adaptive-tx",
    "rx-usecs",
    "rx-frames",
    "rx-usecs-irq",
    "rx-frames-irq",
    "tx-usecs",
    "tx-frames",
    "tx-usecs-irq",
    "tx-frames-irq",
    "stats-block-usecs",
    "pkt-rate-low",
    "rx-usecs-low",
    "rx-frames-low",
    "tx-usecs-low",
    "tx-frames-low",
    "pkt-rate-high",
    "rx-usecs-high",
    "rx-frames-high",
    "tx-usecs-high",
    "tx-frames-high",
    "sample-interval",
];

/// Long options that a program does not have; of programs with very many, only those that are nearly one.
pub fn remarks(line: usize, words: &[String]) -> Vec<Remark> {
    let words = unwrapped(words);
    let name = program(words);
    let none = |option: &str, meant: Option<&str>| {
        Remark::new(
            line,
            RemarkId::NoSuchOption,
            Severity::Error,
            format!("{name} {option}"),
            format!("{name} has no {option}"),
        )
        .perhaps_instead(meant)
    };
    let mut remarks = Vec::new();
    if let Some((_, known)) = OPTIONS.iter().find(|(program, _)| *program == name) {
        let own = words
            .iter()
            .skip(1)
            .map(|word| word.split('=').next().unwrap_or(word))
            .filter(|word| word.starts_with("--") && word.len() > 2);
        for option in own.filter(|option| !known.contains(option)) {
            let abbreviates = known.iter().filter(|known| known.starts_with(option)).count() == 1;
            let meant = nearest_of(option, known.iter().copied()).filter(|_| !abbreviates);
            remarks.extend(meant.map(|meant| none(option, Some(meant))));
        }
    }
    if name == "ethtool" && words.iter().any(|word| word == "-C" || word == "--coalesce") {
        let own = words.iter().skip(3).step_by(2).filter(|word| !COALESCE.contains(&word.as_str()));
        let near = own.filter_map(|word| Some((word, nearest_of(word, COALESCE.into_iter())?)));
        remarks.extend(near.map(|(word, meant)| none(word, Some(meant))));
    }
    remarks
}
