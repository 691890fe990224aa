//! Whether the machine is a guest, and whose. A container is none: it runs on the same kernel.

use record::Fact;
use sysroot::SysRoot;

use super::processors::{cpuinfo_value, harmless_cpuinfo, has_feature, x86_identity};

const DMI_VENDOR: &str = "/sys/class/dmi/id/sys_vendor";
const DMI_PRODUCT: &str = "/sys/class/dmi/id/product_name";
const ACPI_TABLE: &str = "/sys/firmware/acpi/tables/FACP";
const TREE_HYPERVISOR: &str = "/proc/device-tree/hypervisor/compatible";
const TREE_BOARD: &str = "/proc/device-tree/compatible";
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
const SYSINFO: &str = "/proc/sysinfo";

/// Something that gives a hypervisor away: all of the files hold their fragment.
struct Clue {
    name: &'static str,
    signs: &'static [(&'static str, &'static str)],
}

const fn clue(name: &'static str, signs: &'static [(&'static str, &'static str)]) -> Clue {
    Clue { name, signs }
}

/// In the order of trust: the first that fits names the hypervisor. A monitor's own name goes before `kvm`, that
/// before `qemu`, which without KVM is emulation. The ACPI fragments are OEM ids in the table's header.
const CLUES: &[Clue] = &[
    clue("xen", &[("/sys/hypervisor/type", "xen")]),
    clue("none", &[(DMI_VENDOR, "Amazon EC2"), (DMI_PRODUCT, ".metal")]),
    clue("vmware", &[(DMI_VENDOR, "VMware")]),
    clue("microsoft", &[(DMI_VENDOR, "Microsoft Corporation"), (DMI_PRODUCT, "Virtual Machine")]),
    clue("virtualbox", &[(DMI_PRODUCT, "VirtualBox")]),
    clue("parallels", &[(DMI_VENDOR, "Parallels")]),
    clue("apple", &[(DMI_VENDOR, "Apple"), (DMI_PRODUCT, "Virtualization")]),
    clue("bhyve", &[(DMI_PRODUCT, "BHYVE")]),
    clue("xen", &[(DMI_VENDOR, "Xen")]),
    clue("firecracker", &[(ACPI_TABLE, "FIRECK")]),
    clue("microsoft", &[(ACPI_TABLE, "VRTUAL")]),
    clue("virtualbox", &[(ACPI_TABLE, "VBOX")]),
    clue("vmware", &[(TREE_HYPERVISOR, "vmware")]),
    clue("xen", &[(TREE_HYPERVISOR, "xen")]),
    clue("kvm", &[(TREE_HYPERVISOR, "kvm")]),
    clue("kvm", &[(CLOCKS, "kvm-clock")]),
    clue("microsoft", &[(CLOCKS, "hyperv_clocksource")]),
    clue("kvm", &[(DMI_PRODUCT, "KVM")]),
    clue("kvm", &[(DMI_PRODUCT, "Google Compute Engine")]),
    clue("kvm", &[(DMI_VENDOR, "Amazon EC2")]),
    clue("kvm", &[(SYSINFO, "KVM/Linux")]),
    clue("z/vm", &[(SYSINFO, "z/VM")]),
    clue("qemu", &[(DMI_VENDOR, "QEMU")]),
    clue("qemu", &[(DMI_VENDOR, "Bochs")]),
    clue("qemu", &[(ACPI_TABLE, "BOCHS")]),
    clue("qemu", &[(TREE_BOARD, "qemu")]),
    clue(UNKNOWN, &[("/sys/hypervisor/type", "")]),
    clue(UNKNOWN, &[(TREE_HYPERVISOR, "")]),
    clue(UNKNOWN, &[(TREE_BOARD, "linux,dummy-virt")]),
];

/// A guest of a hypervisor that left no name.
const UNKNOWN: &str = "unknown hypervisor";

/// The hypervisor by name, which for Xen's first domain is `xen` as well; `none` where what would name one was read and does not; unknown where nothing was.
pub fn virtualization(root: &SysRoot) -> Fact<String> {
    let holds = |(path, fragment): &(&str, &str)| {
        let text = if *path == ACPI_TABLE { acpi_table(root) } else { root.read(path) };
        text.value().is_some_and(|text| text.contains(fragment))
    };
    let name = match CLUES.iter().find(|clue| clue.signs.iter().all(holds)) {
        Some(clue) => clue.name,
        None => match flag(root) {
            Some(true) => UNKNOWN,
            Some(false) => "none",
            None if [DMI_VENDOR, TREE_BOARD].iter().any(|path| root.read(path).value().is_some()) => "none",
            None => return Fact::Unsupported,
        },
    };
    Fact::Value(name.to_owned())
}

/// What Xen says of itself and of the domain that the machine is (Documentation/ABI/stable/sysfs-hypervisor-xen).
pub fn xen(root: &SysRoot) -> Fact<String> {
    let file = |name: &str| root.read(&format!("/sys/hypervisor/{name}"));
    file("type").and_then(|kind| if kind == "xen" { described(&file) } else { Fact::Absent })
}

fn described(file: &dyn Fn(&str) -> Fact<String>) -> Fact<String> {
    /// XENFEAT_dom0 of Xen's public/features.h.
    const FIRST_DOMAIN: u64 = 1 << 11;
    let part = |name: &str| file(&format!("version/{name}")).value().cloned().unwrap_or_default();
    file("version/major").map(|major| {
        let mut text = format!("Xen {major}.{}{}", part("minor"), part("extra"));
        // Kernels before 4.13 do not say which sort of guest it is.
        text.extend(file("guest_type").value().map(|kind| format!(", {kind}")));
        let features = file("properties/features");
        let bits = features.value().and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
        text.extend(bits.map(|bits| match bits & FIRST_DOMAIN {
            0 => ", not the first domain",
            _ => ", the first domain",
        }));
        text
    })
}

/// The first 36 bytes of the table, its header with the names of its maker (ACPI 6.5, section 5.2.6).
fn acpi_table(root: &SysRoot) -> Fact<String> {
    root.bytes_or(ACPI_TABLE, || root.beginning(ACPI_TABLE, 36))
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether an x86 CPU says that there is a hypervisor (CPUID leaf 1, ECX bit 31); nothing for other CPUs.
fn flag(root: &SysRoot) -> Option<bool> {
    if let Some(identity) = x86_identity(root) {
        return Some(has_feature(&identity, 4 * 32 + 31));
    }
    let cpuinfo = harmless_cpuinfo(root);
    let text = cpuinfo.value().filter(|text| is_x86(text))?;
    Some(is_guest_by_flag(text))
}

/// Whether cpuinfo is of an x86 CPU, which shows a hypervisor by a flag.
fn is_x86(cpuinfo: &str) -> bool {
    cpuinfo_value(cpuinfo, "vendor_id").is_some() && cpuinfo_value(cpuinfo, "flags").is_some()
}

/// The `hypervisor` flag of an x86 CPU (CPUID leaf 1, ECX bit 31).
pub(crate) fn is_guest_by_flag(cpuinfo: &str) -> bool {
    cpuinfo_value(cpuinfo, "flags")
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::FakeTree;

    /// The answer for a tree with `files`.
    fn answer(files: &[(&str, &str)]) -> Fact<String> {
        virtualization(&FakeTree::new(files).root)
    }

    fn named(name: &str) -> Fact<String> {
        Fact::Value(name.into())
    }

    #[test]
    fn hypervisors_are_named() {
        let guest = ("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor lahf_lm\n");
        assert_eq!(answer(&[guest]), named(UNKNOWN));
        assert_eq!(answer(&[guest, (DMI_VENDOR, "QEMU\n")]), named("qemu"));
        assert_eq!(answer(&[guest, (DMI_VENDOR, "QEMU\n"), (CLOCKS, "tsc kvm-clock")]), named("kvm"));
        assert_eq!(
            answer(&[guest, (ACPI_TABLE, "FACP\u{14}\u{1}\0\0\u{6}fFIRECKFCVMFADT")]),
            named("firecracker")
        );
        assert_eq!(answer(&[("/sys/hypervisor/type", "xen\n")]), named("xen"));
        assert_eq!(answer(&[(TREE_BOARD, "linux,dummy-virt\0")]), named(UNKNOWN));
    }

    #[test]
    fn xen_and_its_domain_are_described() {
        let of = |files: &[(&str, &str)]| xen(&FakeTree::new(files).root);
        let mut files = vec![
            ("/sys/hypervisor/type", "xen\n"),
            ("/sys/hypervisor/version/major", "4\n"),
            ("/sys/hypervisor/version/minor", "17\n"),
            ("/sys/hypervisor/version/extra", ".7\n"),
        ];
        assert_eq!(of(&files), named("Xen 4.17.7"));
        files.push(("/sys/hypervisor/guest_type", "PV\n"));
        files.push(("/sys/hypervisor/properties/features", "000042e7\n"));
        assert_eq!(of(&files), named("Xen 4.17.7, PV, not the first domain"));
        files.pop();
        files.push(("/sys/hypervisor/properties/features", "00004ae7\n"));
        assert_eq!(of(&files), named("Xen 4.17.7, PV, the first domain"));
        assert_eq!(of(&[]), Fact::Absent);
        assert_eq!(of(&[("/sys/hypervisor/type", "other\n")]), Fact::Absent);
    }

    #[test]
    fn bare_metal_is_said_only_where_something_was_read() {
        let metal = ("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu vme\n");
        assert_eq!(answer(&[metal]), named("none"));
        assert_eq!(answer(&[(TREE_BOARD, "fsl,imx8mp\0")]), named("none"));
        assert_eq!(
            answer(&[metal, (DMI_VENDOR, "Microsoft Corporation"), (DMI_PRODUCT, "Surface")]),
            named("none")
        );
        let aws = [(DMI_VENDOR, "Amazon EC2"), (DMI_PRODUCT, "m6g.metal")];
        assert_eq!(answer(&aws), named("none"));
        assert_eq!(answer(&[("/proc/cpuinfo", "processor\t: 0\n")]), Fact::Unsupported);
    }
}
