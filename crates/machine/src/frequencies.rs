//! Time at each frequency, as cpufreq counts it (Documentation/cpu-freq/cpufreq-stats.rst): drivers that choose without the
//! kernel, as intel_pstate can, have no such table.

use record::{Fact, FrequencyResidency, FrequencyTime};
use sysroot::SysRoot;
use sysroot::parsed;
use units::CpuId;

use crate::counts::{both, grown};
use crate::cpu_times::from_ticks;
use crate::facts::processors::cpu_file;

/// Since boot, or since somebody wrote to `stats/reset`.
pub(crate) fn frequencies(root: &SysRoot, cpu: CpuId) -> Fact<FrequencyResidency> {
    let file = |name: &str| cpu_file(cpu, &format!("cpufreq/stats/{name}"));
    let changes = root.number(&file("total_trans"));
    let text = root.read(&file("time_in_state"));
    text.and_then(|text| parsed(times(&text).ok_or(()))).map(|times| FrequencyResidency { times, changes })
}

fn times(text: &str) -> Option<Vec<FrequencyTime>> {
    let time = |line: &str| {
        let (kilohertz, ticks) = line.trim().split_once(' ')?;
        Some(FrequencyTime { kilohertz: kilohertz.parse().ok()?, time: from_ticks(ticks.parse().ok()?) })
    };
    text.lines().map(time).collect()
}

/// What was added. Unknown where a time is lower than before, or frequencies came or went: somebody reset the table.
pub(crate) fn between(
    before: &Fact<FrequencyResidency>,
    after: &Fact<FrequencyResidency>,
) -> Fact<FrequencyResidency> {
    both(before, after, added).and_then(|added| added.map_or(Fact::Unsupported, Fact::Value))
}

fn added(before: &FrequencyResidency, after: &FrequencyResidency) -> Option<FrequencyResidency> {
    let is_same = |(before, after): (&FrequencyTime, &FrequencyTime)| before.kilohertz == after.kilohertz;
    if before.times.len() != after.times.len() || !before.times.iter().zip(&after.times).all(is_same) {
        return None;
    }
    let grown_by = |(before, after): (&FrequencyTime, &FrequencyTime)| {
        (before.time <= after.time).then(|| FrequencyTime { time: after.time - before.time, ..*after })
    };
    let times = before.times.iter().zip(&after.times).map(grown_by).collect::<Option<_>>()?;
    Some(FrequencyResidency { times, changes: grown(&before.changes, &after.changes) })
}

#[cfg(test)]
mod tests {
    use sysroot::FakeTree;
    use units::Nanos;

    use super::*;

    const STATS: &str = "/sys/devices/system/cpu/cpu0/cpufreq/stats";

    /// What two readings of the two files say of what was between them; none: no such file.
    fn seen(readings: [(Option<&str>, Option<&str>); 2]) -> Fact<FrequencyResidency> {
        let [before, after] = readings.map(|(times, changes)| {
            let tree = FakeTree::empty();
            times.iter().for_each(|text| tree.write(&format!("{STATS}/time_in_state"), text));
            changes.iter().for_each(|text| tree.write(&format!("{STATS}/total_trans"), text));
            frequencies(&tree.root, CpuId(0))
        });
        between(&before, &after)
    }

    #[test]
    fn the_time_at_each_frequency_is_what_was_added_and_never_a_guess() {
        // As drivers/cpufreq/cpufreq_stats.c writes them, in hundredths of a second.
        let before = (Some("3600000 1000\n2400000 20\n800000 7\n"), Some("17\n"));
        let after = (Some("3600000 1150\n2400000 20\n800000 57\n"), Some("21\n"));
        let times = [(3_600_000, 1_500), (2_400_000, 0), (800_000, 500)]
            .map(|(kilohertz, time)| FrequencyTime { kilohertz, time: Nanos::from_millis(time) });
        let with = |changes| Fact::Value(FrequencyResidency { times: times.to_vec(), changes });
        assert_eq!(seen([before, after]), with(Fact::Value(4)));
        assert_eq!(seen([before, (after.0, None)]), with(Fact::Absent));
        assert_eq!(seen([after, before]), Fact::Unsupported, "reset in between");
        assert_eq!(seen([before, (Some("3600000 1150\n"), Some("21"))]), Fact::Unsupported, "another table");
        assert_eq!(seen([(None, None); 2]), Fact::Absent);
        assert!(matches!(seen([(Some("3600000\n"), None); 2]), Fact::Unreadable(_)));
    }
}
