//! Changes the machine as planned: each intention on the disk first, each write read back, all taken back on failure.

use control::Kernel;
use record::Fact;

use crate::error::{Error, Result};
use crate::journal::{Journal, Line, Taken};
use crate::plan::Step;
use crate::setting::Target;
use crate::undo::{Undone, restore};
use crate::write::write;

/// What to do where the kernel refuses something that it should take. That it keeps interrupts and threads where they
/// are is a fact that is reported, and no failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRefusal {
    /// Take back everything.
    RollBack,
    /// Keep what it took.
    GoOn,
}

/// How it ended.
#[derive(Debug)]
pub enum End {
    /// Everything was done that the kernel let be done.
    Applied,
    /// The kernel refused the last thing that was written, and everything was taken back.
    RolledBack(Vec<Undone>),
    /// The journal could not be written, and everything was taken back.
    JournalFailed(Error, Vec<Undone>),
}

/// What was written, and how it ended.
#[derive(Debug)]
pub struct Applied {
    /// What was written, in that order.
    pub taken: Vec<Taken>,
    /// What could not be found or read any more, and so was not written.
    pub left_out: Vec<Target>,
    /// How it ended.
    pub end: End,
}

/// Writes `steps`. Those for which `wanted` says no are left out, and so is what has gone or is so already.
pub fn apply(
    kernel: &mut dyn Kernel,
    journal: &mut Journal,
    steps: &[Step],
    on_refusal: OnRefusal,
    wanted: &mut dyn FnMut(&Step) -> bool,
) -> Applied {
    let (mut taken, mut left_out) = (Vec::new(), Vec::new());
    for step in steps.iter().filter(|step| wanted(step)) {
        let Fact::Value(old) = step.target.value(&kernel.root()) else {
            left_out.push(step.target.clone());
            continue;
        };
        match take(kernel, journal, step, old, &mut taken) {
            Ok(true) => {}
            Ok(false) if on_refusal == OnRefusal::GoOn => {}
            Ok(false) => {
                let undone = restore(kernel, &taken);
                return Applied { taken, left_out, end: End::RolledBack(undone) };
            }
            Err(error) => {
                let undone = restore(kernel, &taken);
                return Applied { taken, left_out, end: End::JournalFailed(error, undone) };
            }
        }
    }
    let end = match journal.promise(&Line::Applied) {
        Ok(()) => End::Applied,
        Err(error) => End::JournalFailed(error, restore(kernel, &taken)),
    };
    Applied { taken, left_out, end }
}

/// Does one step and adds it to `taken`; false where the kernel should have taken it and did not.
fn take(
    kernel: &mut dyn Kernel,
    journal: &mut Journal,
    step: &Step,
    old: String,
    taken: &mut Vec<Taken>,
) -> Result<bool> {
    let Step { target, new, rules, .. } = step;
    if target.same(&old, new) && !target.is_reset_by_the_kernel() {
        return Ok(true);
    }
    let (rules, target, new) = (rules.clone(), target.clone(), new.clone());
    let mut done = Taken { rules, target, old, new, outcome: None };
    let number = journal.intend(&done)?;
    let outcome = write(kernel, &done.target, &done.old, &done.new);
    done.outcome = Some(outcome.clone());
    let is_fine = !done.is_failure();
    taken.push(done);
    journal.tell(&Line::Done { step: number, outcome })?;
    Ok(is_fine)
}

/// Writes to each thing of `steps` what it says already: the act of writing without a change, to compare a change with.
/// Those that read otherwise afterwards, with what they say.
pub fn rewrite(kernel: &mut dyn Kernel, steps: &[Step]) -> Vec<(Target, Fact<String>)> {
    let mut moved = Vec::new();
    for Step { target, .. } in steps {
        let Fact::Value(old) = target.value(&kernel.root()) else { continue };
        // What the kernel refuses to take it has been asked to take: that is the act.
        let _ = target.kind().write(kernel, &old);
        match target.value(&kernel.root()) {
            Fact::Value(now) if target.same(&now, &old) => {}
            now => moved.push((target.clone(), now)),
        }
    }
    moved
}
