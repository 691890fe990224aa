//! Programs that change the same things of their own accord.

use machine::SysRoot;
use machine::survey::running;
use serde::{Deserialize, Serialize};

use crate::plan::Step;
use crate::setting::Target;

/// Another owner of something that would be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Conflict {
    /// Its name and process id.
    pub who: String,
    /// What it does, and what to do about it.
    pub what: String,
}

/// A program by the names that the kernel keeps of it, 15 bytes long; what it changes; what it does.
struct Owner {
    names: &'static [&'static str],
    owns: fn(&Target) -> bool,
    what: &'static str,
}

const OWNERS: [Owner; 4] = [
    Owner {
        names: &["irqbalance"],
        owns: |target| matches!(target, Target::Interrupt { .. }),
        what: "moves interrupts again within 10 s; systemctl stop irqbalance before",
    },
    Owner {
        names: &["tuned"],
        owns: |_| true,
        what: "writes its profile's settings again when it starts or changes profile; tuned-adm off before",
    },
    Owner {
        names: &["power-profiles-", "thermald", "tlp", "auto-cpufreq", "cpufreqd", "system76-power"],
        owns: |target| matches!(target, Target::File(path) if path.contains("/cpufreq/") || path.contains("_pstate/")),
        what: "writes clocks when it likes; systemctl stop it before",
    },
    Owner {
        names: &["stalld"],
        owns: |target| matches!(target, Target::File(path) if path.ends_with("/sched_rt_runtime_us")),
        what: "writes the throttle's run time when it starts and ends",
    },
];

/// Who else changes what `steps` change.
pub fn conflicts(root: &SysRoot, steps: &[Step]) -> Vec<Conflict> {
    let concerned = OWNERS.iter().filter(|owner| steps.iter().any(|step| (owner.owns)(&step.target)));
    let found = concerned.flat_map(|owner| {
        let running = running(root, owner.names).into_iter();
        running.map(|item| Conflict {
            who: format!("{} ({})", item.name, item.value),
            what: owner.what.to_owned(),
        })
    });
    found.collect()
}
