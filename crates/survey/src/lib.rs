//! What rules ask of a machine: facts by name, each with where it was read.
//!
//! A fact's name says how it is read, so that a new rule seldom needs new code:
//!
//! | name | value |
//! | --- | --- |
//! | `config:SYMBOL` | `y`, `m`, `n` or the value in the kernel's configuration; absent if it does not name the symbol |
//! | `config-on:A,B` | those of several symbols that are built in, `y`: a module does nothing until it is loaded |
//! | `boot:WORD` | what stands after `WORD=` on the command line the kernel booted with; empty for the bare word; of several the one that counts |
//! | `boot-any:A,B` | those of several words that are given |
//! | `requested:WORD` | as `boot:WORD`, of the line that the boot loader's files ask for at the next boot; unsupported where no file tells |
//! | `path:/PATH` | whether there is something |
//! | `modules:A,B` | those of several modules that are loaded |
//! | `file:/PATH` | the file's text; a number where it is one |
//! | `choice:/PATH` | the word that the file puts in brackets: `always [madvise] never`, or in parentheses |
//! | `cpus:/PATH` | a CPU list, or a mask in files that the kernel prints so |
//! | `each:/PATH` | one item a file for a path with `*`; `{isolated}` stands for each isolated CPU's number; absent if there is none |
//! | `sysctl:NAME` | `file:/proc/sys/NAME` with dots for slashes |
//! | anything else | a fact that takes thought: one function in a module here, one line in `facts.rs` |
//!
//! What a driver answers with ENODEV, EINVAL, ENXIO or EOPNOTSUPP is unsupported, any other error unreadable.
//!
//! ```
//! use survey::Survey;
//! use sysroot::{SysRoot, Tree};
//!
//! // A machine of two files; `SysRoot::live()` is this one.
//! let files = [("/proc/cmdline", "quiet isolcpus=2-3"), ("/sys/devices/system/cpu/online", "0-3")];
//! let tree = Tree::whole(files.map(|(path, text)| (path.to_owned(), text.into())));
//! let survey = Survey::new(SysRoot::of(tree), "2-3".parse().unwrap());
//! assert_eq!(survey.read("boot:isolcpus").value.to_string(), "2-3");
//! ```

mod boot_line;
mod cgroups;
mod consoles;
mod facts;
mod firmware;
mod isolation;
mod kernel;
mod kinds;
mod next_boot;
mod nodes;
mod place;
mod processors;
mod runtime;
mod snapshot;
mod time_stamps;

#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::fmt;

use record::Fact;
use units::CpuList;

use machine::boot_loader::{self, Request};
use machine::command_line::CommandLine;
use machine::configuration::{self, Configuration};
use machine::kernel_config::KernelConfig;
use sysroot::{SysRoot, Tree};

pub use boot_line::cpus_of;
pub use facts::{NamedFact, named_facts};
pub use kinds::{chosen, is_mask, matching};
pub use runtime::services::running;
pub use snapshot::{asked, snapshot};

/// A fact's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A number, in the unit that the kernel uses there.
    Number(i64),
    /// A text or word.
    Text(String),
    /// A set of CPUs.
    Cpus(CpuList),
    /// Several things of one kind, each with its name: files of a pattern, interrupts, threads.
    List(Vec<Item>),
}

/// One of several things of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What it is: a path, `irq 24 eth0`, `ksoftirqd/2 (23)`.
    pub name: String,
    /// Its value, as text.
    pub value: String,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(if *flag { "yes" } else { "no" }),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Cpus(cpus) => cpus.fmt(f),
            Self::List(items) if items.is_empty() => f.write_str("none"),
            Self::List(items) => {
                let shown: Vec<String> =
                    items.iter().map(|item| format!("{}: {}", item.name, item.value)).collect();
                f.write_str(&shown.join(", "))
            }
        }
    }
}

/// A fact as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The value, or why there is none.
    pub value: Fact<Value>,
    /// Where it was read: paths below `/`, `the kernel's configuration in /proc/config.gz`, `the kernel's log`.
    pub from: Vec<String>,
}

impl Reading {
    fn new<T: Into<Value>>(value: Fact<T>, from: &[&str]) -> Self {
        Self { value: value.map(Into::into), from: from.iter().map(|&place| place.to_owned()).collect() }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<CpuList> for Value {
    fn from(cpus: CpuList) -> Self {
        Self::Cpus(cpus)
    }
}

impl From<Vec<Item>> for Value {
    fn from(items: Vec<Item>) -> Self {
        Self::List(items)
    }
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
}

/// A machine that answers questions by name. Everything is read at most once.
pub struct Survey {
    root: SysRoot,
    isolated: CpuList,
    process: Option<i32>,
    config_name: Option<String>,
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
            config_name: None,
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
            put(kernel::ARCHITECTURE, architecture.into_bytes());
        }
        let config_name = given.config.map(|(name, bytes)| {
            put(configuration::RUNNING, bytes);
            name
        });
        Self { config_name, ..Self::new(SysRoot::of(tree), isolated) }
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

    /// Whether there is such a fact.
    pub fn known(name: &str) -> bool {
        kinds::of(name).is_some() || facts::named(name).is_some()
    }

    /// The fact with that name. A name that nobody answers to is [`Fact::Unsupported`]; a test keeps rules from asking.
    pub fn read(&self, name: &str) -> Reading {
        match (kinds::of(name), facts::named(name)) {
            (Some(kind), _) => kinds::read(self, kind),
            (None, Some(fact)) => (fact.read)(self),
            (None, None) => Reading { value: Fact::Unsupported, from: vec![name.to_owned()] },
        }
    }

    /// The whole configuration of the kernel, for comparisons that no single fact answers.
    pub fn kernel_config(&self) -> &Fact<KernelConfig> {
        &self.configuration().config
    }

    /// The running kernel's configuration.
    fn configuration(&self) -> &Configuration {
        self.configuration.get_or_init(|| Configuration::find(&self.root, self.config_name.as_deref()))
    }

    /// What the kernel was booted with.
    fn command_line(&self) -> &Fact<CommandLine> {
        let read = || self.root.read(COMMAND_LINE).map(|text| CommandLine::parse(&text));
        self.command_line.get_or_init(read)
    }

    /// What the boot loader will hand over at the next boot; absent where none left a file. A container's files are not
    /// the machine's.
    fn request(&self) -> &Fact<Request> {
        let read = || match place::container(self).value {
            Fact::Value(Value::Text(maker)) if maker != "none" => Fact::Absent,
            _ => boot_loader::find(&self.root),
        };
        self.request.get_or_init(read)
    }
}

/// Where the kernel shows its command line.
const COMMAND_LINE: &str = "/proc/cmdline";
