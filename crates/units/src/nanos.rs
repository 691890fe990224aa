//! Nanoseconds: every latency, interval and duration in the program.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A length of time in whole nanoseconds, up to 584 years.
///
/// Parses `250us`, `1.5ms`, `10s`, `10m`, `24h`, `2d`; a number without a unit is refused, because half of
/// the field's tools mean microseconds by it and the other half seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// The units that parse, with their length in nanoseconds; the longest suffix that matches wins.
const UNITS: [(&str, u64); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest time that a measurement may hold: 2^63 - 1 ns, 292 years.
    pub const MAX: Self = Self(i64::MAX as u64);

    /// From whole microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// From whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// From whole seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// Microseconds with a fraction, for plots and tables.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Seconds with a fraction, for plots and rates.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The difference, or zero where `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The product, or the longest time where it would not fit.
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// As a standard duration.
    pub const fn duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }

    /// A length of a run, to the second: `1 h 05 min`, `2 min 10 s`, `12 s`, `0.4 s`.
    pub fn rounded(self) -> String {
        let tenths = self.0.saturating_add(50_000_000) / 100_000_000;
        if tenths < 100 && tenths % 10 != 0 {
            return format!("{}.{} s", tenths / 10, tenths % 10);
        }
        let seconds = tenths / 10;
        match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
            (0, 0, s) => format!("{s} s"),
            (0, m, 0) => format!("{m} min"),
            (0, m, s) => format!("{m} min {s:02} s"),
            (h, 0, _) => format!("{h} h"),
            (h, m, _) => format!("{h} h {m:02} min"),
        }
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(duration: std::time::Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

/// The largest unit that gives the value exactly, so that what is printed can be typed again.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = ["d", "h", "m", "s", "ms", "us", "ns"]
            .into_iter()
            .filter_map(|unit| UNITS.iter().find(|(name, _)| *name == unit))
            .find(|(_, length)| self.0 >= *length && self.0 % length == 0);
        match exact {
            Some((unit, length)) => f.pad(&format!("{}{unit}", self.0 / length)),
            None => f.pad("0s"),
        }
    }
}

/// Why a text is not a length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseNanosError {
    /// A bare number.
    #[error("`{0}` has no unit: write {0}us, {0}ms, {0}s, {0}m or {0}h")]
    NoUnit(String),
    /// Not a number followed by a unit.
    #[error("`{0}` is not a length of time: write a number and a unit, as in 250us, 1.5ms, 10s, 10m, 24h")]
    Malformed(String),
    /// Longer than 292 years.
    #[error("`{0}` is longer than 292 years")]
    TooLong(String),
}

impl FromStr for Nanos {
    type Err = ParseNanosError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let malformed = || ParseNanosError::Malformed(text.to_owned());
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        if number.is_empty() || number.matches('.').count() > 1 || number == "." {
            return Err(malformed());
        }
        if unit.is_empty() && !number.chars().all(|digit| "0.".contains(digit)) {
            return Err(ParseNanosError::NoUnit(number.to_owned()));
        }
        // Nothing is nothing in any unit.
        let unit = if unit.is_empty() { "s" } else { unit.trim() };
        let (_, length) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(malformed)?;
        let nanos = scale(number, *length).ok_or_else(|| ParseNanosError::TooLong(text.to_owned()))?;
        if nanos > Self::MAX.0 {
            return Err(ParseNanosError::TooLong(text.to_owned()));
        }
        Ok(Self(nanos))
    }
}

/// `number` x `length` in integers; a fraction below one nanosecond is dropped.
fn scale(number: &str, length: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(length)?;
    let mut place = length;
    for digit in fraction.bytes() {
        place /= 10;
        total = total.checked_add(u64::from(digit - b'0') * place)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<u64, ParseNanosError> {
        text.parse::<Nanos>().map(|nanos| nanos.0)
    }

    #[test]
    fn lengths_with_units_parse() {
        assert_eq!(parse("250us"), Ok(250_000));
        assert_eq!(parse("1.5ms"), Ok(1_500_000));
        assert_eq!(parse(" 10m "), Ok(600_000_000_000));
        assert_eq!(parse("24h"), Ok(86_400_000_000_000));
        assert_eq!(parse("2d"), Ok(172_800_000_000_000));
        assert_eq!(parse("0.25us"), Ok(250));
    }

    #[test]
    fn a_bare_number_is_refused_with_the_units_named() {
        assert_eq!(parse("100"), Err(ParseNanosError::NoUnit("100".into())));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "us", "-5us", "1..2s", ".", "5 parsecs", "0x10us", "1e9s", "NaN", "inf"] {
            assert!(matches!(parse(text), Err(ParseNanosError::Malformed(_))), "{text}");
        }
        assert!(matches!(parse("99999999999999999999s"), Err(ParseNanosError::TooLong(_))));
        assert!(matches!(parse("9999999d"), Err(ParseNanosError::TooLong(_))));
    }

    #[test]
    fn a_run_length_reads_like_one() {
        assert_eq!(Nanos::from_secs(3900).rounded(), "1 h 05 min");
        assert_eq!(Nanos::from_secs(130).rounded(), "2 min 10 s");
        assert_eq!(Nanos::from_secs(60).rounded(), "1 min");
        assert_eq!(Nanos::from_millis(400).rounded(), "0.4 s");
        assert_eq!(Nanos(u64::MAX).rounded(), "5124095 h 34 min");
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_to_the_same(nanos in 0..=Nanos::MAX.0) {
            prop_assert_eq!(parse(&Nanos(nanos).to_string()), Ok(nanos));
        }

        #[test]
        fn any_text_is_answered_without_a_panic(text in ".{0,24}") {
            let _ = parse(&text);
        }
    }
}
