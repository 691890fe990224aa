//! The supervisor: a process of its own that owns every worker and ends with its parent.
//!
//! It is the leader of its own session, ignores Ctrl-C, and adopts orphans. While the pipe from the parent is open, it
//! runs the [`workers`]; when they end, for whatever reason, it kills all descendants until none is left, removes what
//! they left in the file system, and ends.

mod cgroup;
mod contain;
mod ledger;
mod look;
mod looks;
mod processes;
mod worker;
mod workers;

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::path::Path;

use files::Directory;
use serde::{Deserialize, Serialize};
use sys::privilege::{self, CapabilitySet};
use sys::schedule::{self, Scheduling};
use units::Bytes;

use crate::board::Board;
use crate::error::Trying;
use crate::message::{Message, Reporter};
use crate::stressor::{Scratch, has_unnamed_files};
use crate::{Error, LoadPlan};

/// The first line that comes down the pipe.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub plan: LoadPlan,
    /// The descriptor of the board's file.
    pub board: RawFd,
}

/// What the supervisor and every worker share.
#[derive(Debug)]
pub(crate) struct Context {
    pub plan: LoadPlan,
    pub board: Board,
    pub reporter: Reporter,
    /// What all workers together may map above what they have mapped at their start, in bytes.
    memory: u64,
    /// Where the load writes.
    pub directory: Option<Directory>,
    /// The directory for files that cannot be without a name; removed at the end.
    pub scratch: Option<Scratch>,
}

/// Runs the supervisor: to be called before anything else by a binary whose first argument is
/// [`crate::SUPERVISOR_ARGUMENT`], while it has a single thread. Standard input is the pipe from the parent, standard
/// output the pipe to it.
pub fn main() -> u8 {
    let Ok(reports) = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3) else { return 2 };
    let reporter = Reporter::new(reports);
    match Context::open(reporter) {
        Ok(mut context) => {
            let result = context.make_scratch().and_then(|()| contain::run(&context));
            context.remove_scratch();
            context.end(result)
        }
        Err((reporter, error)) => {
            reporter.tell(&Message::Fatal(error.to_string()));
            2
        }
    }
}

impl Context {
    fn open(reporter: Reporter) -> Result<Self, (Reporter, Error)> {
        match orders().and_then(|orders| Ok((board(&orders)?, orders.plan))) {
            Ok((board, plan)) => {
                let memory = processes::available_memory() / 1000 * u64::from(plan.limits.memory_permille);
                Ok(Self { plan, board, reporter, memory, directory: None, scratch: None })
            }
            Err(error) => Err((reporter, error)),
        }
    }

    /// Opens the directory that the load writes to, and makes one for named files where the file system has no files without a name
    /// (NFS, kernels before 3.11).
    fn make_scratch(&mut self) -> Result<(), Error> {
        let Some(named) = self.plan.directory.as_ref().filter(|_| self.plan.load.writes()) else {
            return Ok(());
        };
        let load = &self.plan.load.name;
        let what = |what: String| format!("{what} for the files of load {load}");
        let opened = Directory::open(Path::new(&named.path));
        let directory = opened.map_err(|files::Error { source, .. }| Error::File {
            what: what(format!("opening {}", named.path)),
            source,
        })?;
        let scratch = if !self.plan.limits.named_files && has_unnamed_files(&directory) {
            None
        } else {
            let name = format!(".worstcase-load-{}", std::process::id());
            let making = what(format!("making {}/{name}", named.path));
            let scratch = Scratch::make(&directory, name).and_then(|scratch| {
                self.plan.user.map_or(Ok(()), |to| scratch.give_to(to.user, to.group)).map(|()| scratch)
            });
            Some(scratch.map_err(|source| Error::File { what: making, source })?)
        };
        (self.directory, self.scratch) = (Some(directory), scratch);
        Ok(())
    }

    fn remove_scratch(&self) {
        let (Some(directory), Some(scratch)) = (&self.directory, &self.scratch) else { return };
        if let Err(error) = scratch.remove(directory) {
            let path = directory.path().join(&scratch.name);
            self.reporter.failure(0, &format!("removing {}: {error}", path.display()));
        }
    }

    fn end(&self, result: Result<(), Error>) -> u8 {
        match result {
            Ok(()) => 0,
            Err(error) => {
                self.reporter.tell(&Message::Fatal(error.to_string()));
                2
            }
        }
    }

    /// What a worker of `stressor` may map above what it has mapped at its start.
    pub fn ceiling(&self, stressor: usize) -> Bytes {
        let workers: Vec<usize> =
            (0..self.plan.load.stressors.len()).map(|index| self.board.workers(index)).collect();
        Bytes(self.plan.memory_of(stressor, self.memory, &workers))
    }

    /// Records that `stressor` met an error.
    pub fn failure(&self, stressor: usize, text: &str) {
        self.reporter.failure(stressor, text);
    }
}

/// Becomes an ordinary process apart from its parent and reads what to do.
fn orders() -> Result<Orders, Error> {
    sys::signal::ignore_terminal();
    sys::process::adopt_orphans().trying("adopting orphans")?;
    let _ = sys::process::set_name("load");
    if privilege::comes_from_file() {
        // Whoever may run the program may ask for any load.
        privilege::keep_only(CapabilitySet::empty()).trying("giving up file capabilities")?;
    }
    schedule::set(Scheduling::Other).trying("running the load as SCHED_OTHER at nice 0")?;
    // Behind hundreds of its own workers on one CPU it would answer after seconds. Without the privilege it does; the workers
    // themselves are at nice 0.
    let _ = schedule::set_nice(schedule::LOWEST_NICE);
    let line = read_line().trying("reading the orders")?;
    let orders: Orders =
        record::json::read(&line).map_err(|error| Error::Supervisor(format!("orders: {error}")))?;
    schedule::set_affinity(0, &orders.plan.all_cpus()).trying("moving the load to its CPUs")?;
    Ok(orders)
}

fn board(orders: &Orders) -> Result<Board, Error> {
    let file = sys::process::inherited(orders.board).trying("finding the shared memory")?;
    Board::open(&orders.plan, file.as_fd()).trying("mapping the shared memory")
}

/// Reads standard input up to the end of the line and not a byte further: what follows is for the workers.
fn read_line() -> std::io::Result<Vec<u8>> {
    let (mut line, mut byte) = (Vec::new(), [0_u8]);
    let mut input = std::fs::File::from(rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3)?);
    while input.read(&mut byte)? == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    Ok(line)
}

/// Whether the writers of a pipe are gone, found out without reading what is in it; waits at most `patience`.
fn hung_up(pipe: BorrowedFd<'_>, patience: std::time::Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
    let mut polled = [PollFd::from_borrowed_fd(pipe, PollFlags::empty())];
    matches!(poll(&mut polled, Some(&timeout)), Ok(1..))
}
