//! Machine, plan, evidence and warnings of a record made up.

use record::instrument::timer::TimerPlan;
use record::{
    CpuEvidence, CpuShare, Cpus, DeviceWrites, Evidence, Exposure, Fact, FrequencyResidency, FrequencyTime,
    Governor, Held, IdleResidency, IdleState, InstrumentPlan, Kernel, LoadDirectory, LoadEvidence, LoadProof,
    LoadTimeline, Machine, RecorderEvidence, RunPlan, Series, StressorEvidence, TaskEvidence, ThreadEvidence,
    Throttling, Warning, WarningId,
};
use units::{Bytes, CpuId, CpuList, Nanos, Policy, Priority, Seed};

use super::Spec;

pub fn cpu_list(cpus: u32) -> CpuList {
    (0..cpus).collect()
}

pub fn machine(cpus: u32) -> Machine {
    Machine {
        terminal: None,
        lab: None,
        host: "testbench".into(),
        kernel: Kernel {
            release: "6.18.0-rt3".into(),
            version: "#1 SMP PREEMPT_RT Fri Nov 20 10:00:00 UTC 2026".into(),
            command_line: Fact::Value("root=/dev/vda1 console=ttyS0 threadirqs".into()),
            preemption: Fact::Value("PREEMPT_RT".into()),
        },
        cpu_model: Fact::Value("Example CPU at 2.40 GHz".into()),
        architecture: "x86_64".into(),
        cpus: Cpus {
            online: cpu_list(cpus),
            allowed: cpu_list(cpus),
            isolated: Fact::Value(CpuList::new()),
            nohz_full: Fact::Absent,
            smt_active: Fact::Value(false),
        },
        memory: Fact::Value(Bytes::from_mebibytes(8192)),
        virtualization: Fact::Value("kvm".into()),
        clock_source: Fact::Value("tsc".into()),
        governors: vec![Governor { name: "performance".into(), cpus: cpu_list(cpus) }],
        idle_states: vec![
            IdleState { name: "POLL".into(), latency_us: 0, disabled: false },
            IdleState { name: "C6".into(), latency_us: 133, disabled: false },
        ],
        dma_latency_us: Fact::Value(2_000_000_000),
        throttling: Throttling {
            runtime_us: Fact::Value(950_000),
            period_us: Fact::Value(1_000_000),
            group_runtime_us: Fact::Absent,
            fair_server_runtime: Fact::Unreadable(13),
        },
        consoles: Fact::Value(vec!["tty0".into()]),
        console_log_level: Fact::Value(4),
        load_average_hundredths: Fact::Value(12),
        ..Machine::default()
    }
}

pub fn plan(spec: &Spec) -> RunPlan {
    RunPlan {
        instrument: InstrumentPlan::Timer(TimerPlan {
            intervals: spec.intervals.clone(),
            ..TimerPlan::default()
        }),
        loads: spec.loads.iter().map(|load| (*load).to_owned()).collect(),
        cpus: cpu_list(spec.cpus),
        pinned: cpu_list(spec.cpus),
        load_cpus: cpu_list(spec.cpus),
        duration: Some(spec.duration),
        warm_up: Nanos::from_secs(1),
        policy: Some(Policy::Fifo),
        priority: Priority::try_from(98).ok(),
        cstates: spec.cstates.clone(),
        repeat: spec.repeat,
        seed: Some(Seed(spec.seed)),
        limit: spec.limit,
        ..RunPlan::default()
    }
}

pub fn held() -> Vec<Held> {
    vec![Held {
        what: "/dev/cpu_dma_latency".into(),
        value: "0 us".into(),
        effective: "0 us".into(),
        during: "scenarios with restricted C-states".into(),
    }]
}

pub fn load(name: &str, cpus: u32, length: Nanos) -> LoadEvidence {
    let stressors: &[(&str, &str, u64)] = match name {
        "idle" => &[],
        "cpu" => &[("sqrt", "square roots", 41_000_000)],
        "io" => &[("sync", "syncs", 180)],
        "vm" => &[("vm", "bytes touched", 3_300_000_000)],
        "hdd" => &[("hdd", "bytes written", 210_000_000)],
        _ => &[
            ("sqrt", "square roots", 9_000_000),
            ("sync", "syncs", 44),
            ("hdd", "bytes written", 51_000_000),
        ],
    };
    LoadEvidence {
        name: name.into(),
        source: "Enea, table A.1".into(),
        cpus: cpu_list(cpus),
        stressors: stressors
            .iter()
            .map(|(name, unit, rate)| stressor(name, unit, *rate, cpus, length))
            .collect(),
        shares: (0..cpus)
            .map(|cpu| CpuShare {
                cpu: CpuId(cpu),
                busy_permille: if name == "idle" { 14 } else { 1_000 - cpu * 7 },
            })
            .collect(),
        directory: (name == "hdd").then(|| LoadDirectory {
            path: "/home/bench".into(),
            file_system: "ext4".into(),
            device: "/dev/vda1".into(),
        }),
        outside_other: Vec::new(),
        containment: "pid-namespace".into(),
        real_time: false,
        timeline: LoadTimeline::default(),
        device: (name == "hdd")
            .then(|| DeviceWrites { number: "254:1".into(), written: Fact::Value(3_145_728) }),
    }
}

fn stressor(name: &str, unit: &str, rate: u64, cpus: u32, length: Nanos) -> StressorEvidence {
    StressorEvidence {
        name: name.into(),
        built_in: true,
        workers: cpus,
        work: rate * (length.0 / 1_000_000_000),
        unit: unit.into(),
        cpu_time: length.saturating_mul(u64::from(cpus)),
        failures: Vec::new(),
        start_offsets: Vec::new(),
        exposure: Some(Exposure {
            proof: LoadProof::Work,
            planned: length,
            loaded: Nanos(length.0 / 1000 * 996),
            ..Exposure::default()
        }),
    }
}

pub fn evidence(series: &[Series], interval: Nanos) -> Evidence {
    let cpus = cpu_list(series.len() as u32);
    Evidence {
        threads: series.iter().enumerate().map(|(place, series)| thread(place, series)).collect(),
        cpus: cpus.iter().map(|cpu| cpu_evidence(cpu, interval)).collect(),
        watch: record::Watch { readings: 40, ..record::Watch::default() },
        suspends: Fact::Value(0),
        kernel_messages: Fact::Value(Vec::new()),
        temperature_millidegrees: Fact::Value(51_250),
        rivals: vec![TaskEvidence {
            name: "migration/0".into(),
            tid: 19,
            policy: Policy::Fifo,
            priority: 99,
            cpus: cpu_list(1),
            kernel: true,
        }],
        recorder: RecorderEvidence {
            cpus,
            shares_measured_cpus: true,
            cpu_time: Nanos::from_millis(21),
            longest_sync: Nanos::from_millis(8),
            ..RecorderEvidence::default()
        },
        ..Evidence::default()
    }
}

fn thread(place: usize, series: &Series) -> ThreadEvidence {
    let wakes = series.observed.summary().count;
    ThreadEvidence {
        thread: place as u32,
        tid: 4_200 + place as i32,
        policy: Some(Policy::Fifo),
        priority: 98,
        affinity: series.cpu.into_iter().collect(),
        timer_slack: Nanos(1),
        memory_locked: true,
        voluntary_switches: wakes,
        involuntary_switches: place as u64 % 2,
        cpu_time: Nanos(wakes * 1_900),
        cpu_reading: Some(record::CpuReading::Library),
        ..ThreadEvidence::default()
    }
}

fn cpu_evidence(cpu: CpuId, interval: Nanos) -> CpuEvidence {
    CpuEvidence {
        cpu,
        steal: Fact::Value(Nanos::from_millis(u64::from(cpu.0) * 10)),
        smis: Fact::Unsupported,
        thermal_throttles: Fact::Absent,
        idle: vec![IdleResidency { name: "C6".into(), time: interval.saturating_mul(700), entries: 900 }],
        frequencies: match cpu {
            CpuId(0) => Fact::Value(at_frequencies(interval)),
            _ => Fact::Absent,
        },
        governor: Fact::Value("performance".into()),
    }
}

fn at_frequencies(interval: Nanos) -> FrequencyResidency {
    let time = |kilohertz, share| FrequencyTime { kilohertz, time: interval.saturating_mul(share) };
    FrequencyResidency {
        times: vec![time(3_600_000, 750), time(2_400_000, 0), time(800_000, 250)],
        changes: Fact::Value(4),
    }
}

pub fn run_warnings() -> Vec<Warning> {
    vec![
        Warning::note(
            WarningId::Guest,
            "/sys/hypervisor says kvm",
            "measure on the machine that will do the work; a guest also waits for its host",
        ),
        Warning::inconclusive(
            WarningId::NotIsolated,
            "/sys/devices/system/cpu/isolated is empty",
            "boot with isolcpus=managed_irq,domain,0-1 nohz_full=0-1 rcu_nocbs=0-1, or say what else the CPUs do",
        ),
    ]
}

pub fn scenario_warnings(load: &str) -> Vec<Warning> {
    let mut warnings = vec![Warning::note(
        WarningId::ThrottlingOn,
        "/proc/sys/kernel/sched_rt_runtime_us is 950000 of 1000000",
        "echo -1 > /proc/sys/kernel/sched_rt_runtime_us, if no thread of the system can run away",
    )];
    if load == "full" || load == "hdd" {
        warnings.push(Warning::note(
            WarningId::Steal,
            format!("/proc/stat: the hypervisor took 10 ms from CPU 1 under {load}"),
            "give the guest CPUs of its own on the host",
        ));
    }
    warnings
}
