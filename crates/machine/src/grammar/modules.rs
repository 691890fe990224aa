//! Parameters of modules that guides name, all of them: another one is none.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use units::KernelVersion;

use super::kind::Kind;
use super::only_of;
use crate::packed;

/// See its head.
static TABLE: LazyLock<String> =
    LazyLock::new(|| packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/modules.gz"))));

/// A parameter of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Without the module's name.
    pub name: &'static str,
    /// What its value is, as far as its type shows it.
    pub kind: Kind,
    only: Option<KernelVersion>,
}

impl Parameter {
    /// Whether a kernel of that version has it; unknown between the versions that were looked at.
    pub fn is_of(&self, version: Option<KernelVersion>) -> Option<bool> {
        only_of(self.only, version)
    }
}

/// The parameters of a module; nothing for a module that is not in the table.
pub fn parameters(module: &str) -> Option<&'static [Parameter]> {
    MODULES.get(&module.replace('-', "_")).map(Vec::as_slice)
}

/// A parameter of a module of the table.
pub fn parameter(module: &str, name: &str) -> Option<&'static Parameter> {
    parameters(module)?.iter().find(|parameter| crate::parameters::same(parameter.name, name))
}

static MODULES: LazyLock<BTreeMap<String, Vec<Parameter>>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let entry = |line: &'static str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.map(parameter_of).collect()))
    };
    lines.filter_map(entry).collect()
});

fn parameter_of(word: &'static str) -> Parameter {
    let (word, only) = word.split_once('@').map_or((word, None), |(word, only)| (word, only.parse().ok()));
    let (name, kind) = word.split_once(':').unwrap_or((word, ""));
    let kind = match kind {
        "i" => Kind::Integer { least: i64::MIN, most: i64::MAX },
        "b" => Kind::Bool,
        _ => Kind::Text,
    };
    Parameter { name, kind, only }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_of_the_table_has_these_parameters_and_no_others() {
        assert!(parameter("nvme-core", "default_ps_max_latency_us").is_some());
        assert!(parameters("igb").is_some_and(|all| all.len() == 2));
        assert_eq!(parameter("igb", "InterruptThrottleRate"), None);
        assert_eq!(parameters("a_module_of_a_vendor"), None);
    }

    #[test]
    fn a_parameter_of_one_version_is_not_of_the_other() {
        let lazy = parameter("rcutree", "enable_rcu_lazy").unwrap();
        let of = |text: &str| lazy.is_of(text.parse().ok());
        assert_eq!((of("6.1"), of("6.12"), of("6.6")), (Some(false), Some(true), None));
        assert_eq!(lazy.is_of(None), Some(true));
    }
}
