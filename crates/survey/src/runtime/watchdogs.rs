//! Where the kernel looks for CPUs that hang (Documentation/admin-guide/lockup-watchdogs.rst).

use record::Fact;
use units::CpuList;

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Reading, Value, reading};

pub(super) const FACTS: &[NamedFact] =
    &[fact("watchdog.cpus", "CPUs on which lockups are looked for; none where that is off", cpus)];

const ON: &str = "/proc/sys/kernel/watchdog";
const MASK: &str = "/proc/sys/kernel/watchdog_cpumask";

/// The mask of the detectors for soft and hard lockups, as long as either is on. Kernels before 4.3 have no mask: all
/// CPUs.
fn cpus(survey: &Survey) -> Reading {
    let value = survey.root.number::<u8>(ON).and_then(|on| match on {
        0 => Fact::Value(CpuList::new()),
        _ => match survey.root.cpu_list(MASK) {
            Fact::Absent => Fact::Value(machine::facts::processors::online(&survey.root)),
            mask => mask,
        },
    });
    Reading { from: vec![ON.to_owned(), MASK.to_owned()], ..reading(value.map(Value::Cpus), ON) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, shown};
    use super::{MASK, ON};
    use sysroot::FakeTree;

    #[test]
    fn detectors_run_on_the_cpus_of_their_mask() {
        let reading = |files: &[(&str, &str)]| shown(&FakeTree::new(files), Isolated::None, "watchdog.cpus");
        assert_eq!(reading(&[(ON, "1"), (MASK, "0-1")]), "0-1");
        assert_eq!(reading(&[(ON, "0"), (MASK, "0-1")]), "");
        assert_eq!(reading(&[(ON, "1"), ("/sys/devices/system/cpu/online", "0-3")]), "0-3");
        assert_eq!(reading(&[]), "absent");
    }
}
