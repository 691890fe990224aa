//! What can be done to the running system beside writing files, and how a shell does it.

use serde::Deserialize;
use units::Priority;

/// One action. Words in braces stand for CPUs, as in [`crate::Cure`].
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Action {
    /// Moves or raises threads of the kernel.
    Threads(Threads),
    /// Takes CPUs out of load balancing, in a partition of control groups.
    Partition(String),
    /// Stops a service, by the name that the kernel keeps of its program.
    Stop(String),
    /// Ends all swapping.
    SwapOff,
}

/// Threads of the kernel, and what is to become of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Threads {
    /// Their names, with at most one `*` in each.
    pub named: Vec<String>,
    /// Names that are left out.
    #[serde(default)]
    pub except: Vec<String>,
    /// Where they may run.
    pub cpus: Option<String>,
    /// Their priority, with FIFO.
    pub priority: Option<Priority>,
}

impl Action {
    /// The shell's way to do it.
    pub fn command(&self) -> String {
        match self {
            Self::Threads(threads) => threads.command(),
            // By hand it is another sequence of files for each version of control groups, and fails in silence.
            Self::Partition(cpus) => format!("worstcase partition create --rt {cpus}"),
            Self::Stop(program) => format!("systemctl disable --now {program}"),
            Self::SwapOff => "swapoff -a, where memory suffices".to_owned(),
        }
    }
}

impl Threads {
    fn command(&self) -> String {
        let verbs = [
            self.cpus.as_ref().map(|cpus| format!("taskset -pc {cpus} $t")),
            self.priority.map(|priority| format!("chrt -f -p {priority} $t")),
        ];
        let verbs: Vec<String> = verbs.into_iter().flatten().collect();
        // The kernel keeps some threads where they are.
        let silence = if self.cpus.is_some() { " 2>/dev/null" } else { "" };
        format!("for t in {}; do {}; done{silence}", self.selection(), verbs.join("; "))
    }

    /// Their ids, for a shell: children of kthreadd, which is thread 2.
    fn selection(&self) -> String {
        let own = if self.named.iter().any(|name| name == "*") { "2 " } else { "" };
        let named = alternatives(&self.named, "^");
        if self.except.is_empty() {
            return format!("{own}$(pgrep -P 2 '{named}')");
        }
        let except = alternatives(&self.except, " ");
        format!("{own}$(pgrep -lP 2 '{named}' | grep -vE '{except}' | cut -d' ' -f1)")
    }
}

/// An extended regular expression for any of `patterns`, each of which begins after `start`.
fn alternatives(patterns: &[String], start: &str) -> String {
    let one = |pattern: &String| match pattern.split_once('*') {
        Some(("", "")) => ".".to_owned(),
        Some((head, "")) => format!("{start}{head}"),
        Some((head, tail)) => format!("{start}{head}.*{tail}$"),
        None => format!("{start}{pattern}$"),
    };
    patterns.iter().map(one).collect::<Vec<_>>().join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(named: &[&str], except: &[&str]) -> Threads {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Threads { named: owned(named), except: owned(except), ..Threads::default() }
    }

    #[test]
    fn threads_are_selected_and_moved_by_a_shell() {
        let cpus = Some("{housekeeping}".to_owned());
        let all = Action::Threads(Threads { cpus: cpus.clone(), ..threads(&["*"], &["rcu*", "irq/*"]) });
        assert_eq!(
            all.command(),
            "for t in 2 $(pgrep -lP 2 '.' | grep -vE ' rcu| irq/' | cut -d' ' -f1); \
             do taskset -pc {housekeeping} $t; done 2>/dev/null"
        );
        let raised =
            Threads { priority: Some(2.try_into().unwrap()), ..threads(&["ktimers/*", "kswapd0"], &[]) };
        let command = "for t in $(pgrep -P 2 '^ktimers/|^kswapd0$'); do chrt -f -p 2 $t; done";
        assert_eq!(Action::Threads(raised).command(), command);
    }
}
