//! The machine that is asked, and what a named fact is: all that topics share, so that none of them knows the table.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use machine::boot_loader::{self, Request};
use machine::command_line::CommandLine;
use machine::configuration::{self, Configuration};
use machine::facts::kernel::RELEASE;
use machine::facts::place::container_of;
use machine::facts::processors::online;
use machine::kernel_config::KernelConfig;
use record::Fact;
use sysroot::{SysRoot, Tree};
use units::CpuList;

use crate::value::Reading;

/// Where the kernel shows its command line.
pub(crate) const COMMAND_LINE: &str = "/proc/cmdline";

/// What `uname -m` says; the file is there from 6.1 on, before that the system call answers in its place.
pub(crate) const ARCHITECTURE: &str = "/proc/sys/kernel/arch";

/// A fact with a name of its own.
pub struct NamedFact {
    /// What rules call it.
    pub name: &'static str,
    /// What it says, and in which words.
    pub means: &'static str,
    pub(crate) read: fn(&Survey) -> Reading,
}

/// A line of a table.
pub(crate) const fn fact(name: &'static str, means: &'static str, read: fn(&Survey) -> Reading) -> NamedFact {
    NamedFact { name, means, read }
}

/// What is known of a machine that is not there.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The name and content of a kernel configuration, plain or compressed with gzip.
    pub config: Option<(String, Vec<u8>)>,
    /// A command line.
    pub command_line: Option<String>,
    /// The architecture as `uname -m` says it, where the configuration does not say.
    pub architecture: Option<String>,
    /// The kernel's version, `6.12.3`, where the configuration does not say.
    pub version: Option<String>,
    /// Symbols that are off although the configuration does not name them.
    pub absent: BTreeSet<String>,
}

/// A machine that answers questions by name. Everything is read at most once.
pub struct Survey {
    pub(crate) root: SysRoot,
    pub(crate) isolated: CpuList,
    pub(crate) process: Option<i32>,
    /// Whether it is asked of single files, not of a machine.
    pub(crate) is_of_papers: bool,
    config_name: Option<String>,
    absent: BTreeSet<String>,
    configuration: OnceCell<Configuration>,
    command_line: OnceCell<Fact<CommandLine>>,
    request: OnceCell<Fact<Request>>,
}

impl Survey {
    /// Asks the machine at `root`, whose CPUs for real time are `isolated`.
    pub fn new(root: SysRoot, isolated: CpuList) -> Self {
        Self {
            root: root.remembering(),
            isolated,
            process: None,
            is_of_papers: false,
            config_name: None,
            absent: BTreeSet::new(),
            configuration: OnceCell::new(),
            command_line: OnceCell::new(),
            request: OnceCell::new(),
        }
    }

    /// Asks what was given; all else is [`Fact::Unsupported`].
    pub fn of(given: Given, isolated: CpuList) -> Self {
        let mut tree = Tree::captured();
        let mut put = |path: &str, bytes: Vec<u8>| tree.files.insert(path.to_owned(), Fact::Value(bytes));
        if let Some(line) = given.command_line {
            put(COMMAND_LINE, line.into_bytes());
        }
        if let Some(architecture) = given.architecture {
            put(ARCHITECTURE, architecture.into_bytes());
        }
        if let Some(version) = given.version {
            put(RELEASE, version.into_bytes());
        }
        let config_name = given.config.map(|(name, bytes)| {
            put(configuration::RUNNING, bytes);
            name
        });
        Self {
            config_name,
            absent: given.absent,
            is_of_papers: true,
            ..Self::new(SysRoot::of(tree), isolated)
        }
    }

    /// The same survey, in which the facts `process` and `process.*` are about process `id`. Without, they are
    /// unsupported.
    pub fn about(self, id: i32) -> Self {
        Self { process: Some(id), ..self }
    }

    /// The CPUs for real time.
    pub fn isolated(&self) -> &CpuList {
        &self.isolated
    }

    /// Where it reads, with all that was read so far in [`SysRoot::remembered`].
    pub fn root(&self) -> &SysRoot {
        &self.root
    }

    /// The whole configuration of the kernel, for comparisons that no single fact answers.
    pub fn kernel_config(&self) -> &Fact<KernelConfig> {
        &self.configuration().config
    }

    /// The running kernel's configuration.
    pub(crate) fn configuration(&self) -> &Configuration {
        self.configuration.get_or_init(|| Configuration::find(&self.root, self.config_name.as_deref()))
    }

    /// Whether a symbol that the configuration does not name is off. A defconfig or a fragment leaves out what follows from the
    /// rest; kconfig writes its header above a whole configuration alone.
    pub fn names_all(&self) -> bool {
        let has_header = |config: &KernelConfig| config.header.is_some();
        self.kernel_config().value().is_none_or(has_header)
    }

    /// Whether it is known that a symbol is off which the configuration does not name.
    pub(crate) fn lacks(&self, symbol: &str) -> bool {
        self.names_all() || self.absent.contains(symbol)
    }

    /// Whether there is a running machine's state to read. Single files of one, and a tree without both /proc and /sys, have
    /// none: that nothing was found there says nothing.
    pub(crate) fn shows_a_machine(&self) -> bool {
        let has = |path| self.root.exists(path).value().is_some();
        !self.is_of_papers && (self.root.is_live() || has("/proc") || has("/sys"))
    }

    /// What the kernel was booted with. Every kernel shows that: where the file is not there, it was not captured.
    pub(crate) fn command_line(&self) -> &Fact<CommandLine> {
        let read = || match self.root.read(COMMAND_LINE) {
            Fact::Absent => Fact::Unsupported,
            text => text.map(|text| CommandLine::parse(&text)),
        };
        self.command_line.get_or_init(read)
    }

    /// What the boot loader will hand over at the next boot; absent where none left a file. A container's files are not
    /// the machine's.
    pub(crate) fn request(&self) -> &Fact<Request> {
        let read = || match container_of(&self.root).0 {
            Fact::Value(maker) if maker != "none" => Fact::Absent,
            _ => boot_loader::find(&self.root),
        };
        self.request.get_or_init(read)
    }

    /// The CPUs on which real-time threads run: those set apart, else all.
    pub(crate) fn real_time_cpus(&self) -> CpuList {
        if self.isolated.is_empty() { online(&self.root) } else { self.isolated.clone() }
    }

    /// The CPUs that do everything else; empty where none are set apart.
    pub(crate) fn housekeeping(&self) -> CpuList {
        if self.isolated.is_empty() { CpuList::new() } else { online(&self.root).difference(&self.isolated) }
    }
}
