//! Facts about the machine, read once at the start of a run.

use serde::{Deserialize, Serialize};
use units::{Bytes, CpuList, Nanos};

use super::{Fact, Lab, Place, Timers};

/// The machine that a run was made on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// Host name.
    pub host: String,
    /// The kernel.
    pub kernel: Kernel,
    /// CPU model: `model name` of /proc/cpuinfo, or the device tree's model.
    pub cpu_model: Fact<String>,
    /// Architecture as `uname -m` says it.
    pub architecture: String,
    /// The CPUs and how they are divided.
    pub cpus: Cpus,
    /// Physical memory.
    pub memory: Fact<Bytes>,
    /// Hypervisor, if the machine is a guest (`kvm`, `xen`, `qemu`, ...); `none` on bare metal.
    pub virtualization: Fact<String>,
    /// What Xen says of itself and of this domain in /sys/hypervisor: `Xen 4.17.7, PV, the first domain`. Absent on every other
    /// machine; records of older versions do not say.
    #[serde(default, skip_serializing_if = "Fact::is_silent")]
    pub xen: Fact<String>,
    /// `/sys/devices/system/clocksource/clocksource0/current_clocksource`.
    pub clock_source: Fact<String>,
    /// Frequency governors, and the CPUs that each governs.
    pub governors: Vec<Governor>,
    /// Idle states of the first CPU.
    pub idle_states: Vec<IdleState>,
    /// The latency limit in microseconds that is already requested through /dev/cpu_dma_latency; 2000000000 is none.
    pub dma_latency_us: Fact<i64>,
    /// RT throttling, the fair server.
    pub throttling: Throttling,
    /// Consoles that the kernel prints on, from /proc/consoles (`ttyS0`, `tty0`).
    pub consoles: Fact<Vec<String>>,
    /// The terminal that this program writes on, if it writes on one (`/dev/ttyS0`, `/dev/pts/3`).
    #[serde(default)]
    pub terminal: Option<String>,
    /// Console log level, the first figure of /proc/sys/kernel/printk.
    pub console_log_level: Fact<u32>,
    /// Load average over one minute at the start, in hundredths.
    pub load_average_hundredths: Fact<u32>,
    /// Container, namespaces, CPU quotas.
    #[serde(default)]
    pub place: Place,
    /// Timers and the tick.
    #[serde(default)]
    pub timers: Timers,
    /// The lab that the machine is a guest of, as the lab says; none for every other machine.
    #[serde(default)]
    pub lab: Option<Lab>,
}

impl Machine {
    /// On what this runs, in a few words: see [`whereabouts`].
    pub fn whereabouts(&self) -> Vec<String> {
        whereabouts(&self.place.container, &self.virtualization, &self.cpu_model)
    }
}

/// On what a program runs, from the inside out: a container, and a virtual machine or a machine by its name. What is not known
/// is left out. Names are those of others: not fit for a terminal.
pub fn whereabouts(
    container: &Fact<String>,
    virtualization: &Fact<String>,
    model: &Fact<String>,
) -> Vec<String> {
    let named = |fact: &Fact<String>| fact.value().filter(|name| *name != "none").cloned();
    let container = named(container).map(|maker| format!("container ({maker})"));
    let machine = named(virtualization).map(|hypervisor| format!("virtual machine ({hypervisor})"));
    container.into_iter().chain(machine.or_else(|| named(model))).collect()
}

/// The running kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// /proc/cmdline.
    pub command_line: Fact<String>,
    /// What preemption is in effect: `PREEMPT_RT`, `full`, `voluntary`, `none`, `dynamic (mode unreadable)`.
    pub preemption: Fact<String>,
}

/// The CPUs and how they are divided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cpus {
    /// /sys/devices/system/cpu/online.
    pub online: CpuList,
    /// The CPUs that this process was allowed when it began (sched_getaffinity).
    pub allowed: CpuList,
    /// /sys/devices/system/cpu/isolated.
    pub isolated: Fact<CpuList>,
    /// /sys/devices/system/cpu/nohz_full.
    pub nohz_full: Fact<CpuList>,
    /// /sys/devices/system/cpu/smt/active.
    pub smt_active: Fact<bool>,
}

impl Cpus {
    /// On which loads run unless others are chosen: those that are allowed, not `taken` by the probe's partition and not
    /// isolated; the isolated ones too where there are no others.
    pub fn for_loads(&self, taken: &CpuList) -> CpuList {
        let free = self.allowed.difference(taken);
        let common = self.isolated.value().map_or_else(|| free.clone(), |isolated| free.difference(isolated));
        if common.is_empty() { free } else { common }
    }
}

/// A frequency governor and its CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Governor {
    /// As in scaling_governor.
    pub name: String,
    /// The CPUs.
    pub cpus: CpuList,
}

/// An idle state as cpuidle describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleState {
    /// As in state*/name.
    pub name: String,
    /// Exit latency in microseconds that the driver states.
    pub latency_us: u64,
    /// Whether it is disabled through sysfs.
    pub disabled: bool,
}

/// What the kernel takes from real-time threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Throttling {
    /// /proc/sys/kernel/sched_rt_runtime_us; -1 is unlimited.
    pub runtime_us: Fact<i64>,
    /// /proc/sys/kernel/sched_rt_period_us.
    pub period_us: Fact<i64>,
    /// cpu.rt_runtime_us of this process's cgroup v1 group, where RT_GROUP_SCHED rules.
    pub group_runtime_us: Fact<i64>,
    /// Run time per second that the fair server (6.12 and later) reserves for ordinary threads, from debugfs.
    pub fair_server_runtime: Fact<Nanos>,
}
