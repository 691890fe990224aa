//! What is judged: this machine, a captured one, or single files of one.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use machine::survey::{Given, Survey, Value};
use machine::{KernelConfig, SysRoot};
use record::Fact;
use units::CpuList;

use crate::error::{CommandError, Result};

/// No kernel configuration is longer: those of distributions have some 300 KiB.
const LONGEST_CONFIG: u64 = 16 << 20;

/// Options that name something else than this machine.
#[derive(Args)]
pub struct SubjectOptions {
    /// Judge a kernel configuration, plain or gzip: only what it says is asked; - for standard input
    #[arg(long, value_name = "FILE")]
    kconfig: Option<PathBuf>,

    /// Architecture of --kconfig and --cmdline, as uname -m says it [default: as the configuration says]
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,

    /// Judge a boot line: only what it says is asked
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    cmdline: Option<String>,

    /// Judge the machine whose /proc and /sys are in a directory, or in a file that worstcase snapshot wrote
    #[arg(long, value_name = "PATH", conflicts_with_all = ["kconfig", "cmdline", "arch"])]
    root: Option<PathBuf>,

    /// Judge this process too: policies, priorities, CPUs, locked memory, limits
    #[arg(long, value_name = "PID", conflicts_with_all = ["kconfig", "cmdline", "arch"])]
    pid: Option<i32>,
}

impl SubjectOptions {
    /// The facts to judge. `isolate` stands for the CPUs that the kernel isolates, where it is given.
    pub fn survey(&self, isolate: Option<&CpuList>) -> Result<Survey> {
        let survey = self.survey_of_machine(isolate)?;
        let Some(pid) = self.pid else { return Ok(survey) };
        let survey = survey.about(pid);
        match survey.read("process").value {
            Fact::Value(_) => Ok(survey),
            _ => Err(CommandError::new(
                format!("read /proc/{pid}: no such process"),
                "pgrep NAME tells its number",
            )),
        }
    }

    fn survey_of_machine(&self, isolate: Option<&CpuList>) -> Result<Survey> {
        let root = self.root()?.remembering();
        let survey = |isolated: CpuList| match self.given()? {
            Some(given) => Ok(Survey::of(given, isolated)),
            None => Ok(Survey::new(root.clone(), isolated)),
        };
        let first = survey(CpuList::new())?;
        self.check_config(&first)?;
        match isolate {
            Some(cpus) => check_cpus(cpus, &first).and_then(|()| survey(cpus.clone())),
            None => match set(&first, "cpus.separated").union(&set(&first, "cpus.nohz_full")) {
                none if none.is_empty() => Ok(first),
                cpus => survey(cpus),
            },
        }
    }

    /// The kernel configuration that is judged.
    pub fn config(&self) -> Result<KernelConfig> {
        configuration(&self.survey(None)?, &self.name())
    }

    /// What is judged, in a word.
    pub fn name(&self) -> String {
        let path = self.kconfig.as_ref().or(self.root.as_ref());
        path.map_or_else(|| "this machine".to_owned(), |path| path.display().to_string())
    }

    /// Refuses a --kconfig that is none, and tells of one that is not whole.
    fn check_config(&self, survey: &Survey) -> Result<()> {
        let Some(path) = &self.kconfig else { return Ok(()) };
        let hint = "name a kernel's .config, /boot/config-* or config.gz";
        match survey.read("config.source").value {
            Fact::Unreadable(_) | Fact::Absent => {
                let message = format!("read {}: no kernel configuration, or a damaged one", path.display());
                Err(CommandError::new(message, hint))
            }
            _ => Ok(()),
        }
    }

    /// The tree that is read where no single files were given.
    fn root(&self) -> Result<SysRoot> {
        let Some(path) = &self.root else { return Ok(SysRoot::live()) };
        let has = |name: &str| path.join(name).is_dir();
        if path.is_dir() && !(has("proc") || has("sys") || has("boot") || has("etc")) {
            let message =
                format!("read {}: no directory with a proc, sys, boot or etc in it", path.display());
            let hint =
                "name the root of a machine's file system, a copy of its /proc and /sys, or a snapshot";
            return Err(CommandError::new(message, hint));
        }
        Ok(SysRoot::open_tree(path)?)
    }

    /// Single files, if some were named.
    fn given(&self) -> Result<Option<Given>> {
        if self.kconfig.is_none() && self.cmdline.is_none() {
            return match &self.arch {
                Some(_) => Err(CommandError::new(
                    "--arch without --kconfig or --cmdline",
                    "name what is to be judged",
                )),
                None => Ok(None),
            };
        }
        let config = self.kconfig.as_deref().map(read_config).transpose()?;
        Ok(Some(Given { config, command_line: self.cmdline.clone(), architecture: self.arch.clone() }))
    }
}

/// The tree at `path`, if a machine is there and no single file.
pub fn machine_at(path: &Path) -> Result<Option<SysRoot>> {
    Ok(path.is_dir().then(|| SysRoot::at(path)))
}

/// The configuration in a file.
pub fn config_at(path: &Path) -> Result<KernelConfig> {
    let given = Given { config: Some(read_config(path)?), ..Given::default() };
    configuration(&Survey::of(given, CpuList::new()), &path.display().to_string())
}

fn configuration(survey: &Survey, name: &str) -> Result<KernelConfig> {
    survey.kernel_config().value().cloned().ok_or_else(|| {
        let message = format!("{name}: no kernel configuration can be read");
        CommandError::new(message, "name one: /boot/config-*, a .config, config.gz")
    })
}

/// A configuration's name and bytes.
fn read_config(path: &Path) -> Result<(String, Vec<u8>)> {
    let shown =
        if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
    let failed = |error: std::io::Error| {
        CommandError::new(
            format!("read {shown}: {error}"),
            "name a kernel's configuration: .config, /boot/config-*, config.gz",
        )
    };
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().take(LONGEST_CONFIG + 1).read_to_end(&mut bytes)
    } else {
        fs::File::open(path).and_then(|file| file.take(LONGEST_CONFIG + 1).read_to_end(&mut bytes))
    };
    read.map_err(failed)?;
    if bytes.len() as u64 > LONGEST_CONFIG {
        let message = format!("read {shown}: it is longer than any kernel's configuration (16 MiB)");
        return Err(CommandError::new(message, "name a .config, /boot/config-* or config.gz"));
    }
    Ok((shown, bytes))
}

/// Refuses CPUs that are not there, and all that there are.
fn check_cpus(cpus: &CpuList, survey: &Survey) -> Result<()> {
    let online = set(survey, "cpus.online");
    if cpus.is_empty() {
        return Err(CommandError::new("--isolate names no CPU", "name some, as in 2-3"));
    }
    if online.is_empty() {
        return Ok(());
    }
    let absent = cpus.difference(&online);
    if !absent.is_empty() {
        let message = format!("--isolate names CPUs {absent}, which are not online");
        return Err(CommandError::new(message, format!("online are {online}")));
    }
    if online.difference(cpus).is_empty() {
        let message = format!("--isolate {cpus} leaves no CPU for everything else");
        return Err(CommandError::new(message, "leave one out, as a rule CPU 0"));
    }
    Ok(())
}

fn set(survey: &Survey, fact: &str) -> CpuList {
    match survey.read(fact).value {
        Fact::Value(Value::Cpus(cpus)) => cpus,
        _ => CpuList::new(),
    }
}
