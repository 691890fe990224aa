//! What of a journal holds now, and how what does not is written again.

#[cfg(test)]
mod tests;

use control::Kernel;
use record::Fact;
use sysroot::SysRoot;
use units::{CpuList, errno_in_words};

use crate::error::Result;
use crate::journal::{History, Journal, Line, Taken};
use crate::plan::Relied;
use crate::setting::{Found, Target, effective_cpus, partitions_in};
use crate::write::write;

/// How one thing is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Now {
    /// As we wrote it.
    Holds,
    /// As it was before us: somebody put it back, or it was reset.
    AsBefore,
    /// It says something else.
    Drifted(String),
    /// It is set, and not in effect yet: why.
    Pending(String),
    /// The thread has ended: there is nothing that could hold or not.
    Ended(String),
    /// It is gone, and why that is believed.
    Gone(String),
    /// Which one it is is unknown.
    Unclear(String),
    /// It cannot be read: the errno.
    Unreadable(i32),
}

/// Each thing that was written, and how it is now. What the kernel refused is not among them.
pub fn now<'a>(root: &SysRoot, history: &'a History) -> Vec<(&'a Taken, Now)> {
    let written = history.latest().into_iter().filter_map(|taken| Some((taken, taken.ours()?)));
    written.map(|(taken, ours)| (taken, one(root, taken, ours))).collect()
}

impl Now {
    /// Whether it is not as we wrote it. What was taken away does not hold.
    pub fn is_off(&self) -> bool {
        !matches!(self, Self::Holds | Self::Ended(_))
    }
}

/// A thread that began anew under its name is judged as the one that ended.
fn one(root: &SysRoot, taken: &Taken, ours: &str) -> Now {
    let target = match (taken.target.find(root), taken.target.successor(root)) {
        (Found::Here(target), _) | (Found::Gone(_), Some(target)) => target,
        (Found::Gone(why), None) if taken.target.kind().can_end() => return Now::Ended(why),
        (Found::Gone(why), None) => return Now::Gone(why),
        (Found::Unclear(why), _) => return Now::Unclear(why),
    };
    match target.value(root) {
        Fact::Value(now) if target.kind().holds(&now, ours) => {
            target.kind().pending(root).map_or(Now::Holds, Now::Pending)
        }
        Fact::Value(now) if target.same(&now, &taken.old) => Now::AsBefore,
        Fact::Value(now) => Now::Drifted(now),
        Fact::Unreadable(errno) => Now::Unreadable(errno),
        Fact::Absent | Fact::Unsupported => Now::Gone("it is no longer there".to_owned()),
    }
}

/// What is wrong beside the values that were written, a line each: what they rest on, which CPUs a partition really has,
/// and who may run on the wrong side of it.
pub fn faults(root: &SysRoot, history: &History) -> Vec<String> {
    let relied = relied(history).filter_map(|relied| broken(root, relied));
    let held: Vec<_> = history.latest().into_iter().filter_map(Taken::as_held).collect();
    let partitions =
        partitions_in(&held).into_iter().flat_map(|(group, cpus)| partition_faults(root, &group, &cpus));
    damage(history).chain(relied).chain(partitions).collect()
}

/// Lines of the journal that say nothing any more.
fn damage(history: &History) -> impl Iterator<Item = String> {
    let lines = history.damaged.iter().map(|line| format!("line {line} of the journal is damaged"));
    let is_headless = history.begin.is_none() && history.damaged.is_empty();
    let headless =
        is_headless.then(|| "the journal does not say when and for how long it was begun".to_owned());
    lines.chain(headless)
}

/// What is relied on, but for what was written since.
fn relied(history: &History) -> impl Iterator<Item = &Relied> {
    let is_written = |relied: &&Relied| history.steps.iter().any(|taken| taken.target == relied.target);
    history.relied.iter().filter(move |relied| !is_written(relied))
}

/// What has become of something that is relied on, where it is not as wanted any more.
fn broken(root: &SysRoot, Relied { target, value, .. }: &Relied) -> Option<String> {
    let now = match (target.find(root), target.successor(root)) {
        (Found::Here(target), _) | (Found::Gone(_), Some(target)) => lacking(root, &target, value)?,
        (Found::Gone(_), None) if target.kind().can_end() => return None,
        (Found::Gone(why) | Found::Unclear(why), _) => why,
    };
    Some(format!("{target}, which was {value} already and is relied on: {now}"))
}

/// What a setting says, where that is not as wanted.
fn lacking(root: &SysRoot, target: &Target, wanted: &str) -> Option<String> {
    let kind = target.kind();
    match kind.text(root) {
        Fact::Value(text) => kind.form(&text).change(&text, wanted).map(|_| text.trim().to_owned()),
        Fact::Unreadable(errno) => Some(errno_in_words(errno)),
        Fact::Absent | Fact::Unsupported => Some("it is no longer there".to_owned()),
    }
}

/// The partition whose CPUs are `asked` for: what the kernel gives it, and who is where.
fn partition_faults(root: &SysRoot, group: &str, asked: &CpuList) -> Vec<String> {
    let mut faults = Vec::new();
    match effective_cpus(root, group) {
        Fact::Value(cpus) if cpus == *asked => {}
        Fact::Value(cpus) => {
            faults.push(format!("{group} is for {} and has {}", asked.named(), if_any(&cpus)));
        }
        _ => faults.push(format!("{group} is for {}, and nothing says that it has any", asked.named())),
    }
    let misplaced = machine::misplaced(root, group, asked);
    if let Some(task) = misplaced.first() {
        let others = match misplaced.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        faults.push(format!(
            "{} ({}) may run on {}{others}: on the wrong side of the partition of {}",
            task.name,
            task.tid,
            task.cpus.named(),
            asked.named()
        ));
    }
    faults
}

fn if_any(cpus: &CpuList) -> String {
    if cpus.is_empty() { "none".to_owned() } else { cpus.to_string() }
}

/// Writes again what does not hold, found by name where its number is another's; what was written, in that order.
///
/// # Errors
/// Where the journal cannot be written: what was not written yet stays as it is.
pub fn reconcile(kernel: &mut dyn Kernel, journal: &mut Journal, history: &History) -> Result<Vec<Taken>> {
    let mut again = Vec::new();
    let relied = relied(history).map(|relied| (&relied.rules, &relied.target, &relied.value, true));
    let held = history.latest().into_iter().filter(|taken| taken.held());
    let held = held.map(|taken| (&taken.rules, &taken.target, &taken.new, false));
    for (rules, target, wanted, is_relied) in relied.chain(held) {
        let root = kernel.root();
        let Some(target) = target.successor(&root) else { continue };
        let Fact::Value(old) = target.value(&root) else { continue };
        let new = match is_relied {
            true => target.kind().form(&old).change(&old, wanted),
            false => (!target.kind().holds(&old, wanted)).then(|| wanted.clone()),
        };
        let Some(new) = new else { continue };
        let rules = rules.clone();
        let mut done = Taken { rules, target, old, new, outcome: None };
        let step = journal.intend(&done)?;
        let outcome = write(kernel, &done.target, &done.old, &done.new);
        done.outcome = Some(outcome.clone());
        journal.tell(&Line::Done { step, outcome })?;
        again.push(done);
    }
    if !again.is_empty() && history.applied {
        journal.promise(&Line::Applied)?;
    }
    Ok(again)
}
