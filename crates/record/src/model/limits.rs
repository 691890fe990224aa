//! What stands between a run and the machine: containers, CPU quotas, timers.

use serde::{Deserialize, Serialize};
use units::{CpuList, Nanos};

use super::Fact;

/// The place that this program runs in, read at the start of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// Who made the container (`docker`, `podman`, ...); `none` outside of one.
    pub container: Fact<String>,
    /// Whether this is a user namespace of its own: what it calls root has no privileges over scheduling outside.
    pub user_namespace: Fact<bool>,
    /// Limits on the CPU time of the own control group and of those above it.
    pub cpu_quotas: Fact<Vec<CpuQuota>>,
}

/// A limit on the CPU time of a control group's ordinary threads (`cpu.max`, `cpu.cfs_quota_us`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuQuota {
    /// Its directory.
    pub group: String,
    /// CPU time that it may use in each period.
    pub quota: Nanos,
    /// The period.
    pub period: Nanos,
}

/// What a quota did during a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuotaEvidence {
    /// The quota, as read last.
    #[serde(flatten, deserialize_with = "crate::json::flattened")]
    pub limit: CpuQuota,
    /// Periods in which the group was stopped.
    pub periods: Fact<u64>,
    /// For how long its threads were stopped, summed over CPUs.
    pub throttled: Fact<Nanos>,
}

/// How exact timers are and what they expire by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timers {
    /// clock_getres(CLOCK_MONOTONIC): 1 ns with high-resolution timers, a tick without.
    pub resolution: Fact<Nanos>,
    /// The devices that interrupt the CPUs when a timer is due.
    pub event_devices: Vec<EventDevice>,
    /// Length of the tick, 1/CONFIG_HZ: clock_getres(CLOCK_MONOTONIC_COARSE).
    pub tick: Fact<Nanos>,
    /// When the tick stops: `when idle`, `when idle or with one task (CPUs 1-3)`, `never`.
    pub tick_stops: Fact<String>,
    /// By how much EVL lets timers of user threads expire before their time, so that these are awake at it: the last figure of its
    /// clock's gravity. Absent where the kernel has no EVL.
    #[serde(default)]
    pub evl_gravity: Fact<Nanos>,
}

/// A clock event device and its CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventDevice {
    /// As in /sys/devices/system/clockevents/clockeventN/current_device.
    pub name: String,
    /// The CPUs.
    pub cpus: CpuList,
}
