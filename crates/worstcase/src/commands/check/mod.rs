//! `worstcase check`: is this machine set up for real time, and if not, why does it matter and how is it cured?

mod papers;
pub(super) mod subject;

use std::process::ExitCode;

use audit::emit::Form;
use audit::{Audit, Profile, Request, Rule, Rules};
use clap::{Args, ValueEnum};
use units::CpuList;

use crate::error::{CommandError, Result};
use crate::output::{self, Stream};
use papers::{Context, Papers};
use subject::SubjectOptions;

/// Judge this machine, another one's files, or a kernel configuration for real time
///
/// Reads and changes nothing. What fails is shown with its cure, the worst first. Exit code 1 if a rule of severity
/// error fails, 3 if such a rule could only not be read.
#[derive(Args)]
pub struct Check {
    /// Rules or whole layers to ask [default: all]
    #[arg(value_name = "RULE")]
    rules: Vec<String>,

    /// What you run: isolated, poll or general; stock, rt or evl; guest or host; several with commas [default: what the machine is]
    #[arg(long, value_name = "PROFILE", value_delimiter = ',')]
    profile: Vec<Profile>,

    /// CPUs that are, or are to be, for real time alone [default: those that the kernel isolates]
    #[arg(long, value_name = "CPUS")]
    isolate: Option<CpuList>,

    /// Show what passed and what was not asked too
    #[arg(long)]
    all: bool,

    /// Everything about one rule: why, at what price, every cure, its sources, and what this machine says
    #[arg(long, value_name = "RULE", conflicts_with_all = ["rules", "all", "json", "format"])]
    explain: Option<String>,

    /// The findings as one JSON object
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// In which form the findings are printed
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: Format,

    /// Print what makes the failed rules pass: kconfig, cmdline, yocto, buildroot, grub, uboot
    #[arg(long, value_name = "FORM", hide_possible_values = true, conflicts_with_all = ["explain", "all", "json", "format"])]
    emit: Option<Emitted>,

    #[command(flatten)]
    papers: Papers,

    #[command(flatten)]
    subject: SubjectOptions,
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
    pub fn run(self) -> Result<ExitCode> {
        let rules = Rules::built_in().map_err(|error| CommandError::new(error, ""))?;
        let asked = match &self.explain {
            Some(id) => vec![id.clone()],
            None => ids(&rules, &self.rules)?,
        };
        let explained = self.explain.as_deref().map(|id| known(&rules, id)).transpose()?;
        let survey = self.subject.survey(self.isolate.as_ref())?;
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
        let code = match (explained, self.emit) {
            (None, None) => audit.verdict.exit_code(),
            _ => 0,
        };
        output::final_data(&match (explained, self.emit) {
            (Some(rule), _) => explanation(rule, &audit),
            (None, Some(form)) => audit::emit::emit(form.into(), &audit, &rules),
            (None, None) => self.form(&audit),
        })?;
        Ok(ExitCode::from(code))
    }

    fn form(&self, audit: &Audit) -> String {
        match self.format {
            _ if self.json => serde_json::to_string_pretty(audit).unwrap_or_default() + "\n",
            Format::Text => report::findings::findings(audit, self.all, &output::style(Stream::Output)),
            Format::Sarif => audit::export::sarif(audit),
            Format::Junit => audit::export::junit(audit),
            Format::Tap => audit::export::tap(audit),
        }
    }
}

fn explanation(rule: &Rule, audit: &Audit) -> String {
    let style = output::style(Stream::Output);
    let of = |finding| report::findings::explain(rule, finding, &style);
    audit.findings.first().map(of).unwrap_or_default()
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
        let alike: Vec<&str> = rules.alike(name).map(|rule| rule.id.as_str()).collect();
        let hint = match alike.as_slice() {
            [] => "worstcase check --all names every rule".to_owned(),
            alike => format!("did you mean {}?", alike.join(", ")),
        };
        CommandError::new(format!("there is no rule or layer `{name}`"), hint)
    })
}
