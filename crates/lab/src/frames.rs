//! How a guest's results travel over its second serial port: framed, with length and checksum.
//!
//! A frame is a kind (1 byte), the length of its content (8 bytes), the CRC-32 of kind, length and content (4 bytes),
//! all little-endian, and the content. A file's content is the length of its path (4 bytes), its path and its bytes.
//! The last frame says how many went before it: what is cut off anywhere is known to be cut off.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use flate2::Crc;

/// One thing that came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// How the command ended: its exit code, or 128 + the signal's number.
    Ended(u8),
    /// What it printed to standard output.
    Output(Vec<u8>),
    /// What it printed to standard error.
    Errors(Vec<u8>),
    /// A file that it left, by its path below its directory.
    File(PathBuf, Vec<u8>),
    /// The guest could not run the command: why.
    Failure(String),
}

/// Why bytes are not the frames of a guest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Nothing more came.
    #[error("the results end after {0} bytes, before their end was told")]
    Short(usize),
    /// The checksum is of other bytes.
    #[error("the results are damaged at byte {0}")]
    Damaged(usize),
    /// The checksum is right and the content is not.
    #[error("the results hold something unknown at byte {0}")]
    Unknown(usize),
}

const HEAD: usize = 13;
const ENDED: u8 = 1;
const OUTPUT: u8 = 2;
const ERRORS: u8 = 3;
const FILE: u8 = 4;
const FAILURE: u8 = 5;
const LAST: u8 = 6;

/// Writes frames, and the last one that counts them.
pub fn write(to: &mut impl Write, frames: &[Frame]) -> io::Result<()> {
    for frame in frames {
        match frame {
            Frame::Ended(code) => put(to, ENDED, &[&[*code]])?,
            Frame::Output(bytes) => put(to, OUTPUT, &[bytes])?,
            Frame::Errors(bytes) => put(to, ERRORS, &[bytes])?,
            Frame::Failure(words) => put(to, FAILURE, &[words.as_bytes()])?,
            Frame::File(path, bytes) => {
                let path = path.as_os_str().as_bytes();
                put(to, FILE, &[&(path.len() as u32).to_le_bytes(), path, bytes])?;
            }
        }
    }
    put(to, LAST, &[&(frames.len() as u64).to_le_bytes()])?;
    to.flush()
}

fn put(to: &mut impl Write, kind: u8, content: &[&[u8]]) -> io::Result<()> {
    let length: usize = content.iter().map(|part| part.len()).sum();
    let length = (length as u64).to_le_bytes();
    to.write_all(&[kind])?;
    to.write_all(&length)?;
    to.write_all(&checksum(kind, length, content).to_le_bytes())?;
    content.iter().try_for_each(|part| to.write_all(part))
}

fn checksum(kind: u8, length: [u8; 8], content: &[&[u8]]) -> u32 {
    let mut crc = Crc::new();
    crc.update(&[kind]);
    crc.update(&length);
    content.iter().for_each(|part| crc.update(part));
    crc.sum()
}

/// Reads what [`write`] wrote. Bytes after the last frame are not looked at.
pub fn read(bytes: &[u8]) -> Result<Vec<Frame>, FrameError> {
    let mut frames = Vec::new();
    let mut place = 0;
    loop {
        let (kind, content, next) = take(bytes, place)?;
        let unknown = FrameError::Unknown(place);
        let frame = match (kind, content) {
            (LAST, count) if count == (frames.len() as u64).to_le_bytes() => return Ok(frames),
            (ENDED, &[code]) => Frame::Ended(code),
            (OUTPUT, bytes) => Frame::Output(bytes.to_vec()),
            (ERRORS, bytes) => Frame::Errors(bytes.to_vec()),
            (FAILURE, words) => Frame::Failure(String::from_utf8_lossy(words).into_owned()),
            (FILE, content) => file(content).ok_or(unknown)?,
            _ => return Err(unknown),
        };
        frames.push(frame);
        place = next;
    }
}

/// The frame at `place`: its kind, its content, and where the next one begins.
fn take(bytes: &[u8], place: usize) -> Result<(u8, &[u8], usize), FrameError> {
    let short = FrameError::Short(bytes.len());
    let rest = bytes.get(place..).ok_or(short.clone())?;
    let (head, rest) = rest.split_first_chunk::<HEAD>().ok_or(short.clone())?;
    let [kind, l0, l1, l2, l3, l4, l5, l6, l7, c0, c1, c2, c3] = *head;
    let length = [l0, l1, l2, l3, l4, l5, l6, l7];
    let size = usize::try_from(u64::from_le_bytes(length)).map_err(|_| FrameError::Damaged(place))?;
    let content = rest.get(..size).ok_or(short)?;
    if checksum(kind, length, &[content]) != u32::from_le_bytes([c0, c1, c2, c3]) {
        return Err(FrameError::Damaged(place));
    }
    Ok((kind, content, place + HEAD + size))
}

fn file(content: &[u8]) -> Option<Frame> {
    let (length, rest) = content.split_first_chunk::<4>()?;
    let (path, bytes) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some(Frame::File(PathBuf::from(OsString::from_vec(path.to_vec())), bytes.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame() -> impl Strategy<Value = Frame> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..100);
        prop_oneof![
            any::<u8>().prop_map(Frame::Ended),
            bytes().prop_map(Frame::Output),
            bytes().prop_map(Frame::Errors),
            (bytes(), bytes())
                .prop_map(|(path, bytes)| Frame::File(PathBuf::from(OsString::from_vec(path)), bytes)),
            ".{0,20}".prop_map(Frame::Failure),
        ]
    }

    fn written(frames: &[Frame]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, frames).unwrap();
        bytes
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(frames in proptest::collection::vec(frame(), 0..6)) {
            prop_assert_eq!(read(&written(&frames)), Ok(frames));
        }

        #[test]
        fn what_is_cut_off_or_damaged_is_refused(frames in proptest::collection::vec(frame(), 0..4), place: prop::sample::Index, bit in 0..8_u8) {
            let bytes = written(&frames);
            let place = place.index(bytes.len());
            prop_assert!(read(&bytes[..place]).is_err());
            let mut damaged = bytes.clone();
            damaged[place] ^= 1_u8 << bit;
            prop_assert!(read(&damaged).is_err());
        }

        #[test]
        fn any_bytes_are_answered_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
