//! Programs that run as services: stopped, and started again by whoever had started them.

use std::fmt;
use std::time::{Duration, Instant};

use control::Kernel;
use record::Fact;
use rustix::io::Errno;
use survey::running;
use sysroot::SysRoot;

use super::{Expansion, Found, Kind, Phase, Step, Target};

/// What is said of one that runs, and of one that does not.
const STATES: [&str; 2] = ["running", "stopped"];

/// How long a service may take until its process is there, or gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// `program` no longer runs.
pub(super) fn expand(root: &SysRoot, program: &str) -> Expansion {
    let mut expansion = Expansion::default();
    let processes = running(root, &[program]);
    let Some(process) = processes.first() else { return expansion };
    match manager(root, program, &process.value) {
        Some(manager) => {
            let [running, stopped] = STATES.map(str::to_owned);
            let target = Target::Service { program: program.to_owned(), manager };
            expansion.steps.push(Step::new(target, running, stopped));
        }
        None => expansion.refuse(
            format!("{program} ({})", process.value),
            "neither systemd nor a script of /etc/init.d has started it, so that nobody could start it again: stop it yourself",
        ),
    }
    expansion
}

/// Who can start it again: the unit in whose control group it is, or its script.
fn manager(root: &SysRoot, program: &str, pid: &str) -> Option<String> {
    let groups = root.read(&format!("/proc/{pid}/cgroup"));
    let units =
        groups.value().into_iter().flat_map(|text| text.lines()).filter_map(|line| line.rsplit('/').next());
    let unit = units.into_iter().find(|name| name.ends_with(".service")).map(str::to_owned);
    let has_systemd = matches!(root.exists("/run/systemd/system"), Fact::Value(()));
    let script = format!("/etc/init.d/{program}");
    let scripted = || matches!(root.exists(&script), Fact::Value(())).then_some(script.clone());
    unit.filter(|_| has_systemd).or_else(scripted)
}

/// A program that runs as a service: see [`Target::Service`].
pub(super) struct Service<'a> {
    pub program: &'a str,
    pub manager: &'a str,
}

impl Service<'_> {
    fn state(&self, root: &SysRoot) -> &'static str {
        STATES[usize::from(running(root, &[self.program]).is_empty())]
    }
}

impl fmt::Display for Service<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "service {} by {}", self.program, self.manager)
    }
}

impl Kind for Service<'_> {
    fn text(&self, root: &SysRoot) -> Fact<String> {
        Fact::Value(self.state(root).to_owned())
    }

    /// Has it started or stopped, and waits until its process is there or gone.
    fn write(&self, kernel: &mut dyn Kernel, value: &str) -> Result<(), Errno> {
        if !STATES.contains(&value) {
            return Err(Errno::INVAL);
        }
        kernel.service(self.manager, value == STATES[0])?;
        let until = Instant::now() + PATIENCE;
        while self.state(&kernel.root()) != value && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn phase(&self) -> Phase {
        Phase::First
    }

    fn find(&self, _root: &SysRoot, this: &Target) -> Found {
        Found::Here(this.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::Tree;

    const STAT: &str = "700 (irqbalance) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 40 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0";

    fn expansion(files: &[(&str, &str)]) -> Expansion {
        let own = [("/proc/700/task/700/stat", STAT), ("/proc/700/stat", STAT)];
        let all = own.iter().chain(files);
        expand(
            &SysRoot::of(Tree::whole(all.map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())))),
            "irqbalance",
        )
    }

    fn target(files: &[(&str, &str)]) -> Option<String> {
        Some(expansion(files).steps.first()?.target.to_string())
    }

    #[test]
    fn whoever_started_a_service_stops_it() {
        let unit = ("/proc/700/cgroup", "0::/system.slice/irqbalance.service\n");
        let systemd = ("/run/systemd/system/x", "");
        assert_eq!(target(&[unit, systemd]).as_deref(), Some("service irqbalance by irqbalance.service"));
        let script = ("/etc/init.d/irqbalance", "#!/bin/sh");
        assert_eq!(
            target(&[("/proc/700/cgroup", "0::/\n"), script]).as_deref(),
            Some("service irqbalance by /etc/init.d/irqbalance")
        );
        let nobody = expansion(&[unit]);
        assert!(
            nobody.steps.is_empty() && nobody.refusals[0].why_not.contains("stop it yourself"),
            "{nobody:?}"
        );
    }

    #[test]
    fn what_does_not_run_is_not_stopped() {
        let none = expand(&SysRoot::of(Tree::whole([])), "irqbalance");
        assert!(none.steps.is_empty() && none.refusals.is_empty());
    }
}
