//! What kind of machine it is, and what runs it.

use record::Fact;

use super::{Reading, Survey};
use crate::facts::virtualization::virtualization;
use crate::mounts::mounts;
use sysroot::SysRoot;

const CHASSIS: &str = "/sys/class/dmi/id/chassis_type";
const BOARD: &str = "/proc/device-tree/model";
const SUPPLIES: &str = "/sys/class/power_supply";

pub(super) fn guest(survey: &Survey) -> Reading {
    let places =
        ["/sys/class/dmi/id", "/sys/devices/system/cpu/modalias", "/proc/device-tree", "/sys/hypervisor"];
    Reading::new(virtualization(&survey.root), &places)
}

/// The namespaces that the kernel itself made, by the fixed numbers of include/linux/proc_ns.h.
const FIRST_NAMESPACES: [(&str, &str); 4] = [
    ("/proc/self/ns/pid", "pid:[4026531836]"),
    ("/proc/self/ns/uts", "uts:[4026531838]"),
    ("/proc/self/ns/ipc", "ipc:[4026531839]"),
    ("/proc/self/ns/cgroup", "cgroup:[4026531835]"),
];

/// Files that a container's maker leaves, each with its name.
const MARKS: [(&str, &str); 2] = [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")];

/// Parts of control groups and of the root's layers, each with whom they belong to.
const TRACES: [(&str, &str); 7] = [
    ("kubepods", "kubernetes"),
    ("libpod", "podman"),
    ("containers/storage", "podman"),
    ("/docker", "docker"),
    ("/lxc", "lxc"),
    ("containerd", "containerd"),
    ("machine.slice/machine-", "systemd-nspawn"),
];

/// Who made the container that this runs in; `none` where no mark is found, or where this runs in the namespaces of
/// the machine itself: a virtual machine's disk made from a container's image has the marks, too.
pub(super) fn container(survey: &Survey) -> Reading {
    let (maker, places) = container_of(&survey.root);
    Reading::new(maker, &places)
}

/// The same of any root, and where it was read.
pub(crate) fn container_of(root: &SysRoot) -> (Fact<String>, Vec<&'static str>) {
    let made_by = |maker: &str, places: &[&'static str]| (Fact::Value(maker.to_owned()), places.to_vec());
    let is_first = |(path, first): &(&str, &str)| root.link(path).value().is_some_and(|link| link == first);
    if FIRST_NAMESPACES.iter().all(is_first) {
        return made_by("none", &FIRST_NAMESPACES.map(|(path, _)| path));
    }
    for (path, maker) in MARKS {
        if let Fact::Value(()) = root.exists(path) {
            return made_by(maker, &[path]);
        }
    }
    if let Fact::Value(name) = root.read("/run/systemd/container") {
        return made_by(&name, &["/run/systemd/container"]);
    }
    let group = root.read("/proc/self/cgroup");
    let layers = mounts(root).into_iter().rev().find(|mount| mount.point == std::path::Path::new("/"));
    let layers = layers.filter(|mount| mount.file_system == "overlay").map(|mount| mount.options.join(","));
    let traces = [group.value().cloned(), layers];
    let of = |(part, maker): &(&str, &'static str)| {
        traces.iter().flatten().any(|trace| trace.contains(part)).then_some(*maker)
    };
    let maker = TRACES.iter().find_map(of);
    let places = [
        "/run/.containerenv",
        "/.dockerenv",
        "/run/systemd/container",
        "/proc/self/cgroup",
        "/proc/self/mountinfo",
    ];
    match (maker, &group) {
        (Some(maker), _) => made_by(maker, &places[3..]),
        (None, Fact::Unsupported) => (Fact::Unsupported, places.to_vec()),
        (None, _) => made_by("none", &places),
    }
}

/// What loads the kernel, each with a file that it leaves. The order is that of trust: a board's own loader may start
/// another one, whose files are read.
const LOADERS: [(&str, &str); 10] = [
    ("/proc/device-tree/chosen/u-boot,version", "u-boot"),
    ("/boot/loader/loader.conf", "systemd-boot"),
    ("/boot/efi/loader/loader.conf", "systemd-boot"),
    ("/efi/loader/loader.conf", "systemd-boot"),
    ("/boot/grub/grub.cfg", "grub"),
    ("/boot/grub2/grub.cfg", "grub"),
    ("/boot/extlinux/extlinux.conf", "extlinux"),
    ("/boot/firmware/cmdline.txt", "raspberry-pi"),
    ("/boot/cmdline.txt", "raspberry-pi"),
    ("/etc/fw_env.config", "u-boot"),
];

pub(super) fn boot_loader(survey: &Survey) -> Reading {
    let mut hidden = Fact::Absent;
    for (path, loader) in LOADERS {
        match survey.root.exists(path) {
            Fact::Value(()) => return Reading::new(Fact::Value(loader), &[path]),
            Fact::Absent => {}
            other => hidden = other.map(|()| loader),
        }
    }
    Reading::new(hidden, &LOADERS.map(|(path, _)| path))
}

pub(super) fn init(survey: &Survey) -> Reading {
    match survey.root.exists("/run/systemd/system") {
        Fact::Value(()) => Reading::new(Fact::Value("systemd"), &["/run/systemd/system"]),
        _ => Reading::new(survey.root.read("/proc/1/comm"), &["/proc/1/comm"]),
    }
}

/// By the chassis that the firmware names (SMBIOS 3.7, section 7.4.1); a board with a device tree names none.
pub(super) fn form(survey: &Survey) -> Reading {
    match survey.root.number::<u8>(CHASSIS) {
        Fact::Absent => Reading::new(survey.root.read(BOARD).map(|_| "board"), &[CHASSIS, BOARD]),
        kind => Reading::new(kind.map(form_of), &[CHASSIS]),
    }
}

fn form_of(chassis: u8) -> &'static str {
    match chassis {
        8 | 9 | 10 | 14 | 31 | 32 => "laptop",
        11 | 30 => "tablet",
        3..=7 | 13 | 15 | 16 | 24 | 35 => "desktop",
        17 | 23 | 25 | 28 | 29 => "server",
        33 | 34 | 36 => "embedded",
        _ => "other",
    }
}

/// A battery that runs the machine; those of mice and keyboards have the scope `Device`.
pub(super) fn battery(survey: &Survey) -> Reading {
    let root = &survey.root;
    let is_battery = |name: &String| {
        let says = |file: &str, word: &str| {
            root.read(&format!("{SUPPLIES}/{name}/{file}")).value().is_some_and(|text| text == word)
        };
        says("type", "Battery") && !says("scope", "Device")
    };
    let value = match root.list(SUPPLIES) {
        Fact::Absent if has_sysfs(root) => Fact::Value(false),
        names => names.map(|names| names.iter().any(is_battery)),
    };
    Reading::new(value, &[SUPPLIES])
}

fn has_sysfs(root: &SysRoot) -> bool {
    root.list("/sys/class").value().is_some()
}
