//! A worker's life, from just after the fork.

use std::fs;
use std::mem::discriminant;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use control::{Kernel, Live};
use rustix::fs::{Mode, OFlags};
use sys::process::{self, Pid, Resource};
use units::{Bytes, Nanos};

use super::{Shop, ledger};
use crate::board::State;
use crate::program::{Given, Program};
use crate::stressor::{Space, Surroundings, Work, Worker};

/// The status of a built-in worker that has said why it cannot go on.
pub(super) const GAVE_UP: u8 = 4;
/// The status for a program that could not be executed: the shell's own.
const NOT_FOUND: u8 = 127;

/// A worker's place in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub stressor: usize,
    pub worker: usize,
    /// Which step of a program's sequence.
    pub step: usize,
}

/// A built-in worker's ties to the board and to the parent.
struct Ties<'a> {
    shop: &'a Shop,
    seat: Seat,
}

/// The life of a worker, from just after the fork. It begins its work after `delay`, and returns only where it could not
/// go on.
pub(super) fn enter(
    shop: &Shop,
    seat: Seat,
    delay: Nanos,
    parent: Pid,
    join: impl FnOnce(),
    errors: Option<OwnedFd>,
) -> u8 {
    if process::die_with(Some(parent)).is_err() {
        return GAVE_UP;
    }
    join();
    let stressor = &shop.plan.load.stressors[seat.stressor];
    let name = stressor.name();
    process::reset_signals();
    // Without these the worker still works.
    let _ = process::set_name(&format!("load:{name}"));
    let _ = process::new_group();
    let _ = Live::default().write_file("/proc/self/oom_score_adj", "1000");
    let cpus = shop.plan.cpus_of(seat.stressor);
    if let Err(error) = sys::schedule::set_affinity(0, cpus) {
        shop.failure(seat.stressor, &format!("{name} could not be moved to its CPUs: {error}"));
    }
    std::thread::sleep(delay.duration());
    let random = shop.plan.seed.stream(&format!("{}/{}/{}", shop.plan.load.name, seat.stressor, seat.worker));
    match &stressor.work {
        Work::Program(program) => execute(shop, seat, program, errors),
        work => {
            let ties = Ties { shop, seat };
            let counters = shop.board.counters(seat.stressor, seat.worker);
            ties.work(work, Worker::new(random, counters, shop.ceiling(seat.stressor), ties.space(), &ties))
        }
    }
}

/// Becomes the program. Its memory is bound by what it maps to write to, each process for itself.
fn execute(shop: &Shop, seat: Seat, program: &Program, errors: Option<OwnedFd>) -> u8 {
    let cpus = shop.plan.cpus_of(seat.stressor);
    let workers = shop.plan.load.stressors[seat.stressor].count(cpus);
    let given = Given { workers, cpus, duration: shop.plan.duration, step: seat.step };
    if let Err(error) = process::limit(Resource::Data, shop.ceiling(seat.stressor).0) {
        shop.failure(seat.stressor, &format!("no memory ceiling for {}: {error}", program.shown()));
    }
    let error = Command::new(&program.program)
        .args(program.filled(&given))
        .env(ledger::MARK, seat.stressor.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors.map_or_else(Stdio::null, Stdio::from))
        .exec();
    shop.failure(seat.stressor, &format!("executing {}: {error}", program.program));
    NOT_FOUND
}

impl Ties<'_> {
    fn work(&self, work: &Work, mut worker: Worker<'_>) -> u8 {
        if let Err(error) = set_ceiling(self.shop.ceiling(self.seat.stressor)) {
            self.failed(&format!("no memory ceiling: {error}"));
        }
        quiet();
        let why = work.run(&mut worker);
        self.failed(&why);
        self.set_state(State::Failed);
        GAVE_UP
    }

    fn set_state(&self, state: State) {
        self.shop.board.set_state(self.seat.stressor, self.seat.worker, state);
    }

    /// Where the load may write.
    fn space(&self) -> Option<Space> {
        let (shop, seat) = (self.shop, self.seat);
        let name = format!("{}-{}", seat.stressor, seat.worker);
        Some(Space {
            directory: PathBuf::from(&shop.plan.directory.as_ref()?.path),
            name: shop.scratch.as_ref().map(|scratch| scratch.join(name)),
            workers: shop.board.workers(seat.stressor) as u64,
            floor: shop.plan.limits.disk_floor,
        })
    }
}

impl Surroundings for Ties<'_> {
    fn started(&self) {
        self.set_state(State::Running);
    }

    fn failed(&self, text: &str) {
        self.shop.failure(self.seat.stressor, text);
    }

    fn others_are_starting(&self) -> bool {
        let stressors = &self.shop.plan.load.stressors;
        let own = discriminant(&stressors[self.seat.stressor].work);
        stressors.iter().enumerate().any(|(index, stressor)| {
            discriminant(&stressor.work) != own && self.shop.board.is_starting(index)
        })
    }
}

/// A built-in worker may map its share above what it begins with.
fn set_ceiling(ceiling: Bytes) -> sys::Result<()> {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages: u64 = pages.and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(1 << 14);
    process::limit(Resource::As, pages * rustix::param::page_size() as u64 + ceiling.0)
}

/// Neither reads nor prints: the pipes of the supervisor's standard input and output are not the worker's.
fn quiet() {
    if let Ok(null) = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}
