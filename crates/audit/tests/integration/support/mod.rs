//! A machine that is made up, rules made up for it, and what they say of it.
#![allow(dead_code)]

use audit::{Audit, Finding, Request, Rules, audit};
use survey::Survey;
use sysroot::SysRoot;
use tempfile::TempDir;

/// A tree of files.
pub struct Machine {
    directory: TempDir,
}

impl Machine {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let machine = Self { directory: tempfile::tempdir().unwrap() };
        files.iter().for_each(|(path, text)| machine.write(path, text));
        machine
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.root().path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn root(&self) -> SysRoot {
        SysRoot::at(self.directory.path())
    }

    pub fn survey(&self, isolated: &str) -> Survey {
        Survey::new(self.root(), isolated.parse().unwrap())
    }
}

/// An ordinary four-CPU machine that runs 6.1 with a few faults.
pub fn machine() -> Machine {
    Machine::new(&[
        ("/proc/sys/kernel/osrelease", "6.1.0-21-amd64\n"),
        ("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.90-1\n"),
        ("/proc/sys/kernel/arch", "x86_64\n"),
        ("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu vme\n"),
        ("/proc/cmdline", "root=/dev/sda1 quiet\n"),
        (
            "/boot/config-6.1.0-21-amd64",
            "# Linux/x86 6.1.90 Kernel Configuration\n# CONFIG_PREEMPT_RT is not set\nCONFIG_HZ_250=y\nCONFIG_HZ=250\n# end of Kernel hacking\n",
        ),
        ("/sys/devices/system/cpu/online", "0-3\n"),
        ("/sys/devices/system/cpu/isolated", "\n"),
        ("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n"),
        ("/sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "performance\n"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("/proc/sys/vm/swappiness", "60\n"),
        ("/proc/sys/vm/stat_interval", "many\n"),
    ])
}

/// Rules of two layers that between them come to every outcome on [`machine`].
pub fn rules() -> Rules {
    Rules::parse(&[("config", CONFIG), ("runtime", RUNTIME)]).unwrap()
}

pub fn audit_with(rules: &Rules, machine: &Machine, isolated: &str, request: &Request) -> Audit {
    audit(&machine.survey(isolated), rules.all(), request)
}

/// Of [`machine`] with CPUs 2-3 for real time.
pub fn audit_of_everything(rules: &Rules) -> Audit {
    audit_with(rules, &machine(), "2-3", &Request::default())
}

pub fn finding<'a>(audit: &'a Audit, rule: &str) -> &'a Finding {
    let found = audit.findings.iter().find(|finding| finding.rule == rule);
    found.unwrap_or_else(|| panic!("no finding of {rule}"))
}

const CONFIG: &str = r##"
about = "How the kernel is built."

[[rule]]
id = "kc-rt"
title = "The kernel is built with PREEMPT_RT"
problem = "the kernel is built without PREEMPT_RT"
why = "Locks that sleep let a real-time thread run while the kernel works for others."
fact = "config:PREEMPT_RT"
also = ["preemption", "boot:preempt"]
wanted = { any = "= y" }
severity = "error"
severity-for = { stock = "warning" }
evidence = "measured"
figure = "44 to 27 us (Enea)"
costs = { throughput = "netperf halves (Enea 2013)" }
conflicts = ["kc-balancing"]
cure = { config = ["CONFIG_PREEMPT_RT=y"] }
source = ["a kernel document"]

[[rule]]
id = "kc-hz"
title = "The tick comes 1000 times a second"
problem = "the tick comes less than 1000 times a second"
why = "Time-outs are rounded to ticks."
fact = "config:HZ"
wanted = { any = ">= 1000" }
severity = "note"
evidence = "folklore"
cure = { config = ["CONFIG_HZ_1000=y", "# CONFIG_HZ_250 is not set", "CONFIG_HZ=1000"] }
source = ["a kernel document"]

[[rule]]
id = "kc-balancing"
title = "NUMA balancing is built in"
problem = "NUMA balancing is not built in"
why = "A rule that contradicts another."
fact = "config:NUMA_BALANCING"
wanted = { any = "= y" }
absent = "fail"
severity = "note"
evidence = "folklore"
cure = { config = ["CONFIG_NUMA_BALANCING=y"] }
source = ["a kernel document"]

[[rule]]
id = "kc-evl"
title = "EVL is built in"
problem = "EVL is not built in"
why = "Its out-of-band stage runs before Linux."
fact = "config:EVL"
wanted = { evl = "= y" }
severity = "error"
evidence = "mechanism"
cure = { none = "it takes another kernel tree" }
source = ["evlproject.org"]
"##;

const RUNTIME: &str = r##"
[[rule]]
id = "rn-thp"
title = "Transparent huge pages are never made"
problem = "transparent huge pages may be made"
why = "A huge page is made under the lock that page faults need; \"pages\" < 'faults' & more."
fact = "choice:/sys/kernel/mm/transparent_hugepage/enabled"
wanted = { general = "one of never madvise", isolated = "= never" }
severity = "warning"
evidence = "mechanism"
gain = "small"
change = "change it"
cure = { runtime = [{ path = "/sys/kernel/mm/transparent_hugepage/enabled", value = "never" }], boot = ["transparent_hugepage=never"] }
source = ["a kernel document"]

[[rule]]
id = "rn-governor"
title = "Clocks do not change"
problem = "clocks may change"
why = "A change of the clock stalls."
fact = "each:/sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
wanted = { any = "all = performance" }
severity = "error"
evidence = "mechanism"
gain = "small"
change = "change it"
cure = { runtime = [{ path = "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor", value = "performance" }] }
source = ["a kernel document"]

[[rule]]
id = "rn-isolated"
title = "The scheduler leaves CPUs for real time alone"
problem = "the scheduler puts threads on CPUs for real time"
why = "Load balancing moves threads there."
fact = "cpus.isolated"
wanted = { any = "covers {isolated}" }
severity = "warning"
evidence = "mechanism"
cure = { boot = ["isolcpus=managed_irq,domain,{isolated}"] }
source = ["a kernel document"]

[[rule]]
id = "rn-swappiness"
title = "Little is swapped"
problem = "much is swapped"
why = "A page that is swapped out is a fault of milliseconds."
fact = "sysctl:vm.swappiness"
wanted = { any = "<= 60" }
severity = "warning"
evidence = "mechanism"
gain = "small"
change = "change it"
cure = { runtime = [{ path = "/proc/sys/vm/swappiness", value = "10" }] }
source = ["a kernel document"]

[[rule]]
id = "rn-stat"
title = "Statistics are gathered seldom"
problem = "statistics are gathered often"
why = "Each CPU is interrupted for them."
fact = "sysctl:vm.stat_interval"
wanted = { any = ">= 10" }
severity = "error"
evidence = "mechanism"
gain = "small"
change = "change it"
cure = { runtime = [{ path = "/proc/sys/vm/stat_interval", value = "10" }] }
source = ["a kernel document"]

[[rule]]
id = "rn-arm"
title = "Something that only ARM has"
problem = "something that only ARM has is missing"
why = "It is not here."
fact = "file:/sys/arm"
applies = ["architecture = aarch64"]
wanted = { any = "= 0" }
severity = "error"
evidence = "mechanism"
cure = { none = "nothing" }
source = ["a kernel document"]

[[rule]]
id = "rn-absent"
title = "A file that is not here"
problem = "a file is not here"
why = "It says nothing."
fact = "file:/sys/absent"
wanted = { any = "= 0" }
severity = "error"
evidence = "mechanism"
cure = { application = "ask for it" }
source = ["a kernel document"]
"##;
