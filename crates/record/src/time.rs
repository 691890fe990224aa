//! Dates, for people and for directory names. UTC only: a board has no time zones.

use serde::{Deserialize, Serialize};

/// A moment in whole seconds since 1970-01-01 UTC. Saved as `2026-11-21T21:12:01Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UtcTime(pub u64);

impl UtcTime {
    /// Year, month, day, hour, minute, second (proleptic Gregorian; H. Hinnant's days-to-civil method).
    fn civil(self) -> (u64, u64, u64, u64, u64, u64) {
        let (days, seconds) = (self.0 / 86_400, self.0 % 86_400);
        let shifted = days + 719_468;
        let (era, of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        (year, month, day, seconds / 3600, seconds / 60 % 60, seconds % 60)
    }

    /// For a file name: `20261121T211201Z`.
    pub fn compact(self) -> String {
        let (year, month, day, hour, minute, second) = self.civil();
        format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
    }

    /// Reads what its `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
        if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        let year = if month <= 2 { year - 1 } else { year };
        let (era, year_of_era) = (year / 400, year % 400);
        let month_from_march = (month + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
        let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = (era * 146_097 + of_era).checked_sub(719_468)?;
        let time = Self(days * 86_400 + hour * 3600 + minute * 60 + second);
        (time.to_string() == text).then_some(time)
    }
}

impl std::fmt::Display for UtcTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (year, month, day, hour, minute, second) = self.civil();
        f.pad(&format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
    }
}

impl Serialize for UtcTime {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UtcTime {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("`{text}` is not a UTC time")))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for UtcTime {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "UtcTime".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_moments() {
        assert_eq!(UtcTime(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(UtcTime(951_782_400).to_string(), "2000-02-29T00:00:00Z");
        assert_eq!(UtcTime(1_795_295_521).compact(), "20261121T211201Z");
        assert_eq!(UtcTime::parse("2026-02-30T00:00:00Z"), None);
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_to_the_same(seconds in 0..253_402_300_799_u64) {
            prop_assert_eq!(UtcTime::parse(&UtcTime(seconds).to_string()), Some(UtcTime(seconds)));
        }

        #[test]
        fn any_text_is_answered_without_a_panic(text in ".{0,24}") {
            let _ = UtcTime::parse(&text);
        }
    }
}
