//! Symbols of the kernel's configuration: type, whether a user can set them, who selects them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::packed;

/// Options of one choice: at most one is `y` (kernel/Kconfig.hz, Kconfig.preempt, kernel/time/Kconfig).
pub const CHOICES: [&[&str]; 7] = [
    &["HZ_100", "HZ_250", "HZ_300", "HZ_1000"],
    &["PREEMPT_NONE", "PREEMPT_VOLUNTARY", "PREEMPT", "PREEMPT_LAZY"],
    // PREEMPT_VOLUNTARY and PREEMPT_NONE depend on !PREEMPT_RT.
    &["PREEMPT_RT", "PREEMPT_NONE"],
    &["PREEMPT_RT", "PREEMPT_VOLUNTARY"],
    &["PREEMPT_RT", "PREEMPT_RT_FULL"],
    &["HZ_PERIODIC", "NO_HZ_IDLE", "NO_HZ_FULL"],
    &[
        "CPU_FREQ_DEFAULT_GOV_PERFORMANCE",
        "CPU_FREQ_DEFAULT_GOV_POWERSAVE",
        "CPU_FREQ_DEFAULT_GOV_USERSPACE",
        "CPU_FREQ_DEFAULT_GOV_ONDEMAND",
        "CPU_FREQ_DEFAULT_GOV_CONSERVATIVE",
        "CPU_FREQ_DEFAULT_GOV_SCHEDUTIL",
    ],
];

/// See its head.
static TABLE: LazyLock<String> =
    LazyLock::new(|| packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/symbols.gz"))));

/// A symbol, without `CONFIG_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: &'static str,
    /// `bool`, `tristate`, `int`, `hex` or `string`.
    pub kind: &'static str,
    /// Whether it has a prompt: one without is set by others alone.
    pub has_prompt: bool,
    /// Symbols that select it.
    pub selected_by: Vec<&'static str>,
}

impl Symbol {
    /// What is wrong with a value in a configuration.
    pub fn fault(&self, value: &str) -> Option<String> {
        let is_number = super::kind::number(value).is_some();
        let fits = match self.kind {
            "bool" => matches!(value, "y" | "n"),
            "tristate" => matches!(value, "y" | "m" | "n"),
            "int" | "hex" => is_number || value == "n",
            "string" => value.starts_with('"') || value == "n",
            _ => true,
        };
        (!fits).then(|| match self.kind {
            "bool" => format!("is y or not set, not `{value}`"),
            "tristate" => format!("is y, m or not set, not `{value}`"),
            "string" => format!("is a text in straight quotes, not `{value}`"),
            _ => format!("is a number, not `{value}`"),
        })
    }
}

/// The symbol of that name.
pub fn symbol(name: &str) -> Option<&'static Symbol> {
    SYMBOLS.get(name)
}

/// All names of the table.
pub fn names() -> impl Iterator<Item = &'static str> {
    SYMBOLS.keys().copied()
}

static SYMBOLS: LazyLock<BTreeMap<&'static str, Symbol>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(entry).map(|symbol| (symbol.name, symbol)).collect()
});

fn entry(line: &'static str) -> Option<Symbol> {
    let mut columns = line.split(' ');
    let (name, kind, prompt, _, selected_by) =
        (columns.next()?, columns.next()?, columns.next()?, columns.next()?, columns.next()?);
    let selected_by = selected_by.split(',').filter(|name| *name != "-").collect();
    Some(Symbol { name, kind, has_prompt: prompt == "prompt", selected_by })
}
