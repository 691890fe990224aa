//! Other tools' formats, written from our figures, so that what people already have can read them.
//!
//! Pure functions from figures to text: no clock, no file. Each format says what it cannot say: none of them knows
//! missed activations apart from [`latmus`]' overruns, and rows of 1 us end at 10 ms, where our cells are no longer
//! exact to the microsecond; what lies beyond is counted as the format counts overflows.
//!
//! ```
//! use formats::cyclictest::{Thread, line};
//! use units::Nanos;
//!
//! let mut thread = Thread { tid: 4711, priority: 98, interval: Nanos::from_millis(1), ..Thread::default() };
//! thread.count = 1000;
//! (thread.min, thread.act) = (Nanos(2_500), Nanos(4_100));
//! (thread.avg, thread.max) = (Nanos(3_300), Nanos(17_999));
//! assert_eq!(line(&thread), "T: 0 ( 4711) P:98 I:1000 C:   1000 Min:      2 Act:    4 Avg:    3 Max:      17");
//! ```

use record::{Lab, LabTime};

pub mod cyclictest;
pub mod latmus;
pub mod osadl;
pub mod perfetto;
mod rows;
pub mod trace_dat;
mod trace_events;

#[cfg(test)]
#[path = "../../../xtask/src/mend/in_tests.rs"]
mod mend;

pub use rows::MOST_ROWS;

/// A comment for the head of a file that was measured in a guest of the lab: none of these formats has a word for what
/// its figures are.
pub fn guest_note(lab: &Lab) -> String {
    let counts = match lab.time {
        LabTime::Instructions => "a microsecond stands for 1000 instructions",
        LabTime::Wall => "the time is the emulator's host's, latencies mean nothing",
    };
    format!("# guest of the lab ({}): {counts}\n", lab.emulator)
}
