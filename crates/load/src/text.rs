//! A value as the text that it parses from and prints as.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub fn serialize<T: std::fmt::Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

pub fn deserialize<'de, T: std::str::FromStr<Err: std::fmt::Display>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}
