//! What the host took from this guest (proc_stat(5), "steal").

use sysroot::parsed;

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Reading, Value, reading};

pub(super) const FACTS: &[NamedFact] =
    &[fact("steal.ppm", "millionths of all CPU time since boot that the host gave to others", steal)];

/// The part of all CPU time since boot that the host gave to others, in millionths.
fn steal(survey: &Survey) -> Reading {
    let text = survey.root.read("/proc/stat");
    reading(text.and_then(|text| parsed(share(&text).ok_or(()))).map(Value::Number), "/proc/stat")
}

/// From the line of all CPUs: user, nice, system, idle, iowait, irq, softirq, steal; guest times are part of user's.
fn share(stat: &str) -> Option<i64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let total = ticks.iter().copied().try_fold(0_u64, u64::checked_add).filter(|total| *total > 0)?;
    i64::try_from(u128::from(*ticks.get(7)?) * 1_000_000 / u128::from(total)).ok()
}

#[cfg(test)]
mod tests {
    use super::share;
    use proptest::prelude::*;

    #[test]
    fn steal_is_a_part_of_all_time() {
        assert_eq!(share("cpu  100 0 100 790 0 0 0 10 5 0\ncpu0 1 2 3"), Some(10_000));
        assert_eq!(share("cpu  0 0 0 0 0 0 0 0"), None);
        assert_eq!(share("cpu  1 2 3 4"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "cpu [0-9 ]{0,60}|.{0,60}") {
            let _ = share(&text);
        }
    }
}
