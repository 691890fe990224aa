//! Limits on the CPU time of control groups, and what they did (Documentation/admin-guide/cgroup-v2.rst,
//! Documentation/scheduler/sched-bwc.rst). They hold for ordinary threads only: real-time ones escape them.

use record::{CpuQuota, Fact, QuotaEvidence};
use sysroot::SysRoot;
use units::Nanos;

use crate::cgroups::line_of_descent;

/// A limit and what it has done since its group was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    limit: CpuQuota,
    periods: Fact<u64>,
    throttled: Fact<Nanos>,
}

/// The limits of the own group and of those above it, as far as they can be seen: the own ones first. Absent where no
/// hierarchy is mounted that shows the own group.
pub(crate) fn quotas(root: &SysRoot) -> Fact<Vec<Quota>> {
    let groups = line_of_descent(root, "cpu");
    if groups.is_empty() {
        return Fact::Absent;
    }
    let mut quotas = Vec::new();
    for group in groups {
        match limit(root, &group) {
            Fact::Value(Some(limit)) => quotas.push(Quota::with_counts(root, limit)),
            Fact::Unreadable(errno) => return Fact::Unreadable(errno),
            _ => {}
        }
    }
    Fact::Value(quotas)
}

/// The limits alone, for the header of a record.
pub(crate) fn limits(root: &SysRoot) -> Fact<Vec<CpuQuota>> {
    quotas(root).map(|quotas| quotas.into_iter().map(|quota| quota.limit).collect())
}

/// None where the group has no limit; absent where it has no such file.
fn limit(root: &SysRoot, group: &str) -> Fact<Option<CpuQuota>> {
    let of = |(quota, period): (u64, u64)| CpuQuota {
        group: group.to_owned(),
        quota: Nanos::from_micros(quota),
        period: Nanos::from_micros(period),
    };
    match root.read(&format!("{group}/cpu.max")) {
        Fact::Absent => {
            let quota = root.number::<i64>(&format!("{group}/cpu.cfs_quota_us"));
            quota.and_then(|quota| match u64::try_from(quota) {
                Err(_) => Fact::Value(None),
                Ok(quota) => {
                    root.number(&format!("{group}/cpu.cfs_period_us")).map(|period| Some(of((quota, period))))
                }
            })
        }
        text => text.and_then(|text| sysroot::parsed(maximum(&text).ok_or(()))).map(|max| max.map(of)),
    }
}

/// `max 100000` or `50000 100000`, in microseconds; none within for no limit.
fn maximum(text: &str) -> Option<Option<(u64, u64)>> {
    let (quota, period) = text.split_once(' ')?;
    match quota {
        "max" => Some(None),
        quota => Some(Some((quota.parse().ok()?, period.trim().parse().ok()?))),
    }
}

impl Quota {
    fn with_counts(root: &SysRoot, limit: CpuQuota) -> Self {
        let text = root.read(&format!("{}/cpu.stat", limit.group));
        let figure = |name: &str| text.value().and_then(|text| stat(text, name));
        let missing = || text.clone().and_then(|_| Fact::Absent);
        let throttled =
            figure("throttled_usec").map(Nanos::from_micros).or_else(|| figure("throttled_time").map(Nanos));
        Self {
            periods: figure("nr_throttled").map_or_else(|| missing().map(|_: String| 0), Fact::Value),
            throttled: throttled.map_or_else(|| missing().map(|_: String| Nanos::ZERO), Fact::Value),
            limit,
        }
    }
}

fn stat(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

/// What the limits did between two readings. One that was set in between counts from its first sight; one that was
/// taken away is there with what is not known of it.
pub(crate) fn between(before: &Fact<Vec<Quota>>, after: &Fact<Vec<Quota>>) -> Fact<Vec<QuotaEvidence>> {
    let (Fact::Value(before), Fact::Value(after)) = (before, after) else {
        return match (before, after) {
            (Fact::Value(_), missing) | (missing, _) => missing.clone().and_then(|_| Fact::Unsupported),
        };
    };
    let same = |one: &Quota, other: &Quota| one.limit.group == other.limit.group;
    let grown = after.iter().map(|after| {
        let before = before.iter().find(|before| same(before, after));
        let since = |was: Option<&Fact<u64>>, is: &Fact<u64>| {
            is.clone().map(|is| is.saturating_sub(was.and_then(Fact::value).copied().unwrap_or_default()))
        };
        let time = |fact: &Fact<Nanos>| fact.clone().map(|time| time.0);
        QuotaEvidence {
            limit: after.limit.clone(),
            periods: since(before.map(|before| &before.periods), &after.periods),
            throttled: since(before.map(|before| time(&before.throttled)).as_ref(), &time(&after.throttled))
                .map(Nanos),
        }
    });
    let gone = before.iter().filter(|before| !after.iter().any(|after| same(before, after)));
    let gone = gone.map(|gone| QuotaEvidence {
        limit: gone.limit.clone(),
        periods: Fact::Absent,
        throttled: Fact::Absent,
    });
    Fact::Value(grown.chain(gone).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sysroot::FakeTree;

    const MS: u64 = 1_000_000;

    fn evidence_of(before: &Fact<Vec<Quota>>, after: &Fact<Vec<Quota>>) -> Vec<(String, u64, Fact<Nanos>)> {
        let evidence = between(before, after);
        let of = |quota: &QuotaEvidence| {
            (quota.limit.group.clone(), quota.limit.quota.0 / MS, quota.throttled.clone())
        };
        evidence.value().unwrap().iter().map(of).collect()
    }

    #[test]
    fn a_quota_of_cgroup_v2_above_the_own_group_is_found() {
        let tree = FakeTree::new(&[
            ("/proc/self/mountinfo", "1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"),
            ("/proc/self/cgroup", "0::/app.slice/job\n"),
            ("/sys/fs/cgroup/cpu.stat", "usage_usec 1"),
            ("/sys/fs/cgroup/app.slice/cpu.max", "20000 100000\n"),
            ("/sys/fs/cgroup/app.slice/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_usec 7000\n"),
            ("/sys/fs/cgroup/app.slice/job/cpu.max", "max 100000\n"),
        ]);
        let before = quotas(&tree.root);
        tree.write(
            "/sys/fs/cgroup/app.slice/cpu.stat",
            "nr_periods 19\nnr_throttled 9\nthrottled_usec 9000\n",
        );
        let group = "/sys/fs/cgroup/app.slice".to_owned();
        assert_eq!(evidence_of(&before, &quotas(&tree.root)), [(group, 20, Fact::Value(Nanos(2 * MS)))]);
    }

    #[test]
    fn a_quota_of_cgroup_v1_is_found_and_one_without_counts_is_unknown() {
        let tree = FakeTree::new(&[
            ("/proc/self/mountinfo", "1 1 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct"),
            ("/proc/self/cgroup", "4:cpu,cpuacct:/job\n0::/\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1"),
            ("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000"),
            ("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000"),
        ]);
        let group = "/sys/fs/cgroup/cpu/job".to_owned();
        let unknown = quotas(&tree.root);
        assert_eq!(evidence_of(&unknown, &unknown), [(group.clone(), 50, Fact::Absent)]);
        tree.write(
            "/sys/fs/cgroup/cpu/job/cpu.stat",
            "nr_periods 9\nnr_throttled 4\nthrottled_time 5000000\n",
        );
        assert_eq!(
            evidence_of(&Fact::Value(vec![]), &quotas(&tree.root)),
            [(group, 50, Fact::Value(Nanos(5 * MS)))]
        );
    }

    #[test]
    fn groups_that_cannot_be_seen_are_not_groups_without_quotas() {
        assert_eq!(quotas(&FakeTree::empty().root), Fact::Absent);
        assert_eq!(between(&Fact::Absent, &Fact::Value(vec![])), Fact::Absent);
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "(max )?[0-9a-z_ \n]{0,40}|.{0,40}") {
            let _ = (maximum(&text), stat(&text, "nr_throttled"));
        }
    }
}
