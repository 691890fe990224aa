//! What `check` does with papers in a machine's place: a recipe, a fragment and what became of it, another
//! configuration or machine, a check-list of `evl check`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use audit::checklist::Checklist;
use audit::fragment::{KernelSource, reasons};
use audit::recipe::{Target, examine};
use audit::{Audit, Profile, Request, Rules, Severity, against};
use clap::Args;
use machine::kernel_config::{self, Fragment, KernelConfig};
use record::Fact;
use record::verdict::Verdict;
use survey::{Given, Survey, Value};
use units::{CpuList, KernelVersion};

use super::subject::{self, SubjectOptions};
use crate::output::{self, Stream};
use failure::{Error, Result};

/// Questions that are not the rules'.
#[derive(Args)]
#[command(next_help_heading = "Recipes, fragments and comparisons")]
pub struct Papers {
    /// Look through a pasted recipe (kernel command line, GRUB file, U-Boot commands, sysctls, fragment, shell commands); - for standard input
    #[arg(long, value_name = "FILE", group = "paper", conflicts_with_all = ["explain", "emit", "format", "rules"])]
    recipe: Option<PathBuf>,

    /// The kernel that the recipe is for [default: the one that is judged]
    #[arg(long, value_name = "VERSION", requires = "recipe")]
    kernel: Option<KernelVersion>,

    /// Which symbols of a fragment did not reach the configuration that --kconfig names
    #[arg(long, value_name = "FRAGMENT", group = "paper", requires = "kconfig", conflicts_with_all = ["explain", "emit", "format", "json", "rules"])]
    verify_fragment: Option<PathBuf>,

    /// The kernel's source: it decides what a defconfig or fragment leaves out, and shows why symbols were dropped
    #[arg(long, value_name = "TREE", requires = "kconfig")]
    kernel_source: Option<PathBuf>,

    /// How another configuration, or a machine (directory or snapshot), differs from the one that is judged
    #[arg(long, value_name = "FILE", group = "paper", conflicts_with_all = ["explain", "emit", "format"])]
    against: Option<PathBuf>,

    /// Judge the configuration by a check-list of evl check
    #[arg(long, value_name = "FILE", group = "paper", conflicts_with_all = ["explain", "emit", "format", "json", "rules"])]
    checklist: Option<PathBuf>,
}

/// What the questions need of the rest of the command line.
pub struct Context<'a> {
    pub subject: &'a SubjectOptions,
    pub survey: &'a Survey,
    /// CPUs for real time, if they were named.
    pub isolate: Option<&'a CpuList>,
    pub rules: &'a Rules,
    pub profiles: &'a [Profile],
    pub asked: &'a [String],
    pub all: bool,
    pub json: bool,
}

/// What is printed, and the exit code.
type Answer = (String, u8);

impl Papers {
    /// Whether one of the questions is asked.
    pub fn is_asked(&self) -> bool {
        self.recipe.is_some()
            || self.verify_fragment.is_some()
            || self.against.is_some()
            || self.checklist.is_some()
    }

    /// The source by which a configuration is completed that is judged itself.
    pub fn completes_by(&self) -> Option<&Path> {
        self.kernel_source.as_deref().filter(|_| self.verify_fragment.is_none())
    }

    /// Answers it.
    pub fn run(&self, context: &Context) -> Result<ExitCode> {
        let (text, code) = if let Some(path) = &self.recipe {
            self.recipe(path, context)?
        } else if let Some(path) = &self.verify_fragment {
            self.fragment(path, context)?
        } else if let Some(path) = &self.against {
            against_other(path, context)?
        } else if let Some(path) = &self.checklist {
            checklist(path, context)?
        } else {
            return Ok(ExitCode::SUCCESS);
        };
        output::final_data(&text)?;
        Ok(ExitCode::from(code))
    }

    /// Fails where something in the recipe is an error; inconclusive where nothing in it was understood.
    fn recipe(&self, path: &Path, context: &Context) -> Result<Answer> {
        let (name, text) = read(path, "name a file with kernel parameters, settings or commands")?;
        let examination = examine(&text, self.target(context.survey));
        let fails = examination.remarks.iter().any(|remark| remark.severity == Severity::Error);
        let text = match context.json {
            true => json(&examination),
            false => {
                let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
                report::recipe::recipe(&examination, &name, lines, &output::style(Stream::Output))
            }
        };
        let verdict = match (fails, examination.is_understood()) {
            (true, _) => Verdict::Fail,
            (false, true) => Verdict::Pass,
            (false, false) => Verdict::Inconclusive,
        };
        Ok((text, verdict.exit_code()))
    }

    /// The kernel that is named, else the one that is judged, with its CPUs.
    fn target(&self, survey: &Survey) -> Target {
        let text = |fact: &str| survey.read(fact).value.value().map(ToString::to_string);
        let processors = match survey.read("cpus.possible").value {
            Fact::Value(Value::Cpus(cpus)) => cpus.iter().last().map(|cpu| cpu.0 + 1),
            _ => None,
        };
        match self.kernel {
            Some(version) => Target { version: Some(version), preempt_rt: None, processors: None },
            None => Target {
                version: text("kernel.release").and_then(|release| release.parse().ok()),
                preempt_rt: text("preemption").map(|preemption| preemption == "rt"),
                processors,
            },
        }
    }

    /// Fails where a symbol is missing.
    fn fragment(&self, path: &Path, context: &Context) -> Result<Answer> {
        let (name, text) = read(path, "name a fragment of a kernel configuration")?;
        let fragment = Fragment::parse(&text);
        if fragment.is_empty() {
            return Err(Error::new(
                format!("read {name}: no setting in it"),
                "a fragment has lines like CONFIG_X=y",
            ));
        }
        if fragment.is_cut {
            return Err(Error::new(
                format!("read {name}: its end is missing: it was cut off"),
                "copy it again",
            ));
        }
        let result = context.subject.config()?;
        let source = self.kernel_source.as_deref().map(|tree| source(tree, &result, context)).transpose()?;
        let dropped = kernel_config::dropped(&fragment, &result);
        let mut text = String::new();
        for symbol in &dropped {
            let got = symbol
                .got
                .as_ref()
                .map_or_else(|| "nothing".to_owned(), |got| kernel_config::line_of(&symbol.symbol, got));
            text += &format!("{} became {got}\n", kernel_config::line_of(&symbol.symbol, &symbol.wanted));
            for reason in source.iter().flat_map(|source| reasons(symbol, &result, source)) {
                text += &format!("  {reason}\n");
            }
        }
        text += &format!("{} of {} symbols arrived\n", fragment.len() - dropped.len(), fragment.len());
        Ok((text, u8::from(!dropped.is_empty())))
    }
}

fn source(tree: &Path, result: &KernelConfig, context: &Context) -> Result<KernelSource> {
    let architecture = match &result.header {
        Some(header) => header.architecture.clone(),
        None => {
            context.survey.read("architecture").value.value().map_or_else(String::new, ToString::to_string)
        }
    };
    KernelSource::read(tree, &architecture)
        .map_err(|error| Error::new(error, "name the top directory of the kernel's source"))
}

/// Never fails: a difference is no fault.
fn against_other(path: &Path, context: &Context) -> Result<Answer> {
    let theirs_name = path.display().to_string();
    let style = output::style(Stream::Output);
    if let Some(theirs) = subject::machine_at(path, context.isolate)? {
        let of = |survey: &Survey| -> Audit {
            let request = Request { profiles: context.profiles.to_vec(), rules: context.asked.to_vec() };
            audit::audit(survey, context.rules.all(), &request)
        };
        let differences = against::audits(&of(context.survey), &of(&theirs));
        let text = match context.json {
            true => json(&differences),
            false => report::against::audits(
                &differences,
                &context.subject.name(),
                &theirs_name,
                context.all,
                &style,
            ),
        };
        return Ok((text, 0));
    }
    let theirs = subject::config_at(path)?;
    let ours = context.subject.config()?;
    let of = |config: &KernelConfig| {
        let survey = Survey::of(given(config), context.survey.isolated().clone());
        let request = Request { profiles: context.profiles.to_vec(), rules: Vec::new() };
        audit::audit(&survey, context.rules.all(), &request)
    };
    let judged = against::audits(&of(&ours), &of(&theirs));
    let differences = against::configs(&ours, &theirs, context.rules.all(), &judged);
    let text = match context.json {
        true => json(&differences),
        false => {
            report::against::configs(&differences, &context.subject.name(), &theirs_name, context.all, &style)
        }
    };
    Ok((text, 0))
}

/// Prints what `evl check` prints; fails where a rule does not hold.
fn checklist(path: &Path, context: &Context) -> Result<Answer> {
    let (name, text) = read(path, "name a check-list, as kconf-checklist.evl")?;
    let list = Checklist::parse(&text).map_err(|error| {
        Error::new(format!("{name}, {error}"), "a rule is [!]CONFIG_X [=value] [if CONFIG_Y] [on ARCH]")
    })?;
    if list.rules.is_empty() {
        return Err(Error::new(
            format!("read {name}: no rule in it"),
            "a rule is [!]CONFIG_X [=value] [if CONFIG_Y] [on ARCH]",
        ));
    }
    let config = context.subject.config()?;
    let architecture = config.header.as_ref().map_or_else(
        || context.survey.read("architecture").value.value().map(ToString::to_string).unwrap_or_default(),
        |header| header.architecture.clone(),
    );
    let failures = list.failures(&config, &architecture);
    let line = |failure: &audit::checklist::Failure| {
        let condition = failure
            .condition
            .as_ref()
            .map_or_else(String::new, |(symbol, value)| format!(" and CONFIG_{symbol}={value}"));
        format!("CONFIG_{}={}{condition}\n", failure.symbol, failure.actual)
    };
    Ok((failures.iter().map(line).collect(), u8::from(!failures.is_empty())))
}

/// A configuration alone, as rules are asked of it: a whole one with the lines that show that it is, without which a symbol
/// that it does not name would not be known to be off.
fn given(config: &KernelConfig) -> Given {
    let (head, end) = config.header.as_ref().map_or_else(Default::default, |header| {
        let head = format!("# Linux/{} {} Kernel Configuration\n", header.architecture, header.version);
        (head, "# end of Kernel hacking\n")
    });
    let lines: String =
        config.settings().map(|(symbol, setting)| kernel_config::line_of(symbol, setting) + "\n").collect();
    let text = format!("{head}{lines}{end}");
    Given { config: Some(("the configuration".to_owned(), text.into_bytes())), ..Given::default() }
}

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// Guides, fragments and check-lists are shorter, in bytes.
const LONGEST: usize = 1 << 20;

/// What some editors put before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The text behind a byte order mark, which is warned of: the kernel, shells and daemons take it for a part of the first word.
fn without_mark(name: String, bytes: Vec<u8>) -> (String, Vec<u8>) {
    let Some(rest) = bytes.strip_prefix(BYTE_ORDER_MARK) else { return (name, bytes) };
    output::warning(&format!(
        "{name}: it begins with a byte order mark (U+FEFF), which its readers take for a part of the first word"
    ));
    (name, rest.to_vec())
}

/// A text file's name and contents.
fn read(path: &Path, hint: &str) -> Result<(String, String)> {
    let (name, bytes) = subject::read(path, hint)?;
    if bytes.len() > LONGEST {
        return Err(Error::new(format!("read {name}: longer than 1 MiB"), hint));
    }
    let (name, bytes) = without_mark(name, bytes);
    if bytes.contains(&0) {
        return Err(Error::new(format!("{name}: not a text: it has bytes of zero"), hint));
    }
    Ok((name, String::from_utf8_lossy(&bytes).into_owned()))
}
