//! What a defconfig or a fragment leaves out, as far as the kernel's source decides it: by defaults, dependencies, selections and
//! choices (Documentation/kbuild/kconfig-language.rst).
//!
//! What follows from the compiler, or from what this reader does not read, stays undecided: unknown, not off.

use std::collections::BTreeMap;

use machine::kernel_config::{KernelConfig, Setting, line_of};

use super::expression::Expression;
use super::kconfig::{Definition, KernelSource, Kind, Selection};

/// What follows of a configuration for the symbols that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completed {
    /// A line for each symbol that the configuration does not state and that is decided.
    pub lines: Vec<String>,
    /// Those for which kconfig writes no line, since they are off and nobody is asked for them.
    pub absent: Vec<String>,
    /// Those that are not decided.
    pub undecided: Vec<String>,
}

/// What `source` makes of the `symbols` that `stated` does not state. Stated settings count as they stand.
pub fn complete<'a>(
    stated: &KernelConfig,
    symbols: impl IntoIterator<Item = &'a str>,
    source: &KernelSource,
) -> Completed {
    let mut resolver = Resolver { stated, source, known: BTreeMap::new(), open: Vec::new() };
    let mut completed = Completed::default();
    for symbol in symbols.into_iter().filter(|symbol| stated.get(symbol).is_none()) {
        match resolver.setting(symbol) {
            // kconfig writes no line for what a user is not asked for.
            Some(Setting::No) if !resolver.is_asked_for(symbol) => completed.absent.push(symbol.to_owned()),
            Some(setting) => completed.lines.push(line_of(symbol, &setting)),
            None => completed.undecided.push(symbol.to_owned()),
        }
    }
    completed
}

/// Chains of symbols that decide each other are shorter.
const DEEPEST: usize = 200;

/// Levels are 0, 1 and 2 for n, m and y; none for what is undecided.
struct Resolver<'a> {
    stated: &'a KernelConfig,
    source: &'a KernelSource,
    known: BTreeMap<String, Option<Setting>>,
    /// What is being decided: a symbol that comes round to itself is not.
    open: Vec<String>,
}

impl Resolver<'_> {
    fn setting(&mut self, symbol: &str) -> Option<Setting> {
        if let Some(stated) = self.stated.get(symbol) {
            return Some(stated.clone());
        }
        if let Some(known) = self.known.get(symbol) {
            return known.clone();
        }
        if self.open.len() > DEEPEST || self.open.iter().any(|open| open == symbol) {
            return None;
        }
        self.open.push(symbol.to_owned());
        let setting = self.follows(symbol);
        self.open.pop();
        self.known.insert(symbol.to_owned(), setting.clone());
        setting
    }

    fn follows(&mut self, symbol: &str) -> Option<Setting> {
        let source = self.source;
        let definitions = source.definitions(symbol);
        let kind = definitions.iter().find_map(|definition| definition.kind);
        match kind {
            None if definitions.is_empty() => Some(Setting::No),
            None => None,
            Some(Kind::Value) => self.agreed(definitions, Setting::No, Self::value),
            Some(kind) => {
                let own = self.agreed(definitions, 0, Self::default_level);
                let level = or(self.brought_about(symbol, definitions), own)?;
                Some(of_level(if kind == Kind::Bool && level == 1 { 2 } else { level }))
            }
        }
    }

    /// What the first definition with a default says, unless another says otherwise; `none` where no definition has one.
    fn agreed<T: PartialEq>(
        &mut self,
        definitions: &[Definition],
        none: T,
        of: fn(&mut Self, &Definition) -> Option<Option<T>>,
    ) -> Option<T> {
        let mut found = None;
        for definition in definitions {
            let Some(says) = of(self, definition)? else { continue };
            if found.as_ref().is_some_and(|found| *found != says) {
                return None;
            }
            found = Some(says);
        }
        Some(found.unwrap_or(none))
    }

    /// The first default whose condition holds, as a level: none within where there is none. Undecided is none outside.
    fn default_level(&mut self, definition: &Definition) -> Option<Option<u8>> {
        let met = self.all(&definition.depends);
        if met == Some(0) {
            return Some(None);
        }
        if !definition.choice.is_empty() {
            return self.is_chosen(definition).map(|chosen| Some(if chosen { 2 } else { 0 }));
        }
        for (value, condition) in &definition.defaults {
            match self.condition(condition) {
                Some(0) => {}
                Some(limit) => {
                    // A default of n is off, whatever the dependencies are.
                    let value = self.level(value)?.min(limit.max(1));
                    return if value == 0 { Some(Some(0)) } else { and(met, Some(value)).map(Some) };
                }
                None => return None,
            }
        }
        Some(None)
    }

    /// A number or a text.
    fn value(&mut self, definition: &Definition) -> Option<Option<Setting>> {
        match self.all(&definition.depends) {
            Some(0) => return Some(None),
            None => return None,
            Some(_) => {}
        }
        for (value, condition) in &definition.defaults {
            match self.condition(condition) {
                Some(0) => {}
                Some(_) => return self.written(value).map(Some),
                None => return None,
            }
        }
        // What a user is asked for has no value that follows.
        (!definition.has_prompt).then_some(None)
    }

    fn written(&mut self, value: &Expression) -> Option<Setting> {
        let Expression::Symbol(name) = value else { return None };
        let quoted = name.trim_matches(['"', '\'']);
        if quoted.len() != name.len() {
            return (!quoted.contains("$(")).then(|| Setting::Text(quoted.to_owned()));
        }
        let hex = name.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let number = || name.parse().ok().map(Setting::Number);
        hex.map(Setting::Hex).or_else(number).or_else(|| self.setting(name))
    }

    /// Whether an option of a choice is the one, where none is stated: the first default that can be, else the first option.
    fn is_chosen(&mut self, definition: &Definition) -> Option<bool> {
        let is_stated = |option: &String| self.stated.get(option) == Some(&Setting::Yes);
        if definition.choice.iter().any(is_stated) {
            return Some(false);
        }
        for (option, condition) in &definition.choice_defaults {
            match and(self.condition(condition), self.is_visible(option)) {
                Some(0) => {}
                Some(_) => return Some(*option == definition.symbol),
                None => return None,
            }
        }
        for option in &definition.choice {
            match self.is_visible(option) {
                Some(0) => {}
                Some(_) => return Some(*option == definition.symbol),
                None => return None,
            }
        }
        None
    }

    /// Stated as off, or with dependencies that do not hold, an option cannot be taken.
    fn is_visible(&mut self, option: &str) -> Option<u8> {
        if self.stated.get(option) == Some(&Setting::No) {
            return Some(0);
        }
        self.any_met(self.source.definitions(option))
    }

    /// How far the dependencies of one of the definitions hold.
    fn any_met(&mut self, definitions: &[Definition]) -> Option<u8> {
        let mut met = Some(0);
        for definition in definitions {
            met = or(met, self.all(&definition.depends));
        }
        met
    }

    /// Whether a user is asked for it with y or n: where no dependency is off.
    fn is_asked_for(&mut self, symbol: &str) -> bool {
        let asks = |of: &&Definition| of.has_prompt && of.kind != Some(Kind::Value);
        let definitions: Vec<&Definition> = self.source.definitions(symbol).iter().filter(asks).collect();
        definitions.into_iter().any(|of| self.all(&of.depends) != Some(0))
    }

    /// How far other symbols select it, or imply it where its dependencies hold.
    fn brought_about(&mut self, symbol: &str, definitions: &[Definition]) -> Option<u8> {
        let mut level = Some(0);
        for selection in self.source.selections(symbol) {
            level = or(level, self.selects(selection, definitions));
            if level == Some(2) {
                break;
            }
        }
        level
    }

    fn selects(&mut self, selection: &Selection, definitions: &[Definition]) -> Option<u8> {
        let selector = self.setting(&selection.by).map(|setting| level_of(&setting));
        if selector == Some(0) {
            return selector;
        }
        let level = and(selector, self.condition(&selection.condition));
        if selection.is_weak { and(level, self.any_met(definitions)) } else { level }
    }

    fn all(&mut self, parts: &[Expression]) -> Option<u8> {
        let mut level = Some(2);
        for part in parts {
            level = and(level, self.level(part));
            if level == Some(0) {
                break;
            }
        }
        level
    }

    fn condition(&mut self, condition: &Option<Expression>) -> Option<u8> {
        condition.as_ref().map_or(Some(2), |condition| self.level(condition))
    }

    fn level(&mut self, expression: &Expression) -> Option<u8> {
        match expression {
            Expression::Symbol(name) => match name.trim_matches(['"', '\'']) {
                "y" => Some(2),
                "m" => Some(1),
                "n" => Some(0),
                name => self.setting(name).map(|setting| level_of(&setting)),
            },
            Expression::Equal(a, b) => self.is_equal(a, b).map(of_flag),
            Expression::Unequal(a, b) => self.is_equal(a, b).map(|equal| of_flag(!equal)),
            Expression::Not(inner) => self.level(inner).map(|level| 2 - level),
            Expression::And(a, b) => match self.level(a) {
                Some(0) => Some(0),
                a => and(a, self.level(b)),
            },
            Expression::Or(a, b) => match self.level(a) {
                Some(2) => Some(2),
                a => or(a, self.level(b)),
            },
            Expression::Unread(_) => None,
        }
    }

    fn is_equal(&mut self, a: &str, b: &str) -> Option<bool> {
        Some(self.text(a)? == self.text(b)?)
    }

    fn text(&mut self, name: &str) -> Option<String> {
        let bare = name.trim_matches(['"', '\'']);
        let is_constant = bare.len() != name.len() || name.starts_with(|c: char| c.is_ascii_digit());
        if !is_constant && !matches!(name, "y" | "m" | "n") {
            return self.setting(name).map(|setting| match setting {
                Setting::Text(text) => text,
                other => other.to_string(),
            });
        }
        let architecture = self.source.architecture();
        let filled = bare.replace("$(ARCH)", architecture).replace("$(SRCARCH)", architecture);
        (!filled.contains("$(")).then_some(filled)
    }
}

fn of_flag(flag: bool) -> u8 {
    if flag { 2 } else { 0 }
}

fn level_of(setting: &Setting) -> u8 {
    match setting {
        Setting::Yes => 2,
        Setting::Module => 1,
        _ => 0,
    }
}

fn of_level(level: u8) -> Setting {
    match level {
        0 => Setting::No,
        1 => Setting::Module,
        _ => Setting::Yes,
    }
}

/// The lesser level; off where one is off, whatever the other is.
fn and(a: Option<u8>, b: Option<u8>) -> Option<u8> {
    match (a, b) {
        (Some(0), _) | (_, Some(0)) => Some(0),
        (a, b) => Some(a?.min(b?)),
    }
}

/// The greater level; on where one is on.
fn or(a: Option<u8>, b: Option<u8>) -> Option<u8> {
    match (a, b) {
        (Some(2), _) | (_, Some(2)) => Some(2),
        (a, b) => Some(a?.max(b?)),
    }
}
