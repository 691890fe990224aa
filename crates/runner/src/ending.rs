//! How a scenario ends: by its plan, by a signal, by a latency, or with a thread that does not come back.

use std::time::{Duration, Instant};

use probe::{Probe, ProbeError};
use record::{RunPlan, ScenarioEnd, ScenarioHead, ThreadEvidence};
use sys::signal::Signal;
use units::Nanos;

use crate::session::Session;

/// How long the probe's threads get to come back after the end.
const END_PATIENCE: Duration = Duration::from_secs(30);
/// How often a second signal is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(100);

/// What a signal makes of the scenario that is under way. A run without a planned length is complete when its user or
/// the service manager ends it; a terminal that is gone ends it early.
pub fn by(signal: Signal, plan: &RunPlan, measuring: bool) -> ScenarioEnd {
    let asked = matches!(signal, Signal::Interrupt | Signal::Terminate);
    if asked && measuring && !plan.has_length() { ScenarioEnd::Complete } else { ScenarioEnd::Interrupted }
}

/// Waits until the threads have come back. A second signal ends the wait: whoever hangs then is given up.
pub fn await_report(session: &mut Session, probe: &mut Probe) -> Result<Vec<ThreadEvidence>, ProbeError> {
    let start = Instant::now();
    loop {
        match probe.finish(LOOK) {
            Err(ProbeError::Silent(_)) if start.elapsed() < END_PATIENCE && !session.has_signal() => {}
            Err(ProbeError::Silent(_)) => return Err(ProbeError::Silent(start.elapsed())),
            answer => return answer,
        }
    }
}

/// How the scenario ended, when the probe has answered or was given up (`silence`).
pub fn of(end: ScenarioEnd, probe: &Probe, head: &ScenarioHead, silence: Option<&ProbeError>) -> ScenarioEnd {
    if let Some(failure) = sleep_failure(probe, head) {
        return ScenarioEnd::Failed(failure);
    }
    match (silence, end) {
        (Some(ProbeError::Silent(waited)), _) => {
            let waited = Nanos::from(*waited).rounded();
            ScenarioEnd::Failed(format!("{} did not come back within {waited}", unfinished(probe, head)))
        }
        (Some(error), _) => ScenarioEnd::Failed(error.to_string()),
        (None, end @ ScenarioEnd::Failed(_)) => end,
        (None, _) if probe.has_failed_safe() => ScenarioEnd::FailSafe,
        (None, _) if probe.views().any(|view| view.stopped_by_latency()) => ScenarioEnd::StopAt,
        (None, end) => end,
    }
}

/// The call that failed to put a thread to sleep, on which CPU, and what the kernel answered.
fn sleep_failure(probe: &Probe, head: &ScenarioHead) -> Option<String> {
    let errors = probe.views().enumerate().filter_map(|(index, view)| Some((index, view.sleep_error()?)));
    let (index, errno) = errors.min_by_key(|(index, _)| *index)?;
    let call = probe.plan().sleeping_call();
    let thread = name(head, index);
    Some(if errno == probe::NO_SLEEP {
        format!("{thread} cannot sleep: {call} returns at once")
    } else {
        let answer = sys::Error::new(call, errno);
        format!("{thread} cannot sleep: {answer}")
    })
}

fn name(head: &ScenarioHead, index: usize) -> String {
    let cpu = head.cpus.get(index).copied().flatten();
    cpu.map_or(format!("thread {index}"), |cpu| format!("the thread of CPU {cpu}"))
}

fn unfinished(probe: &Probe, head: &ScenarioHead) -> String {
    let silent = probe.views().enumerate().filter(|(_, view)| view.finished().is_none());
    let names: Vec<String> = silent.map(|(index, _)| name(head, index)).collect();
    if names.is_empty() { "the probe".into() } else { names.join(", ") }
}

/// The longest time that a thread was to deliver activations: as planned, or until the run was stopped.
pub fn length(probe: &Probe) -> Nanos {
    let planned = probe.plan().numbers();
    let of = |index: usize, view: probe::board::View<'_>| {
        let grid = probe.grid(index)?;
        let last = view.finished().max(probe.stopped_at())?;
        let due = planned.unwrap_or(u64::MAX).min(grid.due_by(last));
        Some(grid.interval.saturating_mul(due))
    };
    Nanos(probe.views().enumerate().filter_map(|(index, view)| of(index, view)).max().unwrap_or_default())
}

/// When the plan says that all threads are back.
pub struct Patience {
    began: Instant,
    /// Warm-up and measurement; none where the user ends it.
    length: Option<Duration>,
}

impl Patience {
    /// From now on.
    pub fn new(probe: &Probe) -> Self {
        // A sweep lays the activations wider apart, by less than a hundredth.
        let length = probe.plan().length().map(|length| Duration::from_nanos(length.0));
        Self { began: Instant::now(), length: length.map(|length| length + length / 100) }
    }

    /// Who is still out long after the end, if somebody is.
    pub fn exceeded(&self, probe: &Probe, head: &ScenarioHead) -> Option<String> {
        let late = self.began.elapsed().checked_sub(self.length?)?;
        let silent = late > END_PATIENCE;
        silent.then(|| format!("{} did not come back at the end", unfinished(probe, head)))
    }
}
