//! What a latency counts, and how it is written: microseconds of a machine, instructions of a guest of the lab.

use units::Nanos;

use crate::{Lab, LabTime, Machine};

/// What a nanosecond of the machine's clock is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Time, printed in microseconds.
    #[default]
    Microseconds,
    /// An instruction: [`LabTime::Instructions`].
    Instructions,
}

impl Machine {
    /// What its latencies count.
    pub fn unit(&self) -> Unit {
        self.lab.as_ref().map(Lab::unit).unwrap_or_default()
    }
}

impl Lab {
    /// What a guest's latencies count.
    pub fn unit(&self) -> Unit {
        self.time.unit()
    }
}

impl LabTime {
    /// What latencies count in a guest whose clock counts this.
    pub fn unit(self) -> Unit {
        match self {
            Self::Instructions => Unit::Instructions,
            Self::Wall => Unit::Microseconds,
        }
    }
}

impl Unit {
    /// What stands in the head of a table: `us`, `instructions`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Microseconds => "us",
            Self::Instructions => "instructions",
        }
    }

    /// A latency without its unit. Microseconds have one decimal below 10 ms, where cells are that fine, and none
    /// above; instructions are whole, thousands parted: they are the same in every run, digit for digit.
    pub fn figure(self, latency: Nanos) -> String {
        match self {
            Self::Microseconds if latency.0 < 10_000_000 => {
                let tenths = (latency.0 + 50) / 100;
                format!("{}.{}", tenths / 10, tenths % 10)
            }
            Self::Microseconds => (latency.0 / 1_000 + u64::from(latency.0 % 1_000 >= 500)).to_string(),
            Self::Instructions => grouped(latency.0),
        }
    }

    /// A latency with its unit: `12.3 us`, `3,120 instructions`.
    pub fn with_name(self, latency: Nanos) -> String {
        format!("{} {}", self.figure(latency), self.name())
    }

    /// A limit as it was typed, or the instructions that it stands for: `100us`, `100,000 instructions`.
    pub fn limit(self, limit: Nanos) -> String {
        match self {
            Self::Microseconds => limit.to_string(),
            Self::Instructions => self.with_name(limit),
        }
    }
}

/// Digits with a comma before every three.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_carry_the_digits_that_cells_have() {
        let micros = |nanos| Unit::Microseconds.figure(Nanos(nanos));
        assert_eq!(micros(1_249), "1.2");
        assert_eq!(micros(1_250), "1.3");
        assert_eq!(micros(9_999_949), "9999.9");
        assert_eq!(micros(1_003_217_499), "1003217");
    }

    #[test]
    fn instructions_are_whole_and_parted_by_thousands() {
        let instructions = |count| Unit::Instructions.figure(Nanos(count));
        assert_eq!(instructions(0), "0");
        assert_eq!(instructions(999), "999");
        assert_eq!(instructions(3_120), "3,120");
        assert_eq!(instructions(233_289), "233,289");
        assert_eq!(instructions(12_345_678), "12,345,678");
        assert_eq!(Unit::Instructions.limit(Nanos::from_micros(100)), "100,000 instructions");
        assert_eq!(Unit::Microseconds.limit(Nanos::from_micros(100)), "100us");
    }
}
