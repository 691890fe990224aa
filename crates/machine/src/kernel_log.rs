//! What the kernel complains about while figures are taken, from /dev/kmsg (Documentation/ABI/testing/dev-kmsg).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use record::Fact;
use rustix::io::Errno;
use sysroot::SysRoot;
use sysroot::{absent_or_unreadable, fact, masked_words};

/// Where the kernel gives its log a record a read (Documentation/ABI/testing/dev-kmsg).
const PATH: &str = "/dev/kmsg";

/// More than one record can be: a shorter buffer would be refused.
const RECORD: usize = 16 << 10;

/// More than the kernel's log can hold by default, so that a flood cannot fill memory.
const LONGEST_LOG: usize = 16 << 20;

/// The most lines that are shown; a last line counts the rest.
const MOST_LINES: usize = 50;

/// Parts of messages that speak of time taken from threads, of broken clocks and of broken hardware.
const SIGNS: &[&str] = &[
    // kernel/sched: rt.c, deadline.c (each once a boot)
    "RT throttling activated",
    "DL replenish lagged too much",
    // kernel/time/clocksource.c, arch/x86/kernel/tsc.c
    "unstable because the skew is too large",
    "unstable (delta =",
    "Marking TSC unstable",
    "timekeeping watchdog on CPU",
    "Switched to clocksource",
    "Long readout interval, skipping watchdog check",
    // kernel/time: hrtimer.c, tick-sched.c
    "hrtimer: interrupt took",
    "NOHZ tick-stop error",
    "NOHZ: local_softirq_pending",
    // drivers/thermal: intel/therm_throt.c, thermal_core.c; drivers/hwmon/raspberrypi-hwmon.c
    "temperature above threshold",
    "temperature is above threshold",
    "cpu clock throttled",
    "critical temperature reached",
    "ndervoltage detected",
    "nder-voltage detected",
    // kernel/hung_task.c, kernel/watchdog.c, kernel/workqueue.c
    "blocked for more than",
    "soft lockup",
    "hard LOCKUP",
    "workqueue lockup",
    "hogged CPU for",
    // kernel/rcu
    "detected stalls on CPUs",
    "self-detected stall on CPU",
    "detected expedited stalls",
    "kthread starved for",
    // machine checks: arch/x86/kernel/cpu/mce, drivers/edac, drivers/acpi/apei
    "[Hardware Error]",
    "Machine check events logged",
    "Uncorrected hardware memory error",
    "EDAC MC",
    // arch/x86/kernel/nmi.c, kernel/events/core.c
    "NMI received for unknown reason",
    "took too long to run",
    "perf: interrupt took too long",
    "perf samples too long",
    // mm/oom_kill.c
    "invoked oom-killer",
    "Out of memory: Kill",
    "out of memory: Kill",
    // lib/bug.c, kernel/panic.c
    "BUG: ",
    "WARNING: ",
    "Oops: ",
];

/// The kernel's log from a point in time on.
#[derive(Debug)]
pub struct KernelLog {
    file: Fact<File>,
}

impl KernelLog {
    /// Opens the log at its end. [`KernelLog::since`] reports that it cannot be read.
    pub fn open(root: &SysRoot) -> Self {
        Self { file: fact(root.open(PATH).and_then(|mut file| file.seek(SeekFrom::End(0)).map(|_| file))) }
    }

    /// The lines that matter of those logged by the kernel since the opening or the last call, at most 50.
    pub fn since(&mut self) -> Fact<Vec<String>> {
        match &mut self.file {
            Fact::Value(file) => match drain(file) {
                Ok(Drained { text, overran }) => Fact::Value(summary(&text, overran)),
                Err(error) => absent_or_unreadable(&error),
            },
            Fact::Absent => Fact::Absent,
            Fact::Unreadable(errno) => Fact::Unreadable(*errno),
            Fact::Unsupported => Fact::Unsupported,
        }
    }
}

/// What the kernel said since it was booted, as far as anybody here asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootLog {
    /// The messages of the kernel itself that bear one of the [`ASKED`] signs.
    pub lines: Vec<String>,
    /// Whether the log still begins where the kernel began: only then a message that is not there was never written.
    pub is_whole: bool,
}

impl BootLog {
    fn of(text: &str) -> Self {
        let is_whole = text.lines().next().and_then(sequence) == Some(0);
        Self { lines: text.lines().filter_map(kernel_message).map(str::to_owned).collect(), is_whole }
    }

    /// Whether any line has this part.
    pub fn has(&self, part: &str) -> bool {
        self.lines.iter().any(|line| line.contains(part))
    }
}

/// Parts of messages that facts are made of. Others are not kept: a log can name people, hosts and disks.
const ASKED: [&[&str]; 5] = [
    &[
        "Dynamic Preempt:",
        "Kernel is locked down from",
        "nknown kernel command line parameters",
        "Offload RCU callbacks from CPUs:",
    ],
    THROTTLING,
    CLOCKS,
    LONG_INTERRUPTS,
    STALLS,
];

/// kernel/sched: rt.c, deadline.c.
pub const THROTTLING: &[&str] = &["RT throttling activated", "DL replenish lagged too much"];

/// kernel/time/clocksource.c, arch/x86/kernel/tsc.c.
pub const CLOCKS: &[&str] =
    &["Marking TSC unstable", "unstable because the skew is too large", "unstable (delta ="];

/// kernel/time/hrtimer.c, kernel/events/core.c, arch/x86/kernel/nmi.c.
pub const LONG_INTERRUPTS: &[&str] =
    &["hrtimer: interrupt took", "perf: interrupt took too long", "took too long to run"];

/// kernel/rcu/tree_stall.h, kernel/watchdog.c, kernel/workqueue.c, kernel/hung_task.c.
pub const STALLS: &[&str] = &[
    "detected stalls on CPUs",
    "self-detected stall on CPU",
    "detected expedited stalls",
    "kthread starved for",
    "soft lockup",
    "hard LOCKUP",
    "workqueue lockup",
    "blocked for more than",
];

/// All messages of the kernel itself that its log still has. They can name people, hosts and disks: nothing of them is to
/// be kept but what is about the question at hand.
pub(crate) fn whole_log(root: &SysRoot) -> Fact<BootLog> {
    fact(root.open(PATH).and_then(|mut file| drain(&mut file)).map(|log| BootLog::of(&log.text)))
}

/// Reads the log from its beginning.
pub fn boot_log(root: &SysRoot) -> Fact<BootLog> {
    let read = || fact(root.open(PATH).and_then(|mut file| drain(&mut file)).map(|log| asked_of(&log.text)));
    root.bytes_or(PATH, read).map(|bytes| BootLog::of(&String::from_utf8_lossy(&bytes)))
}

/// The records that facts are made of, and the first one without its words, so that it can be seen whether the log is
/// whole.
fn asked_of(log: &str) -> Vec<u8> {
    let is_asked = |line: &str| {
        kernel_message(line).is_some_and(|message| ASKED.iter().any(|signs| has_any(message, signs)))
    };
    let asked = log.lines().filter(|line| is_asked(line));
    let mut kept: Vec<String> = asked.map(masked_words).collect();
    if let Some((head, _)) = log.lines().next().and_then(|first| first.split_once(';')) {
        kept.insert(0, head.to_owned());
    }
    kept.join("\n").into_bytes()
}

/// The number of a record, which the kernel counts from 0.
fn sequence(record: &str) -> Option<u64> {
    record.split(',').nth(1)?.parse().ok()
}

/// What could be read, and whether the kernel wrote over records before they were read.
struct Drained {
    text: String,
    overran: bool,
}

/// Reads to the end. The device gives one record a read, EAGAIN at its end, EPIPE where records were lost.
fn drain(file: &mut File) -> io::Result<Drained> {
    let (mut bytes, mut overran, mut buffer) = (Vec::new(), false, vec![0; RECORD]);
    while bytes.len() < LONGEST_LOG {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => bytes.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.raw_os_error() == Some(Errno::PIPE.raw_os_error()) => overran = true,
            Err(error) => return Err(error),
        }
    }
    Ok(Drained { text: String::from_utf8_lossy(&bytes).into_owned(), overran })
}

/// The lines that matter, with a last one for what is not shown.
fn summary(text: &str, overran: bool) -> Vec<String> {
    let mut lines: Vec<String> =
        text.lines().filter_map(kernel_message).filter(|line| matters(line)).map(str::to_owned).collect();
    let more = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    if more > 0 {
        lines.push(format!("({more} more such lines)"));
    }
    if overran {
        lines.push("(the kernel's log overran: lines were lost)".to_owned());
    }
    lines
}

/// Whether a line bears one of the signs.
fn matters(line: &str) -> bool {
    has_any(line, SIGNS)
}

fn has_any(line: &str, signs: &[&str]) -> bool {
    signs.iter().any(|sign| line.contains(sign))
}

/// The message of a record, `6,339,5140900,-;NET: Registered protocol family 10`, if the kernel wrote it: the first
/// figure is the level plus eight times the facility, and the kernel's facility is 0. Lines that go on a record begin
/// with a space and hold no message.
fn kernel_message(line: &str) -> Option<&str> {
    let (head, message) = line.split_once(';')?;
    let mut fields = head.split(',');
    let level: u32 = fields.next()?.parse().ok()?;
    let _sequence: u64 = fields.next()?.parse().ok()?;
    let _microseconds: u64 = fields.next()?.parse().ok()?;
    (level < 8).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;
    use sysroot::FakeTree;

    const TEXT: &str = "6,1,100,-;Linux version 6.1\n\
        4,2,200,-;sched: RT throttling activated\n\
        4,3,300,c,caller=T1;CPU3: Core temperature above threshold, cpu clock throttled (total events = 1)\n \
        SUBSYSTEM=cpu\n DEVICE=+cpu:cpu3\n\
        12,4,400,-;app[7]: BUG: in user space\n\
        broken\n\
        6,5,500,-;hrtimer: interrupt took 31415 ns\n";

    #[test]
    fn only_the_kernels_complaints_are_reported() {
        let lines = summary(TEXT, false);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].ends_with("RT throttling activated") && lines[1].starts_with("CPU3"));
    }

    #[test]
    fn every_sign_is_found_in_the_kernels_own_words() {
        for line in [
            "clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable because the skew is too large:",
            "Clocksource tsc unstable (delta = 62500041 ns)",
            "CPU0: Package temperature is above threshold, cpu clock is throttled (total events = 12)",
            "INFO: task kworker/0:1:25 blocked for more than 120 seconds.",
            "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
            "watchdog: BUG: soft lockup - CPU#2 stuck for 22s! [fio:812]",
            "mce: [Hardware Error]: Machine check events logged",
            "sched: DL replenish lagged too much",
            "perf: interrupt took too long (2503 > 2500), lowering kernel.perf_event_max_sample_rate to 79000",
            "Memory cgroup out of memory: Killed process 77 (stress)",
        ] {
            assert!(matters(line), "{line}");
        }
        assert!(!matters("EXT4-fs (vda): mounted filesystem"));
    }

    #[test]
    fn a_flood_is_counted_and_an_overrun_said() {
        let text = "4,2,200,-;sched: RT throttling activated\n".repeat(MOST_LINES + 7);
        let lines = summary(&text, true);
        assert_eq!(lines.len(), MOST_LINES + 2);
        assert_eq!(lines[MOST_LINES], "(7 more such lines)");
        assert!(lines[MOST_LINES + 1].contains("overran"));
    }

    #[test]
    fn a_log_begins_where_it_was_opened() {
        let tree = FakeTree::empty();
        assert_eq!(KernelLog::open(&tree.root).since(), Fact::Absent);
        tree.write(PATH, TEXT);
        let mut log = KernelLog::open(&tree.root);
        assert_eq!(log.since(), Fact::Value(vec![]));
        let mut file = std::fs::OpenOptions::new().append(true).open(tree.root.path(PATH)).unwrap();
        file.write_all(b"4,6,600,-;Marking TSC unstable due to clocksource watchdog\n").unwrap();
        assert_eq!(log.since().value().unwrap().len(), 1);
        assert_eq!(log.since(), Fact::Value(vec![]));
    }

    #[test]
    fn only_what_is_asked_of_the_boot_is_kept() {
        let tree = FakeTree::new(&[(PATH, TEXT)]);
        let complaints = ["sched: RT throttling activated", "hrtimer: interrupt took 31415 ns"];
        let lines = complaints.map(str::to_owned).to_vec();
        assert_eq!(boot_log(&tree.root), Fact::Value(BootLog { lines, is_whole: false }));
        let text = "5,0,0,-;Linux version 6.1 (me@home)\n6,9,79117,-;Dynamic Preempt: full\n6,10,80000,-;random: crng\n";
        tree.write(PATH, text);
        let log = boot_log(&tree.root);
        assert_eq!(log, Fact::Value(BootLog { lines: vec!["Dynamic Preempt: full".into()], is_whole: true }));
        let remembering = tree.root.remembering();
        assert_eq!(boot_log(&remembering), log);
        assert_eq!(boot_log(&SysRoot::of(remembering.remembered())), log);
    }

    #[test]
    fn the_log_of_the_machine_at_hand_does_not_block() {
        let _ = KernelLog::open(&SysRoot::live()).since();
        let _ = boot_log(&SysRoot::live());
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "([0-9]{0,3},?){0,4};?.{0,20}\n?|.{0,60}") {
            let _ = summary(&text, false);
        }
    }
}
