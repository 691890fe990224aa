//! Lengths of time as options take them.

use units::Nanos;

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

/// A period: one of [`INTERVALS`].
pub fn interval(text: &str) -> Result<Nanos, String> {
    between(text, *INTERVALS.start(), *INTERVALS.end(), "10us to 1h")
}
