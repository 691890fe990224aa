//! A frame that is answered, byte for byte. Numbers are big-endian.
//!
//! | offset | bytes | what |
//! | --- | --- | --- |
//! | 0 | 4 | `WCre` |
//! | 4 | 1 | 1: to be answered, 2: an answer |
//! | 5 | 3 | zero |
//! | 8 | 8 | the run that it belongs to |
//! | 16 | 4 | the thread of that run |
//! | 20 | 4 | zero |
//! | 24 | 8 | its number |
//! | 32 | 8 | in an answer: how long the peer had it, in nanoseconds; all ones where that is not known |
//!
//! What follows is zero. A peer that returns frames as they are answers too: it does not say how long it had them.

/// The least bytes of a frame.
pub const SHORTEST: usize = 40;

/// The number of a frame by which a peer is looked for before a run.
pub const GREETING: u64 = u64::MAX;

const MAGIC: [u8; 4] = *b"WCre";
const UNKNOWN: u64 = u64::MAX;

/// Whether a frame asks or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To be answered.
    Request,
    /// An answer.
    Answer,
}

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Whether it asks or answers.
    pub kind: Kind,
    /// The run that it belongs to.
    pub run: u64,
    /// The thread of that run.
    pub thread: u32,
    /// Its number among the thread's frames, from 0.
    pub number: u64,
    /// How long the peer had it, in nanoseconds.
    pub residence: Option<u64>,
}

impl Frame {
    /// What `bytes` say; none where they are no frame.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let long = |place: usize| Some(u64::from_be_bytes(bytes.get(place..place + 8)?.try_into().ok()?));
        let kind = match bytes.get(4)? {
            _ if bytes.get(..4)? != MAGIC => return None,
            1 => Kind::Request,
            2 => Kind::Answer,
            _ => return None,
        };
        Some(Self {
            kind,
            run: long(8)?,
            thread: u32::from_be_bytes(bytes.get(16..20)?.try_into().ok()?),
            number: long(24)?,
            residence: long(32).filter(|&nanos| kind == Kind::Answer && nanos != UNKNOWN),
        })
        .filter(|_| bytes.len() >= SHORTEST)
    }

    /// Writes it to the beginning of `bytes`, which hold [`SHORTEST`] or more; what follows stays.
    pub fn write(&self, bytes: &mut [u8]) {
        let Some(bytes) = bytes.first_chunk_mut::<SHORTEST>() else { return };
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&[if self.kind == Kind::Request { 1 } else { 2 }, 0, 0, 0]);
        bytes[8..16].copy_from_slice(&self.run.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.thread.to_be_bytes());
        bytes[20..24].copy_from_slice(&[0; 4]);
        bytes[24..32].copy_from_slice(&self.number.to_be_bytes());
        bytes[32..40].copy_from_slice(&self.residence.unwrap_or(UNKNOWN).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_is_these_bytes() {
        let frame = Frame { kind: Kind::Request, run: 0x0102, thread: 3, number: 4, residence: None };
        let mut bytes = [0; SHORTEST];
        frame.write(&mut bytes);
        let expected = [
            [b'W', b'C', b'r', b'e', 1, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 1, 2],
            [0, 0, 0, 3, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 4],
            [0xff; 8],
        ];
        assert_eq!(bytes, *expected.concat());
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            run: u64, thread: u32, number: u64, residence in proptest::option::of(0..u64::MAX), longer in 0..9_usize
        ) {
            let frame = Frame { kind: Kind::Answer, run, thread, number, residence };
            let mut bytes = vec![0; SHORTEST + longer];
            frame.write(&mut bytes);
            prop_assert_eq!(Frame::read(&bytes), Some(frame));
            prop_assert_eq!(Frame::read(&bytes[..SHORTEST - 1]), None);
        }

        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let read = Frame::read(&bytes);
            prop_assert!(read.is_none() || bytes.starts_with(&MAGIC));
        }
    }
}
