//! Blocks that this machine measures, one after the other.

use std::fs;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use experiment::{Bench, Block, Figures, Planned};
use lab::state::Plan;
use record::store;
use rustix::process::{Pid, Signal as Kill, kill_process};
use sys::signal::{Signal, Signals, wait_readable};
use tune::State;
use units::Nanos;

use super::plan::TrialPlan;
use super::text;
use crate::commands::explain::tracer;
use crate::commands::tune::apply_options::clear;
use crate::output::{self, Stream};
use failure::{Error, Result};

/// How often the signals are looked at.
const TICK: Duration = Duration::from_millis(100);
/// How long undoing may take after a block was killed.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a block said.
const SAID: &str = "console.txt";

/// This machine.
pub struct Machine<'a> {
    /// What is measured.
    pub plan: &'a TrialPlan,
    /// Where records are kept.
    pub directory: &'a Path,
    /// Where the journal of the settings is.
    pub state: &'a State,
    /// Ctrl-C and the like.
    pub signals: &'a Signals,
}

impl Bench for Machine<'_> {
    fn measure(&mut self, blocks: &[Block]) -> std::result::Result<Option<Vec<Figures>>, failure::Error> {
        let mut all = Vec::new();
        for (number, block) in blocks.iter().enumerate() {
            if output::can_redraw(Stream::Error) {
                let Block { phase, round, arm, .. } = block;
                let of = blocks.len();
                output::progress(&format!("phase {phase}, [{}/{of}] round {round}: {arm}", number + 1));
            }
            match self.block(block)? {
                Some(figures) => all.push(figures),
                None => return Ok(None),
            }
        }
        if output::can_redraw(Stream::Error) {
            output::end_progress();
        }
        Ok(Some(all))
    }

    fn planned(&mut self, planned: &Planned) {
        output::words(&text::planned(self.plan, planned));
    }
}

impl Machine<'_> {
    /// The figures of a block that was measured before, or is now. None where a signal asked it to stop.
    fn block(&self, block: &Block) -> Result<Option<Figures>> {
        let place = self.directory.join(self.plan.place(block));
        if !place.join(store::RECORD).is_file() && !self.run(block, &place)? {
            return Ok(None);
        }
        Ok(Some(self.figures(&place)?))
    }

    fn figures(&self, place: &Path) -> Result<Figures> {
        self.plan.figures(&self.plan.judged(store::load(place)?)?)
    }

    /// Measures it in a process of its own. The record takes its place when it is whole.
    fn run(&self, block: &Block, place: &Path) -> Result<bool> {
        let draft = place.with_extension("draft");
        let failed = |error: std::io::Error| {
            let message = format!("make {}: {error}", draft.display());
            Error::new(message, "make room; --resume goes on from here")
        };
        let _ = fs::remove_dir_all(&draft);
        let made = files::Directory::make(&draft);
        let said = made.and_then(|made| made.create_new(SAID, files::READABLE));
        let said = said.map_err(|error| failed(error.source))?;
        let own = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(own);
        let message = self.plan.block(&block.arm, block.seed, &draft, Some(self.state.directory()))?;
        command.args(message.arguments()?).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(said);
        sys::process::end_with_parent(&mut command);
        let mut child = command.spawn().map_err(failed)?;
        let answer = child.stdout.take();
        let Some(status) = self.wait(child)? else { return Ok(false) };
        self.whole(&draft, status, answer)?;
        fs::rename(&draft, place).map_err(failed)?;
        Ok(true)
    }

    /// Refuses a block that did not come to its end, with what it answered.
    fn whole(&self, draft: &Path, status: ExitStatus, answer: Option<impl Read>) -> Result<()> {
        let mut text = String::new();
        // A block says no more than one line: it has ended.
        let _ = answer.map(|mut answer| answer.read_to_string(&mut text));
        let answer = record::json::read::<Error>(text.as_bytes()).ok();
        let broken = |what: String| {
            let hint = "is there room for its record? what it said is in console.txt there";
            let Error { message, hint, .. } = answer.clone().unwrap_or(Error::new(what, hint));
            Error::new(format!("a block was not measured: {message}"), hint)
        };
        if !matches!(status.code(), Some(0 | 1 | 3)) {
            return Err(broken(format!("it ended with {status}")));
        }
        self.figures(draft).map(drop).map_err(|error| broken(error.message))
    }

    /// How it ended; none where a signal asked it to, and has undone what it had written.
    fn wait(&self, mut child: Child) -> Result<Option<ExitStatus>> {
        let mut stopped = false;
        loop {
            let ended = child.try_wait().map_err(|error| Error::new(error, ""))?;
            // Looked at after the block: Ctrl-C ends both at once, and such a block was not measured to its end.
            if self.signals.next().is_some_and(|signal| signal != Signal::User1) {
                stopped = true;
                // Ctrl-C has reached it already, kill has not.
                let pid = Pid::from_raw(child.id() as i32).filter(|_| ended.is_none());
                let _ = pid.map(|pid| kill_process(pid, Kill::TERM));
            }
            if let Some(status) = ended {
                settle(self.state)?;
                return Ok((!stopped).then_some(status));
            }
            wait_readable(&[self.signals.as_fd()], TICK)?;
        }
    }
}

/// Returns when nothing of a block's settings is left.
fn settle(state: &State) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while state.history().is_ok_and(|history| history.is_some()) {
        if Instant::now() > until {
            let hint = "worstcase tune undo takes them back";
            return Err(Error::new("settings of a block that was killed are left", hint));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Refuses at once what no block could do: to write settings without the right to, or over others that hold, or to trace
/// where the kernel refuses.
pub fn check(state: &State, is_traced: bool) -> Result<()> {
    let lock = state.lock()?;
    clear(state, &lock)?.map_or(Ok(()), |_| Err(super::block::applied_already()))?;
    if is_traced {
        let refused =
            |error: Error| Error::new(format!("wake-ups cannot be traced: {}", error.message), error.hint);
        tracer::make(1, Nanos::from_secs(1)).map(drop).map_err(refused)?;
    }
    Ok(())
}
