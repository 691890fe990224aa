//! What can be tried: how a setting is written on the command line, and what it comes to on a machine.

use std::fmt;

use audit::{Asker, Profile, Rules};
use lab::parameters;
use record::Fact;
use sysroot::SysRoot;
use tune::plan::Threads;
use tune::{Change, Plan, Request};
use units::CpuList;

use crate::commands::tune::requests::has_cure;
use crate::commands::tune::selection::Selection;
use failure::{Error, Result};

/// How a setting is written, for --help.
pub const GRAMMAR: &str = "\
A SETTING is one of
  rn-thp                 a rule of worstcase check with a cure on the running
                         system: see worstcase tune plan
  /proc/sys/PATH=VALUE   a file of the kernel below /proc or /sys; * stands for
                         any part of one name
  'ktimers/*=fifo:90'    threads of the kernel by name, raised to a priority of
                         SCHED_FIFO
  threadirqs  NAME=VALUE anything else is a kernel parameter: guests only
                         (--kernel); blanks stand in quotes, as in
                         'dyndbg=\"file a.c +p\"'";

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Rule,
    Change(Change),
    Parameter,
}

/// What ids of rules begin with.
const LAYERS: [&str; 5] = ["fw-", "kc-", "bt-", "rn-", "pr-"];

impl Setting {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self> {
        let kind = match text.split_once('=') {
            _ if text.is_empty() || parameters::one(text).is_err() => {
                return Err(Error::new(format!("`{text}` is no setting"), GRAMMAR));
            }
            _ if text.starts_with('/') => Kind::Change(file(text)?),
            Some((name, value)) if value.starts_with("fifo:") => Kind::Change(threads(text, name, value)?),
            _ if LAYERS.iter().any(|layer| text.starts_with(layer)) => rule(text)?,
            _ => Kind::Parameter,
        };
        Ok(Self { text: text.to_owned(), kind })
    }

    /// Whether it takes effect at the next boot only.
    pub fn is_parameter(&self) -> bool {
        self.kind == Kind::Parameter
    }

    /// The file that a name of sysctl stands for, with the value; none where there is no such file.
    pub fn as_file(&self) -> Option<String> {
        let (name, value) =
            self.text.split_once('=').filter(|(name, _)| self.is_parameter() && name.contains('.'))?;
        Some(format!("{}={value}", tune::file_of_sysctl(&SysRoot::live(), name)?))
    }

    /// Whether it is what a rule asks for.
    pub fn is_rule(&self) -> bool {
        self.kind == Kind::Rule
    }

    /// The files or the kernel parameter that it acts through.
    pub fn acts_on(&self) -> Vec<String> {
        match &self.kind {
            Kind::Rule => {
                let rules = Rules::built_in().ok();
                let cure = rules.as_ref().and_then(|rules| rules.get(&self.text)).map(|rule| &rule.cure);
                let files =
                    |cure: &audit::Cure| cure.runtime.iter().map(|write| write.path.clone()).collect();
                cure.map(files).unwrap_or_default()
            }
            Kind::Change(_) | Kind::Parameter => vec![self.text.clone()],
        }
    }

    /// Whether it is a rule that asks for something on isolated CPUs only.
    fn is_for_isolated_cpus(&self) -> bool {
        let rules = Rules::built_in().ok();
        let rule = rules.as_ref().and_then(|rules| rules.get(&self.text)).filter(|_| self.is_rule());
        rule.is_some_and(|rule| {
            let asks = |asker| rule.wanted.contains_key(&asker);
            asks(Asker::Profile(Profile::Isolated)) && !asks(Asker::Any)
        })
    }

    /// What it asks for on the machine at `root`, and the machine's CPUs for real time.
    fn requests(&self, selection: &Selection, root: &SysRoot) -> Result<(Vec<Request>, CpuList)> {
        match &self.kind {
            Kind::Rule => Selection { only: vec![self.text.clone()], ..selection.clone() }.requests_for(root),
            Kind::Change(change) => {
                if let Change::Files { path, .. } = change {
                    refuse_absent(path, root)?;
                }
                let otherwise = match change {
                    Change::Threads(_) => "no thread of the kernel has that name and a lower priority",
                    _ => "it says so already, or more than that",
                };
                let request = Request {
                    rule: self.text.clone(),
                    title: self.text.clone(),
                    why: "asked for".to_owned(),
                    otherwise: otherwise.to_owned(),
                    named: true,
                    changes: vec![change.clone()],
                    ..Request::default()
                };
                Ok((vec![request], selection.real_time(root)?))
            }
            Kind::Parameter => Ok((Vec::new(), CpuList::new())),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

fn file(text: &str) -> Result<Change> {
    let (path, value) = text.split_once('=').unwrap_or((text, ""));
    if !tune::is_of_kernel(path) || value.is_empty() {
        let message = format!("`{text}` is no file of the kernel with its value");
        return Err(Error::new(message, "as in /proc/sys/vm/stat_interval=10"));
    }
    Ok(Change::Files { path: path.to_owned(), value: value.to_owned() })
}

/// A file that is named in full and is not there: a name that was mistyped, or another kernel's.
fn refuse_absent(path: &str, root: &SysRoot) -> Result<()> {
    if path.contains('*') || root.exists(path) != Fact::Absent {
        return Ok(());
    }
    let (directory, name) = path.rsplit_once('/').unwrap_or_default();
    let names = root.list(directory);
    let names = names.value().into_iter().flatten().map(String::as_str);
    let hint = failure::did_you_mean(name, names, "sysctl -a and ls /sys list what this kernel has");
    Err(Error::new(format!("{path}: there is no such file"), hint))
}

fn threads(text: &str, name: &str, value: &str) -> Result<Change> {
    let priority = value.trim_start_matches("fifo:").parse();
    let priority = priority
        .map_err(|error| Error::new(format!("`{text}`: {error}"), "1 to 99, as in ktimers/*=fifo:90"))?;
    if name.is_empty() || name.matches('*').count() > 1 {
        let hint = "with at most one *, as in ktimers/*=fifo:90";
        return Err(Error::new(format!("`{text}` names no threads of the kernel"), hint));
    }
    Ok(Change::Threads(Threads {
        named: vec![name.to_owned()],
        priority: Some(priority),
        ..Threads::default()
    }))
}

fn rule(text: &str) -> Result<Kind> {
    let rules = Rules::built_in().map_err(|error| Error::new(error, ""))?;
    let ids = crate::commands::check::ids(&rules, &[text.to_owned()])?;
    let can = ids.first().and_then(|id| rules.get(id)).is_some_and(has_cure);
    if !can {
        let message = format!("{text} has no cure on the running system");
        return Err(Error::new(message, format!("worstcase why {text} says how it is cured")));
    }
    Ok(Kind::Rule)
}

/// What `settings` come to on the machine at `root`. Each has to change something.
pub fn plan(settings: &[Setting], selection: &Selection, root: &SysRoot) -> Result<Plan> {
    let (mut requests, mut real_time) = (Vec::new(), CpuList::new());
    for setting in settings.iter().filter(|setting| !setting.is_parameter()) {
        let (own, cpus) = setting.requests(selection, root)?;
        let alone = tune::plan(root, &own, &cpus);
        if alone.steps.is_empty() {
            let why = alone.refusals.first().map(|refusal| refusal.why_not.clone());
            let hint = match setting.is_for_isolated_cpus() && cpus.is_empty() {
                true => "it is for CPUs that are isolated: name them with --isolate".to_owned(),
                false => why.unwrap_or_else(|| "worstcase check passes that rule here".to_owned()),
            };
            return Err(Error::new(format!("{setting} would change nothing here"), hint));
        }
        requests.extend(own);
        real_time = cpus;
    }
    Ok(tune::plan(root, &requests, &real_time))
}

/// Whether a trial of this rule would write anything on the running machine.
pub fn changes_something(rule: &str) -> bool {
    let settings = Setting::parse(rule).map(|setting| vec![setting]);
    settings.is_ok_and(|settings| plan(&settings, &Selection::default(), &SysRoot::live()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Kind {
        Setting::parse(text).unwrap().kind
    }

    #[test]
    fn each_sort_of_setting_is_known_by_its_form() {
        assert_eq!(
            [kind("rn-thp"), kind("rn-swap"), kind("rn-irqbalance")],
            [Kind::Rule, Kind::Rule, Kind::Rule]
        );
        assert!(matches!(kind("/proc/sys/vm/swappiness=10"), Kind::Change(Change::Files { .. })));
        let Kind::Change(Change::Threads(threads)) = kind("ktimers/*=fifo:90") else { panic!() };
        assert_eq!((threads.named, threads.priority.unwrap().get()), (vec!["ktimers/*".to_owned()], 90));
        for word in
            ["threadirqs", "isolcpus=managed_irq,1", "preempt=full", "rcu_nocbs=1", "dyndbg=\"file a.c +p\""]
        {
            assert!(Setting::parse(word).unwrap().is_parameter(), "{word}");
        }
    }

    #[test]
    fn a_name_of_sysctl_is_a_parameter_and_the_file_is_known() {
        let setting = Setting::parse("vm.swappiness=10").unwrap();
        assert!(setting.is_parameter());
        assert_eq!(setting.as_file().as_deref(), Some("/proc/sys/vm/swappiness=10"));
        assert_eq!(Setting::parse("vm.nosuch=10").unwrap().as_file(), None);
        assert_eq!(Setting::parse("rcupdate.rcu_expedited=1").unwrap().as_file(), None);
    }

    #[test]
    fn a_file_that_is_not_there_is_no_setting_that_holds_already() {
        let root =
            SysRoot::of(sysroot::Tree::whole([("/proc/sys/vm/swappiness".to_owned(), b"60\n".to_vec())]));
        let error =
            |text: &str| plan(&[Setting::parse(text).unwrap()], &Selection::default(), &root).unwrap_err();
        let absent = error("/proc/sys/vm/swapiness=10");
        assert!(absent.message.contains("no such file") && absent.hint.contains("swappiness"), "{absent:?}");
        assert!(error("rn-stat-interval").hint.contains("--isolate"), "of isolated CPUs");
        assert!(error("/proc/sys/vm/swappiness=60").message.contains("would change nothing"));
    }

    #[test]
    fn what_is_no_setting_is_refused_with_a_hint() {
        for text in [
            "",
            "a b",
            "--",
            "a=\"b",
            "rn-nosuch",
            "kc-preempt-rt",
            "/etc/passwd=1",
            "/proc/sys/../../etc/x=1",
            "/proc/sys/vm/swappiness",
            "/proc/sys/vm/swappiness=",
            "ktimers=fifo:0",
            "ktimers=fifo:100",
            "=fifo:9",
            "a*b*=fifo:9",
        ] {
            let error = Setting::parse(text).unwrap_err();
            assert!(!error.hint.is_empty(), "{text}: {error:?}");
        }
    }
}
