//! What kind of machine it is, and what runs it.

use machine::boot_loader::{FirmwareSetting, FirmwareSettings};
use machine::facts::place::{FIRST_USER_NAMESPACE, container_of};
use machine::facts::virtualization::virtualization;
use record::Fact;
use sysroot::SysRoot;

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Reading, Value};
use crate::{cgroups, files};

pub(super) const FACTS: &[NamedFact] = &[
    fact("guest", "none, or the hypervisor: kvm, qemu, xen, vmware, microsoft, ...", guest),
    fact(
        "container",
        "none, or what made it: docker, podman, lxc, systemd-nspawn, kubernetes, ...",
        container,
    ),
    fact(
        "user-namespace",
        "whether this runs in a user namespace of its own, where capabilities do not reach the machine",
        user_namespace,
    ),
    fact("cgroup", "v1, v2, hybrid, none", cgroups::mode),
    fact(
        "bootloader",
        "grub, systemd-boot, u-boot, extlinux, raspberry-pi; absent where none left a trace",
        boot_loader,
    ),
    fact(
        "firmware.force-turbo",
        "what the Raspberry Pi's config.txt says of force_turbo; unknown below a filter that only the firmware can judge",
        force_turbo,
    ),
    fact("init", "process 1: systemd, or its own name", init),
    fact(
        "form",
        "laptop, tablet, desktop, server, embedded, other; board where there is a device tree",
        form,
    ),
    fact("battery", "whether the machine has one", battery),
];

const CHASSIS: &str = "/sys/class/dmi/id/chassis_type";
const BOARD: &str = "/proc/device-tree/model";
const USER_NAMESPACE: &str = "/proc/self/ns/user";
const SUPPLIES: &str = "/sys/class/power_supply";

fn guest(survey: &Survey) -> Reading {
    let places =
        ["/sys/class/dmi/id", "/sys/devices/system/cpu/modalias", "/proc/device-tree", "/sys/hypervisor"];
    Reading::new(virtualization(&survey.root), &places)
}

/// See [`container_of`].
fn container(survey: &Survey) -> Reading {
    let (maker, places) = container_of(&survey.root);
    Reading::new(maker, &places)
}

/// Whether the namespace is another than the one that the kernel itself made.
fn user_namespace(survey: &Survey) -> Reading {
    let link = survey.root.link(USER_NAMESPACE);
    Reading::new(link.map(|link| link != FIRST_USER_NAMESPACE), &[USER_NAMESPACE])
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

fn boot_loader(survey: &Survey) -> Reading {
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

/// As for the file with the kernel's words: a line below `[pi3]` holds for some boards only.
fn force_turbo(survey: &Survey) -> Reading {
    let settings = FirmwareSettings::of_this_board(&survey.root);
    let value = settings.and_then(|settings| match settings.get("force_turbo") {
        FirmwareSetting::Absent => Fact::Value(Value::Number(0)),
        FirmwareSetting::Value(value) => Fact::Value(files::number_or_text(value)),
        FirmwareSetting::Below(_) => Fact::Unsupported,
    });
    Reading::new(value, &["/boot/firmware/config.txt", "/boot/config.txt"])
}

fn init(survey: &Survey) -> Reading {
    match survey.root.exists("/run/systemd/system") {
        Fact::Value(()) => Reading::new(Fact::Value("systemd"), &["/run/systemd/system"]),
        _ => Reading::new(survey.root.read("/proc/1/comm"), &["/proc/1/comm"]),
    }
}

/// By the chassis that the firmware names (SMBIOS 3.7, section 7.4.1); a board with a device tree names none.
fn form(survey: &Survey) -> Reading {
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
fn battery(survey: &Survey) -> Reading {
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
