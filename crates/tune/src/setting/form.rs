//! How the kernel writes down a value, and when two texts mean the same.

use survey::{chosen, is_mask};
use units::CpuList;

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Words or numbers between blanks. Fewer words than the file has stand for its first ones.
    Fields,
    /// One word of several, the chosen one in brackets or parentheses.
    Choice,
    /// One text, compared whole.
    Whole,
    /// CPUs as a list.
    List,
    /// CPUs as a mask.
    Mask,
    /// A limit in microseconds: `0` is none, `n/a` is the strictest (Documentation/ABI/testing/sysfs-devices-power).
    Limit,
    /// A limit in microseconds of which the lowest of several counts.
    Lowest,
}

/// Names of files that hold a list of CPUs.
const LISTS: [&str; 6] =
    ["smp_affinity_list", "watchdog_cpumask", "cpuset.cpus", "cpuset.mems", "cpus", "mems"];

impl Form {
    /// That of the file at `path`, which holds `text`.
    pub fn of(path: &str, text: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or_default();
        if is_mask(path) {
            Self::Mask
        } else if LISTS.contains(&name) {
            Self::List
        } else if name == super::partition::STATE {
            Self::Whole
        } else if name == super::idle::LIMIT {
            Self::Limit
        } else if chosen(text).is_some() {
            Self::Choice
        } else {
            Self::Fields
        }
    }

    /// What a file's text says, as it would be written: the chosen word of a choice.
    pub fn value(self, text: &str) -> String {
        match self {
            Self::Choice => chosen(text).unwrap_or_else(|| text.trim().to_owned()),
            _ => text.trim().to_owned(),
        }
    }

    /// Whether the value `now` is what was `wanted`.
    pub fn same(self, now: &str, wanted: &str) -> bool {
        match self {
            Self::Choice | Self::Whole | Self::Limit => now.trim() == wanted.trim(),
            Self::Fields => same_fields(now, wanted),
            Self::List | Self::Mask => match (self.cpus(now), self.cpus(wanted)) {
                (Some(now), Some(wanted)) => now == wanted,
                _ => now.trim() == wanted.trim(),
            },
            Self::Lowest => now
                .parse::<u64>()
                .ok()
                .zip(wanted.parse::<u64>().ok())
                .map_or(now == wanted, |(now, wanted)| now == wanted),
        }
    }

    /// What to write so that `wanted` holds, where it does not hold already. A set of CPUs is narrowed and never
    /// widened; a stricter limit is left alone.
    pub fn change(self, text: &str, wanted: &str) -> Option<String> {
        let now = self.value(text);
        match self {
            Self::Fields | Self::Choice | Self::Whole => {
                (!self.same(&now, wanted)).then(|| wanted.to_owned())
            }
            Self::List | Self::Mask => match (self.cpus(&now), self.cpus(wanted)) {
                (Some(now), Some(wanted)) => narrowed(&now, &wanted).map(|cpus| self.text(&cpus)),
                _ => None,
            },
            Self::Limit | Self::Lowest => (self.limit(&now) > self.limit(wanted)).then(|| wanted.to_owned()),
        }
    }

    fn cpus(self, text: &str) -> Option<CpuList> {
        match self {
            Self::Mask => CpuList::from_mask(text),
            _ => text.parse().ok(),
        }
    }

    fn text(self, cpus: &CpuList) -> String {
        if self == Self::Mask { cpus.to_mask() } else { cpus.to_string() }
    }

    fn limit(self, text: &str) -> u64 {
        match text.trim() {
            "n/a" => 0,
            "0" if self == Self::Limit => u64::MAX,
            text => text.parse().unwrap_or(u64::MAX),
        }
    }
}

/// The CPUs of `now` that are among `wanted`, or all of `wanted` where none are; none where nothing needs to change.
fn narrowed(now: &CpuList, wanted: &CpuList) -> Option<CpuList> {
    let kept = now.intersection(wanted);
    match now.difference(wanted).is_empty() || wanted.is_empty() {
        true => None,
        false if kept.is_empty() => Some(wanted.clone()),
        false => Some(kept),
    }
}

fn same_fields(now: &str, wanted: &str) -> bool {
    let fields = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (now, wanted) = (fields(now), fields(wanted));
    let same = |(now, wanted): (&String, &String)| match (now.parse::<i128>(), wanted.parse::<i128>()) {
        (Ok(now), Ok(wanted)) => now == wanted,
        _ => now == wanted,
    };
    wanted.is_empty() == now.is_empty() && now.len() >= wanted.len() && now.iter().zip(&wanted).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_form_is_reported_by_name_and_text() {
        assert_eq!(Form::of("/proc/irq/default_smp_affinity", "3"), Form::Mask);
        assert_eq!(Form::of("/proc/irq/24/smp_affinity_list", "0-1"), Form::List);
        assert_eq!(Form::of("/sys/kernel/mm/transparent_hugepage/enabled", "always [never]"), Form::Choice);
        assert_eq!(Form::of("/sys/kernel/debug/sched/preempt", "none (full)"), Form::Choice);
        assert_eq!(Form::of("/proc/sys/vm/swappiness", "60"), Form::Fields);
    }

    #[test]
    fn equal_values_may_be_written_differently() {
        assert!(Form::Mask.same("00000000,00000003", "3"));
        assert!(Form::List.same("0,1,2", "0-2"));
        assert!(Form::Fields.same("4\t4\t1\t7", "4"));
        assert!(Form::Fields.same("010", "10"));
        assert!(!Form::Fields.same("4", "4 4"));
        assert!(!Form::Fields.same("4", ""));
        assert!(!Form::Mask.same("1", "3"));
    }

    #[test]
    fn sets_of_cpus_are_narrowed_and_never_widened() {
        assert_eq!(Form::List.change("0-3", "0-1").as_deref(), Some("0-1"));
        assert_eq!(Form::List.change("1-3", "0-1").as_deref(), Some("1"));
        assert_eq!(Form::List.change("2-3", "0-1").as_deref(), Some("0-1"));
        assert_eq!(Form::List.change("0", "0-1"), None);
        assert_eq!(Form::Mask.change("00000000", "3"), None);
        assert_eq!(Form::Mask.change("f", "3").as_deref(), Some("3"));
    }

    #[test]
    fn a_stricter_limit_is_left_alone() {
        assert_eq!(Form::Limit.change("0", "10").as_deref(), Some("10"));
        assert_eq!(Form::Limit.change("100", "10").as_deref(), Some("10"));
        assert_eq!(Form::Limit.change("5", "10"), None);
        assert_eq!(Form::Limit.change("n/a", "10"), None);
        assert_eq!(Form::Lowest.change("2000000000", "10").as_deref(), Some("10"));
        assert_eq!(Form::Lowest.change("0", "10"), None);
    }

    #[test]
    fn of_a_choice_the_chosen_word_counts() {
        assert_eq!(Form::Choice.value("always [madvise] never"), "madvise");
        assert_eq!(Form::Choice.change("always [madvise] never", "never").as_deref(), Some("never"));
        assert_eq!(Form::Choice.change("always madvise [never]", "never"), None);
    }

    proptest! {
        #[test]
        fn what_is_changed_as_reported_needs_no_change(text in "[0-9a-z ,/-]{0,12}", wanted in "[0-9,a-f-]{1,6}") {
            for form in [Form::Fields, Form::List, Form::Mask, Form::Limit, Form::Lowest] {
                if let Some(new) = form.change(&text, &wanted) {
                    prop_assert_eq!(form.change(&new, &wanted), None, "{:?}", form);
                }
            }
        }
    }
}
