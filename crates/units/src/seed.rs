//! Seeds: everything random in a run comes from one recorded number.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The one number from which phases, built-in loads and orders are drawn. A run with the same seed draws the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    /// A stream of its own for `purpose`, so that a draw more in one place moves nothing in another.
    pub fn stream(self, purpose: &str) -> Random {
        // FNV-1a spreads the purpose, SplitMix64 spreads the sum.
        let hash = purpose.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Random { state: self.0 ^ hash }
    }
}

impl FromStr for Seed {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, without allocation, good enough to spread phases and sizes.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// By how much the state grows with each draw.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// The stream that begins with `key`, after `draws` draws: found at once, whatever their number.
    pub fn after(key: u64, draws: u64) -> Self {
        Self { state: key.wrapping_add(draws.wrapping_mul(Self::STEP)) }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(Self::STEP);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..limit`, evenly spread; 0 where `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(limit)) >> 64) as u64
    }

    /// Puts `items` into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_draw_equal_numbers_and_purposes_differ() {
        let draw = |seed, purpose| Seed(seed).stream(purpose).next_u64();
        assert_eq!(draw(7, "phase"), draw(7, "phase"));
        assert_ne!(draw(7, "phase"), draw(7, "order"));
        assert_ne!(draw(7, "phase"), draw(8, "phase"));
    }

    #[test]
    fn a_stream_can_be_entered_after_any_number_of_draws() {
        let mut stream = Random::after(7, 0);
        for draws in 0..100 {
            assert_eq!(Random::after(7, draws).next_u64(), stream.next_u64());
        }
    }

    #[test]
    fn a_draw_stays_below_its_limit_and_reaches_all_of_it() {
        let mut random = Seed(1).stream("test");
        let mut seen = [false; 10];
        for _ in 0..1000 {
            seen[random.below(10) as usize] = true;
        }
        assert!(seen.iter().all(|&hit| hit));
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..50).collect();
        Seed(3).stream("order").shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
