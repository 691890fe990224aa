//! What a comment says that the line below it is to do, beside what the line does: another policy, a node's number for a CPU's, an
//! architecture or a kernel that does not have it. Quantities are compared in `quantities`.

use units::{CpuList, KernelVersion};

use super::{Remark, RemarkId, Target, prose, sentence, statements};

/// A comment and the statement that it stands above or behind.
pub struct Explained<'a> {
    /// The statement's first line, from 1.
    pub line: usize,
    /// What stands above it and behind it.
    pub comment: String,
    /// The program whose arguments go on here, behind a backslash.
    pub program: &'a str,
    /// The comment with which the whole text begins.
    pub head: String,
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
            policy(explained),
            node(explained),
            opposite(explained),
            switched(explained),
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
    let (mut comment, mut head) = (String::new(), None);
    let mut all = Vec::new();
    let mut continues = false;
    let mut program = "";
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        let sentence = prose::introduces(trimmed).then_some(trimmed);
        let xml = trimmed.strip_prefix("<!--").map(|rest| rest.trim_end_matches("-->"));
        let comment_of = trimmed.strip_prefix('#').or_else(|| trimmed.strip_prefix("; ")).or(xml);
        if let Some(more) = comment_of.or(sentence) {
            comment.push_str(more);
            comment.push(' ');
            continue;
        }
        let is_section = trimmed.starts_with('[') && trimmed.ends_with(']');
        let is_element = trimmed.starts_with('<') && trimmed.ends_with('>') && !trimmed.contains('=');
        if is_section || is_element && !trimmed.contains("</") {
            continue;
        }
        if head.is_none() && !trimmed.is_empty() {
            head = Some(comment.clone());
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
        let head = head.clone().unwrap_or_default();
        if !(statement.is_empty() || whole.is_empty() && head.is_empty()) {
            let words = statement.split([' ', '=', '\t', ',']).filter(|word| !word.is_empty()).collect();
            all.push(Explained { line: index + 1, comment: whole, program, head, statement, words });
        }
        // Lines of one statement have its comment.
        let first = statement.split_whitespace().next().unwrap_or_default();
        let is_head =
            ["for", "while", "if", "do", "then"].contains(&first) && !statement.contains(['>', '|']);
        let goes_on = trimmed.ends_with('\\') || is_head;
        let introduces = statement.is_empty() && comment.trim_end().ends_with(':');
        if !goes_on && !introduces && (!statement.is_empty() || !continues) {
            comment.clear();
        }
        continues = goes_on;
        let first = || statement.trim_start_matches("sudo ").split_whitespace().next().unwrap_or_default();
        program = match goes_on {
            true if program.is_empty() => first(),
            true => program,
            false => "",
        };
    }
    all
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
    let lower = lower.split(" so that ").next().unwrap_or_default();
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
const SWITCHES: [(&str, &str, &str); 13] = [
    ("/disable", "0", "enables the idle state"),
    ("intel_pstate/no_turbo", "0", "allows turbo"),
    ("cpufreq/boost", "1", "allows boost"),
    ("kernel/nmi_watchdog", "1", "turns the watchdog on"),
    ("kernel/numa_balancing", "1", "turns balancing on"),
    ("smt/control", "on", "turns hyper-threading on"),
    ("kernel/timer_migration", "1", "lets timers migrate"),
    ("kernel/watchdog", "1", "turns the watchdog on"),
    ("kernel/soft_watchdog", "1", "turns the watchdog on"),
    ("kernel/sched_autogroup_enabled", "1", "turns groups of sessions on"),
    ("vm/compact_unevictable_allowed", "1", "lets the kernel move locked pages"),
    ("transparent_hugepage/enabled", "always", "turns huge pages on for all"),
    ("ksm/run", "1", "turns merging on"),
];

/// The comment asks for something to be turned off, and the value turns it on.
fn opposite(explained: &Explained) -> Option<Remark> {
    let lower = explained.comment.to_lowercase();
    let asks = [
        "disable",
        "turn off",
        "switch off",
        "turbo off",
        "no turbo",
        "watchdog off",
        "balancing off",
        "turns off",
    ]
    .iter()
    .any(|word| lower.contains(word));
    let is_denied =
        ["re-enable", "do not disable", "don't disable", "undo"].iter().any(|word| lower.contains(word));
    let echoed =
        explained.words.iter().position(|word| *word == "echo").and_then(|at| explained.words.get(at + 1));
    let bare = |word: &str| word.trim_matches(['"', '\'']).to_owned();
    let (value, does) = SWITCHES.iter().find_map(|(file, on, does)| {
        let at = explained.words.iter().position(|word| bare(word).replace('.', "/").ends_with(file))?;
        let value = bare(echoed.or_else(|| explained.words.get(at + 1))?);
        (value == *on).then_some((value, does))
    })?;
    (asks && !is_denied).then(|| {
        let message = format!("{value} {does}: the comment asks for the opposite");
        Remark::error(explained.line, RemarkId::Malformed, explained.statement, message)
    })
}

/// The sentence asks for something to be turned off, and all that ethtool is to switch goes on, or the other way round.
fn switched(explained: &Explained) -> Option<Remark> {
    const OPTIONS: [&str; 8] =
        ["-A", "--pause", "-K", "--offload", "--features", "-C", "--coalesce", "--set-eee"];
    let at = explained.words.iter().position(|word| word.rsplit('/').next() == Some("ethtool"))?;
    let words = &explained.words[at + 1..];
    words.first().filter(|option| OPTIONS.contains(option))?;
    let has = |value: &str| words.contains(&value);
    let lower = format!(" {}", explained.comment.to_lowercase());
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
    let asks_off = says(&[" disable ", "turn off", "switch off", " off:", " off with", " off "]);
    let asks_on = says(&[" enable ", "turn on", "switch on", "turned on"]);
    let is_denied = says(&["re-enable", "not ", "n't ", "undo", "again"]);
    let is_opposite =
        asks_off && !asks_on && has("on") && !has("off") || asks_on && !asks_off && has("off") && !has("on");
    (is_opposite && !is_denied).then(|| {
        let message = "switches the other way than the text asks for";
        Remark::error(explained.line, RemarkId::Contradiction, explained.statement, message)
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
    /// A processor of AMD's alone, or of Intel's alone.
    amd: bool,
    intel: bool,
    /// Control groups of version 2 only.
    cgroup2: bool,
    /// intel_pstate chooses the frequency itself.
    pstate_active: bool,
    /// A kernel without patches.
    mainline: bool,
}

impl Machine {
    fn of(text: &str) -> Self {
        let words_of = |line: &str| -> Option<String> {
            let line = line.trim_start();
            if line.starts_with('#') || line.contains("ARCH=") || prose::behind_colon(line).is_some() {
                return Some(line.to_owned());
            }
            let bare: String = line.split('`').step_by(2).collect();
            let is_sentence = bare.split_whitespace().count() > 2 && !bare.contains(['=', '>']);
            let parted = || sentence::parted(line, statements::is_code);
            let around = || parted().map(|parted| format!("{} {}", parted.before, parted.after));
            if is_sentence { Some(bare) } else { around() }
        };
        let said = text.lines().filter_map(words_of).collect::<Vec<_>>().join(" ");
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
            arm64: says(&[
                "arm64",
                "aarch64",
                "jetson",
                "i.mx8",
                "imx8",
                "raspberry pi",
                "rk35",
                "rk33",
                "rockchip",
                "cortex-a",
                "zynqmp",
                "graviton",
                "ampere",
            ]),
            amd: says(&AMD) && !says(&INTEL),
            intel: says(&INTEL) && !says(&AMD),
            cgroup2: says(&["cgroup2", "cgroup v2", "cgroups v2", "unified hierarchy"]),
            pstate_active: shows_active(text)
                || says(&[
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
                "no patch needed",
                "no patch is needed",
                "needs no patch",
                "without a patch",
                "part of the kernel",
                "no rt patch",
                "without patches",
                "kernel.org",
            ]),
        }
    }
}

/// Whether a text shows what intel_pstate/status says, and that is `active`.
fn shows_active(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.windows(2).any(|pair| pair[0].contains("intel_pstate/status") && pair[1] == "active")
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

/// Names of processors as people write them.
const AMD: [&str; 5] = ["epyc", "ryzen", "threadripper", "amd cpu", "amd processor"];
const INTEL: [&str; 7] = ["xeon", "core i3", "core i5", "core i7", "core i9", "celeron", "intel"];

/// Kernel parameters that only x86 has (arch/x86, drivers/idle, drivers/cpufreq; kernel-parameters.txt).
const X86: [&str; 16] = [
    "idle",
    "intel_idle.",
    "intel_pstate",
    "amd_pstate",
    "mce",
    "tsc",
    "nopti",
    "noapic",
    "nolapic",
    "nox2apic",
    "hpet",
    "intel_iommu",
    "amd_iommu",
    "clearcpuid",
    "nosmap",
    "no_timer_check",
];

/// What another architecture, driver or version of control groups has.
fn of_another_machine(number: usize, line: &str, machine: Machine) -> Option<Remark> {
    let has = |wanted: &str| line.split([' ', '"', '\'', '=']).any(|word| word == wanted);
    let is_advised = |word: &str| line.find(word).is_some_and(|at| prose::advises(&line[..at]));
    let of_x86 = || {
        let is_set = |word: &&str| word.contains('=') || word.starts_with("no");
        let words = line.split([' ', '"', '\'', '`']).filter(is_set);
        let mut words = words.map(|word| word.split('=').next().unwrap_or(word));
        words.find(|word| {
            is_advised(word)
                && X86.iter().any(|known| word == known || known.ends_with('.') && word.starts_with(known))
        })
    };
    let foreign = of_x86().filter(|_| (machine.arm64 || machine.arm32) && !machine.x86);
    if let Some(name) = foreign {
        let message = format!("only x86 has {name}: on ARM the word does nothing");
        return Some(Remark::error(number, RemarkId::Elsewhere, line, message));
    }
    let of_vendor = |name: &'static [&'static str]| {
        let mut words = line.split([' ', '"', '\'', '`']).filter(|word| word.contains('='));
        words.find(|word| name.iter().any(|start| word.starts_with(start)) && is_advised(word))
    };
    let other = match () {
        () if machine.amd => of_vendor(&["intel_pstate=", "intel_idle."]).map(|word| (word, "Intel")),
        () if machine.intel => of_vendor(&["amd_pstate=", "amd_iommu="]).map(|word| (word, "AMD")),
        () => None,
    };
    if let Some((word, vendor)) = other {
        let name = word.split('=').next().unwrap_or(word);
        let message = format!("is of drivers for processors of {vendor}: on this one {name} does nothing");
        return Some(Remark::error(number, RemarkId::Elsewhere, line, message));
    }
    let governors = ["schedutil", "ondemand", "conservative", "userspace"];
    let sets_governor = line.contains("frequency-set") || line.contains("scaling_governor");
    let refused = governors.iter().find(|governor| machine.pstate_active && sets_governor && has(governor));
    if let Some(governor) = refused {
        let message =
            format!("intel_pstate in active mode has performance and powersave only, no {governor}");
        return Some(Remark::error(number, RemarkId::Malformed, line, message));
    }
    let of_v1 = ["--cpu-rt-runtime", "--cpu-rt-period"].into_iter().find(|sign| line.contains(sign))?;
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
    fn what_does_as_its_comment_says_is_fine() {
        for fine in [
            "# FIFO 80\nchrt -f 80 ./loop\n",
            "# SCHED_RR\nchrt 80 ./loop\n",
            "# node 1\nnumactl -N 1 ./x\n",
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
            "# FIFO 80\nchrt 80 ./loop\n",
            "# round robin\nchrt --fifo 80 ./loop\n",
            "# cores 2 and 3\nnumactl --cpunodebind=2-3 ./x\n",
            "# AMD EPYC\nhugepagesz=64K hugepages=8\n",
            "# vanilla, ARCH=arm \nCONFIG_PREEMPT_RT=y\n",
        ] {
            assert_eq!(of(wrong).len(), 1, "{wrong}: {:?}", of(wrong));
        }
    }
}
