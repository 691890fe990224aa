//! Entering the kernel and giving up the CPU.

use super::{ALONE, Operation, SOURCE_LMBENCH};
use crate::work::{At, Kit, Result, Work};

pub const OPERATIONS: &[Operation] = &[
    Operation {
        name: "getppid",
        title: "getppid",
        unit: "1 call",
        bytes: 0,
        places: ALONE,
        source: "lmbench lat_syscall null, perf bench syscall basic",
        stands_for: "the way into the kernel and back: mitigations, auditing and nohz_full make it dearer",
        begin: parent,
    },
    Operation {
        name: "sched-yield",
        title: "sched_yield pair",
        unit: "1 call by one of two threads of a CPU",
        bytes: 0,
        places: ALONE,
        source: SOURCE_LMBENCH,
        stands_for: "the scheduler's choice and a switch of threads",
        begin: give_way,
    },
];

fn parent(_: &Kit) -> Result<Box<dyn Work>> {
    Ok(Box::new(|| {
        std::hint::black_box(sys::process::parent());
        Ok(())
    }))
}

fn give_way(kit: &Kit) -> Result<Box<dyn Work>> {
    kit.partner(|| while sys::schedule::give_way().is_ok() {})?;
    Ok(Box::new(|| sys::schedule::give_way().at("sched_yield")))
}
