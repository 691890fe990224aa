//! The clocks by their names.

use record::ClockName;
use sys::clock::Clock;

/// The clock that a plan names.
pub fn clock_of(name: ClockName) -> Clock {
    match name {
        ClockName::Monotonic => Clock::Monotonic,
        ClockName::Realtime => Clock::Realtime,
        ClockName::Tai => Clock::Tai,
    }
}
