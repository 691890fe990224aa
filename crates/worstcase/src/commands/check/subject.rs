//! What is judged: this machine, a captured one, or single files of one.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use audit::fragment::{Completed, KernelSource, complete, version};
use audit::recipe::{Target, examine};
use audit::{Rules, Severity};
use clap::Args;
use machine::KernelConfig;
use machine::configuration::{self, ConfigurationError};
use machine::grammar::symbols;
use machine::kernel_config::{Overridden, Setting, line_of};
use record::Fact;
use survey::{Given, Survey, Value};
use sysroot::{GZIP, SysRoot, TreeError};
use units::CpuList;

use crate::output;
use failure::{Error, Result};

/// No paper is longer: kernel configurations of distributions have some 300 KiB.
const LONGEST: u64 = 16 << 20;

/// Lines of a configuration that are complained of.
const MOST_COMPLAINTS: usize = 5;

/// What is said of a file that is no configuration.
const CONFIG_HINT: &str = "name a kernel's configuration: .config, /boot/config-*, config.gz";

/// Options that name something else than this machine.
#[derive(Args)]
#[command(next_help_heading = "What to judge instead of this machine")]
pub struct SubjectOptions {
    /// Judge a kernel configuration, plain or gzip: only what it says is asked; - for standard input
    #[arg(long, value_name = "FILE")]
    kconfig: Option<PathBuf>,

    /// Architecture of --kconfig and --cmdline, as uname -m says it [default: as the configuration says]
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,

    /// Judge a kernel command line: only what it says is asked
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    cmdline: Option<String>,

    /// Judge the machine whose /proc and /sys are in a directory, or in a file that worstcase snapshot wrote
    #[arg(long, value_name = "PATH", conflicts_with_all = ["kconfig", "cmdline", "arch"])]
    root: Option<PathBuf>,

    /// Judge this process too: policies, priorities, CPUs, locked memory, limits; with --wake, how its threads wait
    #[arg(long, value_name = "PID", conflicts_with_all = ["kconfig", "cmdline", "arch"])]
    pid: Option<i32>,
}

impl SubjectOptions {
    /// The facts to judge. `isolate` stands for the CPUs that the kernel isolates, where it is given; the kernel's `source`
    /// decides what a configuration that is not whole leaves out. Says what is wrong with a configuration that was named.
    pub fn survey(&self, isolate: Option<&CpuList>, source: Option<&Path>) -> Result<Survey> {
        let survey = self.survey_of_machine(isolate, source)?;
        self.remark_on_config(&survey, source);
        self.remark_on_command_line();
        let Some(pid) = self.pid else { return Ok(survey) };
        let survey = survey.about(pid);
        match survey.read("process").value {
            Fact::Value(_) => Ok(survey),
            _ => Err(Error::new(format!("read /proc/{pid}: no such process"), "pgrep NAME shows its number")),
        }
    }

    fn survey_of_machine(&self, isolate: Option<&CpuList>, source: Option<&Path>) -> Result<Survey> {
        let root = self.root()?.remembering();
        let given = self.given(source)?;
        let survey = |isolated: CpuList| match given.clone() {
            Some(given) => Survey::of(given, isolated),
            None => Survey::new(root.clone(), isolated),
        };
        let first = survey(CpuList::new());
        isolate.map_or(Ok(()), |cpus| check_cpus(cpus, &first))?;
        match isolated(&first, isolate) {
            none if none.is_empty() => Ok(first),
            cpus => Ok(survey(cpus)),
        }
    }

    /// The kernel configuration that is judged.
    pub fn config(&self) -> Result<KernelConfig> {
        configuration_of(&self.survey_of_machine(None, None)?, &self.name())
    }

    /// What is judged, in a word.
    pub fn name(&self) -> String {
        let path = self.kconfig.as_ref().or(self.root.as_ref());
        path.map_or_else(|| "this machine".to_owned(), |path| path.display().to_string())
    }

    /// The process that is asked for.
    pub fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// Whether this machine is judged.
    pub fn is_this_machine(&self) -> bool {
        self.is_a_machine() && self.root.is_none()
    }

    /// Whether a whole machine is judged, this one or a captured one.
    pub fn is_a_machine(&self) -> bool {
        self.kconfig.is_none() && self.cmdline.is_none()
    }

    /// The options that name what is judged, for another command: ` --root board.txt`.
    pub fn arguments(&self) -> String {
        let path = |path: &Path| quoted(&path.display().to_string());
        let options = [
            ("--kconfig", self.kconfig.as_deref().map(path)),
            ("--arch", self.arch.as_deref().map(quoted)),
            ("--cmdline", self.cmdline.as_deref().map(quoted)),
            ("--root", self.root.as_deref().map(path)),
        ];
        options.into_iter().filter_map(|(name, value)| Some(format!(" {name} {}", value?))).collect()
    }

    /// Says what is wrong with a --kconfig, and whether it is whole.
    fn remark_on_config(&self, survey: &Survey, source: Option<&Path>) {
        let (Some(path), Fact::Value(config)) = (&self.kconfig, survey.kernel_config()) else { return };
        let name = if path.as_os_str() == "-" { "standard input".into() } else { path.display().to_string() };
        for warning in warnings(config) {
            output::warning(&format!("{name}: {warning}"));
        }
        if !survey.names_all() {
            output::words(&format!("note: {name} {}", not_whole(config.len(), source)));
        }
    }

    /// Says what of a --cmdline no kernel reads as it stands.
    fn remark_on_command_line(&self) {
        let Some(words) = &self.cmdline else { return };
        let remarks = examine(words, Target::default()).remarks;
        for remark in remarks.iter().filter(|remark| remark.severity == Severity::Error) {
            output::warning(&format!("--cmdline: {}: {}", remark.excerpt, remark.message));
        }
    }

    /// The tree that is read where no single files were given.
    fn root(&self) -> Result<SysRoot> {
        root_at(self.root.as_deref())
    }

    /// Single files, if some were named.
    fn given(&self, source: Option<&Path>) -> Result<Option<Given>> {
        if self.kconfig.is_none() && self.cmdline.is_none() {
            return match &self.arch {
                Some(_) => {
                    Err(Error::new("--arch without --kconfig or --cmdline", "name what is to be judged"))
                }
                None => Ok(None),
            };
        }
        let config = self.kconfig.as_deref().map(read_config).transpose()?;
        if let Some((name, bytes)) = &config {
            parsed(name, bytes)?;
        }
        let (config, absent) = match (config, source) {
            (Some(config), Some(source)) => {
                let (config, absent) = self.completed(config, source)?;
                (Some(config), absent)
            }
            (config, _) => (config, BTreeSet::new()),
        };
        // What is packed is whole, and has its version.
        let is_packed = config.as_ref().is_some_and(|(_, bytes)| bytes.starts_with(&GZIP));
        let stated = config.as_ref().and_then(|(_, bytes)| stated_version(bytes));
        let version = self.version(stated, source.filter(|_| !is_packed));
        let (command_line, architecture) = (self.cmdline.clone(), self.arch.clone());
        Ok(Some(Given { config, command_line, architecture, version, absent }))
    }
}

impl SubjectOptions {
    /// A configuration that is not whole, with lines for what `tree` decides of the symbols that rules name, and those of them
    /// that it has no line for since they are off.
    fn completed(&self, (name, bytes): Paper, tree: &Path) -> Result<(Paper, BTreeSet<String>)> {
        let text = String::from_utf8_lossy(&bytes);
        let stated = KernelConfig::parse(&text);
        if bytes.starts_with(&GZIP) || stated.header.is_some() {
            return Ok(((name, bytes), BTreeSet::new()));
        }
        let Some(architecture) = &self.arch else {
            let message = format!("{name} does not say for which architecture it is");
            return Err(Error::new(message, "name it: --arch x86_64, aarch64, armv7l, riscv64, ppc64le"));
        };
        let source = KernelSource::read(tree, architecture)
            .map_err(|error| Error::new(error, "name the top directory of the kernel's source"))?;
        let rules = Rules::built_in().map_err(|error| Error::new(error, ""))?;
        let completed = complete(&stated, rules.symbols(), &source);
        output::words(&undecided(&completed, tree));
        let lines: String = completed.lines.iter().map(|line| format!("{line}\n")).collect();
        let text = format!("{}\n{lines}", text.trim_end());
        Ok(((name, text.into_bytes()), completed.absent.into_iter().collect()))
    }
}

impl SubjectOptions {
    /// The version that `tree` states, where the configuration states none; a conflict of the two is said.
    fn version(&self, stated: Option<String>, tree: Option<&Path>) -> Option<String> {
        let tree = tree?;
        let of_tree = version(tree);
        match (stated, of_tree) {
            (Some(stated), Some(of_tree)) if release_of(&stated) != release_of(&of_tree) => {
                output::warning(&format!(
                    "{} was made by Linux {stated}, and {} is {of_tree}: judged as {stated}",
                    self.name(),
                    tree.display()
                ));
                None
            }
            (Some(_), _) => None,
            (None, of_tree) => of_tree,
        }
    }
}

/// The version in the line that kconfig writes above a configuration.
fn stated_version(bytes: &[u8]) -> Option<String> {
    KernelConfig::parse(&String::from_utf8_lossy(bytes)).header.map(|header| header.version)
}

/// The first two numbers of a version: `6.12`.
fn release_of(version: &str) -> Option<(&str, &str)> {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?, numbers.next()?))
}

/// Names of undecided symbols that are shown.
const MOST_NAMES: usize = 6;

/// What a source decided, and what not.
fn undecided(completed: &Completed, tree: &Path) -> String {
    let (decided, open) = (completed.lines.len() + completed.absent.len(), completed.undecided.len());
    let names = completed.undecided.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
    let rest = if open > MOST_NAMES { ", ..." } else { "" };
    let open = if open == 0 { String::new() } else { format!("; {open} stay unknown: {names}{rest}") };
    format!("note: {decided} symbols that rules ask for follow from {}{open}", tree.display())
}

/// Lines of a configuration that are none, and what in a fragment contradicts itself.
fn warnings(config: &KernelConfig) -> Vec<String> {
    let mut warnings: Vec<String> = config.complaints.iter().map(ToString::to_string).collect();
    warnings.extend(config.overridden.iter().filter_map(|overridden| contradiction(overridden, config)));
    let more = warnings.len().saturating_sub(MOST_COMPLAINTS);
    warnings.truncate(MOST_COMPLAINTS);
    if more > 0 {
        warnings.push(format!("{more} more lines like these"));
    }
    if config.header.is_none() {
        warnings.extend(symbols::CHOICES.iter().filter_map(|choice| chosen_twice(choice, config)));
    }
    warnings
}

/// Two options of one choice.
fn chosen_twice(choice: &[&str], config: &KernelConfig) -> Option<String> {
    let is_on = |symbol: &&&str| config.get(symbol) == Some(&Setting::Yes);
    let mut chosen: Vec<_> =
        choice.iter().filter(is_on).filter_map(|symbol| Some((config.line(symbol)?, symbol))).collect();
    chosen.sort_unstable();
    let [(first, one), .., (last, other)] = chosen.as_slice() else { return None };
    Some(format!("lines {first} and {last}: CONFIG_{one}=y and CONFIG_{other}=y exclude each other"))
}

/// What is said of a defconfig or a fragment of that many symbols, with those that follow from the kernel's source.
fn not_whole(symbols: usize, source: Option<&Path>) -> String {
    let by = match (symbols, source) {
        (_, Some(tree)) => {
            return format!(
                "has no header of kconfig: it is a defconfig or a fragment, and what neither it nor {} decides is unknown",
                tree.display()
            );
        }
        (1, None) => "the one symbol".to_owned(),
        (many, None) => format!("the {many} symbols"),
    };
    format!(
        "has no header of kconfig: it is judged as a defconfig or a fragment, by {by} that it names (make olddefconfig \
         makes it whole)"
    )
}

/// A line that a later one of another value makes void.
fn contradiction(overridden: &Overridden, config: &KernelConfig) -> Option<String> {
    let Overridden { symbol, line, setting } = overridden;
    let last = config.get(symbol).filter(|last| *last != setting)?;
    let (said, holds) = (line_of(symbol, setting), line_of(symbol, last));
    Some(format!("line {line} has no effect: {said}; line {} says {holds}", config.line(symbol)?))
}

/// The machine in the tree at `path`: a directory, or a file that `worstcase snapshot` wrote; this one where none is.
pub fn root_at(path: Option<&Path>) -> Result<SysRoot> {
    let Some(path) = path else { return Ok(SysRoot::live()) };
    let has = |name: &str| path.join(name).is_dir();
    if path.is_dir() && !(has("proc") || has("sys") || has("boot") || has("etc")) {
        let message = format!("read {}: no directory with a proc, sys, boot or etc in it", path.display());
        let hint = "name the root of a machine's file system, a copy of its /proc and /sys, or a snapshot";
        return Err(Error::new(message, hint));
    }
    let root = SysRoot::open_tree(path)?;
    if root.is_open_ended() {
        output::words(&format!(
            "note: {}: no line `=== end` says that it is whole: what is missing was not there, or was cut off",
            path.display()
        ));
    }
    Ok(root)
}

/// What is asked of the machine at `root`. `isolate` stands for the CPUs that the kernel isolates, where it is given.
pub fn survey_of(root: &SysRoot, isolate: Option<&CpuList>) -> Result<Survey> {
    let root = root.remembering();
    let first = Survey::new(root.clone(), CpuList::new());
    isolate.map_or(Ok(()), |cpus| check_cpus(cpus, &first))?;
    Ok(Survey::new(root, isolated(&first, isolate)))
}

/// The machine at `path`, a directory or a snapshot; nothing for any other file. Its CPUs for real time are `isolate`, else
/// those that its kernel isolates.
pub fn machine_at(path: &Path, isolate: Option<&CpuList>) -> Result<Option<Survey>> {
    if path.as_os_str() == "-" {
        return Ok(None);
    }
    let root = match SysRoot::open_tree(path) {
        Ok(root) => root.remembering(),
        Err(TreeError::Other(_) | TreeError::Archive { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let first = Survey::new(root.clone(), CpuList::new());
    let isolated = isolated(&first, isolate);
    Ok(Some(Survey::new(root, isolated)))
}

/// The configuration in a file that is no machine.
pub fn config_at(path: &Path) -> Result<KernelConfig> {
    let (name, bytes) = read_config(path)?;
    configuration::parse(&bytes).map_err(|error| match error {
        ConfigurationError::Empty => Error::new(
            format!("read {name}: neither a kernel configuration nor a snapshot, or a damaged one"),
            format!("{CONFIG_HINT}, or a file that worstcase snapshot wrote"),
        ),
        error => refused(&name, &error),
    })
}

/// A configuration that is whole, or a fragment: a part of a whole one is refused, since what is missing would pass for off.
fn parsed(name: &str, bytes: &[u8]) -> Result<KernelConfig> {
    configuration::parse(bytes).map_err(|error| refused(name, &error))
}

fn refused(name: &str, error: &ConfigurationError) -> Error {
    let hint = match error {
        ConfigurationError::Cut | ConfigurationError::Compression(_) => "copy it again",
        _ => CONFIG_HINT,
    };
    Error::new(format!("read {name}: {error}"), hint)
}

/// The CPUs that were named, else those that the kernel keeps apart.
fn isolated(survey: &Survey, named: Option<&CpuList>) -> CpuList {
    let apart = ["cpus.separated", "cpus.isolated", "cpus.nohz_full"].map(|fact| set(survey, fact));
    named.cloned().unwrap_or_else(|| apart.iter().fold(CpuList::new(), |all, cpus| all.union(cpus)))
}

fn configuration_of(survey: &Survey, name: &str) -> Result<KernelConfig> {
    survey.kernel_config().value().cloned().ok_or_else(|| {
        let message = format!("{name}: no kernel configuration can be read");
        Error::new(message, CONFIG_HINT)
    })
}

/// A file's name and bytes.
pub type Paper = (String, Vec<u8>);

/// A configuration's name and bytes.
fn read_config(path: &Path) -> Result<Paper> {
    read(path, CONFIG_HINT)
}

/// A paper's name and bytes; `-` is standard input.
pub fn read(path: &Path, hint: &str) -> Result<Paper> {
    let is_input = path.as_os_str() == "-";
    let name = if is_input { "standard input".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let result = match is_input {
        true => std::io::stdin().take(LONGEST + 1).read_to_end(&mut bytes),
        false => opened(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes)),
    };
    result.map_err(|error| Error::new(format!("read {name}: {error}"), hint))?;
    if bytes.len() as u64 > LONGEST {
        return Err(Error::new(format!("read {name}: longer than 16 MiB"), hint));
    }
    Ok((name, bytes))
}

/// A pipe is read where the user made it, as by `<(zcat ...)`.
fn opened(path: &Path) -> std::io::Result<File> {
    match path.starts_with("/dev/fd") {
        true => File::open(path),
        false => Ok(files::open(path)?),
    }
}

/// As a shell takes it for one word.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Refuses CPUs that are not there, and all that there are.
fn check_cpus(cpus: &CpuList, survey: &Survey) -> Result<()> {
    let online = set(survey, "cpus.online");
    if cpus.is_empty() {
        return Err(Error::new("--isolate names no CPU", "name some, as in 2-3"));
    }
    if online.is_empty() {
        return Ok(());
    }
    let absent = cpus.difference(&online);
    if !absent.is_empty() {
        let message = format!("--isolate names {}: not online", absent.named());
        return Err(Error::new(message, format!("online are {online}")));
    }
    if online.difference(cpus).is_empty() {
        let message = format!("--isolate {cpus} leaves no CPU for everything else");
        return Err(Error::new(message, "leave one out, as a rule CPU 0"));
    }
    Ok(())
}

/// A fact that is a set of CPUs; none where it is unknown.
pub fn set(survey: &Survey, fact: &str) -> CpuList {
    match survey.read(fact).value {
        Fact::Value(Value::Cpus(cpus)) => cpus,
        _ => CpuList::new(),
    }
}
