//! Kernel parameters that do not do what they seem to (Documentation/admin-guide/kernel-parameters.txt).

use machine::command_line::{CommandLine, Word};
use machine::grammar::{self, Kind, Misfit};
use machine::{kernel_log, parameters};
use record::Fact;
use units::{CpuList, KernelVersion};

use super::kernel;
use super::kernel::LOG;
use super::next_boot::words;
use crate::files;
use crate::survey::{COMMAND_LINE, NamedFact, Survey, fact};
use crate::value::{Item, Reading, Value, item, lost};

pub(super) const FACTS: &[NamedFact] = &[
    fact(
        "boot.unknown",
        "words that neither the kernel's documents have nor a program reads that starts first; whether the kernel's log names them",
        unknown,
    ),
    fact("boot.dead", "words for something that this kernel was built without", dead),
    fact(
        "boot.odd",
        "words with characters that are not plain ASCII, or with a quote that does not end",
        odd,
    ),
    fact("boot.repeated", "words that a later one of the same name overrides", repeated),
    fact("boot.room", "bytes left on the kernel command line before the kernel cuts it off", room),
    fact(
        "boot.refused",
        "words with a value that the kernel does not take, or that do nothing beside another word",
        refused,
    ),
    fact("boot.isolcpus.unknown", "flags of isolcpus= that the kernel skips", unknown_flags),
    fact("boot.cpus.missing", "CPU lists that name CPUs that cannot exist, or are no lists", missing_cpus),
];

/// A list made of the command line.
fn of_line(survey: &Survey, make: impl FnOnce(&CommandLine) -> Vec<Item>) -> Reading {
    let value = match survey.command_line() {
        Fact::Value(line) => Fact::Value(make(line)),
        other => lost(other),
    };
    Reading::new(value, &[COMMAND_LINE])
}

/// How the kernel begins to tell what it does not know (init/main.c, 5.14).
const UNKNOWN: &str = "nknown kernel command line parameters";

/// Since when it tells.
const TELLS: KernelVersion = KernelVersion::new(5, 14);

/// Judged by the kernel's documents. The kernel's own message is shown beside it and judges nothing: it names words that
/// work (`nokaslr`) and leaves out dotted ones that do not.
fn unknown(survey: &Survey) -> Reading {
    let version = kernel::version(survey).value.value().and_then(|text| text.to_string().parse().ok());
    let log = kernel_log::boot_log(&survey.root);
    let message = log.value().and_then(|log| log.lines.iter().find(|line| line.contains(UNKNOWN)));
    let named = message.map(|line| named_in(line)).unwrap_or_default();
    let would_tell = log.value().is_some_and(|log| log.is_whole) && version >= Some(TELLS);
    let reading = |word: &Word| {
        let is_named = named.words.iter().chain(&named.for_init).any(|named| named == word);
        let beside = if is_named {
            ", and the kernel's log names it"
        } else if would_tell && !word.name.contains('.') {
            ", but the log does not name it: a patched kernel?"
        } else {
            ""
        };
        item(words(word), format!("in no document{beside}"))
    };
    let is_unknown = |word: &&Word| {
        parameters::reader_of(&word.name).is_none()
            && parameters::is_taken(&word.name, version) == Some(false)
    };
    let mut reading = of_line(survey, |line| line.words.iter().filter(is_unknown).map(reading).collect());
    reading.from.extend(log.value().map(|_| LOG.to_owned()));
    reading
}

/// The words between the quotes of `Unknown kernel command line parameters "a b=c", will be passed to user space.`
fn named_in(line: &str) -> CommandLine {
    let words = line.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"'));
    CommandLine::parse(words.map_or("", |(words, _)| words))
}

/// Words with the symbol that must be built in for them to do anything.
const NEEDS: [(&str, &str); 21] = [
    ("isolcpus", "CPU_ISOLATION"),
    ("nohz_full", "NO_HZ_FULL"),
    ("rcu_nocbs", "RCU_NOCB_CPU"),
    ("rcu_nocb_poll", "RCU_NOCB_CPU"),
    ("preempt", "PREEMPT_DYNAMIC"),
    ("threadirqs", "IRQ_FORCED_THREADING"),
    ("psi", "PSI"),
    ("numa_balancing", "NUMA_BALANCING"),
    ("transparent_hugepage", "TRANSPARENT_HUGEPAGE"),
    ("nowatchdog", "LOCKUP_DETECTOR"),
    ("nosoftlockup", "SOFTLOCKUP_DETECTOR"),
    ("nmi_watchdog", "LOCKUP_DETECTOR"),
    ("audit", "AUDIT"),
    ("intel_pstate", "X86_INTEL_PSTATE"),
    ("amd_pstate", "X86_AMD_PSTATE"),
    ("intel_idle.max_cstate", "INTEL_IDLE"),
    ("processor.max_cstate", "ACPI_PROCESSOR"),
    ("cpuidle.governor", "CPU_IDLE"),
    ("cpufreq.default_governor", "CPU_FREQ"),
    ("rt_group_sched", "RT_GROUP_SCHED"),
    ("evl.oobcpus", "EVL"),
];

fn dead(survey: &Survey) -> Reading {
    let configuration = survey.configuration();
    let Fact::Value(config) = &configuration.config else {
        return Reading { value: lost(&configuration.config), from: configuration.from.clone() };
    };
    let is_off =
        |symbol: &str| matches!(config.get(symbol), None | Some(machine::kernel_config::Setting::No));
    let mut reading = of_line(survey, |line| {
        let useless = NEEDS.iter().filter(|(word, symbol)| line.get(word).is_some() && is_off(symbol));
        useless.map(|(word, symbol)| item(*word, format!("needs CONFIG_{symbol}"))).collect()
    });
    reading.from.extend(configuration.from.iter().cloned());
    reading
}

fn odd(survey: &Survey) -> Reading {
    let text = survey.root.read(COMMAND_LINE);
    let ends = text.value().is_none_or(|text| text.matches('"').count() % 2 == 0);
    of_line(survey, |line| {
        let foreign = |word: &&Word| !(word.name.is_ascii() && word.text().is_ascii());
        let mut odd: Vec<Item> = line
            .words
            .iter()
            .filter(foreign)
            .map(|word| item(format!("{}={}", word.name, word.text()), "not plain ASCII"))
            .collect();
        if !ends {
            odd.push(item("\"", "a quote that does not end"));
        }
        odd
    })
}

fn repeated(survey: &Survey) -> Reading {
    of_line(survey, |line| {
        let wins = |word: &Word| line.get(&word.name).map(Word::text).unwrap_or_default().to_owned();
        line.overridden()
            .into_iter()
            .map(|word| item(&word.name, format!("{}, then {}", word.text(), wins(word))))
            .collect()
    })
}

/// COMMAND_LINE_SIZE, the end included, by the kernel's architecture and version (arch/*/include/{uapi/,}asm/setup.h).
fn longest_line(family: &str, version: KernelVersion) -> Option<i64> {
    match family {
        "x86" | "arm64" => Some(2048),
        "arm" => Some(1024),
        "powerpc" if version >= KernelVersion::new(5, 1) => Some(2048),
        "powerpc" => Some(512),
        "riscv" if version >= KernelVersion::new(6, 4) => Some(1024),
        "riscv" => Some(512),
        _ => None,
    }
}

fn room(survey: &Survey) -> Reading {
    let family = kernel::family(survey).value.value().map(Value::to_string).unwrap_or_default();
    let version = kernel::version(survey).value.value().map(Value::to_string).unwrap_or_default();
    let longest = version.parse().ok().and_then(|version| longest_line(&family, version));
    let value = survey.root.read(COMMAND_LINE).and_then(|line| match longest {
        Some(longest) => Fact::Value(longest - 1 - line.len() as i64),
        None => Fact::Unsupported,
    });
    Reading::new(value, &[COMMAND_LINE])
}

/// By the grammar of kernel parameters; CPU lists and flags of isolcpus= have facts of their own, which know the machine's CPUs.
fn refused(survey: &Survey) -> Reading {
    let version = kernel::version(survey).value.value().and_then(|text| text.to_string().parse().ok());
    let is_list = |word: &Word| {
        grammar::parameter(&word.name)
            .is_some_and(|known| matches!(known.kind, Kind::Cpus { .. } | Kind::FlaggedCpus(_)))
    };
    of_line(survey, |line| {
        let values = line.words.iter().filter(|word| !is_list(word)).filter_map(|word| {
            let fault = grammar::judge(&word.name, word.value.as_deref(), version)?;
            Some(item(words(word), fault.message))
        });
        // nohz=off beside nohz_full= has a rule of its own.
        let is_own = |misfit: &Misfit| misfit.fault.message.contains("nohz=off");
        let misfits = grammar::together(line, version)
            .into_iter()
            .filter(|misfit| !is_own(misfit))
            .filter_map(|misfit| Some(item(words(line.words.get(misfit.place)?), misfit.fault.message)));
        values.chain(misfits).collect()
    })
}

const FLAGS: [&str; 3] = ["nohz", "domain", "managed_irq"];

/// What stands before the first CPU of `isolcpus=`, and the list.
pub(crate) fn split_flags(value: &str) -> (Vec<&str>, &str) {
    let mut flags = Vec::new();
    let mut rest = value;
    while rest.starts_with(|c: char| c.is_ascii_alphabetic()) && rest != "all" && !rest.starts_with("N") {
        let (flag, after) = rest.split_once(',').unwrap_or((rest, ""));
        flags.push(flag);
        rest = after;
    }
    (flags, rest)
}

fn unknown_flags(survey: &Survey) -> Reading {
    of_line(survey, |line| {
        let values = line.all("isolcpus").flat_map(|word| split_flags(word.text()).0);
        values.filter(|flag| !FLAGS.contains(flag)).map(|flag| item(flag, "skipped")).collect()
    })
}

/// Words that take a CPU list.
const LISTS: [&str; 7] = [
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "irqaffinity",
    "kthread_cpus",
    "workqueue.unbound_cpus",
    "evl.oobcpus",
];

/// The CPUs of a word that takes a list, by the kernel's grammar, in which `all` stands for all CPUs that there can be
/// and `N` for the last of them (Documentation/admin-guide/kernel-parameters.rst).
pub fn cpus_of(text: &str, possible: &CpuList) -> Option<CpuList> {
    let list = split_flags(text).1;
    if list.eq_ignore_ascii_case("all") {
        return Some(possible.clone());
    }
    let last = possible.iter().next_back()?.0;
    let all_read = |text| grammar::cpu_list(text, None, None).ok();
    grammar::cpu_list(list, Some(last), None).ok().or_else(|| all_read(list))
}

fn missing_cpus(survey: &Survey) -> Reading {
    let possible = match files::cpus(&survey.root, "/sys/devices/system/cpu/possible") {
        Fact::Value(possible) => possible,
        other => return Reading::new(other, &["/sys/devices/system/cpu/possible"]),
    };
    let wrong = |word: &Word| match cpus_of(word.text(), &possible) {
        None => Some(item(&word.name, format!("`{}` is no CPU list", word.text()))),
        Some(cpus) => {
            let missing = cpus.difference(&possible);
            (!missing.is_empty()).then(|| item(&word.name, format!("there is no CPU {missing}")))
        }
    };
    of_line(survey, |line| {
        let given = LISTS.iter().flat_map(|name| line.all(name)).filter(|word| !word.text().is_empty());
        given.filter_map(wrong).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::FakeTree;

    fn reading(files: &[(&str, &str)], name: &str) -> String {
        let tree = FakeTree::new(files);
        tree.write("/sys/devices/system/cpu/possible", "0-3");
        Survey::new(tree.root.clone(), CpuList::new()).read(name).value.to_string()
    }

    #[test]
    fn words_that_do_nothing_are_found() {
        let line = |text| ("/proc/cmdline", text);
        let config = ("/proc/config.gz", "CONFIG_NO_HZ_FULL=y\n# CONFIG_RCU_NOCB_CPU is not set\n");
        assert_eq!(
            reading(&[line("nohz_full=1 rcu_nocbs=1 quiet"), config], "boot.dead"),
            "rcu_nocbs: needs CONFIG_RCU_NOCB_CPU"
        );
        assert_eq!(reading(&[line("a=1 a=1 b=1 console=x console=y b=2")], "boot.repeated"), "b: 1, then 2");
        assert_eq!(
            reading(&[line("quiet \u{201c}isolcpus=1\u{201d} x=\"y")], "boot.odd"),
            "\u{201c}isolcpus=1\u{201d}: not plain ASCII, \": a quote that does not end"
        );
        assert_eq!(
            reading(&[line("isolcpus=managed,domain,2-3")], "boot.isolcpus.unknown"),
            "managed: skipped"
        );
        assert_eq!(
            reading(
                &[line("isolcpus=domain,2-9 nohz_full=3-N rcu_nocbs=all irqaffinity=0,x")],
                "boot.cpus.missing"
            ),
            "isolcpus: there is no CPU 4-9, irqaffinity: `0,x` is no CPU list"
        );
        assert_eq!(reading(&[line("quiet")], "boot.cpus.missing"), "none");
    }

    #[test]
    fn values_that_the_kernel_does_not_take_are_found() {
        let refused = |text| reading(&[("/proc/cmdline", text)], "boot.refused");
        assert!(
            refused("quiet idle=spin mitigations=auto").starts_with("idle=spin: takes poll, halt, nomwait")
        );
        assert!(refused("hugepages=4 hugepagesz=1G").starts_with("hugepagesz=1G: has no hugepages="));
        assert_eq!(refused("nohz=off nohz_full=2"), "none");
        assert_eq!(refused("quiet isolcpus=domain,2-3 nosmt root=/dev/sda1"), "none");
    }

    /// The log leaves out what has a dot and names what works: it only stands beside the judgement.
    #[test]
    fn documents_judge_words_and_the_log_stands_beside() {
        let version = ("/proc/sys/kernel/osrelease", "6.1.0");
        let line =
            ("/proc/cmdline", "BOOT_IMAGE=/vmlinuz nokaslr noht igb.x=1 workqueue.unbound_cpus=0 rd.a quiet");
        let unbound = "workqueue.unbound_cpus=0: in no document";
        assert_eq!(reading(&[version, line], "boot.unknown"), format!("noht: in no document, {unbound}"));
        let message = "Unknown kernel command line parameters \"BOOT_IMAGE=/vmlinuz nokaslr noht\", will be passed to user space.";
        let log = format!("5,0,0,-;Linux version 6.1\n5,9,100,-;{message}\n");
        let expected = format!("noht: in no document, and the kernel's log names it, {unbound}");
        assert_eq!(reading(&[version, line, ("/dev/kmsg", &log)], "boot.unknown"), expected);
        assert_eq!(reading(&[line], "boot.unknown"), "noht: in no document");
        let patched = reading(&[version, line, ("/dev/kmsg", "5,0,0,-;Linux version 6.1\n")], "boot.unknown");
        assert_eq!(
            patched,
            format!("noht: in no document, but the log does not name it: a patched kernel?, {unbound}")
        );
    }

    #[test]
    fn room_is_left_by_architecture_and_version() {
        let files = |arch, release| {
            [
                ("/proc/sys/kernel/arch", arch),
                ("/proc/sys/kernel/osrelease", release),
                ("/proc/cmdline", "quiet\n"),
            ]
        };
        assert_eq!(reading(&files("x86_64", "6.1.0"), "boot.room"), "2042");
        assert_eq!(reading(&files("ppc", "3.12.19"), "boot.room"), "506");
        assert_eq!(reading(&files("sparc64", "6.1.0"), "boot.room"), "unknown");
    }
}
