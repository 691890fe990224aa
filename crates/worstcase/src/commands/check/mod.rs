//! `worstcase check`: is this machine set up for real time, and if not, why does it matter and how is it cured?

mod papers;
pub(super) mod subject;
mod wake;

use std::process::ExitCode;

use ::report::findings::Shown;
use audit::emit::Form;
use audit::{Audit, Domain, Finding, Outcome, Profile, Request, Rule, Rules};
use clap::{Args, ValueEnum};
use survey::Survey;
use units::CpuList;

use crate::options::OUTPUT;
use crate::output::{self, Stream};
use failure::{Error, Result};
use papers::{Context, Papers};
use subject::SubjectOptions;
use wake::WakeOptions;

use super::why;

const EXAMPLES: &str = "Examples:
  worstcase check                                  this machine
  worstcase check --isolate 1                      as if CPU 1 were isolated
  worstcase check --emit cmdline                   kernel parameters to add
  worstcase check --kconfig .config                a kernel before it is booted
  worstcase check --root board.txt                 a saved snapshot
  worstcase check --recipe howto.txt               a guide before you copy it
  worstcase check --wake                           which calls wait safely here
  worstcase check --wake --pid 4711                how a program waits";

/// Judge this machine, another one's files, or a kernel configuration for real time
///
/// Reads and changes nothing. What fails is shown with its cure, the worst first. Exit code 1 if a rule of severity error
/// fails, 3 if such a rule could not be read; with --wake 1 if a way is delayed, 3 if that is not known of one; with --recipe 1 if
/// something is wrong, 3 if nothing could be judged.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Check {
    /// Rules or whole layers to ask [default: all]
    #[arg(value_name = "RULE")]
    rules: Vec<String>,

    /// What you run: isolated, poll or general; stock, rt or evl; guest or host; several with commas [default: what the machine is]
    #[arg(long, value_name = "PROFILE", value_delimiter = ',')]
    profile: Vec<Profile>,

    /// CPUs that are, or are to be, isolated [default: those that the kernel isolates]
    #[arg(long, value_name = "CPUS")]
    isolate: Option<CpuList>,

    /// Show notes in full: what is worth knowing and rarely decides
    #[arg(long, help_heading = OUTPUT)]
    notes: bool,

    /// Show notes in full, what passed and what does not apply
    #[arg(long, help_heading = OUTPUT)]
    all: bool,

    /// The same as worstcase why RULE, for what is judged here
    #[arg(long, value_name = "RULE", conflicts_with_all = ["rules", "all", "notes", "json", "format"])]
    explain: Option<String>,

    /// The findings as one JSON object
    #[arg(long, conflicts_with = "format", help_heading = OUTPUT)]
    json: bool,

    /// In which form the findings are printed
    #[arg(long, value_name = "FORM", default_value = "text", help_heading = OUTPUT)]
    format: Format,

    /// Print what makes the failed rules pass: kconfig, cmdline, yocto, buildroot, grub, uboot; what costs safety or security only
    /// for rules that are named
    #[arg(long, value_name = "FORM", hide_possible_values = true, conflicts_with_all = ["explain", "all", "json", "format"], help_heading = OUTPUT)]
    emit: Option<Emitted>,

    #[command(flatten)]
    papers: Papers,

    #[command(flatten)]
    subject: SubjectOptions,

    #[command(flatten)]
    wake: WakeOptions,
}

/// A form of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For code scanning: Static Analysis Results Interchange Format 2.1.0
    Sarif,
    /// For build servers: a test case a rule
    Junit,
    /// For test harnesses: Test Anything Protocol
    Tap,
}

/// A form of what makes failed rules pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emitted {
    /// A fragment of a kernel configuration
    Kconfig,
    /// Words for the kernel command line
    Cmdline,
    /// A patch for a layer
    Yocto,
    /// A patch for a tree
    Buildroot,
    /// A file for /etc/default/grub.d
    Grub,
    /// Commands for its prompt
    Uboot,
}

impl From<Emitted> for Form {
    fn from(emitted: Emitted) -> Self {
        match emitted {
            Emitted::Kconfig => Self::Kconfig,
            Emitted::Cmdline => Self::Cmdline,
            Emitted::Yocto => Self::Yocto,
            Emitted::Buildroot => Self::Buildroot,
            Emitted::Grub => Self::Grub,
            Emitted::Uboot => Self::Uboot,
        }
    }
}

impl Check {
    pub fn run(mut self) -> Result<ExitCode> {
        if self.wake.is_asked() {
            self.refuse_beside_wake()?;
            return self.wake.run(self.subject.pid(), self.json);
        }
        let rules = Rules::built_in().map_err(|error| Error::new(error, ""))?;
        self.take_what_is_applied();
        if let Some(id) = &self.explain {
            why::answer(id, &self.profile, || self.survey())?;
            return Ok(ExitCode::SUCCESS);
        }
        let asked = ids(&rules, &self.rules)?;
        let survey = self.survey()?;
        if self.papers.is_asked() {
            let (subject, profiles) = (&self.subject, self.profile.as_slice());
            let (survey, rules, asked) = (&survey, &rules, asked.as_slice());
            return self.papers.run(&Context {
                subject,
                survey,
                isolate: self.isolate.as_ref(),
                rules,
                profiles,
                asked,
                all: self.all,
                json: self.json,
            });
        }
        let request = Request { profiles: self.profile.clone(), rules: asked };
        let audit = audit::audit(&survey, rules.all(), &request);
        let (text, code) = match self.emit {
            Some(form) => (audit::emit::emit(form.into(), &audit, &rules, &self.rules), 0),
            None => (self.form(&audit), audit.verdict.exit_code()),
        };
        output::final_data(&text)?;
        Ok(ExitCode::from(code))
    }

    /// Wake paths are tried, which only this machine can: the answer would be taken for another one's.
    fn refuse_beside_wake(&self) -> Result<()> {
        let what = match () {
            () if !self.subject.is_this_machine() => "another machine",
            () if !self.rules.is_empty() => "rules",
            () if self.emit.is_some() || self.papers.is_asked() => "what the other options ask for",
            () => return Ok(()),
        };
        Err(Error::new(
            format!("--wake tries how this machine wakes threads, and says nothing about {what}"),
            "run it on the machine in question, alone: worstcase check --wake",
        ))
    }

    /// Settings that were applied for a profile are judged by it: by another one rules would fail that nobody wanted to pass.
    fn take_what_is_applied(&mut self) {
        if !self.profile.is_empty() || self.isolate.is_some() || !self.subject.is_this_machine() {
            return;
        }
        let Some(asked) = super::applied::asked() else { return };
        let profile: Option<Vec<_>> = asked.profile.iter().map(|name| name.parse().ok()).collect();
        let isolate = asked.isolate.as_ref().map(|cpus| cpus.parse()).transpose().ok();
        let (Some(profile), Some(isolate)) = (profile, isolate) else {
            let (profile, isolate) = (asked.profile.join(","), asked.isolate.unwrap_or_default());
            output::words(&format!(
                "note: not judged as what tune has applied: this version does not know profile '{profile}' or CPUs '{isolate}'"
            ));
            return;
        };
        (self.profile, self.isolate) = (profile, isolate);
        output::words(&format!("note: judged as what tune has applied:{}", self.asked()));
    }

    /// Profiles and CPUs as they were given, for another command: ` --profile poll --isolate 1`.
    fn asked(&self) -> String {
        let profile = self.profile.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let profile = (!profile.is_empty()).then(|| format!(" --profile {profile}"));
        let isolate = self.isolate.as_ref().map(|cpus| format!(" --isolate {cpus}"));
        profile.into_iter().chain(isolate).collect()
    }

    /// What is judged.
    fn survey(&self) -> Result<Survey> {
        self.subject.survey(self.isolate.as_ref(), self.papers.completes_by())
    }

    /// The commands that fit what failed: the worst of it, and what changes it.
    fn next(&self, audit: &Audit) -> Vec<(String, String)> {
        let failed: Vec<&Finding> = audit.with(Outcome::Failed).collect();
        let Some(worst) = failed.first() else { return Vec::new() };
        let mut next = vec![(self.why(&worst.rule), "reasons, price, sources".to_owned())];
        let (on_machine, subject) = (self.subject.is_a_machine(), self.subject.arguments());
        let has = |domain| failed.iter().any(|finding| finding.cure.iter().any(|cure| cure.domain == domain));
        let asked = self.asked();
        if on_machine && has(Domain::Runtime) {
            let command = format!("worstcase tune plan{subject}{asked}");
            next.push((command, "what can be changed without a reboot".to_owned()));
        }
        if has(Domain::Boot) {
            let command = format!("worstcase check{subject}{asked} --emit cmdline");
            next.push((command, "the kernel parameters that help".to_owned()));
        } else if !on_machine && has(Domain::Config) {
            let command = format!("worstcase check{subject}{asked} --emit kconfig");
            next.push((command, "the kernel configuration that helps".to_owned()));
        }
        next
    }

    /// The command that says what is behind a rule, as it was judged here.
    fn why(&self, rule: &str) -> String {
        let (subject, asked) = (self.subject.arguments(), self.asked());
        let pid = self.subject.pid().map(|pid| format!(" --pid {pid}"));
        if self.subject.is_a_machine() && pid.is_none() {
            return format!("worstcase why {rule}{subject}{asked}");
        }
        let source = self.papers.completes_by().map(|tree| tree.to_string_lossy());
        let source = source.map(|tree| format!(" --kernel-source {}", printable::shell(&tree)));
        let more: String = pid.into_iter().chain(source).collect();
        format!("worstcase check{subject}{more}{asked} --explain {rule}")
    }

    fn form(&self, audit: &Audit) -> String {
        match self.format {
            _ if self.json => serde_json::to_string_pretty(audit).unwrap_or_default() + "\n",
            Format::Text => {
                let as_root = rustix::process::geteuid().is_root();
                let shown = Shown { notes: self.notes, all: self.all, as_root };
                ::report::findings::findings(audit, shown, &self.next(audit), &output::style(Stream::Output))
            }
            Format::Sarif => audit::export::sarif(audit),
            Format::Junit => audit::export::junit(audit),
            Format::Tap => audit::export::tap(audit),
        }
    }
}

/// The ids of the rules and of the layers' rules that were named.
pub(super) fn ids(rules: &Rules, named: &[String]) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for name in named {
        let layer: Vec<String> =
            rules.all().iter().filter(|rule| rule.layer == *name).map(|rule| rule.id.clone()).collect();
        if layer.is_empty() {
            ids.push(known(rules, name)?.id.clone());
        } else {
            ids.extend(layer);
        }
    }
    Ok(ids)
}

/// The rule of that name, or an error that names those that look like it.
fn known<'a>(rules: &'a Rules, name: &str) -> Result<&'a Rule> {
    rules.get(name).ok_or_else(|| {
        let ids = rules.all().iter().map(|rule| rule.id.as_str());
        let hint = failure::did_you_mean(name, ids, "worstcase why lists every rule");
        Error::new(format!("there is no rule or layer `{name}`"), hint)
    })
}
