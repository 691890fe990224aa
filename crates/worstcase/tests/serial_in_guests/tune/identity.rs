//! Apply and then undo is the identity.

use std::fs;
use std::process::{Child, Command, id};

use machine::tasks;
use sysroot::SysRoot;

use super::machine_state::MachineState;
use super::{tune, tuned, undone, written_but_for_silent_devices};

/// For each use that a machine can have. A host of guests raises threads of the kernel too.
pub fn of_profiles(is_real_time: bool) {
    let before = MachineState::at_first();
    for profile in ["isolated", "host"] {
        let applied = tuned(&format!("apply --isolate 1 --profile {profile}"));
        assert!(applied.contains("/proc/sys/vm/stat_interval: 1 -> 10"), "{applied}");
        let raises = is_real_time && profile == "host";
        assert_eq!(applied.contains("priority of ktimers/1"), raises, "{profile}: {applied}");
        written_but_for_silent_devices();
        undone();
        assert_eq!(before.differences(&MachineState::now()), Vec::<String>::new(), "{profile}");
    }
}

/// Threads are bound to CPUs that the partition takes and to CPUs that it leaves; what is in the partition when it goes away goes to the group above.
pub fn of_a_partition() {
    let bound = Bound::to_each_cpu();
    let before = MachineState::at_first();
    let cpus = bound.cpus();
    let (_, plan) = tune("plan --isolate 1 --only rn-cpuset-partition --all");
    assert!(plan.contains("control group"), "{plan}");
    tuned("apply --isolate 1 --only rn-cpuset-partition");
    assert_eq!(fs::read_to_string("/sys/fs/cgroup/worstcase/cpuset.cpus.partition").unwrap(), "isolated\n");
    fs::write("/sys/fs/cgroup/worstcase/cgroup.procs", id().to_string()).unwrap();
    undone();
    assert!(!fs::exists("/sys/fs/cgroup/worstcase").unwrap());
    assert_eq!(before.differences(&MachineState::now()), Vec::<String>::new());
    assert_eq!(bound.cpus(), cpus);
}

fn pid(child: &Child) -> i32 {
    i32::try_from(child.id()).unwrap()
}

/// Programs, each bound to one CPU.
struct Bound(Vec<Child>);

impl Bound {
    fn to_each_cpu() -> Self {
        let sleep = |cpu: &str| {
            let child = Command::new("sleep").arg("600").spawn().unwrap();
            sys::schedule::set_affinity(pid(&child), &cpu.parse().unwrap()).unwrap();
            child
        };
        Self(["0", "1"].map(sleep).into())
    }

    fn cpus(&self) -> Vec<String> {
        let threads = |child: &Child| tasks::threads(&SysRoot::live(), pid(child));
        self.0.iter().flat_map(threads).map(|task| task.cpus.to_string()).collect()
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
