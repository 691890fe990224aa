//! Control groups.

use machine::cgroups::is_v2;
use machine::mounts::mounts;

use crate::survey::Survey;
use crate::value::Reading;

/// Which versions are mounted. v1 hierarchies without a controller, as systemd's own, count as v1.
pub(super) fn mode(survey: &Survey) -> Reading {
    let text = survey.root.read("/proc/self/mountinfo");
    let value = text.map(|_| {
        let mounts = mounts(&survey.root);
        let has = |wanted: fn(&machine::mounts::Mount) -> bool| mounts.iter().any(wanted);
        match (has(|mount| mount.file_system == "cgroup"), has(is_v2)) {
            (true, true) => "hybrid",
            (true, false) => "v1",
            (false, true) => "v2",
            (false, false) => "none",
        }
    });
    Reading::new(value, &["/proc/self/mountinfo"])
}
