//! What a stressor says of itself: its words, its counters, what it needs, by what it is known to run.

use units::Bytes;

/// Whatever may keep a CPU busy does so for at least this share, in per mille, of the CPU time that it could have had.
///
/// A stressor that computes without a pause leaves no idle time on its CPUs, whoever else runs there: it has all of what
/// nobody else took. A quarter allows for what it waits for beside that, memory, the other end of a socket, a device. Less
/// means that something holds it back: a quota, a stopped worker.
const BUSY_PERMILLE: u32 = 250;

/// One stressor, from its own file. Parent, supervisor and workers ask here and nowhere else, so that board, record and
/// words cannot disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    /// Its name in the record.
    pub name: String,
    /// What its work is counted in.
    pub unit: &'static str,
    /// What each worker does, for a reader.
    pub does: String,
    /// How many counters a worker has on the board: one for each of its processes or threads that count.
    pub counters: usize,
    /// How many CPUs a worker can keep busy.
    pub cpus: usize,
    /// Memory that a worker takes beyond what every worker may.
    pub memory: Bytes,
    /// Whether it writes files, so that it needs a directory.
    pub writes: bool,
    /// Whether that directory must be on a device.
    pub needs_device: bool,
    /// Whether its workers are real-time threads by intent.
    pub real_time: bool,
    /// Whether waiting for a device (state D) is part of its work.
    pub waits: bool,
    /// Whether its workers start processes of their own.
    pub forks: bool,
    /// Whether its workers have threads, so that the state of the first one says little.
    pub threads: bool,
    /// The least share of the CPU time that it could have had, in per mille, with which it counts as running.
    pub floor_permille: u32,
}

impl About {
    /// A stressor that computes in one process, in a worker with one counter.
    pub fn new(name: impl Into<String>, unit: &'static str, does: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            unit,
            does: does.into(),
            counters: 1,
            cpus: 1,
            memory: Bytes(0),
            writes: false,
            needs_device: false,
            real_time: false,
            waits: false,
            forks: false,
            threads: false,
            floor_permille: BUSY_PERMILLE,
        }
    }
}
