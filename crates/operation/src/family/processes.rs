//! Processes and threads that come and go.

use sys::birth::{Nursery, fork_and_wait};

use super::{ALONE, Operation};
use crate::process::NOTHING;
use crate::work::{At, Kit, Result, Work};

pub const OPERATIONS: &[Operation] = &[
    Operation {
        name: "thread-create",
        title: "thread create+join",
        unit: "1 thread started, ended and joined",
        bytes: 0,
        places: ALONE,
        source: "sysbench threads",
        stands_for: "programs that start a thread for a task",
        begin: thread,
    },
    Operation {
        name: "vfork",
        title: "vfork+exit+wait",
        unit: "1 child that shares the memory and ends at once",
        bytes: 0,
        places: ALONE,
        source: "stress-ng --vfork",
        stands_for: "what starting a process takes without a copy of the memory",
        begin: vfork,
    },
    Operation {
        name: "fork",
        title: "fork+exit+wait",
        unit: "1 child that ends at once",
        bytes: 0,
        places: ALONE,
        source: "lmbench lat_proc fork",
        stands_for: "servers with a process a request",
        begin: fork,
    },
    Operation {
        name: "exec",
        title: "vfork+exec+wait",
        unit: "1 program started; it ends at once",
        bytes: 0,
        places: ALONE,
        source: "lmbench lat_proc exec",
        stands_for: "shell scripts and builds; the program is worstcase itself",
        begin: execute,
    },
];

fn thread(_: &Kit) -> Result<Box<dyn Work>> {
    Ok(Box::new(|| {
        let thread = std::thread::Builder::new().spawn(|| ()).at("start a thread")?;
        thread.join().map_err(|_| crate::work::Unable("a thread failed".into()))
    }))
}

fn vfork(_: &Kit) -> Result<Box<dyn Work>> {
    let mut nursery = Nursery::default();
    Ok(Box::new(move || nursery.vfork_and_wait().at("start a child")))
}

fn fork(_: &Kit) -> Result<Box<dyn Work>> {
    Ok(Box::new(|| fork_and_wait().at("start a child")))
}

fn execute(_: &Kit) -> Result<Box<dyn Work>> {
    let mut nursery = Nursery::default();
    Ok(Box::new(move || nursery.execute_and_wait(crate::process::OWN_PROGRAM, NOTHING).at("start a program")))
}
