//! In which state a thread gives way.

use std::fmt;
use std::str::FromStr;

/// Letters of states, from the lowest bit on (include/trace/events/sched.h).
const LETTERS: [&str; 8] = ["S", "D", "T", "t", "X", "Z", "P", "I"];

/// The state of a thread that gives way, as `sched_switch` counts and prints it since Linux 4.14: `S` asleep, `D` not interruptible, `R+`
/// preempted, ...
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadState(u16);

impl ThreadState {
    /// The bit of a thread that was preempted.
    pub const PREEMPTED: u16 = 1 << LETTERS.len();

    /// Of `prev_state`; bits that have no letter are left out.
    pub const fn of_bits(bits: u64) -> Self {
        Self((bits & (2 * Self::PREEMPTED as u64 - 1)) as u16)
    }

    /// Whether it waits for a waking: one that was preempted on its way to sleep does not yet.
    pub const fn is_asleep(self) -> bool {
        self.0 & Self::PREEMPTED == 0 && self.0 != 0
    }

    /// As `prev_state` has them.
    pub const fn bits(self) -> u16 {
        self.0
    }
}

impl fmt::Display for ThreadState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = LETTERS.iter().enumerate().filter(|(bit, _)| self.0 >> bit & 1 != 0);
        let letters: Vec<&str> = set.map(|(_, letter)| *letter).collect();
        let letters = if letters.is_empty() { "R".to_owned() } else { letters.join("|") };
        write!(formatter, "{letters}{}", if self.0 & Self::PREEMPTED != 0 { "+" } else { "" })
    }
}

/// It is no state in letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no state of a thread")]
pub struct NoState;

impl FromStr for ThreadState {
    type Err = NoState;

    fn from_str(text: &str) -> Result<Self, NoState> {
        let (letters, preempted) = text.strip_suffix('+').map_or((text, 0), |rest| (rest, Self::PREEMPTED));
        let mut bits = preempted;
        for letter in letters.split('|').filter(|letter| *letter != "R") {
            bits |= 1 << LETTERS.iter().position(|known| *known == letter).ok_or(NoState)?;
        }
        Ok(Self(bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_they_are_printed() {
        for bits in 0..2 * u64::from(ThreadState::PREEMPTED) {
            let state = ThreadState::of_bits(bits);
            assert_eq!(state.to_string().parse(), Ok(state));
            assert_eq!(u64::from(state.bits()), bits);
        }
        assert_eq!(ThreadState::of_bits(0x400).to_string(), "R");
        assert_eq!(ThreadState::of_bits(0x102).to_string(), "D+");
        assert_eq!(
            [0, 1, 0x100, 0x102].map(|bits| ThreadState::of_bits(bits).is_asleep()),
            [false, true, false, false]
        );
        assert_eq!("x".parse::<ThreadState>(), Err(NoState));
    }
}
