//! Which kernel it is, how it preempts, what it hides.

use machine::configuration::{UNDECIDED_PREEMPTION, configured_preemption};
use machine::facts::kernel::{
    DYNAMIC, Names, RELEASE, built_preemption, logged_preemption, requested_preemption,
};
use machine::kernel_config::{Header, KernelConfig, Setting};
use machine::kernel_log;
use record::Fact;
use rustix::io::Errno;
use sysroot::SysRoot;

use crate::files;
use crate::survey::{ARCHITECTURE, COMMAND_LINE, NamedFact, Survey, fact};
use crate::switches;
use crate::value::{Reading, lost};

pub(super) const FACTS: &[NamedFact] = &[
    fact("architecture", "uname -m: x86_64, i686, aarch64, armv7l, ppc, riscv64, ...", architecture),
    fact("architecture.family", "x86, arm, arm64, powerpc, riscv, ...", family),
    fact("kernel", "its version: 6.1.90", version),
    fact("kernel.release", "uname -r: 6.1.0-21-amd64", full_release),
    fact(
        "preemption",
        "in effect: rt, full, lazy, voluntary, none; `full or lazy`, `none or voluntary`, `dynamic` where the kernel does not say more",
        preemption,
    ),
    fact("config.source", "the file that the kernel's configuration was read from", config_source),
    fact("evl", "whether EVL's core runs beside Linux", evl),
    fact("lockdown", "none, integrity, confidentiality", lockdown),
    fact(
        "kstack.offset",
        "whether each system call moves the kernel's stack by a random offset: as built, unless the kernel command line says otherwise",
        stack_offset,
    ),
];

const VERSION: &str = "/proc/sys/kernel/version";
const DEBUGFS_MODE: &str = "/sys/kernel/debug/sched/preempt";
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// What the kernel's log is called as a place.
pub(super) const LOG: &str = "the kernel's log";

/// `uname -r`.
fn release(root: &SysRoot) -> Fact<String> {
    root.read(RELEASE)
}

fn full_release(survey: &Survey) -> Reading {
    Reading::new(release(&survey.root), &[RELEASE])
}

/// `uname -m`; of a configuration alone, what kernels for it say there.
fn architecture(survey: &Survey) -> Reading {
    let asked = survey.root.bytes_or(ARCHITECTURE, || machine_of(&survey.root));
    match asked.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()) {
        Fact::Value(name) => Reading::new(Fact::Value(name), &[ARCHITECTURE]),
        none => match survey.configuration().config.value() {
            Some(config) => of_configuration(survey, named_by(config)),
            None => Reading::new(none, &[ARCHITECTURE]),
        },
    }
}

/// No architecture's name is longer.
const LONGEST_NAME: u64 = 64;

fn machine_of(root: &SysRoot) -> Fact<Vec<u8>> {
    match root.beginning(ARCHITECTURE, LONGEST_NAME) {
        Fact::Value(bytes) => Fact::Value(bytes),
        _ if root.is_live() => Fact::Value(rustix::system::uname().machine().to_bytes().to_vec()),
        none => none,
    }
}

/// A reading that stands in the configuration, whatever file that is.
fn of_configuration(survey: &Survey, value: Fact<String>) -> Reading {
    let value = value.map(Into::into);
    Reading { value, from: survey.configuration().from.clone() }
}

/// `uname -m` by the configuration's header and a few symbols.
fn named_by(config: &KernelConfig) -> Fact<String> {
    let has = |symbol| config.get(symbol) == Some(&Setting::Yes);
    let Some(Header { architecture, .. }) = &config.header else { return Fact::Unsupported };
    let name = match architecture.as_str() {
        "x86" if has("64BIT") => "x86_64",
        "x86" | "i386" => "i686",
        "arm64" => "aarch64",
        "arm" if has("CPU_V7") => "armv7l",
        "powerpc" if has("PPC64") && has("CPU_LITTLE_ENDIAN") => "ppc64le",
        "powerpc" if has("PPC64") => "ppc64",
        "powerpc" => "ppc",
        "riscv" if has("64BIT") => "riscv64",
        "riscv" => "riscv32",
        other => other,
    };
    Fact::Value(name.to_owned())
}

pub(super) fn family(survey: &Survey) -> Reading {
    let Reading { value, from } = architecture(survey);
    Reading { value: value.map(|name| family_of(&name.to_string()).into()), from }
}

fn family_of(machine: &str) -> &str {
    let begins = |with: &str| machine.starts_with(with);
    match machine {
        "x86_64" | "i386" | "i486" | "i586" | "i686" => "x86",
        "aarch64" | "aarch64_be" | "arm64" => "arm64",
        _ if begins("arm") => "arm",
        _ if begins("ppc") => "powerpc",
        _ if begins("riscv") => "riscv",
        _ if begins("mips") => "mips",
        _ if begins("loongarch") => "loongarch",
        _ => machine,
    }
}

/// The version without what a distribution adds; Debian's release stays at `.0`, its version text tells.
pub(super) fn version(survey: &Survey) -> Reading {
    let text = survey.root.read(VERSION);
    if let Some(number) = text.value().and_then(|text| debian_version(text)) {
        return Reading::new(Fact::Value(number), &[VERSION]);
    }
    match (release(&survey.root), survey.configuration().config.value()) {
        (Fact::Value(release), _) => Reading::new(Fact::Value(numbers_of(&release)), &[RELEASE]),
        (none, Some(KernelConfig { header: None, .. }) | None) => Reading::new(none, &[RELEASE]),
        (_, Some(KernelConfig { header: Some(header), .. })) => {
            of_configuration(survey, Fact::Value(numbers_of(&header.version)))
        }
    }
}

/// `6.1.90` of `#1 SMP PREEMPT_DYNAMIC Debian 6.1.90-1 (2024-05-03)`.
fn debian_version(version: &str) -> Option<String> {
    let (_, rest) = version.split_once(" Debian ")?;
    Some(numbers_of(rest)).filter(|numbers| numbers.contains('.'))
}

/// The numbers and dots that a text begins with.
fn numbers_of(text: &str) -> String {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].trim_end_matches('.').to_owned()
}

/// How the kernel preempts, from what it does to what it was asked for.
fn preemption(survey: &Survey) -> Reading {
    let file = |path| survey.root.read(path).value().cloned().unwrap_or_default();
    let names = Names { release: file(RELEASE), version: file(VERSION), ..Names::default() };
    let built = built_preemption(&names);
    if built == "PREEMPT_RT" {
        return Reading::new(Fact::Value("rt"), &[VERSION]);
    }
    if survey.root.read("/sys/kernel/realtime").value().is_some_and(|text| text == "1") {
        return Reading::new(Fact::Value("rt"), &["/sys/kernel/realtime"]);
    }
    if built.is_empty() {
        let mode = survey.configuration().config.value().map(configured_preemption);
        let mode = mode.filter(|mode| *mode != UNDECIDED_PREEMPTION || survey.names_all());
        return of_configuration(survey, mode.map_or(Fact::Unsupported, |mode| Fact::Value(mode.to_owned())));
    }
    effective_preemption(survey, built).unwrap_or_else(|| {
        let word = if built == DYNAMIC { "dynamic" } else { built };
        match survey.configuration().config.value().map(configured_preemption) {
            Some(mode) if built != "full" && mode != "dynamic" => {
                of_configuration(survey, Fact::Value(mode.into()))
            }
            _ => Reading::new(Fact::Value(word), &[VERSION]),
        }
    })
}

/// What a kernel with several modes says that it does: debugfs, its log, which names each change, its command line.
fn effective_preemption(survey: &Survey, built: &str) -> Option<Reading> {
    if let Fact::Value(mode) = files::choice(&survey.root, DEBUGFS_MODE) {
        return Some(Reading::new(Fact::Value(mode), &[DEBUGFS_MODE]));
    }
    let log = kernel_log::boot_log(&survey.root);
    let logged = log.value().and_then(|log| log.lines.iter().rev().find_map(|line| logged_preemption(line)));
    if let Some(mode) = logged {
        return Some(Reading::new(Fact::Value(mode), &[LOG]));
    }
    let line = survey.root.read(COMMAND_LINE);
    let requested = line.value().filter(|_| built == DYNAMIC).and_then(|line| requested_preemption(line));
    requested.map(|mode| Reading::new(Fact::Value(mode), &[COMMAND_LINE]))
}

fn config_source(survey: &Survey) -> Reading {
    let configuration = survey.configuration();
    let value = match (&configuration.config, configuration.from.first()) {
        (Fact::Value(_), Some(path)) => Fact::Value(path.clone().into()),
        (Fact::Unreadable(errno), _) if *errno == Errno::NOENT.raw_os_error() => Fact::Absent,
        (other, _) => lost(other),
    };
    Reading { value, from: configuration.from.clone() }
}

/// How much the kernel hides from root (kernel_lockdown(7)). Without securityfs its log and configuration tell.
fn lockdown(survey: &Survey) -> Reading {
    let configuration = survey.configuration();
    match files::choice(&survey.root, LOCKDOWN) {
        Fact::Absent | Fact::Unsupported => {}
        answer => return Reading::new(answer, &[LOCKDOWN]),
    }
    if configuration.has("LOCK_DOWN_KERNEL_FORCE_CONFIDENTIALITY") {
        return of_configuration(survey, Fact::Value("confidentiality".into()));
    }
    if configuration.has("LOCK_DOWN_KERNEL_FORCE_INTEGRITY") {
        return of_configuration(survey, Fact::Value("integrity".into()));
    }
    if configuration.config.value().is_some_and(|config| config.get("SECURITY_LOCKDOWN_LSM").is_none()) {
        return of_configuration(survey, Fact::Value("none".into()));
    }
    let unknown = Fact::Unreadable(Errno::NOENT.raw_os_error());
    let value = match kernel_log::boot_log(&survey.root) {
        Fact::Value(log) if log.has("Kernel is locked down from") => Fact::Value("integrity"),
        Fact::Value(log) if log.is_whole => Fact::Value("none"),
        Fact::Unsupported => Fact::Unsupported,
        _ => unknown,
    };
    Reading::new(value, &[LOCKDOWN, LOG])
}

/// Whether each system call has a stack of its own offset (init/main.c: `randomize_kstack_offset`).
fn stack_offset(survey: &Survey) -> Reading {
    // A kernel that was built without it has it as little.
    let built = survey.read("config:RANDOMIZE_KSTACK_OFFSET");
    match switches::as_built(&built) {
        Fact::Value(false) => Reading { value: Fact::Value(false.into()), from: built.from },
        _ => survey.read("switch:randomize_kstack_offset,RANDOMIZE_KSTACK_OFFSET_DEFAULT"),
    }
}

/// Whether EVL's core runs beside Linux, or is built in where nothing more is known.
fn evl(survey: &Survey) -> Reading {
    const DEVICES: &str = "/dev/evl";
    match survey.root.exists(DEVICES) {
        Fact::Unsupported => {
            let configuration = survey.configuration();
            let value = configuration
                .config
                .value()
                .map_or(Fact::Unsupported, |_| Fact::Value(configuration.has("EVL")));
            Reading { value: value.map(Into::into), from: configuration.from.clone() }
        }
        Fact::Absent => Reading::new(Fact::Value(false), &[DEVICES]),
        there => Reading::new(there.map(|()| true), &[DEVICES]),
    }
}
