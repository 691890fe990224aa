//! The facts that take thought, by name.

use super::{
    Reading, Survey, boot_line, cgroups, consoles, firmware, isolation, kernel, next_boot, nodes, place,
    processors, runtime, time_stamps,
};

/// A fact with a name of its own.
pub struct NamedFact {
    /// What rules call it.
    pub name: &'static str,
    /// What it says, and in which words.
    pub means: &'static str,
    pub(super) read: fn(&Survey) -> Reading,
}

/// A line of a table.
pub(super) const fn fact(name: &'static str, means: &'static str, read: fn(&Survey) -> Reading) -> NamedFact {
    NamedFact { name, means, read }
}

/// Each topic has its table beside its functions or here.
const TABLES: &[&[NamedFact]] = &[
    KERNEL,
    PLACE,
    PROCESSORS,
    boot_line::FACTS,
    next_boot::FACTS,
    consoles::FACTS,
    firmware::FACTS,
    isolation::FACTS,
    nodes::FACTS,
    time_stamps::FACTS,
];

const KERNEL: &[NamedFact] = &[
    fact("architecture", "uname -m: x86_64, i686, aarch64, armv7l, ppc, riscv64, ...", kernel::architecture),
    fact("architecture.family", "x86, arm, arm64, powerpc, riscv, ...", kernel::family),
    fact("kernel", "its version: 6.1.90", kernel::version),
    fact("kernel.release", "uname -r: 6.1.0-21-amd64", kernel::full_release),
    fact(
        "preemption",
        "in effect: rt, full, lazy, voluntary, none; `full or lazy`, `none or voluntary`, `dynamic` where the kernel does not say more",
        kernel::preemption,
    ),
    fact("config.source", "the file that the kernel's configuration was read from", kernel::config_source),
    fact("evl", "whether EVL's core runs beside Linux", kernel::evl),
    fact("lockdown", "none, integrity, confidentiality", kernel::lockdown),
];

const PLACE: &[NamedFact] = &[
    fact("guest", "none, or the hypervisor: kvm, qemu, xen, vmware, microsoft, ...", place::guest),
    fact(
        "container",
        "none, or what made it: docker, podman, lxc, systemd-nspawn, kubernetes, ...",
        place::container,
    ),
    fact("cgroup", "v1, v2, hybrid, none", cgroups::mode),
    fact(
        "bootloader",
        "grub, systemd-boot, u-boot, extlinux, raspberry-pi; absent where none left a trace",
        place::boot_loader,
    ),
    fact("init", "process 1: systemd, or its own name", place::init),
    fact(
        "form",
        "laptop, tablet, desktop, server, embedded, other; board where there is a device tree",
        place::form,
    ),
    fact("battery", "whether the machine has one", place::battery),
];

const PROCESSORS: &[NamedFact] = &[
    fact("vendor", "of the CPU: intel, amd, hygon, zhaoxin, arm, ...", processors::vendor),
    fact("cpus.online", "the CPUs that run", processors::online),
    fact("cpus.possible", "the CPUs that there can be", processors::possible),
    fact(
        "cpus.isolated",
        "out of load balancing: isolcpus=, and isolated partitions from 6.7 on",
        processors::isolated,
    ),
    fact("cpus.nohz_full", "CPUs that can do without a tick", processors::nohz_full),
    fact("smt", "on, off, or none where a core has one thread", processors::smt),
];

/// The fact with that name.
pub(super) fn named(name: &str) -> Option<&'static NamedFact> {
    named_facts().find(|fact| fact.name == name)
}

/// All facts that have names.
pub fn named_facts() -> impl Iterator<Item = &'static NamedFact> {
    TABLES.iter().chain(&runtime::TABLES).copied().flatten()
}
