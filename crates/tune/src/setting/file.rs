//! Files of the kernel by a path with `*`.

use std::fmt;

use control::Kernel;
use machine::latency_request;
use record::Fact;
use rustix::io::Errno;
use survey::matching;
use sysroot::SysRoot;
use units::{CpuId, CpuList, errno_in_words};

use super::{Expansion, Form, Kind, Phase, Target, hazard, partition};

/// Whether a file of choice may ask for a value there: in a file of the kernel, or as the limit on exit latencies.
pub fn is_setting(path: &str) -> bool {
    path == latency_request::PATH || control::is_setting(path)
}

/// The file that sysctl(8) means by a name such as `vm.swappiness`; none where there is no such file.
pub fn file_of_sysctl(root: &SysRoot, name: &str) -> Option<String> {
    let path = machine::taken::file_of_sysctl(name);
    (control::is_setting(&path) && root.read(&path).value().is_some()).then_some(path)
}

/// `value` into each file that fits `pattern`, of files of single CPUs those of `real_time`.
pub(super) fn expand(root: &SysRoot, pattern: &str, value: &str, real_time: &CpuList) -> Expansion {
    each(root, pattern, value, |path| concerns(root, path, real_time), Expansion::change)
}

/// Just `value` into each file that somebody has named by `pattern`.
pub(super) fn named(root: &SysRoot, pattern: &str, value: &str) -> Expansion {
    let mut expansion = Expansion::default();
    if pattern == latency_request::PATH {
        expansion.change(root, Target::LatencyLimit, value);
    } else if pattern.strip_prefix("/proc/irq/").is_some_and(|rest| rest.contains('/')) {
        expansion
            .refuse(pattern, "an interrupt has another number at the next boot: rules know it by its name");
    } else {
        return each(root, pattern, value, |_| true, Expansion::set);
    }
    expansion
}

fn each(
    root: &SysRoot,
    pattern: &str,
    value: &str,
    is_wanted: impl Fn(&str) -> bool,
    change: fn(&mut Expansion, &SysRoot, Target, &str),
) -> Expansion {
    let mut expansion = Expansion::default();
    let paths = match matching(root, &[pattern.to_owned()]) {
        Ok(paths) => paths,
        Err(errno) => {
            expansion.refuse(pattern, super::hazard::unreadable(pattern, errno));
            return expansion;
        }
    };
    // A pattern can fit what its words do not show.
    let there = |path: &&String| {
        control::is_setting(path) && !matches!(root.read(path), Fact::Absent | Fact::Unsupported)
    };
    let wanted: Vec<&String> = paths.iter().filter(there).filter(|path| is_wanted(path)).collect();
    if wanted.is_empty() {
        expansion.refuse(pattern, format!("not there ({})", errno_in_words(2)));
    }
    for path in wanted {
        match lacking(root, path, value) {
            Some(offered) => expansion.refuse(path, format!("the kernel offers {offered}, and not {value}")),
            None => change(&mut expansion, root, Target::File(path.clone()), value),
        }
    }
    expansion
}

/// Files that take one of several words, and the file beside each that says which. What is not among them some take
/// without a word and ignore.
const OFFERS: [(&str, &str); 4] = [
    ("current_clocksource", "available_clocksource"),
    ("energy_performance_preference", "energy_performance_available_preferences"),
    ("platform_profile", "platform_profile_choices"),
    ("cpuidle/current_governor", "cpuidle/available_governors"),
];

/// What the kernel offers, where `value` is not among it.
fn lacking(root: &SysRoot, path: &str, value: &str) -> Option<String> {
    let (name, beside) = OFFERS.iter().find(|(name, _)| path.ends_with(name))?;
    let offered = root.read(&format!("{}{beside}", path.strip_suffix(name)?)).value()?.clone();
    let has = offered.split_whitespace().any(|word| word == value);
    (!has).then(|| offered.split_whitespace().collect::<Vec<_>>().join(", "))
}

/// Whether a file of single CPUs is one of `real_time`; other files concern all.
pub(super) fn concerns(root: &SysRoot, path: &str, real_time: &CpuList) -> bool {
    let Some(rest) = path.strip_prefix("/sys/devices/system/cpu/") else { return true };
    let Some((first, rest)) = rest.split_once('/') else { return true };
    if let Some(cpu) = first.strip_prefix("cpu").and_then(|number| number.parse().ok()) {
        return real_time.contains(CpuId(cpu));
    }
    match (first, rest.split_once('/')) {
        ("cpufreq", Some((policy, _))) if policy.starts_with("policy") => {
            let related = root.read(&format!("/sys/devices/system/cpu/cpufreq/{policy}/related_cpus"));
            let cpus = related.value().map(|text| text.split_whitespace().filter_map(|cpu| cpu.parse().ok()));
            cpus.is_none_or(|mut cpus| cpus.any(|cpu| real_time.contains(CpuId(cpu))))
        }
        _ => true,
    }
}

/// A file of the kernel, by its path.
pub(super) struct File<'a>(pub &'a str);

impl fmt::Display for File<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Kind for File<'_> {
    fn text(&self, root: &SysRoot) -> Fact<String> {
        root.read(self.0)
    }

    fn write(&self, kernel: &mut dyn Kernel, value: &str) -> Result<(), Errno> {
        kernel.write_file(self.0, value)
    }

    fn form(&self, text: &str) -> Form {
        Form::of(self.0, text)
    }

    fn phase(&self) -> Phase {
        match self.0 {
            path if path.ends_with("/online") || path.ends_with("/smt/control") => Phase::First,
            path if path.contains(hazard::FAIR_SERVER) => Phase::First,
            path if partition::is_file(path) => Phase::Groups,
            path if path.contains("/workqueue/") => Phase::WorkQueues,
            path if path.ends_with("/default_smp_affinity") => Phase::NewInterrupts,
            path if path.starts_with("/sys/devices/system/cpu/") => Phase::Cpus,
            _ => Phase::Others,
        }
    }

    /// A partition that is not valid separates nothing.
    fn is_all_or_nothing(&self) -> bool {
        self.0.ends_with(partition::STATE)
    }

    fn one_way(&self, old: &str) -> Option<&'static str> {
        hazard::one_way(self.0, old)
    }

    fn heavy(&self) -> Option<&'static str> {
        self.0.ends_with("/smt/control").then_some("CPUs would go offline")
    }

    fn effect(&self) -> Option<&'static str> {
        hazard::effect(self.0)
    }

    fn why_refused(&self, errno: i32) -> Option<&'static str> {
        hazard::why_refused(self.0, errno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::Tree;

    const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

    fn root(files: &[(&str, &str)]) -> SysRoot {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        SysRoot::of(Tree::whole(files))
    }

    #[test]
    fn a_word_that_the_kernel_does_not_offer_is_not_written() {
        let beside = CLOCK.replace("current", "available");
        let root = root(&[(CLOCK, "acpi_pm\n"), (&beside, "hpet acpi_pm \n")]);
        let expansion = |value: &str| expand(&root, CLOCK, value, &CpuList::new());
        assert_eq!(expansion("tsc").refusals[0].why_not, "the kernel offers hpet, acpi_pm, and not tsc");
        assert!(expansion("tsc").steps.is_empty());
        assert_eq!(expansion("hpet").steps[0].new, "hpet");
    }

    #[test]
    fn files_of_single_cpus_are_those_of_real_time() {
        let bias = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/power/energy_perf_bias");
        let (one, two) = (bias(1), bias(2));
        let related = "/sys/devices/system/cpu/cpufreq/policy0/related_cpus";
        let root = root(&[(&one, "6\n"), (&two, "6\n"), (related, "0 1\n")]);
        let pattern = "/sys/devices/system/cpu/cpu*/power/energy_perf_bias";
        let steps = expand(&root, pattern, "0", &"2-3".parse().unwrap()).steps;
        assert_eq!(steps.len(), 1);
        assert_eq!(steps[0].target, Target::File(two));
        let policy = "/sys/devices/system/cpu/cpufreq/policy0/boost";
        assert!(concerns(&root, policy, &"1".parse().unwrap()));
        assert!(!concerns(&root, policy, &"2-3".parse().unwrap()));
        assert!(concerns(&root, "/sys/devices/system/cpu/smt/control", &CpuList::new()));
    }

    #[test]
    fn what_somebody_names_gets_just_that_value() {
        let (mask, bias) =
            ("/proc/irq/default_smp_affinity", "/sys/devices/system/cpu/cpu0/power/energy_perf_bias");
        let root = root(&[(mask, "3\n"), (bias, "6\n"), ("/proc/irq/24/smp_affinity_list", "0\n")]);
        let expansion = |path: &str, value: &str| named(&root, path, value);
        assert_eq!(expansion(mask, "f").steps[0].new, "f", "a set of CPUs is widened");
        assert!(expand(&root, mask, "f", &CpuList::new()).steps.is_empty(), "a rule never widens one");
        assert_eq!(expansion(bias, "0").steps[0].new, "0", "of a CPU that is not for real time too");
        assert!(expansion(mask, "3").steps.is_empty() && expansion(mask, "3").refusals.is_empty());
        assert!(
            expansion("/proc/irq/*/smp_affinity_list", "1").refusals[0].why_not.contains("another number")
        );
    }

    #[test]
    fn what_this_kernel_lacks_is_said() {
        let expansion = expand(&root(&[]), "/proc/sys/kernel/nosuch", "0", &CpuList::new());
        assert_eq!(expansion.refusals[0].why_not, "not there (No such file or directory)");
    }
}
