//! Facts of the machine and of the plan: what somebody needs who wants to repeat the run, or doubts it.

use crate::instrument;
use crate::text::joined;
use record::{Fact, Lab, LabTime, Machine, Record, RunPlan, Throttling};

use super::view::{Block, Cell, DataTable, Section};
use crate::differences::length;

type Facts = Vec<(String, String)>;

/// Machine, plan, and what was held while the run lasted.
pub(crate) fn section(record: &Record) -> Section {
    let header = &record.header;
    let mut blocks = vec![
        Block::Heading("Machine".into()),
        Block::Facts(machine(&header.machine)),
        Block::Heading("Plan".into()),
        Block::Facts(plan(record)),
    ];
    if let Some(lab) = &header.machine.lab {
        blocks.splice(0..0, [Block::Heading("Lab".into()), Block::Facts(guest(lab))]);
    }
    if !header.held.is_empty() {
        let row = |held: &record::Held| {
            [&held.what, &held.value, &held.effective, &held.during]
                .map(|text| Cell::text(text.as_str()))
                .to_vec()
        };
        let head = ["setting", "asked for", "read back", "during"].map(Cell::text).to_vec();
        blocks.push(Block::Table(DataTable::new(
            "Settings held during the run",
            head,
            header.held.iter().map(row).collect(),
        )));
    }
    Section::new("facts", "Machine and plan", "", blocks)
}

fn entry(name: &str, value: impl ToString) -> (String, String) {
    (name.into(), value.to_string())
}

/// What the lab says of its guest.
pub(crate) fn guest(lab: &Lab) -> Facts {
    let clock = match lab.time {
        LabTime::Instructions => "instructions: one is a nanosecond",
        LabTime::Wall => "the time of the emulator's host",
    };
    let mut facts = vec![
        entry(
            "Kernel parameters asked for",
            if lab.words.is_empty() { "none".into() } else { lab.words.join(" ") },
        ),
        entry("The guest's clock counts", clock),
        entry("Emulator", &lab.emulator),
        entry("CPU model", &lab.cpu_model),
        entry("CPUs", lab.processors),
        entry("Not modelled", lab.not_modelled.join(", ")),
    ];
    if let Some(under) = &lab.under {
        facts.push(entry("Hypervisor under the kernel", under));
        facts.push(entry("SHA-256 of the hypervisor's image", &under.image));
    }
    // Older records have the kernel's name in the lab; newer ones say what the guest was made of.
    facts.extend(lab.kernel.as_ref().map(|name| entry("Kernel in the lab", name)));
    if let Some(images) = &lab.images {
        facts.push(entry("SHA-256 of the kernel's image", &images.kernel));
        facts.push(entry("SHA-256 of the guest's worstcase", &images.binary));
        facts.push(entry("SHA-256 of the guest's root", &images.initramfs));
    }
    facts
}

/// What is known of a machine.
pub(crate) fn machine(machine: &Machine) -> Facts {
    let cpus = &machine.cpus;
    let mut facts = vec![
        entry("Host", &machine.host),
        entry("CPU", &machine.cpu_model),
        entry("Architecture", &machine.architecture),
        entry("Memory", machine.memory.clone().map(gibibytes)),
        entry("Virtualization", &machine.virtualization),
        entry("Kernel", format!("{} {}", machine.kernel.release, machine.kernel.version)),
        entry("Preemption", &machine.kernel.preemption),
        entry("Kernel command line", &machine.kernel.command_line),
        entry("CPUs online", &cpus.online),
        entry("CPUs allowed", &cpus.allowed),
        entry("CPUs isolated", listed(&cpus.isolated)),
        entry("CPUs without tick (nohz_full)", listed(&cpus.nohz_full)),
        entry("SMT", cpus.smt_active.clone().map(|on| if on { "active" } else { "not active" })),
        entry("Clock source", &machine.clock_source),
        entry("Frequency governors", governors(machine)),
        entry("Idle states", idle_states(machine)),
        entry("Latency request at the start", latency_request(machine)),
    ];
    facts.extend(machine.xen.value().map(|xen| entry("Hypervisor", xen)));
    facts.extend(throttling(&machine.throttling));
    facts.extend(place(&machine.place));
    facts.extend(timers(&machine.timers));
    facts.push(entry("Consoles of the kernel", machine.consoles.clone().map(|consoles| consoles.join(", "))));
    facts.push(entry("Console log level", &machine.console_log_level));
    let load = machine.load_average_hundredths.clone();
    facts.push(entry(
        "Load average at the start",
        load.map(|hundredths| format!("{:.2}", f64::from(hundredths) / 100.0)),
    ));
    facts
}

/// An empty list is a fact too.
fn listed(cpus: &Fact<units::CpuList>) -> Fact<String> {
    cpus.clone().map(|cpus| if cpus.is_empty() { "none".into() } else { cpus.to_string() })
}

/// To a tenth of a GiB; small machines in MiB.
fn gibibytes(bytes: units::Bytes) -> String {
    match bytes.0 >> 20 {
        mebibytes if mebibytes < 2_048 => format!("{mebibytes} MiB"),
        mebibytes => format!("{:.1} GiB", mebibytes as f64 / 1024.0),
    }
}

fn governors(machine: &Machine) -> String {
    let all: Vec<_> = machine.governors.iter().map(|g| format!("{} on {}", g.name, g.cpus)).collect();
    if all.is_empty() { "none".into() } else { all.join(", ") }
}

fn idle_states(machine: &Machine) -> String {
    let all: Vec<_> = machine
        .idle_states
        .iter()
        .map(|state| {
            let disabled = if state.disabled { ", disabled" } else { "" };
            format!("{} ({} µs{disabled})", state.name, state.latency_us)
        })
        .collect();
    if all.is_empty() { "none".into() } else { all.join(", ") }
}

/// 2000000000 is what /dev/cpu_dma_latency reads where nobody asks for anything.
fn latency_request(machine: &Machine) -> Fact<String> {
    machine
        .dma_latency_us
        .clone()
        .map(|us| if us == 2_000_000_000 { "none".into() } else { format!("{us} µs") })
}

fn throttling(throttling: &Throttling) -> Facts {
    let micros = |fact: &Fact<i64>| {
        fact.clone().map(|us| if us < 0 { "unlimited".into() } else { format!("{us} µs") })
    };
    vec![
        entry("RT run time per period", micros(&throttling.runtime_us)),
        entry("RT period", micros(&throttling.period_us)),
        entry("RT run time of the cgroup", micros(&throttling.group_runtime_us)),
        entry("Fair server", &throttling.fair_server_runtime),
    ]
}

fn place(place: &record::Place) -> Facts {
    let quota =
        |quota: &record::CpuQuota| format!("{} of each {} ({})", quota.quota, quota.period, quota.group);
    let quotas = place.cpu_quotas.clone().map(|quotas| match quotas.as_slice() {
        [] => "none".into(),
        some => some.iter().map(quota).collect::<Vec<_>>().join(", "),
    });
    vec![
        entry("Container", &place.container),
        entry(
            "User namespace",
            place.user_namespace.clone().map(|own| if own { "its own" } else { "the first" }),
        ),
        entry("CPU quotas", quotas),
    ]
}

fn timers(timers: &record::Timers) -> Facts {
    let device = |device: &record::EventDevice| format!("{} on {}", device.name, device.cpus);
    let devices: Vec<_> = timers.event_devices.iter().map(device).collect();
    let tick = timers.tick.clone().map(|tick| match 1_000_000_000_u64.checked_div(tick.0) {
        Some(hertz) => format!("{tick} ({hertz} Hz)"),
        None => tick.to_string(),
    });
    let gravity = timers.evl_gravity.value().map(|gravity| entry("EVL's timers expire early by", gravity));
    let facts = vec![
        entry("Timer resolution", &timers.resolution),
        entry("Clock event devices", if devices.is_empty() { "unknown".into() } else { devices.join(", ") }),
        entry("Tick", tick),
        entry("The tick stops", &timers.tick_stops),
    ];
    facts.into_iter().chain(gravity).collect()
}

fn plan(record: &Record) -> Facts {
    let (plan, unit) = (&record.header.plan, record.header.machine.unit());
    let mut facts = vec![
        entry("Command", record.header.command_line.join(" ")),
        entry("Loads", plan.loads.join(", ")),
        entry("CPUs measured", &plan.cpus),
        entry("CPUs of the loads", &plan.load_cpus),
        entry("Length of a scenario", length(plan)),
        entry("Warm-up", plan.warm_up),
        entry("Repetitions", plan.repeat),
        entry("Policy and priority", policy(plan)),
        entry("C-states", joined(&plan.cstates)),
    ];
    let own = (instrument::of(plan).facts)(plan);
    facts.extend(own.into_iter().map(|(name, value)| entry(name, value)));
    facts.extend(
        plan.left_out
            .iter()
            .map(|left| entry("Not measured", format!("{}: {}", left.cpus.named(), left.reason))),
    );
    let optional = [
        (
            "Partition of the probe",
            plan.partition.as_ref().map(|one| format!("{} ({})", one.group, one.state)),
        ),
        ("Limit", plan.limit.map(|limit| unit.limit(limit))),
        ("Stops at", plan.stop_at.map(|latency| unit.limit(latency))),
        ("Preset", plan.preset.clone()),
        ("Seed", plan.seed.map(|seed| seed.to_string())),
        ("Note", record.header.note.clone()),
        ("Ended", record.ended.map(|ended| ended.to_string())),
    ];
    facts.extend(optional.into_iter().filter_map(|(name, value)| Some(entry(name, value?))));
    facts.push(entry(
        "Made by",
        format!("worstcase {} ({})", record.header.tool.version, record.header.tool.build),
    ));
    facts
}

fn policy(plan: &RunPlan) -> String {
    let policy = plan.policy.map_or_else(|| "not set".into(), |policy| policy.to_string());
    plan.priority.map_or_else(|| policy.clone(), |priority| format!("{policy} {}", priority.get()))
}
