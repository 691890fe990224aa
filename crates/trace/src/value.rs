//! What a field of an event holds.

use std::borrow::Cow;
use std::fmt;

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// An unsigned number, or an address.
    Unsigned(u64),
    /// A signed number.
    Signed(i64),
    /// A text.
    Text(Cow<'a, str>),
    /// Anything else: arrays of numbers, masks, structures.
    Bytes(&'a [u8]),
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned(number) => number.fmt(f),
            Self::Signed(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}
