//! Arguments of tools that set up a machine: boot entries, clock rates, queues of the network, profiles, capabilities, JACK.

use super::containers::capability_fault;
use super::keys;
use super::nearest::nearest_of;
use super::script::value_of;

/// grubby(8): --args and --remove-args change entries that --update-kernel names.
pub fn grubby(arguments: &[&str]) -> Option<String> {
    let has = |names: &[&str]| {
        arguments.iter().any(|argument| names.contains(&argument.split('=').next().unwrap_or(argument)))
    };
    let changes = has(&["--args", "--remove-args"]);
    (changes && !has(&["--update-kernel", "--add-kernel"]))
        .then(|| "changes no entry: --update-kernel=ALL or a kernel's path says which".to_owned())
}

/// grub-mkconfig(8): without -o the configuration goes to standard output.
pub fn unwritten(arguments: &[&str]) -> Option<String> {
    let is_written =
        arguments.iter().any(|argument| argument.starts_with("-o") || argument.starts_with("--output"));
    (!is_written).then(|| "prints the configuration and writes no file: -o /boot/grub2/grub.cfg".to_owned())
}

/// rpm-ostree(1), kargs.
pub fn ostree(arguments: &[&str]) -> Option<String> {
    const CHANGES: [&str; 4] = ["--add", "--args", "--set", "--add-args"];
    let rest = arguments.strip_prefix(&["kargs"])?;
    let wrong =
        rest.iter().find(|argument| CHANGES.contains(&argument.split('=').next().unwrap_or(argument)))?;
    let option = wrong.split('=').next().unwrap_or(wrong);
    Some(format!("kargs has no {option}: --append, --append-if-missing, --replace and --delete change words"))
}

/// Services of Ubuntu Pro (`pro help --all`).
pub fn subscription(arguments: &[&str]) -> Option<String> {
    const SERVICES: [&str; 14] = [
        "realtime-kernel",
        "livepatch",
        "esm-infra",
        "esm-apps",
        "fips",
        "fips-updates",
        "fips-preview",
        "usg",
        "cis",
        "landscape",
        "anbox-cloud",
        "cc-eal",
        "ros",
        "ros-updates",
    ];
    let (verb, rest) = arguments.split_first()?;
    let name = rest.iter().find(|argument| !argument.starts_with('-'))?;
    let is_open = SERVICES.contains(name) || name.contains(['$', '<']);
    let begins = || SERVICES.into_iter().find(|service| service.starts_with(name));
    (matches!(*verb, "enable" | "disable") && !is_open).then(|| {
        match nearest_of(name, SERVICES.into_iter()).or_else(begins) {
            Some(meant) => format!("there is no service {name}: {meant} is meant"),
            None => format!("there is no service {name}"),
        }
    })
}

/// Keys of other_config in the database of Open vSwitch (ovs-vswitchd.conf.db(5)).
pub fn vswitch(arguments: &[&str]) -> Option<String> {
    arguments.iter().find_map(|argument| {
        let (name, value) = argument.strip_prefix("other_config:")?.split_once('=')?;
        let remark = keys::remark(1, "ovs", "", name, value.trim_matches(['"', '\'']))?;
        Some(format!("{name} {}", remark.message))
    })
}

/// cpupower-idle-set(1) takes one state.
pub fn one_idle_state(arguments: &[&str]) -> Option<String> {
    let options = ["-d", "-e", "-D", "-E", "--disable", "--enable", "--disable-by-latency", "--enable-all"];
    let count = arguments.iter().filter(|argument| options.contains(argument)).count();
    (arguments.contains(&"idle-set") && count > 1)
        .then(|| "idle-set changes one state a call: -D LATENCY disables all above a latency".to_owned())
}

/// cpupower-frequency-set(1): a frequency without a unit is in kHz.
pub fn frequency_without_unit(arguments: &[&str]) -> Option<String> {
    let names = ["-d", "--min", "-u", "--max", "-f", "--freq"];
    let value = value_of(arguments, &names).filter(|_| arguments.contains(&"frequency-set"))?;
    let number: f64 = value.parse().ok()?;
    (number < 10_000.0).then(|| format!("{value} without a unit is {value} kHz: GHz or MHz belongs to it"))
}

/// tc-etf(8): the qdisc takes CLOCK_TAI alone (net/sched/sch_etf.c).
pub fn clock_of_etf(arguments: &[&str]) -> Option<String> {
    let at = arguments.iter().position(|argument| *argument == "etf")?;
    let clock = value_of(&arguments[at..], &["clockid"]).filter(|clock| !clock.contains(['$', '<']))?;
    (clock != "CLOCK_TAI" && clock != "TAI").then(|| format!("etf takes CLOCK_TAI alone, not {clock}"))
}

/// tc-taprio(8): flags of what mainline knows (net/sched/sch_taprio.c).
pub fn flags_of_taprio(arguments: &[&str]) -> Option<String> {
    let at = arguments.iter().position(|argument| *argument == "taprio")?;
    let flags = value_of(&arguments[at..], &["flags"])?;
    if matches!(flags, "0x2" | "2") && arguments[at..].contains(&"clockid") {
        let message = "with full offload the device's clock counts: clockid is refused beside flags 0x2";
        return Some(message.to_owned());
    }
    let number = match flags.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => flags.parse().ok()?,
    };
    (number > 2).then(|| {
        format!("taprio has the flags 0x1 (launch times) and 0x2 (offload), one at a time, not {flags}")
    })
}

/// phc2sys(8): without -a the offset between the clocks is waited for or given.
pub fn offset_of_clock(arguments: &[&str]) -> Option<String> {
    let has = |letter: char| {
        arguments.iter().any(|argument| {
            argument.starts_with('-')
                && !argument.starts_with("--")
                && argument[1..].starts_with(|c: char| c.is_ascii_alphabetic())
                && argument.contains(letter)
        })
    };
    let is_manual = has('s') && !has('a') && !has('d') && !has('f');
    (is_manual && !has('w') && !has('O'))
        .then(|| "-w waits for ptp4l's offset, or -O gives it: without either it ends at once".to_owned())
}

/// jackd(1): its own options stand before -d, the driver's behind.
pub fn jackd(arguments: &[&str]) -> Option<String> {
    let driver = arguments.iter().position(|argument| argument.starts_with("-d"))?;
    let (own, drivers) = arguments.split_at(driver);
    let priority = |part: &[&str]| value_of(part, &["-P", "--realtime-priority"])?.parse::<u32>().ok();
    let is_ordinary = own.iter().any(|argument| matches!(*argument, "-r" | "--no-realtime"));
    if is_ordinary && priority(own).is_some() {
        return Some("-r before -d turns real-time scheduling off: the priority is not used".to_owned());
    }
    let priority = |part: &[&str]| {
        let glued = || part.iter().find_map(|argument| argument.strip_prefix("-P")?.parse::<u32>().ok());
        priority(part).or_else(glued)
    };
    let is_late = own.iter().all(|argument| !argument.starts_with("-P")) && priority(drivers).is_some();
    is_late.then(|| {
        "behind -d options are the driver's, whose -P is playback: the priority stands before -d".to_owned()
    })
}

/// setcap(8): the sets stand behind the names.
pub fn setcap(arguments: &[&str]) -> Option<String> {
    let text = arguments.iter().find(|argument| !argument.starts_with('-'))?;
    let bare = text.starts_with("cap_") && !text.contains(['=', '+']) && !text.ends_with("-ep");
    if bare {
        return Some(format!("the sets are missing: {text}+ep"));
    }
    let script = arguments.iter().find(|name| [".py", ".sh", ".pl"].iter().any(|end| name.ends_with(end)));
    if let Some(script) = script {
        return Some(format!(
            "{script} is a script: the kernel takes the capabilities of its interpreter's file"
        ));
    }
    let names = text.split(['=', '+', '-']).next().filter(|names| !names.contains(['$', '/', '<']))?;
    names.split(',').filter(|name| !name.is_empty()).find_map(capability_fault)
}

/// Profiles that tuned and its packages have.
const PROFILES: [&str; 22] = [
    "balanced",
    "desktop",
    "hpc-compute",
    "intel-sst",
    "latency-performance",
    "network-latency",
    "network-throughput",
    "optimize-serial-console",
    "powersave",
    "throughput-performance",
    "virtual-guest",
    "virtual-host",
    "realtime",
    "realtime-virtual-guest",
    "realtime-virtual-host",
    "cpu-partitioning",
    "cpu-partitioning-powersave",
    "accelerator-performance",
    "aws",
    "oracle",
    "mssql",
    "postgresql",
];

pub fn tuned(arguments: &[&str]) -> Option<String> {
    let (command, names) = arguments.split_first()?;
    let unknown = names.iter().filter(|name| *command == "profile" && !PROFILES.contains(name));
    unknown
        .filter_map(|name| nearest_of(name, PROFILES.into_iter()))
        .next()
        .map(|meant| format!("there is no such profile: {meant} is meant"))
}
