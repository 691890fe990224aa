//! Lengths of time as options take them.

use units::{Nanos, ParseNanosError};

/// A length of time that is not zero.
pub fn length(text: &str) -> Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Ok(Nanos::ZERO) => Err("it must be longer than nothing".into()),
        Ok(length) => Ok(length),
        Err(error) => Err(error.to_string()),
    }
}

/// A length from `least` to `most`, which `range` is in words.
pub fn between(text: &str, least: Nanos, most: Nanos, range: &str) -> Result<Nanos, String> {
    let length = text.parse::<Nanos>().map_err(|error| error.to_string())?;
    if (least..=most).contains(&length) { Ok(length) } else { Err(format!("it must be within {range}")) }
}

/// Periods: below 10 us a machine does nothing but wake up, and above an hour nothing is measured.
pub const INTERVALS: std::ops::RangeInclusive<Nanos> = Nanos::from_micros(10)..=Nanos::from_secs(3600);

/// A period: one of [`INTERVALS`]. A bare number is microseconds to cyclictest, and here none.
pub fn interval(text: &str) -> Result<Nanos, String> {
    if let Err(ParseNanosError::NoUnit(number)) = text.parse::<Nanos>() {
        return Err(format!("`{number}` has no unit: write {number}us for microseconds, or {number}ms"));
    }
    between(text, *INTERVALS.start(), *INTERVALS.end(), "10us to 1h")
}

#[cfg(test)]
mod tests {
    use super::interval;
    use crate::options::duration;

    #[test]
    fn a_bare_number_is_answered_with_the_unit_that_cyclictest_means() {
        assert!(duration("2").is_err_and(|why| why.contains("write 2s for seconds")));
        assert!(interval("100").is_err_and(|why| why.contains("write 100us for microseconds")));
        assert!(duration("2s").is_ok() && interval("100us").is_ok());
    }
}
