//! What the values of kernel parameters may be, and what the kernel does with any other: one table for all who read, write or
//! judge kernel command lines.
//!
//! A name that is not in the table is not judged; a value that the kernel does not take is a [`Fault`]. Kinds stand in
//! [`Kind`]; the files of /proc/sys and /sys have values of the same kinds ([`files`]).

mod cpus;
pub mod files;
mod kind;
mod line;
pub mod mainline;
pub mod modules;
pub mod settings;
pub mod symbols;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use units::KernelVersion;

use crate::packed;

pub use cpus::{CpuListFault, cpu_list};
pub use kind::Kind;
pub use line::{Misfit, together};
pub use settings::is_looked_at;

/// The first and the last version whose sources the tables of names were made from.
const FIRST: KernelVersion = KernelVersion::new(6, 1);
const LAST: KernelVersion = KernelVersion::new(6, 12);

/// Whether a kernel of `version` has what only one of the two has; unknown between them.
fn only_of(only: Option<KernelVersion>, version: Option<KernelVersion>) -> Option<bool> {
    let (Some(only), Some(version)) = (only, version) else { return Some(true) };
    let short = KernelVersion::new(version.major, version.minor);
    let is_first = only == FIRST;
    if short <= FIRST {
        Some(is_first)
    } else if short >= LAST {
        Some(!is_first)
    } else {
        None
    }
}

/// See its head.
static TABLE: LazyLock<String> =
    LazyLock::new(|| packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/values.gz"))));

/// A kernel parameter whose values are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// As the kernel's documents write it.
    pub name: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// What the kernel does with anything else: `ignores it`.
    pub otherwise: &'static str,
    /// Where it is read, with the version if only one was looked at.
    pub source: &'static str,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// In the words of a finding: `takes off or auto, and the kernel ignores ..`.
    pub message: String,
    /// A value that may have been meant.
    pub instead: Option<String>,
}

/// The parameter of that name, `-` and `_` being the same.
pub fn parameter(name: &str) -> Option<&'static Parameter> {
    BY_NAME.get(&name.replace('-', "_"))
}

/// All parameters of the table.
pub fn parameters() -> impl Iterator<Item = &'static Parameter> {
    BY_NAME.values()
}

/// What is wrong with the value of a parameter for the kernel of that version, or for any where it is unknown. Nothing for
/// parameters that the table does not have.
pub fn judge(name: &str, value: Option<&str>, version: Option<KernelVersion>) -> Option<Fault> {
    let parameter = parameter(name)?;
    let fault = parameter.kind.fault(value, version)?;
    let message = match &parameter.kind {
        Kind::Switch(_) => fault.message,
        _ => format!("{}; the kernel {}", fault.message, parameter.otherwise),
    };
    let instead = fault.instead.map(|value| {
        if value.is_empty() { parameter.name.to_owned() } else { format!("{}={value}", parameter.name) }
    });
    Some(Fault { message, instead })
}

static BY_NAME: LazyLock<BTreeMap<String, Parameter>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(entry).map(|parameter| (parameter.name.replace('-', "_"), parameter)).collect()
});

fn entry(line: &'static str) -> Option<Parameter> {
    let mut columns = line.split(" | ");
    let (name, kind, otherwise, source) =
        (columns.next()?, columns.next()?, columns.next()?, columns.next()?);
    Some(Parameter { name, kind: Kind::parse(kind)?, otherwise, source })
}
