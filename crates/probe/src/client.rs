//! The parent's side of a probe: starts it, reads its board, asks it to stop, collects its evidence.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use record::instrument::gpio::GpioSeries;
use record::instrument::response::ResponseSeries;
use record::{Grid, ThreadEvidence};
use sys::shared::SharedWords;

use crate::board::{self, View};
use crate::plan::ProbePlan;
use crate::plan::clock_of;
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
    #[error("the probe did not answer within {}", units::Nanos::from(*.0).rounded())]
    Silent(Duration),
}

impl ProbeError {
    /// What to do about it.
    pub fn hint(&self) -> &str {
        match self {
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
    pub fn mark_next_from(&self, latency: units::Nanos) {
        board::mark_next_from(&self.board, latency);
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

    /// What the response probe's thread `thread` has counted so far, if that is the instrument; `worst` are its worst
    /// responses.
    pub fn response(&self, thread: usize, worst: &[record::Sample]) -> Option<ResponseSeries> {
        let words = self.plan.tally(&self.board, thread);
        (!words.is_empty()).then(|| crate::response::tally::read(words, worst))
    }

    /// What the responder's thread has counted so far, if that is the instrument.
    pub fn gpio(&self, thread: usize) -> Option<GpioSeries> {
        let words = self.plan.tally(&self.board, thread);
        matches!(self.plan.job, crate::Job::Gpio(_)).then(|| crate::gpio::tally::read(words))
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
