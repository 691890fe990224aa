//! Swapping: off, where memory suffices for what was swapped out, and on again with the same priority.

use std::fmt;

use control::Kernel;
use machine::swaps::{self, swaps};
use record::Fact;
use rustix::io::Errno;
use sysroot::SysRoot;
use units::InOrder;

use super::{Expansion, Found, Kind, Phase, Step, Target};

/// What is said of memory that is not swapped there.
const OFF: &str = "off";

/// Nothing is swapped anywhere. The kernel counts negative priorities anew, so that the lowest goes first and comes back
/// last.
pub(super) fn expand(root: &SysRoot) -> Expansion {
    let mut expansion = Expansion::default();
    let mut all = match swaps(root) {
        Fact::Value(all) => all,
        other => {
            expansion.refuse(swaps::PATH, format!("it cannot be read ({})", other.map(|_| String::new())));
            return expansion;
        }
    };
    all.order_by_key(|swap| swap.priority);
    let used: u64 = all.iter().map(|swap| swap.used).sum();
    let available = available_memory(root).unwrap_or(0);
    if used > available / 2 {
        let why = format!(
            "{used} KiB are swapped out, and of {available} KiB of memory half at most may be used for them"
        );
        expansion.refuse("swap", why);
        return expansion;
    }
    for swap in all {
        let old = value(swap.priority);
        expansion.steps.push(Step::new(Target::Swap(swap.path), old, OFF.to_owned()));
    }
    expansion
}

/// `priority -2`.
fn value(priority: i32) -> String {
    format!("priority {priority}")
}

/// The priority in a text, none for [`OFF`]; nothing at all for a text that is neither.
fn priority(text: &str) -> Option<Option<i32>> {
    if text == OFF {
        return Some(None);
    }
    text.strip_prefix("priority ")?.parse().ok().map(Some)
}

/// In KiB (proc_meminfo(5)).
fn available_memory(root: &SysRoot) -> Option<u64> {
    let text = root.read("/proc/meminfo");
    let line =
        text.value()?.lines().find_map(|line| line.strip_prefix("MemAvailable:").map(str::to_owned))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Memory swapped to a partition or a file, by its path.
pub(super) struct Swap<'a>(pub &'a str);

impl fmt::Display for Swap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "swap {}", self.0)
    }
}

impl Kind for Swap<'_> {
    fn text(&self, root: &SysRoot) -> Fact<String> {
        swaps(root).map(|all| match all.into_iter().find(|swap| swap.path == self.0) {
            Some(swap) => value(swap.priority),
            None => OFF.to_owned(),
        })
    }

    fn write(&self, kernel: &mut dyn Kernel, value: &str) -> Result<(), Errno> {
        kernel.swap(self.0, priority(value).ok_or(Errno::INVAL)?)
    }

    fn phase(&self) -> Phase {
        Phase::Others
    }

    fn find(&self, _root: &SysRoot, this: &Target) -> Found {
        Found::Here(this.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::Tree;

    fn planned(swaps: &str, available: &str) -> Expansion {
        let text = format!("Filename Type Size Used Priority\n{swaps}");
        let memory = format!("MemTotal: 9 kB\nMemAvailable:   {available} kB\n");
        expand(&SysRoot::of(Tree::whole([
            ("/proc/swaps".to_owned(), text.into_bytes()),
            ("/proc/meminfo".to_owned(), memory.into_bytes()),
        ])))
    }

    #[test]
    fn the_lowest_priority_goes_first() {
        let steps = planned("/dev/a partition 100 0 5\n/b file 100 0 -3\n/c file 100 0 -2\n", "1000").steps;
        let lines: Vec<String> = steps.iter().map(|step| format!("{}: {}", step.target, step.old)).collect();
        assert_eq!(lines, ["swap /b: priority -3", "swap /c: priority -2", "swap /dev/a: priority 5"]);
    }

    #[test]
    fn what_would_not_fit_into_memory_stays_swapped_out() {
        let expansion = planned("/dev/a partition 1000 600 -2\n", "1000");
        assert!(expansion.steps.is_empty());
        assert!(expansion.refusals[0].why_not.starts_with("600 KiB are swapped out"), "{expansion:?}");
        assert_eq!(planned("/dev/a partition 1000 500 -2\n", "1000").steps.len(), 1);
    }

    #[test]
    fn a_text_says_a_priority_or_none() {
        assert_eq!((priority("off"), priority("priority -2")), (Some(None), Some(Some(-2))));
        assert_eq!(priority("on"), None);
    }
}
