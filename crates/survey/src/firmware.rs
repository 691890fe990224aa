//! The machine under the kernel: power, firmware services, what shares caches and clocks with the CPUs.

use record::Fact;

use crate::survey::{COMMAND_LINE, NamedFact, Survey, fact};
use crate::value::{Item, Reading, lost};

pub(super) const FACTS: &[NamedFact] = &[
    fact("firmware-setup", "what only the firmware's setup shows: never known", |_| {
        Reading::new(Fact::<bool>::Unsupported, &["the firmware's setup"])
    }),
    fact("model", "the machine's name: by DMI, else by the device tree", model),
    fact("power.mains", "whether the machine runs on mains power; absent where nothing tells", mains),
    fact("efi-runtime", "whether EFI's runtime services are on; absent without EFI", efi_runtime),
    fact(
        "graphics.integrated",
        "Intel graphics that share the last-level cache, each with its driver",
        graphics,
    ),
    fact("uncore.scaling", "Intel uncores whose clock may move, each with its range in kHz", uncore),
];

const SUPPLIES: &str = "/sys/class/power_supply";
const EFI: &str = "/sys/firmware/efi";
const CARDS: &str = "/sys/class/drm";
const UNCORES: &str = "/sys/devices/system/cpu/intel_uncore_frequency";

fn model(survey: &Survey) -> Reading {
    let root = &survey.root;
    let (vendor, product) = ("/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name");
    match (root.read(vendor), root.read(product)) {
        (Fact::Value(vendor_name), Fact::Value(name)) => {
            Reading::new(Fact::Value(format!("{vendor_name} {name}")), &[vendor, product])
        }
        _ => Reading::new(root.read("/proc/device-tree/model"), &["/proc/device-tree/model"]),
    }
}

fn mains(survey: &Survey) -> Reading {
    let root = &survey.root;
    let file = |name: &str, file: &str| root.read(&format!("{SUPPLIES}/{name}/{file}")).value().cloned();
    let value = root.list(SUPPLIES).and_then(|names| {
        let mains = names.iter().filter(|name| file(name, "type").is_some_and(|kind| kind == "Mains"));
        let online: Vec<bool> = mains.filter_map(|name| Some(file(name, "online")? == "1")).collect();
        if online.is_empty() { Fact::Absent } else { Fact::Value(online.contains(&true)) }
    });
    Reading::new(value, &[&format!("{SUPPLIES}/*/online")])
}

/// By the kernel command line, else as built: off by default with PREEMPT_RT, whatever symbol says so (drivers/firmware/efi/efi.c).
fn efi_runtime(survey: &Survey) -> Reading {
    match survey.root.exists(EFI) {
        Fact::Value(()) => {}
        other => return Reading::new(other.map(|()| false), &[EFI]),
    }
    let configuration = survey.configuration();
    let words = survey.command_line().value();
    let efi = words.and_then(|line| line.value("efi")).unwrap_or_default();
    let asks = |option: &str| efi.split(',').any(|word| word == option);
    let value = match &configuration.config {
        _ if asks("noruntime") || words.is_some_and(|line| line.get("noefi").is_some()) => Fact::Value(false),
        _ if asks("runtime") => Fact::Value(true),
        Fact::Value(config) if config.get("EFI_DISABLE_RUNTIME").is_some() => {
            Fact::Value(!configuration.has("EFI_DISABLE_RUNTIME"))
        }
        Fact::Value(_) => Fact::Value(!configuration.has("PREEMPT_RT")),
        other => lost(other),
    };
    let mut reading = Reading::new(value, &[EFI, COMMAND_LINE]);
    reading.from.extend(configuration.from.iter().cloned());
    reading
}

fn graphics(survey: &Survey) -> Reading {
    let root = &survey.root;
    let card = |name: &String| {
        let is_card = name.strip_prefix("card")?.bytes().all(|byte| byte.is_ascii_digit());
        let link = root.link(&format!("{CARDS}/{name}/device/driver")).value().filter(|_| is_card)?.clone();
        let driver = link.rsplit('/').next()?;
        ["i915", "xe"].contains(&driver).then(|| Item { name: name.clone(), value: driver.to_owned() })
    };
    let value = root.list(CARDS).map(|names| names.iter().filter_map(card).collect::<Vec<_>>());
    Reading::new(value, &[&format!("{CARDS}/card*/device/driver")])
}

fn uncore(survey: &Survey) -> Reading {
    let limit = |name: &str, limit: &str| {
        survey.root.read(&format!("{UNCORES}/{name}/{limit}_freq_khz")).value().cloned()
    };
    let moves = |name: &String| {
        let (lowest, highest) = (limit(name, "min")?, limit(name, "max")?);
        (lowest != highest).then(|| Item { name: name.clone(), value: format!("{lowest}-{highest}") })
    };
    let value =
        survey.root.directories(UNCORES).map(|names| names.iter().filter_map(moves).collect::<Vec<_>>());
    Reading::new(value, &[&format!("{UNCORES}/*/{{min,max}}_freq_khz")])
}
