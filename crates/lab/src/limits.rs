//! What a guest may be asked for. Options of commands say so where a person types them; what stands in an experiment's file
//! passed by no option.

use std::ops::RangeInclusive;

use units::{Bytes, Nanos};

use crate::Error;

/// CPUs of a guest.
pub const PROCESSORS: RangeInclusive<u32> = 1..=64;

/// No guest has more memory, and none a larger disk: making its file system fills memory with what describes it.
const LARGEST: Bytes = Bytes::from_mebibytes(1 << 20);

/// Refuses a guest that no emulator has room for.
///
/// # Errors
/// What is too much, and what there may be.
pub fn check_size(processors: u32, memory: Bytes, disk: Option<Bytes>) -> Result<(), Error> {
    if !PROCESSORS.contains(&processors) {
        return Err(Error::new(format!("a guest cannot have {processors} CPUs")).hint(format!(
            "ask for {} to {}",
            PROCESSORS.start(),
            PROCESSORS.end()
        )));
    }
    let too_large = |what: &str, size: Bytes| {
        Error::new(format!("a guest cannot have {what} of {size}")).hint(format!("ask for {LARGEST} at most"))
    };
    if memory == Bytes(0) || memory > LARGEST {
        return Err(too_large("a memory", memory));
    }
    match disk.filter(|disk| *disk > LARGEST) {
        Some(disk) => Err(too_large("a disk", disk)),
        None => Ok(()),
    }
}

/// Refuses to measure, or to warm up, for longer than a measurement can be.
///
/// # Errors
/// What is too long, and what is not.
pub fn check_length(duration: Nanos, warm_up: Nanos) -> Result<(), Error> {
    let longest = record::LONGEST_SCENARIO;
    match [duration, warm_up].into_iter().find(|length| *length > longest) {
        Some(length) => Err(Error::new(format!("nothing is measured for {length}"))
            .hint(format!("measure for {longest} at most"))),
        None => Ok(()),
    }
}

/// An emulated CPU as QEMU's `-cpu` takes it: `qemu64`, `max,-rdrand`.
///
/// # Errors
/// Where `text` cannot be one.
pub fn cpu_model(text: &str) -> Result<String, Error> {
    const LONGEST: usize = 200;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.,+=".contains(c);
    if (1..=LONGEST).contains(&text.len()) && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err(Error::new(format!("`{text}` is no CPU model")).hint("qemu-system-x86_64 -cpu help lists them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_model_is_one_word_that_emulators_take() {
        assert_eq!(cpu_model("max,-rdrand,vendor=GenuineIntel").unwrap(), "max,-rdrand,vendor=GenuineIntel");
        for text in ["", "qemu64 -drive x", "qemu64\n", &"x".repeat(201)] {
            assert!(cpu_model(text).is_err(), "{text}");
        }
    }

    #[test]
    fn guests_that_no_machine_has_room_for_are_refused() {
        let memory = Bytes::from_mebibytes(512);
        assert!(check_size(64, memory, Some(memory)).is_ok());
        for (processors, memory, disk) in [
            (0, memory, None),
            (u32::MAX, memory, None),
            (1, Bytes(0), None),
            (1, Bytes(u64::MAX), None),
            (1, memory, Some(Bytes(u64::MAX))),
        ] {
            assert!(check_size(processors, memory, disk).is_err(), "{processors} {memory} {disk:?}");
        }
    }

    #[test]
    fn nothing_is_measured_for_centuries() {
        assert!(check_length(record::LONGEST_SCENARIO, Nanos::ZERO).is_ok());
        assert!(
            check_length(Nanos::MAX, Nanos::ZERO).is_err() && check_length(Nanos(1), Nanos::MAX).is_err()
        );
    }
}
