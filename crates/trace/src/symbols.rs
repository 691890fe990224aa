//! Functions by address, from /proc/kallsyms.

use std::io::{BufRead, BufReader, Read};

use sysroot::SysRoot;
use units::InOrder;

use crate::error::{Error, Result};

const PATH: &str = "/proc/kallsyms";

/// The kernel's functions, as far as it shows them.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    names: String,
    /// The first address of each, ascending, with its name's place; what is no function ends the one before.
    entries: Vec<(u64, Option<(u32, u16)>)>,
}

impl Symbols {
    /// Those of the running kernel. There is none where it hides its addresses (`kernel.kptr_restrict`, no
    /// `CAP_SYSLOG`).
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn live(root: &SysRoot) -> Result<Self> {
        let wrong = |error| Error::new("read", PATH, error);
        let file = root.open(PATH).map_err(wrong)?;
        Self::read(BufReader::with_capacity(1 << 16, file)).map_err(wrong)
    }

    /// Reads the text of a /proc/kallsyms.
    ///
    /// # Errors
    /// What the reader answers.
    pub fn read(mut text: impl BufRead) -> std::io::Result<Self> {
        const LONGEST: u64 = 1 << 12;
        let mut symbols = Self::default();
        let mut line = Vec::new();
        while (&mut text).take(LONGEST).read_until(b'\n', &mut line)? > 0 {
            symbols.add(&String::from_utf8_lossy(&line));
            line.clear();
        }
        // The first of several at one address is the kernel's choice too.
        symbols.entries.order_by_key(|(address, _)| *address);
        symbols.entries.dedup_by_key(|(address, _)| *address);
        Ok(symbols)
    }

    /// `ffffffff81000000 T _text`, and behind the name of a module's function its module.
    fn add(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
        let (Some(address @ 1..), Some(kind), Some(name)) = (address, words.next(), words.next()) else {
            return;
        };
        let is_function = matches!(kind, "t" | "T" | "w" | "W");
        let place = (u32::try_from(self.names.len()), u16::try_from(name.len()));
        let (true, (Ok(begin), Ok(length))) = (is_function, place) else {
            return self.entries.push((address, None));
        };
        self.names.push_str(name);
        self.entries.push((address, Some((begin, length))));
    }

    /// Whether the kernel hides them.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The function that an address is in, and how far from its beginning.
    pub fn function(&self, address: u64) -> Option<(&str, u64)> {
        let after = self.entries.partition_point(|(first, _)| *first <= address);
        let (first, name) = self.entries.get(after.checked_sub(1)?)?;
        let (begin, length) = (*name)?;
        let begin = usize::try_from(begin).ok()?;
        Some((self.names.get(begin..begin + usize::from(length))?, address - first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0000000000000000 A fixed\n\
        ffffffff81000010 T first\n\
        ffffffff81000010 t alias\n\
        ffffffff81000040 D data\n\
        ffffffffc0000000 t late\t[module]\n\
        ffffffff81000030 t second\n";

    #[test]
    fn an_address_is_in_the_function_before_it_and_data_is_in_none() {
        let symbols = Symbols::read(TEXT.as_bytes()).unwrap();
        assert_eq!(symbols.function(0xffff_ffff_8100_0010), Some(("first", 0)));
        assert_eq!(symbols.function(0xffff_ffff_8100_003f), Some(("second", 15)));
        assert_eq!(symbols.function(0xffff_ffff_8100_0041), None);
        assert_eq!(symbols.function(0xffff_ffff_c000_0100), Some(("late", 0x100)));
        assert_eq!((symbols.function(0), symbols.function(0x10)), (None, None));
    }

    #[test]
    fn a_kernel_that_hides_its_addresses_has_no_functions() {
        assert!(Symbols::read("0000000000000000 T first\n".as_bytes()).unwrap().is_empty());
    }
}
