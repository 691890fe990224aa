//! Threads of interrupts and timers: raised, and back.

use machine::tasks;
use sysroot::SysRoot;

use super::machine_state::MachineState;
use super::{tune, tuned, undone, written_but_for_silent_devices};

/// The serial port's interrupt has a thread where interrupts have any, and so have timers.
pub fn are_raised(is_real_time: bool) {
    if !is_real_time {
        let (code, said) = tune("irq-thread ttyS0 --priority 85");
        assert!(code == Some(2) && said.contains("interrupts are not threaded here"), "{said}");
        let (code, said) = tune("irq-thread ktimers --priority 85");
        assert!(code == Some(2) && said.contains("no CPU here has a thread ktimers"), "{said}");
        return;
    }
    let before = MachineState::at_first();
    assert_eq!(scheduling("irq/4-ttyS0"), "fifo 50");
    assert!(tuned("irq-thread ttyS0 --priority 85 --cpus 1 --plan").contains("'fifo 50' -> 'fifo 85'"));
    assert_eq!(scheduling("irq/4-ttyS0"), "fifo 50", "a plan changes nothing");
    tuned("irq-thread ttyS0 --priority 85 --cpus 1");
    assert_eq!(scheduling("irq/4-ttyS0"), "fifo 85");
    assert_eq!(std::fs::read_to_string("/proc/irq/4/smp_affinity_list").unwrap(), "1\n");
    tuned("irq-thread ktimers --priority 60 --policy rr --cpus 1");
    assert_eq!((scheduling("ktimers/0"), scheduling("ktimers/1")), ("fifo 1".into(), "rr 60".into()));
    let said = tuned("irq-thread acpi --priority 99");
    assert!(said.contains("warning: migration/0") && said.contains("98 is high enough"), "{said}");
    let status = written_but_for_silent_devices();
    assert!(status.contains("4 settings, "), "{status}");
    undone();
    assert_eq!(before.differences(&MachineState::now()), Vec::<String>::new());
}

/// Policy and priority of the one thread of that name.
fn scheduling(name: &str) -> String {
    let named = tasks::all(&SysRoot::live()).into_iter().find(|task| task.kernel && task.name == name);
    named.map_or_else(|| "none".to_owned(), |task| format!("{} {}", task.policy, task.priority))
}
