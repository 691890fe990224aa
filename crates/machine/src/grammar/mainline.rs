//! All symbols of the configuration that the mainline kernels 6.1 and 6.12 have, of every architecture.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use units::KernelVersion;

use super::{is_looked_at, only_of};
use crate::packed;

/// A symbol a line: its name, its type's first letter (a capital where it has no prompt, `-` where architectures differ), and
/// the version if only one of the two has it.
static TABLE: LazyLock<String> =
    LazyLock::new(|| packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/mainline.gz"))));

/// A symbol, without `CONFIG_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// `bool`, `tristate`, `int`, `hex` or `string`; nothing where architectures differ.
    pub kind: Option<&'static str>,
    /// Whether it has a prompt somewhere: one without is set by others alone.
    pub has_prompt: bool,
    only: Option<KernelVersion>,
}

/// What is known of a name for the kernel of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It has the symbol.
    Present(Symbol),
    /// Another version has it.
    OtherVersion(KernelVersion),
    /// No mainline kernel from 6.1 to 6.12 has it.
    Absent,
    /// The version lies outside those that were read, or between them.
    Unknown,
}

/// What is known of a symbol's name.
pub fn presence(name: &str, version: Option<KernelVersion>) -> Presence {
    match SYMBOLS.get(name) {
        Some(symbol) => match (only_of(symbol.only, version), symbol.only) {
            (Some(true), _) => Presence::Present(*symbol),
            (Some(false), Some(only)) => Presence::OtherVersion(only),
            _ => Presence::Unknown,
        },
        None if is_looked_at(version) => Presence::Absent,
        None => Presence::Unknown,
    }
}

/// All names.
pub fn names() -> impl Iterator<Item = &'static str> {
    SYMBOLS.keys().copied()
}

static SYMBOLS: LazyLock<BTreeMap<&'static str, Symbol>> =
    LazyLock::new(|| TABLE.lines().filter_map(entry).collect());

fn entry(line: &'static str) -> Option<(&'static str, Symbol)> {
    let mut columns = line.split(' ');
    let (name, kind) = (columns.next()?, columns.next()?);
    let only = columns.next().and_then(|version| version.parse().ok());
    let spelt = match kind.to_ascii_lowercase().as_str() {
        "b" => Some("bool"),
        "t" => Some("tristate"),
        "i" => Some("int"),
        "h" => Some("hex"),
        "s" => Some("string"),
        _ => None,
    };
    let has_prompt = !kind.chars().all(|c| c.is_ascii_uppercase());
    Some((name, Symbol { kind: spelt, has_prompt, only }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_present_gone_absent_or_unknown() {
        let of = |name: &str, version: &str| presence(name, version.parse().ok());
        assert!(matches!(of("PREEMPT_RT", "6.12"), Presence::Present(symbol) if symbol.has_prompt));
        assert!(matches!(of("PREEMPTION", "6.1"), Presence::Present(symbol) if !symbol.has_prompt));
        assert!(matches!(of("SLAB", "6.12"), Presence::OtherVersion(_)));
        assert_eq!(of("PREEMPT_REALTIME", "6.6"), Presence::Absent);
        assert_eq!(of("PREEMPT_REALTIME", "6.18"), Presence::Unknown);
        assert!(names().count() > 20_000);
    }
}
