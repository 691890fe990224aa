//! Files of directives or of `key=value` whose readers touch latency: chrony.conf(5), the Raspberry Pi's config.txt, LinuxCNC's
//! machine files.

use super::super::reading::{Reading, lines};
use super::super::{Target, keys, places};

/// Directives of chrony.conf(5), chrony 4.3, that are more than one daemon's word.
const CHRONY: [&str; 27] = [
    "server",
    "pool",
    "peer",
    "refclock",
    "driftfile",
    "makestep",
    "rtcsync",
    "hwtimestamp",
    "hwtstimeout",
    "sched_priority",
    "lock_all",
    "leapsectz",
    "keyfile",
    "logdir",
    "log",
    "maxupdateskew",
    "minsources",
    "local",
    "allow",
    "bindaddress",
    "confdir",
    "sourcedir",
    "ntsdumpdir",
    "maxslewrate",
    "clockprecision",
    "tempcomp",
    "cmdallow",
];

/// Directives that only chrony has.
const OWN: [&str; 6] = ["sched_priority", "lock_all", "hwtimestamp", "refclock", "makestep", "rtcsync"];

pub fn read(text: &str, _: Target) -> Option<Reading> {
    let count = lines(text).count();
    let settings = Reading { settings: count, ..Reading::default() };
    let first = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let is_chrony = lines(text).any(|(_, line)| OWN.contains(&first(line).as_str()))
        && lines(text).all(|(_, line)| CHRONY.contains(&first(line).as_str()));
    if is_chrony {
        let mut reading = settings;
        for (number, line) in lines(text) {
            let value = line.split_once(char::is_whitespace).map_or("", |(_, value)| value.trim());
            reading.remarks.extend(keys::value_remark(number, "chrony", &first(line), value));
        }
        return Some(reading);
    }
    if places::is_firmware(text) {
        return Some(settings);
    }
    let is_linuxcnc = |line: &str| matches!(line, "[EMCMOT]" | "[EMC]" | "[TRAJ]" | "[HAL]" | "[KINS]");
    lines(text).any(|(_, line)| is_linuxcnc(line)).then_some(settings)
}
