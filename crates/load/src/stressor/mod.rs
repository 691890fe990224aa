//! Workers: what each does after it has been forked off.
//!
//! A worker is an ordinary process: `SCHED_OTHER`, nice 0, on the load's CPUs, first to go when memory runs out, bound
//! in what it may map, and killed when its parent ends. It works for ever and counts on the board what it has done.
//!
//! A stressor is one file here: a type with its options, as `loads/*.toml` gives them, that is [`BuiltIn`]. It stands in
//! the list below, and nobody else knows it.

mod about;
mod copy;
mod counters;
mod cpu;
mod crowd;
mod disk;
mod files;
mod hackbench;
mod hdd;
mod io;
mod network;
mod vm;

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use control::{Kernel, Live};
use serde::{Deserialize, Serialize};
use sys::process::{self, Pid, Resource};
use units::{Bytes, Nanos, Random};

pub(crate) use about::About;
pub(crate) use files::has_unnamed_files;

use counters::{Counter, Counters};

use crate::Program;
use crate::board::State;
use crate::program::Given;
use crate::supervisor::{Shop, ledger};

/// [`Work`], from the list of stressors.
macro_rules! stressors {
    ($($module:ident::$stressor:ident),* $(,)?) => {
        /// What a worker does, for ever.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub enum Work {
            $(
                #[doc = concat!("The stressor `", stringify!($module), "`.")]
                $stressor($module::$stressor),
            )*
            /// A program that is not ours.
            Program(Program),
        }

        impl Work {
            /// What its stressor says of itself.
            pub(crate) fn about(&self) -> About {
                match self {
                    $(Self::$stressor(stressor) => stressor.about(),)*
                    Self::Program(program) => program.about(),
                }
            }

            /// Does the work, and returns only why it cannot go on.
            fn run(&self, worker: &mut Worker<'_>) -> String {
                match self {
                    $(Self::$stressor(stressor) => stressor.run(worker),)*
                    Self::Program(_) => "a program is not built in".to_owned(),
                }
            }
        }
    };
}

// The stressors, each by its module and its type; in `loads/*.toml` the type's name in kebab-case.
stressors! {
    cpu::Cpu,
    io::Io,
    vm::Vm,
    hdd::Hdd,
    disk::Disk,
    copy::Copy,
    hackbench::Hackbench,
    network::Network,
    crowd::Crowd,
}

/// A stressor that is built in.
trait BuiltIn {
    /// What it says of itself.
    fn about(&self) -> About;

    /// Does the work for ever; returns only why it cannot go on. It calls [`Worker::started`] once it works.
    fn run(&self, worker: &mut Worker<'_>) -> String;
}

/// The status of a built-in worker that has said why it cannot go on.
pub(crate) const GAVE_UP: u8 = 4;
/// The status for a program that could not be executed: the shell's own.
const NOT_FOUND: u8 = 127;

/// A worker's place in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub stressor: usize,
    pub worker: usize,
    /// Which step of a program's sequence.
    pub step: usize,
}

/// What a built-in stressor works with.
pub(crate) struct Worker<'a> {
    shop: &'a Shop,
    seat: Seat,
    random: Random,
    counters: Counters<'a>,
}

/// The life of a worker, from just after the fork. It begins its work after `delay`, and returns only where it could not
/// go on.
pub(crate) fn enter(
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
            let counters = Counters::of(shop.board.counters(seat.stressor, seat.worker));
            Worker { shop, seat, random, counters }.run(work)
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

impl Worker<'_> {
    fn run(mut self, work: &Work) -> u8 {
        if let Err(error) = self.set_ceiling() {
            self.failed(&format!("no memory ceiling: {error}"));
        }
        self.quiet();
        let why = work.run(&mut self);
        self.failed(&why);
        self.shop.board.set_state(self.seat.stressor, self.seat.worker, State::Failed);
        GAVE_UP
    }

    /// A built-in worker may map its share above what it begins with.
    fn set_ceiling(&self) -> sys::Result<()> {
        let pages = fs::read_to_string("/proc/self/statm").ok();
        let ceiling = self.ceiling().0;
        let pages: u64 = pages.and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(1 << 14);
        process::limit(Resource::As, pages * rustix::param::page_size() as u64 + ceiling)
    }

    /// Neither reads nor prints: the pipes of the supervisor's standard input and output are not the worker's.
    fn quiet(&self) {
        if let Ok(null) = fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdin(&null);
            let _ = rustix::stdio::dup2_stdout(&null);
            let _ = rustix::stdio::dup2_stderr(&null);
        }
    }

    /// Says that the work has begun.
    fn started(&self) {
        self.shop.board.set_state(self.seat.stressor, self.seat.worker, State::Running);
    }

    /// Says what went wrong; the parent leaves out repeats.
    fn failed(&self, text: &str) {
        self.shop.failure(self.seat.stressor, text);
    }

    /// What this worker may map above what it had mapped at its start.
    fn ceiling(&self) -> Bytes {
        self.shop.ceiling(self.seat.stressor)
    }

    /// Counts `amount` of work, where the worker has one counter.
    fn count(&mut self, amount: u64) {
        self.counters.count(amount);
    }
}
