//! The names of a kernel's addresses, as /proc/kallsyms has them.

use std::collections::HashMap;
use units::InOrder;

/// Names of functions, and the addresses of what else is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// In order of address, one name each.
    functions: Vec<(u64, String)>,
    /// All names.
    by_name: HashMap<String, u64>,
}

/// Why a text is not a list of symbols.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SymbolsError {
    /// No line of it is one.
    #[error("there is no symbol in the kernel's list (/proc/kallsyms): CONFIG_KALLSYMS=y?")]
    None,
    /// The kernel hides its addresses.
    #[error("the addresses in the kernel's list of symbols are zero")]
    Hidden,
    /// One that is needed is not there.
    #[error("the kernel's list of symbols has no {0}: CONFIG_KALLSYMS_ALL=y?")]
    Missing(&'static str),
}

/// Names that stand at the same address as a function, and are none.
const NO_FUNCTIONS: [&str; 5] =
    ["__lock_text_start", "__entry_text_start", "__sched_text_start", "__indirect_thunk_start", "_stext"];

impl Symbols {
    /// Reads lines as `ffffffff81000000 T _text` and `ffffffffc0001000 t function [module]`.
    ///
    /// # Errors
    /// Where there is none, or all addresses are zero.
    pub fn parse(text: &str) -> Result<Self, SymbolsError> {
        let mut symbols = Self::default();
        for (address, kind, name) in text.lines().filter_map(line) {
            symbols.by_name.entry(name.to_owned()).or_insert(address);
            if matches!(kind, "t" | "T" | "w" | "W") && !NO_FUNCTIONS.contains(&name) {
                symbols.functions.push((address, name.to_owned()));
            }
        }
        symbols.functions.order_by_key(|(address, _)| *address);
        symbols.functions.dedup_by_key(|(address, _)| *address);
        match symbols.functions.last() {
            None => Err(SymbolsError::None),
            Some((0, _)) => Err(SymbolsError::Hidden),
            Some(_) => Ok(symbols),
        }
    }

    /// The address of `name`, if there is one.
    pub fn address(&self, name: &str) -> Option<u64> {
        self.by_name.get(name).copied()
    }

    /// The address of `name`.
    ///
    /// # Errors
    /// Where there is none.
    pub fn needed(&self, name: &'static str) -> Result<u64, SymbolsError> {
        self.address(name).ok_or(SymbolsError::Missing(name))
    }

    /// The number of the function at `address`, and whether it begins there.
    pub(crate) fn function(&self, address: u64) -> Option<(u32, bool)> {
        let after = self.functions.partition_point(|(start, _)| *start <= address);
        let number = after.checked_sub(1)?;
        Some((number as u32, self.functions[number].0 == address))
    }

    /// Its name.
    pub(crate) fn name(&self, number: u32) -> Option<&str> {
        self.functions.get(number as usize).map(|(_, name)| name.as_str())
    }
}

fn line(line: &str) -> Option<(u64, &str, &str)> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    Some((address, words.next()?, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_address_and_all_names_by_name() {
        let text = "ffffffff81000000 T _text\nffffffff81000100 t one\nffffffff81000100 T __lock_text_start\n\
                    ffffffffc0000000 t of_module\t[ext4]\nffffffff82000000 D data\n";
        let symbols = Symbols::parse(text).unwrap();
        let name = |address| symbols.function(address).and_then(|(number, _)| symbols.name(number));
        assert_eq!((name(0xffff_ffff_8100_00ff), name(0xffff_ffff_8100_0100)), (Some("_text"), Some("one")));
        assert_eq!((name(0xffff_ffff_c000_0001), name(1)), (Some("of_module"), None));
        assert_eq!(symbols.needed("data"), Ok(0xffff_ffff_8200_0000));
        assert_eq!(symbols.needed("none"), Err(SymbolsError::Missing("none")));
    }

    #[test]
    fn hidden_addresses_are_an_error() {
        assert_eq!(Symbols::parse("0000000000000000 T _text"), Err(SymbolsError::Hidden));
        assert_eq!(Symbols::parse("nothing"), Err(SymbolsError::None));
    }
}
