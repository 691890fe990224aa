//! The parent's side: starts a supervisor, asks it for samples, ends it, returns the evidence.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use machine::CpuTimes;
use record::{DeviceWrites, LoadBlock, LoadEvidence, LoadProof, LoadTimeline, StressorEvidence};
use sys::clock::Clock;
use sysroot::SysRoot;
use units::Nanos;

use crate::board::{Board, State};
use crate::error::Trying;
use crate::exposure::{Done, Meter, Rule, Watched};
use crate::message::{Message, take_messages};
use crate::pipe::read_available;
use crate::supervisor::Orders;
use crate::{Containment, Error, LoadPlan, SUPERVISOR_ARGUMENT, Work};

/// How long a supervisor may take to answer a request for a sample. It has no priority over what is measured.
const SAMPLE_PATIENCE: Duration = Duration::from_secs(2);
/// How often the machine's CPU times are read.
const READ_MACHINE: Nanos = Nanos::from_secs(1);
/// How long a supervisor may take to end every worker before it is killed itself.
const END_PATIENCE: Duration = Duration::from_secs(20);

/// What a stressor did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Work done, in the stressor's unit.
    pub work: u64,
    /// CPU time used by its workers and all that they started.
    pub cpu_time: Nanos,
}

/// A load that runs until it is stopped or dropped, or this process ends.
#[derive(Debug)]
pub struct RunningLoad {
    plan: LoadPlan,
    board: Board,
    supervisor: Option<Supervisor>,
    containment: Option<Containment>,
    failures: Vec<(usize, String)>,
    steps: BTreeSet<(usize, usize)>,
    fatal: Option<String>,
    begin: Vec<Sample>,
    end: Option<Vec<Sample>>,
    root: SysRoot,
    meter: Meter,
    timeline: LoadTimeline,
    device: Option<DeviceWrites>,
}

/// The supervisor process and the pipes to and from it.
#[derive(Debug)]
struct Supervisor {
    process: Child,
    /// The pipe down: closing it is the order to end everything.
    leash: Option<ChildStdin>,
    reports: ChildStdout,
    unread: Vec<u8>,
    asked: u64,
}

/// Starts `plan`'s load. `idle` starts nothing.
///
/// # Errors
/// [`Error::Missing`] where every part needs a program that is not there, [`Error::NoCpus`], [`Error::NoDirectory`],
/// or what kept the supervisor from being started.
pub fn start(plan: LoadPlan) -> Result<RunningLoad, Error> {
    plan.check()?;
    let (board, file) = Board::create(&plan).trying("shared memory for the load")?;
    let supervisor = match plan.load.stressors.is_empty() {
        true => None,
        false => Some(Supervisor::start(&plan, file)?),
    };
    let begin = vec![Sample::default(); plan.load.stressors.len()];
    let meter = meter(&plan, &board, now());
    Ok(RunningLoad {
        root: SysRoot::live(),
        meter,
        timeline: LoadTimeline::default(),
        device: None,
        plan,
        board,
        supervisor,
        containment: None,
        failures: Vec::new(),
        steps: BTreeSet::new(),
        fatal: None,
        begin,
        end: None,
    })
}

impl RunningLoad {
    /// Waits until every worker runs or has said why it cannot.
    ///
    /// # Errors
    /// [`Error::NotRunning`] where none runs, or some are still starting after `patience`; [`Error::Supervisor`].
    pub fn wait_running(&mut self, patience: Duration) -> Result<(), Error> {
        let until = Instant::now() + patience;
        while self.alive()
            && self.board.states().any(|state| state == State::Starting)
            && Instant::now() < until
        {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.listen();
        if let Some(fatal) = &self.fatal {
            return Err(Error::Supervisor(fatal.clone()));
        }
        let running = self.board.states().any(|state| state == State::Running);
        let starting = self.board.states().any(|state| state == State::Starting);
        if self.supervisor.is_none() || (running && !starting && self.alive()) {
            return Ok(());
        }
        let mut why: Vec<String> = self.failures.iter().map(|(_, text)| text.clone()).collect();
        if !self.alive() {
            why.push("the supervisor died".to_owned());
        } else if starting {
            why.push(format!("workers were not up after {patience:?}"));
        }
        Err(Error::NotRunning { load: self.plan.load.name.clone(), why: why.join("; ") })
    }

    /// What each stressor did so far, in the plan's order.
    pub fn sample(&mut self) -> Vec<Sample> {
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.request_sample(&self.board);
        }
        self.listen();
        let stressors = self.plan.load.stressors.iter().enumerate();
        stressors.map(|(index, stressor)| sample_of(&self.board, index, &stressor.work)).collect()
    }

    /// The measurement begins: what was done before does not count.
    pub fn mark_begin(&mut self) {
        self.begin = self.sample();
        self.end = None;
        self.meter = meter(&self.plan, &self.board, now());
        self.timeline = LoadTimeline::default();
        self.device = self.device_writes();
        self.read(true);
    }

    /// Looks at what the load does: to be called about ten times a second between the marks. Returns the seconds of
    /// which everything is known by now, each with what was done in it.
    pub fn look(&mut self) -> Vec<(u64, LoadBlock)> {
        let at = self.read(false);
        let seconds = self.meter.judge(at);
        self.keep(seconds)
    }

    /// The measurement ends: what is done from now on does not count.
    pub fn mark_end(&mut self) -> Vec<(u64, LoadBlock)> {
        self.end = Some(self.sample());
        let at = self.read(true);
        let seconds = self.meter.finish(at);
        if let (Some(device), Some(now)) = (self.device.clone(), self.device_writes()) {
            let written = match (device.written, now.written) {
                (record::Fact::Value(before), record::Fact::Value(now)) => {
                    record::Fact::Value(now.saturating_sub(before))
                }
                (record::Fact::Value(_), missing) | (missing, _) => missing,
            };
            self.device = Some(DeviceWrites { number: device.number, written });
        }
        self.keep(seconds)
    }

    fn keep(&mut self, seconds: Vec<(u64, LoadBlock)>) -> Vec<(u64, LoadBlock)> {
        seconds.iter().for_each(|(second, block)| self.timeline.push(*second, block));
        seconds
    }

    /// What has reached the device so far.
    fn device_writes(&self) -> Option<DeviceWrites> {
        let directory = self.plan.directory.as_ref().filter(|_| self.plan.load.writes())?;
        machine::mounts::device_writes(&self.root, std::path::Path::new(&directory.path))
    }

    /// Gives the meter what can be read now: the workers' counters, what the supervisor saw last, once a second, or where
    /// that `is_mark`, the machine's CPU times. Returns when.
    fn read(&mut self, is_mark: bool) -> Nanos {
        let stressors = 0..self.plan.load.stressors.len();
        let at = now();
        let done: Vec<Done> = stressors.clone().map(|index| self.done(index)).collect();
        self.meter.done(at, &done);
        let seen = self.board.read_look(|_| stressors.map(|index| self.watched(index)).collect::<Vec<_>>());
        if let Some((looked_at, seen)) = seen {
            self.meter.watched(looked_at, &seen);
        }
        if is_mark || self.meter.machine_read().is_none_or(|read| at.saturating_sub(read) >= READ_MACHINE) {
            if let record::Fact::Value(times) = CpuTimes::read(&self.root) {
                let idle = [&self.plan.cpus, &self.plan.every_cpu].map(|cpus| times.idle(cpus));
                self.meter.machine(now(), times.busy(&self.plan.cpus), idle, times.runnable_permille());
            }
        }
        at
    }

    fn done(&self, index: usize) -> Done {
        let stressor = &self.plan.load.stressors[index];
        if matches!(stressor.work, Work::Program(_)) {
            return Done::default();
        }
        let workers = 0..self.board.workers(index);
        let is_proof = stressor.proof() == LoadProof::Work;
        Done {
            work: Some(self.board.work(index)),
            channels: workers.filter(|_| is_proof).map(|worker| self.board.work_of(index, worker)).collect(),
        }
    }

    fn watched(&self, index: usize) -> Watched {
        let stressor = &self.plan.load.stressors[index];
        let (cpu_time, is_program) = (self.board.cpu_time(index), matches!(stressor.work, Work::Program(_)));
        let channel = match stressor.proof() {
            // What lives need not do anything.
            LoadProof::Alive => Some(0),
            LoadProof::Cpu => Some(cpu_time.0),
            LoadProof::Work => is_program.then_some(cpu_time.0),
        };
        Watched {
            cpu_time,
            channels: channel.map(|value| vec![value]),
            ready: (0..self.board.workers(index)).map(|worker| self.board.ready(index, worker)).collect(),
            work: is_program.then_some(milliseconds(cpu_time)),
        }
    }

    /// Whether the supervisor lives; a load without workers always does.
    pub fn alive(&mut self) -> bool {
        self.supervisor.as_mut().is_none_or(|supervisor| matches!(supervisor.process.try_wait(), Ok(None)))
    }

    /// The supervisor's process id: every worker is its descendant.
    pub fn supervisor_pid(&self) -> Option<u32> {
        self.supervisor.as_ref().map(|supervisor| supervisor.process.id())
    }

    /// Ends every worker and returns what they did between the marks. CPU shares and threads outside `SCHED_OTHER`
    /// are for the caller to add.
    pub fn stop(mut self) -> LoadEvidence {
        let died = !self.alive();
        let end = self.end.take().unwrap_or_else(|| self.sample());
        let clean = self.supervisor.as_mut().is_none_or(Supervisor::end);
        self.listen();
        let everybody = 0..self.plan.load.stressors.len();
        if died {
            self.failures
                .extend(everybody.map(|index| (index, "the supervisor died, and the load with it".into())));
        } else if !clean {
            let text =
                format!("the supervisor had not ended every worker after {END_PATIENCE:?} and was killed");
            self.failures.extend(everybody.map(|index| (index, text.clone())));
        }
        if let Some(fatal) = self.fatal.take() {
            self.failures.push((0, fatal));
        }
        self.evidence(&end)
    }

    fn evidence(&self, end: &[Sample]) -> LoadEvidence {
        LoadEvidence {
            name: self.plan.load.name.clone(),
            source: self.plan.load.source.clone(),
            cpus: self.plan.all_cpus(),
            stressors: (0..end.len()).map(|index| self.stressor(index, end[index])).collect(),
            shares: Vec::new(),
            directory: self.plan.directory.clone().filter(|_| self.plan.load.writes()),
            outside_other: Vec::new(),
            containment: self.containment.map(|way| way.to_string()).unwrap_or_default(),
            real_time: self.plan.load.is_real_time(),
            timeline: self.timeline.clone(),
            device: self.device.clone(),
        }
    }

    fn stressor(&self, index: usize, end: Sample) -> StressorEvidence {
        let (stressor, begin) = (&self.plan.load.stressors[index], self.begin[index]);
        let failures = self.failures.iter().filter(|(of, _)| *of == index).map(|(_, text)| text.clone());
        StressorEvidence {
            name: self.name(index),
            built_in: !matches!(stressor.work, Work::Program(_)),
            workers: stressor.count(self.plan.cpus_of(index)),
            work: end.work.saturating_sub(begin.work),
            unit: stressor.work.about().unit.to_owned(),
            cpu_time: end.cpu_time.saturating_sub(begin.cpu_time),
            failures: failures.collect(),
            start_offsets: (0..self.board.workers(index))
                .map(|worker| self.plan.start_offset(index, worker))
                .collect(),
            exposure: self.meter.exposures().get(index).copied(),
        }
    }

    /// The stressor's name, with how much of its sequence ran, if it has one.
    fn name(&self, index: usize) -> String {
        let stressor = &self.plan.load.stressors[index];
        let ran = self.steps.iter().filter(|(of, _)| *of == index).count();
        match &stressor.work {
            Work::Program(program) if !program.steps.is_empty() => {
                format!("{} ({ran} of {} in turn)", stressor.name(), program.steps.len())
            }
            _ => stressor.name(),
        }
    }

    /// Takes in what the supervisor and its workers have said.
    fn listen(&mut self) {
        let Some(supervisor) = &mut self.supervisor else { return };
        read_available(supervisor.reports.as_fd(), &mut supervisor.unread);
        for message in take_messages(&mut supervisor.unread) {
            match message {
                Message::Contained(way) => self.containment = Some(way),
                Message::Step { stressor, step } => drop(self.steps.insert((stressor, step))),
                Message::Fatal(text) => self.fatal = Some(text),
                Message::Failure { stressor, text } => {
                    let failure = (stressor, text);
                    if !self.failures.contains(&failure) {
                        self.failures.push(failure);
                    }
                }
            }
        }
    }
}

fn now() -> Nanos {
    Nanos(Clock::Monotonic.now())
}

fn milliseconds(time: Nanos) -> u64 {
    time.0 / 1_000_000
}

fn sample_of(board: &Board, index: usize, work: &Work) -> Sample {
    let cpu_time = board.cpu_time(index);
    match work {
        Work::Program(_) => Sample { work: milliseconds(cpu_time), cpu_time },
        _ => Sample { work: board.work(index), cpu_time },
    }
}

/// A meter of `plan`'s load that begins at `begin`.
fn meter(plan: &LoadPlan, board: &Board, begin: Nanos) -> Meter {
    let stressors = plan.load.stressors.iter().enumerate();
    let rules = stressors.map(|(index, stressor)| {
        let (about, proof, cpus) = (stressor.work.about(), stressor.proof(), plan.cpus_of(index));
        let is_program = matches!(stressor.work, Work::Program(_));
        let floor = stressor.floor_permille.unwrap_or(about.floor_permille);
        Rule {
            proof,
            channels: if proof == LoadProof::Work { board.workers(index) } else { 1 },
            // A program may work without much of a CPU, and life needs none.
            floor_permille: if proof == LoadProof::Alive || is_program && proof == LoadProof::Work {
                0
            } else {
                floor
            },
            cpus: cpus.len().min((stressor.count(cpus) as usize).saturating_mul(about.cpus)),
            workers: cpus.len().min(stressor.count(cpus) as usize),
            waits: stressor.waits(),
            everywhere: stressor.everywhere,
        }
    });
    Meter::new(rules, plan.cpus.len(), begin)
}

impl Supervisor {
    fn start(plan: &LoadPlan, board: std::os::fd::OwnedFd) -> Result<Self, Error> {
        let orders = Orders { plan: plan.clone(), board: sys::process::number(&board) };
        let mut command = Command::new(&plan.executable);
        // Opened here: of a machine without it the standard library would say that it has no such program.
        let null = sys::process::null().trying("opening /dev/null for the load's supervisor")?;
        command.arg(SUPERVISOR_ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(null);
        sys::process::leave_session(&mut command);
        sys::process::pass_on(&mut command, board);
        let mut process = command.spawn().map_err(|source| Error::File {
            what: format!("starting the load's supervisor, {}", plan.executable.display()),
            source,
        })?;
        let (Some(mut leash), Some(reports)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Error::Supervisor("it has no pipes".into()));
        };
        let flags = rustix::fs::OFlags::NONBLOCK;
        rustix::fs::fcntl_setfl(&reports, flags)
            .map_err(std::io::Error::from)
            .trying("the pipe from the supervisor")?;
        let mut line = serde_json::to_vec(&orders).map_err(|error| Error::Supervisor(error.to_string()))?;
        line.push(b'\n');
        // One that ended before it read its orders is found like one that ends later: by what it never reports.
        match leash.write_all(&line) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            written => written.trying("giving orders to the load's supervisor")?,
        }
        Ok(Self { process, leash: Some(leash), reports, unread: Vec::new(), asked: 0 })
    }

    /// Asks for CPU times and waits for them. A supervisor that is too busy or gone leaves those of its last answer.
    fn request_sample(&mut self, board: &Board) {
        let sent = self.leash.as_mut().is_some_and(|leash| leash.write_all(b"s").is_ok());
        if !sent {
            return;
        }
        self.asked += 1;
        let until = Instant::now() + SAMPLE_PATIENCE;
        while board.answered().observe() < self.asked
            && Instant::now() < until
            && matches!(self.process.try_wait(), Ok(None))
        {
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// Lets go of the leash and waits until the supervisor has ended everything; false where it had to be killed.
    fn end(&mut self) -> bool {
        self.leash = None;
        let until = Instant::now() + END_PATIENCE;
        while Instant::now() < until {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        false
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.end();
    }
}
