//! What of a fragment did not reach the finished configuration, and why: as far as the kernel's source tells.

mod complete;
mod expression;
mod kconfig;
mod version;

pub use complete::{Completed, complete};
pub use kconfig::{KernelSource, ReadSourceError};
pub use version::version;

use machine::kernel_config::{Dropped, KernelConfig, Setting};

use expression::Expression;
use kconfig::Definition;

/// Why `dropped` is not as the fragment wants it, in words; more than one reason if there are more.
pub fn reasons(dropped: &Dropped, result: &KernelConfig, source: &KernelSource) -> Vec<String> {
    let definitions = source.definitions(&dropped.symbol);
    if definitions.is_empty() {
        return vec![unknown(&dropped.symbol, source)];
    }
    if dropped.wanted == Setting::No {
        return vec![still_on(&dropped.symbol, definitions, result, source)];
    }
    let mut reasons: Vec<String> =
        definitions.iter().flat_map(|definition| unmet(definition, result)).collect();
    if definitions.iter().all(|definition| !definition.has_prompt) {
        reasons.push("it has no prompt: only another symbol can select it".to_owned());
    }
    if reasons.is_empty() {
        reasons.extend(definitions.iter().filter_map(|definition| other_choice(definition, result)));
    }
    if reasons.is_empty() && dropped.wanted == Setting::Module && dropped.got == Some(Setting::Yes) {
        reasons.push(selected_by(&dropped.symbol, result, source).map_or_else(
            || "it can only be built in".to_owned(),
            |selectors| format!("it is selected as built in by {selectors}"),
        ));
    }
    if reasons.is_empty() {
        reasons.push(
            "its dependencies are met: another fragment or a later line may have changed it".to_owned(),
        );
    }
    reasons.sort();
    reasons.dedup();
    reasons
}

/// Why a symbol that should be off is on.
fn still_on(
    symbol: &str,
    definitions: &[Definition],
    result: &KernelConfig,
    source: &KernelSource,
) -> String {
    if let Some(selectors) = selected_by(symbol, result, source) {
        return format!("it is selected by {selectors}");
    }
    if definitions.iter().any(|definition| definition.has_prompt) {
        return "nothing selects it: the configuration was not made with this line, or a later one sets it"
            .to_owned();
    }
    "it has no prompt: its default is on".to_owned()
}

fn unknown(symbol: &str, source: &KernelSource) -> String {
    let other = source.architectures_with(symbol);
    if !other.is_empty() {
        return format!("only {} has it", other.join(", "));
    }
    match source.nearest(symbol) {
        Some(nearest) => format!("this source has no such symbol; {nearest} looks like it"),
        None => "this source has no such symbol".to_owned(),
    }
}

/// The parts of its dependencies that do not hold.
fn unmet(definition: &Definition, result: &KernelConfig) -> Vec<String> {
    let parts = definition.depends.iter().flat_map(Expression::conjuncts);
    let missing = parts.filter(|part| !part.holds(result));
    missing.map(|part| format!("it needs {part}; {}", values(part, result))).collect()
}

/// `A is not set, B is m`.
fn values(expression: &Expression, result: &KernelConfig) -> String {
    let said = |symbol: &str| match result.get(symbol) {
        None | Some(Setting::No) => format!("{symbol} is not set"),
        Some(Setting::Yes) => format!("{symbol} is y"),
        Some(Setting::Module) => format!("{symbol} is m"),
        Some(_) => format!("{symbol} has a value"),
    };
    expression.symbols().into_iter().map(said).collect::<Vec<_>>().join(", ")
}

/// The other option of its choice that is `y`.
fn other_choice(definition: &Definition, result: &KernelConfig) -> Option<String> {
    let others = definition.choice.iter().filter(|other| **other != definition.symbol);
    let chosen = others.into_iter().find(|other| result.get(other) == Some(&Setting::Yes))?;
    Some(format!("it is one option of a choice, and {chosen} is y"))
}

/// The symbols that are set and select it.
fn selected_by(symbol: &str, result: &KernelConfig, source: &KernelSource) -> Option<String> {
    let is_set = |selector: &&str| matches!(result.get(selector), Some(Setting::Yes | Setting::Module));
    let selectors: Vec<&str> = source.selectors(symbol).into_iter().filter(is_set).collect();
    (!selectors.is_empty()).then(|| selectors.join(", "))
}

#[cfg(test)]
mod tests;
