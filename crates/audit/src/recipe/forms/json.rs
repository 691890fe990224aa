//! JSON: the docker daemon's settings, and bundles of the OCI runtime specification.

use serde_json::Value;

use super::super::containers::capability_fault;
use super::super::nearest::nearest_of;
use super::super::reading::Reading;
use super::super::{Remark, RemarkId, Target};
use crate::Severity;

/// Keys of /etc/docker/daemon.json that touch latency, and some that show what the file is.
const DAEMON: [&str; 12] = [
    "default-ulimits",
    "cpu-rt-runtime",
    "cpu-rt-period",
    "exec-opts",
    "log-driver",
    "log-opts",
    "storage-driver",
    "data-root",
    "default-runtime",
    "runtimes",
    "live-restore",
    "userns-remap",
];

pub fn read(text: &str, _: Target) -> Option<Reading> {
    let value: Value =
        record::json::read(text.trim().as_bytes()).ok().filter(|_| text.trim_start().starts_with('{'))?;
    let map = value.as_object()?;
    let mut reading = Reading::default();
    let mut wrong = |id, shown: &str, message: String| {
        let line = text.lines().position(|line| line.contains(shown)).map_or(1, |index| index + 1);
        reading.remarks.push(Remark::new(line, id, Severity::Error, shown, message));
    };
    for key in map.keys().filter(|key| !DAEMON.contains(&key.as_str())) {
        if let Some(meant) = nearest_of(key, DAEMON.into_iter()) {
            wrong(RemarkId::Misspelt, key, format!("there is no such key: {meant} is meant"));
        }
    }
    let process = &value["process"];
    if let Some(policy) = process["scheduler"]["policy"].as_str() {
        if ![
            "SCHED_OTHER",
            "SCHED_FIFO",
            "SCHED_RR",
            "SCHED_BATCH",
            "SCHED_ISO",
            "SCHED_IDLE",
            "SCHED_DEADLINE",
        ]
        .contains(&policy)
        {
            wrong(
                RemarkId::Malformed,
                policy,
                "the policy is SCHED_FIFO, SCHED_RR, SCHED_DEADLINE or SCHED_OTHER".to_owned(),
            );
        }
    }
    for limit in process["rlimits"].as_array().into_iter().flatten() {
        if let Some(kind) = limit["type"].as_str().filter(|kind| !kind.starts_with("RLIMIT_")) {
            wrong(RemarkId::Malformed, kind, format!("the type is RLIMIT_{kind}"));
        }
    }
    for capability in
        process["capabilities"]["effective"].as_array().into_iter().flatten().filter_map(Value::as_str)
    {
        if let Some(message) = capability_fault(capability) {
            wrong(RemarkId::Malformed, capability, message);
        }
    }
    let known = map.keys().any(|key| DAEMON.contains(&key.as_str())) || map.contains_key("ociVersion");
    reading.settings = if known || !reading.remarks.is_empty() { map.len() } else { 0 };
    Some(reading)
}
