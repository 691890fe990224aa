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
//! | `switch:WORD,SYMBOL` | whether it is on: by the last boolean after `WORD=` on the command line, else by the configuration; `!SYMBOL` where the symbol switches it off |
//! | `requested:WORD` | as `boot:WORD`, of the line that the boot loader's files ask for at the next boot; unsupported where no file tells |
//! | `path:/PATH` | whether there is something |
//! | `modules:A,B` | those of several modules that are loaded |
//! | `file:/PATH` | the file's text; a number where it is one |
//! | `choice:/PATH` | the word that the file puts in brackets: `always [madvise] never`, or in parentheses |
//! | `cpus:/PATH` | a CPU list, or a mask in files that the kernel prints so |
//! | `each:/PATH` | one item a file for a path with `*`; `{isolated}` stands for each isolated CPU's number; absent if there is none |
//! | `sysctl:NAME` | `file:/proc/sys/NAME` with dots for slashes |
//! | anything else | a fact that takes thought: one function and one line in the table of its topic |
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

mod cgroups;
mod command_line;
mod consoles;
mod files;
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
mod survey;
mod switches;
mod time_stamps;
mod value;

#[cfg(test)]
mod tests;

use record::Fact;

pub use command_line::cpus_of;
pub use files::{chosen, is_mask, matching};
pub use runtime::services::running;
pub use snapshot::{asked, snapshot};
pub use survey::{Given, NamedFact, Survey};
pub use value::{Item, Reading, Value};

/// Each topic has its table beside its functions.
const TABLES: &[&[NamedFact]] = &[
    kernel::FACTS,
    place::FACTS,
    processors::FACTS,
    command_line::FACTS,
    next_boot::FACTS,
    consoles::FACTS,
    firmware::FACTS,
    isolation::FACTS,
    nodes::FACTS,
    time_stamps::FACTS,
];

/// All facts that have names.
pub fn named_facts() -> impl Iterator<Item = &'static NamedFact> {
    TABLES.iter().chain(&runtime::TABLES).copied().flatten()
}

fn named(name: &str) -> Option<&'static NamedFact> {
    named_facts().find(|fact| fact.name == name)
}

/// Whether only a machine that runs can answer.
fn is_of_runtime(name: &str) -> bool {
    runtime::TABLES.iter().copied().flatten().any(|fact| fact.name == name)
}

impl Survey {
    /// Whether there is such a fact.
    pub fn known(name: &str) -> bool {
        kinds::of(name).is_some() || named(name).is_some()
    }

    /// The fact with that name. A name that nobody answers to is [`Fact::Unsupported`]; a test keeps rules from asking.
    pub fn read(&self, name: &str) -> Reading {
        match (kinds::of(name), named(name)) {
            (Some(kind), _) => kinds::read(self, kind),
            (None, Some(_)) if is_of_runtime(name) && !self.shows_a_machine() => {
                value::unsupported("no /proc and no /sys")
            }
            (None, Some(fact)) => (fact.read)(self),
            (None, None) => Reading { value: Fact::Unsupported, from: vec![name.to_owned()] },
        }
    }
}
