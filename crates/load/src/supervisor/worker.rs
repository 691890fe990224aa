//! A worker's life, from just after the fork.

use std::fs;
use std::mem::discriminant;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use control::{Kernel, Live};
use sys::privilege::{self, CapabilitySet};
use sys::process::{self, Pid, Resource};
use units::{Bytes, Nanos};

use super::{Context, ledger};
use crate::User;
use crate::board::State;
use crate::program::{Given, Program};
use crate::stressor::{Space, Surroundings, Work, Worker};

/// The status of a built-in worker that has said why it cannot go on.
pub(super) const GAVE_UP: u8 = 4;
/// The status for a program that could not be executed: the shell's own.
const NOT_FOUND: u8 = 127;

/// Which worker of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WorkerId {
    pub stressor: usize,
    pub worker: usize,
    /// Which step of a program's sequence.
    pub step: usize,
}

/// A built-in worker's ties to the board and to the parent.
struct Ties<'a> {
    context: &'a Context,
    id: WorkerId,
}

/// The life of a worker, from just after the fork. It begins its work after `delay`, and returns only where it could not
/// go on.
pub(super) fn enter(
    context: &Context,
    id: WorkerId,
    delay: Nanos,
    parent: Pid,
    join: impl FnOnce(),
    errors: Option<OwnedFd>,
) -> u8 {
    if process::die_with(Some(parent)).is_err() {
        return GAVE_UP;
    }
    join();
    let stressor = &context.plan.load.stressors[id.stressor];
    let name = stressor.name();
    process::reset_signals();
    // Without these the worker still works.
    let _ = process::set_name(&format!("load:{name}"));
    let _ = process::new_group();
    if let Err(error) = sys::schedule::set_nice(0) {
        context.failure(id.stressor, &format!("{name} could not be set to nice 0: {error}"));
    }
    let _ = Live::default().write_file("/proc/self/oom_score_adj", "1000");
    let cpus = context.plan.cpus_of(id.stressor);
    if let Err(error) = sys::schedule::set_affinity(0, cpus) {
        context.failure(id.stressor, &format!("{name} could not be moved to its CPUs: {error}"));
    }
    if let Err(error) = become_user(context, id, parent) {
        context.failure(id.stressor, &format!("{name} could not give up its privileges: {error}"));
        return GAVE_UP;
    }
    std::thread::sleep(delay.duration());
    let random =
        context.plan.seed.stream(&format!("{}/{}/{}", context.plan.load.name, id.stressor, id.worker));
    match &stressor.work {
        Work::Program(program) => execute(context, id, program, errors),
        work => {
            let ties = Ties { context, id };
            let counters = context.board.counters(id.stressor, id.worker);
            ties.work(work, Worker::new(random, counters, context.ceiling(id.stressor), ties.space(), &ties))
        }
    }
}

/// Becomes the user that is asked for, and keeps no privileges but those that its work needs. What was asked to be root's
/// stays root's.
fn become_user(context: &Context, id: WorkerId, parent: Pid) -> sys::Result<()> {
    let about = context.plan.load.stressors[id.stressor].work.about();
    match context.plan.user {
        Some(User { user: 0, .. }) => Ok(()),
        Some(User { user, group }) if process::own_user() != user => {
            privilege::become_user(user, group)?;
            // The kernel forgets it with the former user.
            process::die_with(Some(parent))
        }
        _ => {
            let mut kept = CapabilitySet::empty();
            kept.set(CapabilitySet::DAC_OVERRIDE, about.writes);
            kept.set(CapabilitySet::SYS_NICE, about.real_time);
            privilege::keep_only(kept)
        }
    }
}

/// Becomes the program. Its memory is bound by what it maps to write to, each process for itself.
fn execute(context: &Context, id: WorkerId, program: &Program, errors: Option<OwnedFd>) -> u8 {
    let cpus = context.plan.cpus_of(id.stressor);
    let workers = context.plan.load.stressors[id.stressor].count(cpus);
    let given = Given { workers, cpus, duration: context.plan.duration, step: id.step };
    if let Err(error) = process::limit(Resource::Data, context.ceiling(id.stressor).0) {
        context.failure(id.stressor, &format!("no memory ceiling for {}: {error}", program.shown()));
    }
    let error = Command::new(&program.program)
        .args(program.filled(&given))
        .env(ledger::MARK, id.stressor.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors.map_or_else(Stdio::null, Stdio::from))
        .exec();
    context.failure(id.stressor, &format!("executing {}: {error}", program.program));
    NOT_FOUND
}

impl Ties<'_> {
    fn work(&self, work: &Work, mut worker: Worker<'_>) -> u8 {
        if let Err(error) = set_ceiling(self.context.ceiling(self.id.stressor)) {
            self.failed(&format!("no memory ceiling: {error}"));
        }
        quiet();
        let why = work.run(&mut worker);
        self.failed(&why);
        self.set_state(State::Failed);
        GAVE_UP
    }

    fn set_state(&self, state: State) {
        self.context.board.set_state(self.id.stressor, self.id.worker, state);
    }

    /// Where the load may write.
    fn space(&self) -> Option<Space<'_>> {
        let (context, id) = (self.context, self.id);
        let directory = context.directory.as_ref()?;
        Some(Space {
            directory: directory.as_fd(),
            shown: directory.path().to_str()?,
            scratch: context.scratch.as_ref(),
            name: format!("{}-{}", id.stressor, id.worker),
            workers: context.board.workers(id.stressor) as u64,
            floor: context.plan.limits.disk_floor,
        })
    }
}

impl Surroundings for Ties<'_> {
    fn started(&self) {
        self.set_state(State::Running);
    }

    fn failed(&self, text: &str) {
        self.context.failure(self.id.stressor, text);
    }

    fn others_are_starting(&self) -> bool {
        let stressors = &self.context.plan.load.stressors;
        let own = discriminant(&stressors[self.id.stressor].work);
        stressors.iter().enumerate().any(|(index, stressor)| {
            discriminant(&stressor.work) != own && self.context.board.is_starting(index)
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
    if let Ok(null) = process::null() {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}
