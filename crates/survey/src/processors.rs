//! The CPUs: whose they are, which run, which are set apart.

use machine::command_line::{CommandLine, Word};
use machine::facts::processors::{CPUS, cpuinfo_value, online as online_cpus};
use record::Fact;
use sysroot::{SysRoot, parsed};
use units::CpuList;

use crate::command_line::split_flags;
use crate::survey::{COMMAND_LINE, NamedFact, Survey, fact};
use crate::value::{Reading, lost};

pub(super) const FACTS: &[NamedFact] = &[
    fact("vendor", "of the CPU: intel, amd, hygon, zhaoxin, arm, ...", vendor),
    fact("cpus.online", "the CPUs that run", online),
    fact("cpus.possible", "the CPUs that there can be", possible),
    fact("cpus.isolated", "out of load balancing: isolcpus=, and isolated partitions from 6.7 on", isolated),
    fact("cpus.nohz_full", "CPUs that can do without a tick", nohz_full),
    fact("smt", "on, off, or none where a core has one thread", smt),
];

pub(super) const IDENTITY: &str = "/sys/devices/system/cpu/modalias";
const ARM_IDENTITY: &str = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1";

/// The kernel's numbers of x86 vendors (arch/x86/include/asm/processor.h).
const X86_VENDORS: [(&str, &str); 6] = [
    ("ven0000", "intel"),
    ("ven0002", "amd"),
    ("ven0005", "centaur"),
    ("ven0009", "hygon"),
    ("ven000A", "zhaoxin"),
    ("ven000B", "vortex"),
];

/// The codes of those who make Arm CPUs (Arm Architecture Reference Manual, MIDR_EL1).
const ARM_VENDORS: [(u64, &str); 9] = [
    (0x41, "arm"),
    (0x42, "broadcom"),
    (0x43, "cavium"),
    (0x46, "fujitsu"),
    (0x48, "hisilicon"),
    (0x4e, "nvidia"),
    (0x51, "qualcomm"),
    (0x61, "apple"),
    (0xc0, "ampere"),
];

/// Who made the CPU. /proc/cpuinfo is not asked on x86, where reading it interrupts every CPU from 4.13 to 5.17.
fn vendor(survey: &Survey) -> Reading {
    let root = &survey.root;
    let identity = root.read(IDENTITY);
    let named = |code: &(&str, &'static str)| identity.value()?.contains(code.0).then_some(code.1);
    if let Some(vendor) = X86_VENDORS.iter().find_map(named) {
        return Reading::new(Fact::Value(vendor), &[IDENTITY]);
    }
    if let Some(vendor) = arm_vendor(root) {
        return Reading::new(Fact::Value(vendor), &[ARM_IDENTITY]);
    }
    let cpuinfo = machine::facts::processors::harmless_cpuinfo(root);
    let vendor = cpuinfo.value().and_then(|text| vendor_in(text));
    Reading::new(vendor.map_or(Fact::Unsupported, Fact::Value), &[IDENTITY, "/proc/cpuinfo"])
}

fn arm_vendor(root: &SysRoot) -> Option<&'static str> {
    let register = root.read(ARM_IDENTITY).value()?.clone();
    arm_maker(u64::from_str_radix(register.trim_start_matches("0x"), 16).ok()? >> 24 & 0xff)
}

fn arm_maker(code: u64) -> Option<&'static str> {
    ARM_VENDORS.iter().find(|(number, _)| *number == code).map(|(_, name)| *name)
}

fn vendor_in(cpuinfo: &str) -> Option<&'static str> {
    if let Some(code) = cpuinfo_value(cpuinfo, "CPU implementer") {
        return arm_maker(u64::from_str_radix(code.trim_start_matches("0x"), 16).ok()?);
    }
    match cpuinfo_value(cpuinfo, "vendor_id")? {
        "GenuineIntel" => Some("intel"),
        "AuthenticAMD" => Some("amd"),
        "HygonGenuine" => Some("hygon"),
        _ => None,
    }
}

fn list(survey: &Survey, name: &str) -> Reading {
    let path = format!("{CPUS}/{name}");
    Reading::new(survey.root.cpu_list(&path), &[&path])
}

fn online(survey: &Survey) -> Reading {
    let cpus = online_cpus(&survey.root);
    if cpus.is_empty() {
        list(survey, "online")
    } else {
        Reading::new(Fact::Value(cpus), &[&format!("{CPUS}/online")])
    }
}

fn possible(survey: &Survey) -> Reading {
    list(survey, "possible")
}

fn isolated(survey: &Survey) -> Reading {
    let is_domain = |flags: &[&str]| flags.is_empty() || flags.contains(&"domain");
    apart_on_line(survey, |line| line.get("isolcpus").filter(|word| is_domain(&split_flags(word.text()).0)))
        .unwrap_or_else(|| list(survey, "isolated"))
}

fn nohz_full(survey: &Survey) -> Reading {
    let is_tickless = |word: &&Word| split_flags(word.text()).0.contains(&"nohz");
    apart_on_line(survey, |line| line.get("nohz_full").or_else(|| line.get("isolcpus").filter(is_tickless)))
        .unwrap_or_else(|| list(survey, "nohz_full"))
}

/// What a command line will set apart where there is no machine that did it. How many CPUs `all` and `N` are is not known then.
fn apart_on_line(survey: &Survey, word: impl Fn(&CommandLine) -> Option<&Word>) -> Option<Reading> {
    let line = if survey.is_of_papers { survey.command_line().value()? } else { return None };
    let value = match word(line).map(|word| split_flags(word.text()).1) {
        None => Fact::Value(CpuList::new()),
        Some(list) if list.contains(['N', 'a', 'A']) => Fact::Unsupported,
        Some(list) => parsed(list.parse()),
    };
    Some(Reading::new(value, &[COMMAND_LINE]))
}

/// Threads that share a core. Kernels without `smt/` are asked for each CPU's siblings.
fn smt(survey: &Survey) -> Reading {
    let root = &survey.root;
    let (active, control) = (format!("{CPUS}/smt/active"), format!("{CPUS}/smt/control"));
    let value = match (root.number::<u8>(&active), root.read(&control)) {
        (Fact::Value(1), _) => Fact::Value("on"),
        (Fact::Value(_), Fact::Value(word)) if word == "off" || word == "forceoff" => Fact::Value("off"),
        (Fact::Value(_), _) => Fact::Value("none"),
        (Fact::Absent, _) => return siblings(survey),
        (other, _) => lost(&other),
    };
    Reading::new(value, &[&active, &control])
}

fn siblings(survey: &Survey) -> Reading {
    let path = |cpu: &dyn std::fmt::Display| format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list");
    let shares = |cpu| survey.root.cpu_list(&path(&cpu)).map(|cpus| cpus.len() > 1);
    let answers: Vec<Fact<bool>> = online_cpus(&survey.root).iter().map(shares).collect();
    let value = match answers.iter().find(|answer| !matches!(answer, Fact::Value(false))) {
        Some(Fact::Value(_)) => Fact::Value("on"),
        Some(other) => lost(other),
        None if answers.is_empty() => Fact::Absent,
        None => Fact::Value("none"),
    };
    Reading::new(value, &[&path(&'*')])
}
