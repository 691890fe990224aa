//! What a comment says that the line below it is to do, beside what the line does: a time in another unit, another policy, a
//! node's number for a CPU's, an architecture or a kernel that does not have it.

use units::{CpuList, KernelVersion};

use super::{Remark, RemarkId, Target, prose, sentence, statements};

/// A comment and the statement that it stands above or behind.
pub struct Explained<'a> {
    /// The statement's first line, from 1.
    pub line: usize,
    /// What stands above it and behind it.
    pub comment: String,
    /// Its first line.
    pub statement: &'a str,
    /// That, taken apart at blanks, commas and `=`.
    pub words: Vec<&'a str>,
}

/// What lines do beside what their comments say.
pub fn remarks(text: &str, target: Target) -> Vec<Remark> {
    let machine = Machine::of(text);
    let of = |explained: &Explained| {
        let remarks = [
            time(explained),
            policy(explained),
            node(explained),
            opposite(explained),
            unmoved(explained),
            below_interrupts(explained),
            ordinary(explained),
            one_core(explained),
        ];
        remarks.into_iter().flatten().collect::<Vec<_>>()
    };
    let mut remarks: Vec<Remark> = explained(text).iter().flat_map(of).collect();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#')) {
        remarks.extend(not_there(index + 1, line, machine, target));
    }
    remarks
}

/// What the machine that `page` speaks of does not have, in a piece of its code.
pub fn elsewhere(page: &str, code: &str, target: Target) -> Vec<Remark> {
    let machine = Machine::of(page);
    let lines = code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'));
    lines.filter_map(|(index, line)| not_there(index + 1, line, machine, target)).collect()
}

/// Each line that is no comment and has one; a comment of several lines is one, and holds for the next statement only.
pub fn explained(text: &str) -> Vec<Explained<'_>> {
    let mut comment = String::new();
    let mut all = Vec::new();
    let mut continues = false;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        let sentence = prose::introduces(trimmed).then_some(trimmed);
        let comment_of = trimmed.strip_prefix('#').or_else(|| trimmed.strip_prefix("; "));
        if let Some(more) = comment_of.or(sentence) {
            comment.push_str(more);
            comment.push(' ');
            continue;
        }
        let parted = sentence::parted(trimmed, statements::is_code);
        let (statement, behind) = match parted {
            Some(parted) => (parted.code, format!("{} {}", parted.before, parted.after)),
            None => {
                let (statement, behind) = trimmed.split_once(" #").unwrap_or((trimmed, ""));
                (statement, behind.to_owned())
            }
        };
        let whole = format!("{comment}{behind}");
        if !whole.is_empty() && !statement.is_empty() {
            let words = statement.split([' ', '=', '\t', ',']).filter(|word| !word.is_empty()).collect();
            all.push(Explained { line: index + 1, comment: whole, statement, words });
        }
        // Lines of one statement have its comment.
        let is_head = ["for ", "while ", "if ", "do", "then"].iter().any(|head| statement.starts_with(head))
            && !statement.contains(['>', '|']);
        let goes_on = trimmed.ends_with('\\') || is_head;
        if !goes_on && (!statement.is_empty() || !continues) {
            comment.clear();
        }
        continues = goes_on;
    }
    all
}

/// Nanoseconds in a unit as people write it.
fn unit(word: &str) -> Option<u64> {
    Some(match word {
        "ns" | "nanosecond" | "nanoseconds" | "nsec" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" | "microsecond" | "microseconds" | "usec" | "usecs" => 1_000,
        "ms" | "millisecond" | "milliseconds" | "msec" | "msecs" => 1_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
        "min" | "minute" | "minutes" => 60_000_000_000,
        "hour" | "hours" => 3_600_000_000_000,
        _ => return None,
    })
}

/// The times that a comment names, in nanoseconds: `300 us`, `300, 300 and 400 microseconds`, `every millisecond`, `1 kHz`.
fn times(comment: &str) -> Vec<u64> {
    let lower = comment.to_lowercase();
    let spaced: String = lower
        .split_whitespace()
        .flat_map(|word| {
            let word = word.trim_matches(['(', ')', ',', '.', ':', ';', '"']);
            let digits = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            [&word[..word.len() - digits.len()], digits]
        })
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let words: Vec<&str> = spaced.split(' ').collect();
    let mut found = Vec::new();
    let mut numbers: Vec<f64> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| words[before]);
        match (word.parse::<f64>().ok(), unit(word), *word) {
            (Some(number), ..) => numbers.push(number),
            (None, Some(length), _) => {
                let single = matches!(before, Some("every" | "each" | "a" | "one")).then_some(1.0);
                let all = numbers.drain(..).chain(single);
                found.extend(all.map(|number| (number * length as f64).round() as u64));
            }
            (None, None, "hz" | "khz") => {
                let scale = if *word == "khz" { 1e6 } else { 1e9 };
                let positive = numbers.drain(..).filter(|number| *number > 0.0);
                found.extend(positive.map(|number| (scale / number).round() as u64));
            }
            (None, None, "and" | "or" | "to") => {}
            _ => numbers.clear(),
        }
    }
    found
}

/// Words that a bare number follows, and its unit in nanoseconds.
const UNITS: [(&str, &str, u64); 32] = [
    ("cyclictest", "-D", 1_000_000_000),
    ("cyclictest", "--duration", 1_000_000_000),
    ("rtla", "-d", 1_000_000_000),
    ("rtla", "--duration", 1_000_000_000),
    ("stress-ng", "--timeout", 1_000_000_000),
    ("stress-ng", "-t", 1_000_000_000),
    ("cyclictest", "-i", 1_000),
    ("cyclictest", "--interval", 1_000),
    ("cyclictest", "-d", 1_000),
    ("cyclictest", "-b", 1_000),
    ("cyclictest", "--breaktrace", 1_000),
    ("signaltest", "-i", 1_000),
    ("pmqtest", "-i", 1_000),
    ("rtla", "-p", 1_000),
    ("rtla", "--period", 1_000),
    ("rtla", "-r", 1_000),
    ("rtla", "--runtime", 1_000),
    ("rtla", "-i", 1_000),
    ("rtla", "-T", 1_000),
    ("hwlatdetect", "--window", 1_000),
    ("hwlatdetect", "--width", 1_000),
    ("hwlatdetect", "--threshold", 1_000),
    ("chrt", "--sched-runtime", 1),
    ("chrt", "--sched-period", 1),
    ("chrt", "--sched-deadline", 1),
    ("chrt", "-T", 1),
    ("chrt", "-P", 1),
    ("chrt", "-D", 1),
    ("tc", "cycle-time", 1),
    ("tc", "cycle-time-extension", 1),
    ("ethtool", "rx-usecs", 1_000),
    ("ethtool", "tx-usecs", 1_000),
];

/// Ends of the names of settings, and the unit of their values.
const NAMES: [(&str, u64); 10] = [
    ("_ns", 1),
    ("_us", 1_000),
    ("_usec", 1_000),
    ("_ms", 1_000_000),
    ("_msecs", 1_000_000),
    ("_secs", 1_000_000_000),
    ("_PERIOD", 1),
    ("TimerSlackNSec", 1),
    ("hwlat_detector/width", 1_000),
    ("hwlat_detector/window", 1_000),
];

/// The bare numbers of a statement whose unit is known: number and unit.
fn values(explained: &Explained) -> Vec<(u64, u64)> {
    let words = &explained.words;
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).and_then(|next| next.parse::<u64>().ok());
        let of_tool = UNITS.iter().find(|(tool, option, _)| {
            word == option && words[..at].iter().any(|word| word.rsplit('/').next() == Some(*tool))
        });
        found.extend(of_tool.and_then(|(.., unit)| Some((next?, *unit))));
        if *word == "S" && at > 0 && words[at - 1] == "sched-entry" {
            // `sched-entry S GATES INTERVAL`
            found.extend(words.get(at + 2).and_then(|interval| Some((interval.parse().ok()?, 1))));
        }
        let of_name = NAMES.iter().find(|(end, _)| word.ends_with(end) && !word.starts_with('-'));
        let written = || {
            let echo = words.iter().position(|word| *word == "echo")?;
            words.get(echo + 1)?.parse::<u64>().ok()
        };
        found.extend(of_name.and_then(|(_, unit)| Some((next.or_else(written)?, *unit))));
    }
    found
}

/// Whether two lengths are the same number in units of 1000 times another size.
fn is_slip(a: u64, b: u64) -> bool {
    let (small, large) = (a.min(b), a.max(b));
    small > 0
        && [1_000, 1_000_000, 1_000_000_000].iter().any(|factor| small.checked_mul(*factor) == Some(large))
}

/// The time that a comment names where `length`, in nanoseconds, is it but for the unit.
pub fn slip(comment: &str, length: u64) -> Option<units::Nanos> {
    let times = times(comment);
    let is_said = times.contains(&length);
    times.into_iter().find(|time| !is_said && is_slip(*time, length)).map(units::Nanos)
}

/// A number that is the comment's time in a unit of 1000 times another size.
fn time(explained: &Explained) -> Option<Remark> {
    let times = times(&explained.comment);
    let values = values(explained);
    let lengths: Vec<u64> = values.iter().map(|(number, unit)| number.saturating_mul(*unit)).collect();
    if values.is_empty() || times.iter().any(|time| lengths.contains(time)) {
        return None;
    }
    let (number, length, time) = values.iter().zip(&lengths).find_map(|((number, unit), length)| {
        // Seconds where minutes or hours are meant.
        let is_other = |time: u64| {
            *unit == 1_000_000_000 && [60, 3600].iter().any(|factor| length.saturating_mul(*factor) == time)
        };
        let slipped = times.iter().find(|time| is_slip(**time, *length) || is_other(**time));
        slipped.map(|time| (*number, *length, *time))
    })?;
    let message =
        format!("{number} is {} here, and the comment says {}", units::Nanos(length), units::Nanos(time));
    Some(Remark::error(explained.line, RemarkId::Malformed, explained.statement, message))
}

/// Policies as people name them, and options of chrt that ask for them.
const POLICIES: [(&str, &[&str], &[&str]); 3] = [
    ("SCHED_FIFO", &["sched_fifo", "fifo"], &["-f", "--fifo"]),
    ("SCHED_RR", &["sched_rr", "round robin", "round-robin"], &["-r", "--rr"]),
    ("SCHED_DEADLINE", &["sched_deadline"], &["-d", "--deadline"]),
];

/// The comment names one policy and chrt gets another; without one it takes SCHED_RR (chrt(1)).
fn policy(explained: &Explained) -> Option<Remark> {
    let lower = explained.comment.to_lowercase();
    let mut said = POLICIES.iter().filter(|(_, names, _)| names.iter().any(|name| lower.contains(name)));
    let (wanted, ..) = said.next().filter(|_| said.next().is_none() && !lower.contains(" not "))?;
    let at = explained.words.iter().position(|word| word.rsplit('/').next() == Some("chrt"))?;
    let options: Vec<&str> =
        explained.words[at + 1..].iter().copied().take_while(|word| word.starts_with('-')).collect();
    if options.iter().any(|option| ["-m", "--max", "-h", "--help", "-V"].contains(option)) {
        return None;
    }
    let asked = |long: &[&str]| {
        options.iter().any(|option| {
            long.contains(option)
                || !option.starts_with("--")
                    && long.iter().any(|short| short.len() == 2 && option.contains(&short[1..]))
        })
    };
    let others = ["-b", "--batch", "-i", "--idle", "-o", "--other", "-e", "--ext"];
    let chosen = POLICIES.iter().find(|(.., options)| asked(options)).map(|(name, ..)| *name);
    let is_query = options.contains(&"-p") && explained.words.len() <= at + 3;
    let taken = match chosen {
        Some(chosen) => chosen,
        None if asked(&others) || is_query => return None,
        None => "SCHED_RR",
    };
    (taken != *wanted).then(|| {
        let how = if chosen.is_none() { ", which it takes where no policy is given" } else { "" };
        let message = format!("asks for {taken}{how}: the comment says {wanted}");
        Remark::error(explained.line, RemarkId::Malformed, explained.statement, message)
    })
}

/// Files whose value says the opposite of their name's last word, or of what a comment asks: file, value, what it does.
const SWITCHES: [(&str, &str, &str); 7] = [
    ("/disable", "0", "enables the idle state"),
    ("intel_pstate/no_turbo", "0", "allows turbo"),
    ("cpufreq/boost", "1", "allows boost"),
    ("kernel/nmi_watchdog", "1", "turns the watchdog on"),
    ("kernel/numa_balancing", "1", "turns balancing on"),
    ("smt/control", "on", "turns hyper-threading on"),
    ("kernel/timer_migration", "1", "lets timers migrate"),
];

/// The comment asks for something to be turned off, and the value turns it on.
fn opposite(explained: &Explained) -> Option<Remark> {
    let lower = explained.comment.to_lowercase();
    let asks = ["disable", "turn off", "switch off", "turbo off", "no turbo"]
        .iter()
        .any(|word| lower.contains(word));
    let is_denied =
        ["re-enable", "do not disable", "don't disable", "undo"].iter().any(|word| lower.contains(word));
    let at = explained.words.iter().position(|word| *word == "echo")?;
    let value = explained.words.get(at + 1)?.trim_matches(['"', '\'']);
    let (.., does) = SWITCHES.iter().find(|(file, on, _)| {
        value == *on && explained.words.iter().any(|word| word.trim_matches('"').ends_with(file))
    })?;
    (asks && !is_denied).then(|| {
        let message = format!("{value} {does}: the comment asks for the opposite");
        Remark::error(explained.line, RemarkId::Malformed, explained.statement, message)
    })
}

/// isolcpus= with flags takes CPUs out of scheduling by the flag `domain` alone (kernel/sched/isolation.c).
fn unmoved(explained: &Explained) -> Option<Remark> {
    let lower = explained.comment.to_lowercase();
    let is_meant =
        ["scheduler", "no other task", "no other process", "no task"].iter().any(|word| lower.contains(word));
    let word = explained.statement.split([' ', '"']).find_map(|word| word.strip_prefix("isolcpus="))?;
    let flags: Vec<&str> =
        word.split(',').take_while(|part| part.starts_with(|c: char| c.is_ascii_alphabetic())).collect();
    (is_meant && !flags.is_empty() && !flags.contains(&"domain")).then(|| {
        let message = format!(
            "with {} alone the scheduler still places tasks there: the flag is domain",
            flags.join(",")
        );
        Remark::error(explained.line, RemarkId::NoEffect, explained.statement, message)
            .instead(format!("isolcpus=domain,{word}"))
    })
}

/// The comment wants a thread above the threads of interrupts, which have SCHED_FIFO 50 (kernel/irq/manage.c), and its priority is
/// not above.
fn below_interrupts(explained: &Explained) -> Option<Remark> {
    let lower = explained.comment.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let is_meant = says(&["irq thread", "interrupt thread", "threaded irq", "threaded interrupt"])
        && says(&["above", "higher than", "preempt", "over the"])
        && !says(&[" not ", "n't ", "below", "lower than", "never"]);
    let is_chrt = explained.words.iter().any(|word| word.rsplit('/').next() == Some("chrt"));
    let is_key = explained.words.first() == Some(&"CPUSchedulingPriority");
    let numbers = || explained.words.iter().filter_map(|word| word.parse::<u32>().ok());
    let priority = numbers().next().filter(|_| is_meant && (is_chrt || is_key))?;
    (1..=50).contains(&priority).then(|| {
        let message = format!("threads of interrupts have priority 50: {priority} is not above them");
        Remark::error(explained.line, RemarkId::Contradiction, explained.statement, message)
    })
}

/// The comment speaks of a real-time thread, and cyclictest measures an ordinary one.
fn ordinary(explained: &Explained) -> Option<Remark> {
    let lower = explained.comment.to_lowercase();
    let is_meant = ["fifo", "real-time", "realtime", "sched_rr"].iter().any(|word| lower.contains(word));
    let at = explained.words.iter().position(|word| word.rsplit('/').next() == Some("cyclictest"))?;
    let is_asked = explained.words[at..].iter().any(|word| {
        ["--priority", "--prio", "--policy"].iter().any(|option| word.starts_with(option))
            || word.starts_with('-') && !word.starts_with("--") && word.contains('p')
    });
    let is_lent = explained.words[..at].contains(&"chrt");
    (is_meant && !is_asked && !is_lent).then(|| {
        let message = "without -p it measures an ordinary thread (SCHED_OTHER)";
        Remark::error(explained.line, RemarkId::Contradiction, explained.statement, message)
    })
}

/// cpufreq-set changes CPU 0 unless -c or -r says otherwise (cpufreq-set(1)).
fn one_core(explained: &Explained) -> Option<Remark> {
    let lower = explained.comment.to_lowercase();
    let says_all =
        ["all ", "every ", "each "].iter().any(|word| lower.contains(word)) && !lower.contains("loop");
    let at = explained.words.iter().position(|word| word.rsplit('/').next() == Some("cpufreq-set"))?;
    let is_named = explained.words[at..]
        .iter()
        .any(|word| word.starts_with("-c") || word.starts_with("--cpu") || *word == "-r");
    (says_all && !is_named).then(|| {
        let message = "without -c it changes CPU 0 alone: cpupower frequency-set changes all";
        Remark::error(explained.line, RemarkId::NoEffect, explained.statement, message)
    })
}

/// Options of numactl that take nodes, and a comment that counts cores.
fn node(explained: &Explained) -> Option<Remark> {
    let lower = explained.comment.to_lowercase();
    let says_cpus = ["core", "cpu"].iter().any(|word| lower.contains(word));
    let says_nodes = ["node", "socket", "numa"].iter().any(|word| lower.contains(word));
    let (true, false) = (says_cpus, says_nodes) else { return None };
    let at = explained.words.iter().position(|word| word.rsplit('/').next() == Some("numactl"))?;
    let at = at + explained.words[at..].iter().position(|word| ["-N", "--cpunodebind"].contains(word))?;
    let list: CpuList = explained.words.get(at + 1)?.parse().ok()?;
    let option = explained.words[at];
    (list.len() > 1).then(|| {
        let message = format!("{option} takes numbers of nodes, and the comment speaks of CPUs");
        Remark::error(explained.line, RemarkId::Malformed, explained.statement, message)
            .instead(format!("--physcpubind={list}"))
    })
}

/// What a recipe says of the machine that it is for.
#[derive(Clone, Copy)]
struct Machine {
    x86: bool,
    arm32: bool,
    arm64: bool,
    /// Control groups of version 2 only.
    cgroup2: bool,
    /// intel_pstate chooses the frequency itself.
    pstate_active: bool,
    /// A kernel without patches.
    mainline: bool,
}

impl Machine {
    fn of(text: &str) -> Self {
        let is_said = |line: &&str| {
            let line = line.trim_start();
            let is_sentence = line.split_whitespace().count() > 2 && !line.contains(['=', '>']);
            line.starts_with('#')
                || line.contains("ARCH=")
                || is_sentence
                || prose::behind_colon(line).is_some()
        };
        let said: String = text.lines().filter(is_said).flat_map(|line| [line, " "]).collect();
        let lower = said.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        Self {
            x86: says(&["x86", "amd64", "xeon", "core i5", "core i7", "core i9", "ryzen", "epyc"]),
            arm32: says(&[
                "arch=arm)",
                "arch=arm ",
                "arch=arm,",
                "armv7",
                "armhf",
                "beaglebone",
                "zynq-7000",
                "32-bit arm",
                "i.mx6",
                "imx6",
            ]),
            arm64: says(&["arm64", "aarch64", "jetson", "i.mx8", "imx8", "raspberry pi 4", "raspberry pi 5"]),
            cgroup2: says(&["cgroup2", "cgroup v2", "cgroups v2", "unified hierarchy"]),
            pstate_active: says(&[
                "intel_pstate in active mode",
                "intel_pstate=active",
                "intel_pstate is active",
                "intel_pstate (active",
            ]),
            mainline: says(&[
                "mainline",
                "vanilla",
                "unpatched",
                "no patches",
                "no rt patch",
                "without patches",
                "kernel.org",
            ]),
        }
    }
}

/// What the machine or the kernel that the comments name does not have.
fn not_there(number: usize, line: &str, machine: Machine, target: Target) -> Option<Remark> {
    let version = target.version.unwrap_or(KernelVersion::new(6, 12));
    let words = || line.split_whitespace();
    if machine.x86 {
        let size = words().find_map(|word| {
            let (name, size) = word.trim_matches(['"', '\'']).split_once('=')?;
            matches!(name, "hugepagesz" | "default_hugepagesz").then_some(size)
        });
        if let Some(size) = size.filter(|size| !matches!(size.to_uppercase().as_str(), "2M" | "1G" | "4M")) {
            let message =
                format!("x86 has huge pages of 2M and 1G: {size} and the number behind it are ignored");
            return Some(Remark::error(number, RemarkId::NoEffect, line, message));
        }
        let is_first = line.contains("cpu/cpu0/online") && words().any(|word| word == "0");
        if is_first {
            let message = "CPU 0 of an x86 machine cannot be switched off: the file does not exist (before 6.5 cpu0_hotplug made it)";
            return Some(Remark::error(number, RemarkId::Gone, line, message.to_owned()));
        }
    }
    if let Some(remark) = of_another_machine(number, line, machine) {
        return Some(remark);
    }
    let asks = ["-e PREEMPT_RT", "--enable PREEMPT_RT"];
    let is_asked = line.trim() == "CONFIG_PREEMPT_RT=y" || asks.iter().any(|asks| line.contains(asks));
    let is_missing = machine.mainline && (version < KernelVersion::new(6, 12) || machine.arm32);
    (is_asked && is_missing).then(|| {
        let message = match machine.arm32 {
            true => "mainline has PREEMPT_RT for arm64, riscv and x86 only: the option is dropped",
            false => "mainline has PREEMPT_RT since 6.12: before, it needs the RT patches",
        };
        Remark::error(number, RemarkId::Elsewhere, line, message.to_owned())
    })
}

/// What another architecture, driver or version of control groups has.
fn of_another_machine(number: usize, line: &str, machine: Machine) -> Option<Remark> {
    let has = |wanted: &str| line.split([' ', '"', '\'', '=']).any(|word| word == wanted);
    if machine.arm64 && !machine.x86 && line.contains("idle=poll") {
        let message = "only x86 has idle=: on arm64 the word does nothing";
        return Some(Remark::error(number, RemarkId::Elsewhere, line, message.to_owned()));
    }
    let governors = ["schedutil", "ondemand", "conservative", "userspace"];
    let sets_governor = line.contains("frequency-set") || line.contains("scaling_governor");
    let refused = governors.iter().find(|governor| machine.pstate_active && sets_governor && has(governor));
    if let Some(governor) = refused {
        let message =
            format!("intel_pstate in active mode has performance and powersave only, no {governor}");
        return Some(Remark::error(number, RemarkId::Malformed, line, message));
    }
    let of_v1 =
        ["cset ", "--cpu-rt-runtime", "--cpu-rt-period"].into_iter().find(|sign| line.contains(sign))?;
    machine.cgroup2.then(|| {
        let message = format!("{} needs control groups of version 1", of_v1.trim());
        Remark::error(number, RemarkId::NoEffect, line, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        remarks(text, Target::default()).into_iter().map(|remark| remark.message).collect()
    }

    #[test]
    fn times_of_comments_are_read() {
        for (comment, expected) in [
            ("three slots of 300, 300 and 400 microseconds", vec![300_000, 300_000, 400_000]),
            ("servo thread every millisecond", vec![1_000_000]),
            ("2ms cycle (500 Hz)", vec![2_000_000, 2_000_000]),
            ("base thread 25 us, servo thread 1 ms", vec![25_000, 1_000_000]),
            ("CPU 3 and priority 80", vec![]),
        ] {
            assert_eq!(times(comment), expected, "{comment}");
        }
    }

    #[test]
    fn what_does_as_its_comment_says_is_fine() {
        for fine in [
            "# every millisecond\ncyclictest -m -i 1000 -p 80\n",
            "# run at 1 kHz for 10 s\ncyclictest -i 1000 -D 10\n",
            "# FIFO 80\nchrt -f 80 ./loop\n",
            "# SCHED_RR\nchrt 80 ./loop\n",
            "# node 1\nnumactl -N 1 ./x\n",
            "# 500 us of 1 ms\nkernel.sched_rt_runtime_us=500\n",
            "chrt 80 ./loop\n",
            "# 2 MiB pages, Xeon\nhugepagesz=2M hugepages=8\n",
            "# ARM64 board\necho 0 > /sys/devices/system/cpu/cpu0/online\n",
            "# our kernel is patched\nCONFIG_PREEMPT_RT=y\n",
            "# show what FIFO threads have\nchrt -p 12\n",
        ] {
            assert_eq!(of(fine), Vec::<String>::new(), "{fine}");
        }
    }

    #[test]
    fn what_does_something_else_than_its_comment_says_is_wrong() {
        for wrong in [
            "# every millisecond\ncyclictest -m -i 1 -p 80\n",
            "# period 2 ms\nrtla timerlat top -p 2\n",
            "# FIFO 80\nchrt 80 ./loop\n",
            "# round robin\nchrt --fifo 80 ./loop\n",
            "# 10 ms each 100 ms\nchrt -d --sched-runtime 10 --sched-period 100 0 ./x\n",
            "# cores 2 and 3\nnumactl --cpunodebind=2-3 ./x\n",
            "# AMD EPYC\nhugepagesz=64K hugepages=8\n",
            "# servo 1 ms\nSERVO_PERIOD = 1000\n",
            "# half a second: 500 ms\necho 500 > /proc/sys/kernel/sched_rt_runtime_us\n",
            "# vanilla, ARCH=arm \nCONFIG_PREEMPT_RT=y\n",
        ] {
            assert_eq!(of(wrong).len(), 1, "{wrong}: {:?}", of(wrong));
        }
    }
}
