//! Options of docker, podman and nerdctl, and capabilities.

use machine::grammar::Kind;

/// Capabilities (capabilities(7)).
const CAPABILITIES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// What is wrong with the name of a capability.
pub fn capability_fault(name: &str) -> Option<String> {
    let upper = name.to_ascii_uppercase();
    let bare = upper.strip_prefix("CAP_").unwrap_or(&upper);
    let known = bare == "ALL" || CAPABILITIES.contains(&bare) || name.contains(['$', '<', '{']);
    (!known).then(|| {
        format!("there is no capability {name}: SYS_NICE allows real-time policies, IPC_LOCK locked memory")
    })
}

/// Options of `docker run` without a value.
const BARE: [&str; 12] = [
    "-i",
    "-t",
    "-it",
    "-ti",
    "-d",
    "-P",
    "--rm",
    "--privileged",
    "--init",
    "--interactive",
    "--tty",
    "--detach",
];

/// Options of `docker run` that touch latency.
const TOUCHING: [&str; 8] = [
    "--cap-add",
    "--ulimit",
    "--cpuset-cpus",
    "--cpuset-mems",
    "--cpu-rt-runtime",
    "--privileged",
    "--cpus",
    "--cpu-quota",
];

/// docker-run(1): options, the image, and what the program gets.
pub fn container(program: &str, arguments: &[&str]) -> Option<String> {
    let at = arguments.iter().position(|argument| matches!(*argument, "run" | "create"))?;
    if let Some(message) = runtime_above_period(&arguments[at + 1..]) {
        return Some(message);
    }
    let mut rest = arguments[at + 1..].iter();
    while let Some(argument) = rest.next() {
        if !argument.starts_with('-') {
            let behind = rest
                .find(|argument| TOUCHING.iter().any(|option| argument.split('=').next() == Some(option)));
            return behind
                .map(|option| format!("{option} stands behind the image: it is an argument of the program"));
        }
        let (option, value) = match argument.split_once('=') {
            Some((option, value)) => (option, value),
            None if BARE.contains(argument) => continue,
            None => (*argument, rest.next().copied().unwrap_or_default()),
        };
        if let Some(message) = container_option(program, option, value) {
            return Some(message);
        }
    }
    None
}

/// The kernel refuses a real-time runtime above its period (1 s if none is given).
fn runtime_above_period(arguments: &[&str]) -> Option<String> {
    let value = |name: &str| {
        arguments.iter().enumerate().find_map(|(at, argument)| match argument.strip_prefix(name)? {
            "" => arguments.get(at + 1)?.parse::<u64>().ok(),
            rest => rest.strip_prefix('=')?.parse().ok(),
        })
    };
    let period = value("--cpu-rt-period").unwrap_or(1_000_000);
    let runtime = value("--cpu-rt-runtime").filter(|runtime| *runtime > period)?;
    Some(format!("--cpu-rt-runtime={runtime} is above the period, {period} us: the kernel refuses it"))
}

/// Settings of sysctl that a container has for itself.
pub fn is_namespaced(setting: &str) -> bool {
    let own = [
        "net.",
        "fs.mqueue.",
        "kernel.msg",
        "kernel.sem",
        "kernel.shm",
        "kernel.hostname",
        "kernel.domainname",
        "user.",
    ];
    setting.contains(['$', '<']) || own.iter().any(|start| setting.starts_with(start))
}

fn container_option(program: &str, option: &str, value: &str) -> Option<String> {
    let number = |text: &str| text == "-1" || text.parse::<u64>().is_ok();
    match option {
        "--cap-add" | "--cap-drop" if program == "docker" && value.contains(',') => {
            Some(format!("{option} takes one capability: it is given once for each"))
        }
        "--cap-add" | "--cap-drop" => value.split(',').find_map(capability_fault),
        "--cpuset-cpus" | "--cpuset-mems" => Kind::Cpus { optional: false }
            .fault(Some(value), None)
            .map(|fault| format!("{option}: {}", fault.message)),
        "--cpu-rt-runtime" | "--cpu-rt-period" | "--cpu-quota" | "--cpu-period" => (!number(value)
            && !value.contains(['$', '<']))
        .then(|| format!("{option} takes microseconds as a number, not `{value}`")),
        "--cpus" => (value.parse::<f64>().is_err() && !value.contains(['$', '<'])).then(|| {
            format!("--cpus is how many CPUs' time there is, not `{value}`; --cpuset-cpus names CPUs")
        }),
        "--sysctl" => (!is_namespaced(value)).then(|| {
            format!("{value}: a container has its own settings only of net, fs.mqueue and System V IPC; the others are the host's, and are refused")
        }),
        "--cpu-affinity" | "--cpuset-cpu" => Some(format!("there is no {option}: --cpuset-cpus names CPUs")),
        "--rtprio" | "--memlock" => {
            Some(format!("there is no {option}: --ulimit {}={value}", option.trim_start_matches('-')))
        }
        "--cpuset" => Some("there is no --cpuset: --cpuset-cpus names CPUs".to_owned()),
        "--ulimit" => {
            let (_, limits) = value.split_once('=').unwrap_or((value, ""));
            let fine = value == "host" || limits.contains('$') || limits.split(':').all(number);
            let bounds: Vec<i64> = limits.split(':').filter_map(|limit| limit.parse().ok()).collect();
            if let [soft, hard] = bounds[..] {
                if hard >= 0 && (soft > hard || soft < 0) {
                    return Some(format!("--ulimit {value}: a soft limit above the hard one is refused"));
                }
            }
            (!fine).then(|| format!("--ulimit takes name=number, -1 for no limit, not `{value}`"))
        }
        _ => None,
    }
}
