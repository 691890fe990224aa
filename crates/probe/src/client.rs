//! The parent's side of a probe: starts it, reads its board, asks it to stop, collects its evidence.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use record::{Grid, Own, Sample, Series, ThreadEvidence};
use sys::shared::SharedWords;
use units::Nanos;

use crate::board::{self, View};
use crate::clock::clock_of;
use crate::job::Seen;
use crate::plan::ProbePlan;
use crate::process::{ARGUMENT, Message};

/// This very program, whatever became of its file.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// A probe in a process of its own. Dropped, it is killed.
pub struct Probe {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    unread: Vec<u8>,
    board: SharedWords,
    plan: ProbePlan,
    tids: Vec<i32>,
}

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The process could not be started.
    #[error("the probe could not be started from {path}: {error}")]
    Start {
        /// The program.
        path: String,
        /// The answer.
        error: std::io::Error,
    },
    /// A system call on this side failed.
    #[error(transparent)]
    System(#[from] sys::Error),
    /// The probe could not prepare itself.
    #[error("{0}")]
    Failed(failure::Error),
    /// The process ended without a report.
    #[error("the probe's process ended without a report ({0})")]
    Died(String),
    /// The process did not answer.
    #[error("the probe did not answer within {}", Nanos::from(*.0).rounded())]
    Silent(Duration),
}

impl ProbeError {
    /// What to do about it.
    pub fn hint(&self) -> &str {
        match self {
            Self::Start { error, .. } if error.kind() == std::io::ErrorKind::WouldBlock => {
                sys::process::RAISE_LIMIT
            }
            Self::Start { .. } => {
                "is /proc mounted, and the worstcase binary still where it was started from?"
            }
            Self::System(_) => "",
            Self::Failed(failure) => &failure.hint,
            Self::Died(_) => "was it killed, or stopped by the kernel? see the end of dmesg",
            Self::Silent(_) => {
                "real-time threads may keep the CPUs from it: see `ps -eLo pid,cls,rtprio,pcpu,comm`"
            }
        }
    }
}

impl Probe {
    /// Starts `executable` as a probe and waits until its threads are prepared.
    pub fn start(executable: &Path, plan: ProbePlan) -> Result<Self, ProbeError> {
        Self::start_at(executable, plan, |_| Ok(()))
    }

    /// The same; `place` puts the process where it is to be before it prepares itself. What it could not do is reported as
    /// [`ProbeError::Failed`].
    pub fn start_at(
        executable: &Path,
        plan: ProbePlan,
        place: impl FnOnce(u32) -> failure::Result<()>,
    ) -> Result<Self, ProbeError> {
        let (board, file) = SharedWords::create(plan.words())?;
        let mut command = Command::new(executable);
        command.arg(ARGUMENT).arg(file.as_raw_fd().to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        sys::process::pass_on(&mut command, file);
        sys::process::detach(&mut command);
        sys::process::end_with_parent(&mut command);
        let failed = |error| ProbeError::Start { path: executable.display().to_string(), error };
        let mut child = command.spawn().map_err(failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let Some(output) = output else { return Err(ProbeError::Died("it has no output".into())) };
        let mut probe = Self { child, input, output, unread: vec![], board, plan, tids: vec![] };
        place(probe.pid()).map_err(ProbeError::Failed)?;
        let text = serde_json::to_string(&probe.plan).map_err(|error| failed(error.into()))?;
        probe.tell(&text);
        match probe.message(Duration::from_secs(60))? {
            Message::Ready(tids) => probe.tids = tids,
            Message::Failed(failure) => return Err(ProbeError::Failed(failure)),
            Message::Done(_) => return Err(ProbeError::Died("it was done before it began".into())),
        }
        Ok(probe)
    }

    /// Lets the threads run.
    pub fn go(&mut self) {
        self.tell("go");
    }

    /// Asks the threads to end, now: what is due later is not part of the run. [`Probe::finish`] waits for them.
    pub fn stop(&mut self) {
        board::stop(&self.board, self.now());
        self.input = None;
    }

    /// What the plan's clock reads.
    pub fn now(&self) -> u64 {
        clock_of(self.plan.clock()).now()
    }

    /// What the plan's clock read when the threads were asked to end, by whomever.
    pub fn stopped_at(&self) -> Option<u64> {
        board::stopped_at(&self.board)
    }

    /// Whether its threads ended the run because nothing else had a CPU.
    pub fn has_failed_safe(&self) -> bool {
        board::has_failed_safe(&self.board)
    }

    /// When activations of thread `thread` are due; none while it warms up.
    pub fn grid(&self, thread: usize) -> Option<Grid> {
        Some(self.plan.grid(thread, self.view(thread).origin()?))
    }

    /// Has the next wake-up of each thread that is late by `latency` or more marked in the trace.
    pub fn mark_next_from(&self, latency: Nanos) {
        board::mark_next_from(&self.board, latency);
    }

    /// Has every wake-up that is late by `latency` or more marked in the trace.
    pub fn mark_all_from(&self, latency: Nanos) {
        board::mark_all_from(&self.board, latency);
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The threads' kernel ids, in the plan's order.
    pub fn tids(&self) -> &[i32] {
        &self.tids
    }

    /// The plan that it follows.
    pub fn plan(&self) -> &ProbePlan {
        &self.plan
    }

    /// What thread `thread` has measured so far.
    pub fn view(&self, thread: usize) -> View<'_> {
        View(board::block(&self.board, thread, self.plan.every_sample))
    }

    /// What the instrument has added to the series of thread `thread` so far, where that is more than a journal's lines have.
    pub fn own_so_far(&self, thread: usize) -> Option<Own> {
        self.plan.job.own().so_far(&self.seen(thread, &[]))
    }

    /// What it adds to the series of thread `thread`, whose worst values are `worst`. To be asked once the thread has ended or
    /// was given up.
    pub fn own(&self, thread: usize, worst: &[Sample]) -> Own {
        self.plan.job.own().series(&self.seen(thread, worst))
    }

    /// The number of the value that thread `thread` would have delivered next, if it has not come back; none where it owes
    /// nothing.
    pub fn pending(&self, thread: usize, series: &Series) -> Option<u64> {
        let seen = self.seen(thread, &[]);
        if seen.view.finished().is_some() { None } else { self.plan.job.own().pending(&seen, series) }
    }

    /// The number of the value that thread `thread` keeps waiting, and how late it is when the clock reads `now`: not before it
    /// is later than threads of the instrument are apart by plan.
    pub fn overdue(&self, thread: usize, now: u64) -> Option<(u64, Nanos)> {
        let seen = self.seen(thread, &[]);
        if seen.view.finished().is_some() {
            return None;
        }
        let (number, pause) = self.plan.job.own().awaited(&seen)?;
        let late = now.checked_sub(seen.grid?.due(number))?;
        (late >= pause).then_some((number, Nanos(late)))
    }

    fn seen<'a>(&'a self, thread: usize, worst: &'a [Sample]) -> Seen<'a> {
        let view = self.view(thread);
        let grid = self.grid(thread);
        let expected = grid.map_or(0, |grid| self.due(&view, &grid));
        Seen { view, words: self.plan.tally(&self.board, thread), grid, expected, worst }
    }

    /// Values that were due: as planned, or until the run was stopped; longer, where the thread itself went on for a moment
    /// before it saw that.
    fn due(&self, view: &View<'_>, grid: &Grid) -> u64 {
        let planned = self.plan.numbers().unwrap_or(u64::MAX);
        self.stopped_at().map_or(planned, |stop| {
            let until = view.finished().map_or(stop, |running| running.max(stop));
            grid.due_by(until).min(planned)
        })
    }

    /// The threads, in the order of the plan.
    pub fn views(&self) -> impl Iterator<Item = View<'_>> {
        (0..self.plan.threads.len()).map(|thread| self.view(thread))
    }

    /// Can be read when the probe has something to say: it is done, or dead.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }

    /// Waits for the report, at most `timeout`; may be asked again after [`ProbeError::Silent`].
    pub fn finish(&mut self, timeout: Duration) -> Result<Vec<ThreadEvidence>, ProbeError> {
        match self.message(timeout)? {
            Message::Done(evidence) => {
                let _ = self.child.wait();
                Ok(evidence)
            }
            Message::Failed(failure) => Err(ProbeError::Failed(failure)),
            Message::Ready(_) => Err(ProbeError::Died("it spoke out of turn".into())),
        }
    }

    fn tell(&mut self, line: &str) {
        // A probe that is gone is noticed by its silence.
        if let Some(input) = &mut self.input {
            let _ = input.write_all(format!("{line}\n").as_bytes());
        }
    }

    fn message(&mut self, timeout: Duration) -> Result<Message, ProbeError> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return record::json::read(&line).map_err(|error| ProbeError::Died(error.to_string()));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ProbeError::Silent(timeout));
            }
            if !sys::signal::wait_readable(&[self.output.as_fd()], left)?[0] {
                continue;
            }
            let mut piece = [0; 4096];
            match self.output.read(&mut piece) {
                Ok(0) => return Err(ProbeError::Died(self.last_words())),
                Ok(length) => self.unread.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(ProbeError::Died(error.to_string())),
            }
        }
    }

    fn last_words(&mut self) -> String {
        self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl From<ProbeError> for failure::Error {
    fn from(error: ProbeError) -> Self {
        Self::new(&error, error.hint())
    }
}
