//! Looks at a running load ten times a second, and journals what it did in each second.

use std::time::{Duration, Instant};

use load::RunningLoad;
use record::LoadBlock;
use record::journal::Line;

use crate::session::Session;

/// How often a load is looked at: once a slot, by which its exposure is judged.
const LOOK: Duration = Duration::from_millis(100);

/// How often figures are taken where there is no load to look at.
const QUIET: Duration = Duration::from_millis(250);

/// The looks of one scenario.
#[derive(Debug, Default)]
pub struct Looks {
    last: Option<Instant>,
}

impl Looks {
    /// How long the parent may sleep: a load that stands still has to be seen, and without one nobody is disturbed.
    pub fn patience(load: &RunningLoad) -> Duration {
        if load.supervisor_pid().is_some() { LOOK } else { QUIET }
    }

    /// The measurement begins.
    pub fn begin(&mut self, load: &mut RunningLoad) {
        load.mark_begin();
        self.last = Some(Instant::now());
    }

    /// Looks, if it is time.
    pub fn look(&mut self, load: &mut RunningLoad, session: &mut Session) {
        // Before the begin there is nothing to judge.
        if let Some(last) = self.last.as_mut().filter(|last| last.elapsed() >= LOOK) {
            *last = Instant::now();
            append(load.look(), session);
        }
    }

    /// The measurement ends.
    pub fn end(&mut self, load: &mut RunningLoad, session: &mut Session) {
        self.last = None;
        append(load.mark_end(), session);
    }
}

fn append(seconds: Vec<(u64, LoadBlock)>, session: &mut Session) {
    let line = |(second, block): (u64, LoadBlock)| [vec![second, block.busy_permille], block.work].concat();
    if !seconds.is_empty() {
        session.outputs.append(&Line::Load(seconds.into_iter().map(line).collect()));
    }
}
