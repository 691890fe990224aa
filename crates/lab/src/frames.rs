//! How a guest's results travel over its second serial port: framed, with length and checksum.
//!
//! A frame is a kind (1 byte), the length of its content (8 bytes), the CRC-32 of kind, length and content (4 bytes),
//! all little-endian, and the content. What is long (output, files) is a stream: a frame that opens it, pieces of at
//! most 1 MiB, and a frame that closes it, with the reason where the rest is missing. So a guest sends files that do not
//! fit into its memory, and one that cannot be read costs no other. The last frame says how many went before it: what is
//! cut off anywhere is known to be cut off, and all that came before is there.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use flate2::Crc;

/// One thing that came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// How the command ended: its exit code, or 128 + the signal's number.
    Ended(u8),
    /// What it printed to standard output, or the next part of it.
    Output(Vec<u8>),
    /// What it printed to standard error, or the next part of it.
    Errors(Vec<u8>),
    /// A file that it left, by its path below its directory.
    File(PathBuf, Vec<u8>),
    /// What did not come back, or not to its end, by its path below the directory: why.
    LeftOut(PathBuf, String),
    /// What the guest's kernel made of its parameters: a list of `record::KernelParameter` as JSON.
    Parameters(Vec<u8>),
    /// The guest could not run the command: why.
    Failure(String),
}

/// Why bytes are not the frames of a guest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Nothing more came.
    #[error("the results end after {0} bytes, before their last frame")]
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
const PIECE: u8 = 7;
const CLOSED: u8 = 8;
const PARAMETERS: u8 = 9;
const LEFT_OUT: u8 = 10;

/// Bytes of a piece.
const LONGEST_PIECE: usize = 1 << 20;

/// What a stream is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream<'a> {
    /// Standard output.
    Output,
    /// Standard error.
    Errors,
    /// A file, by its path below the command's directory.
    File(&'a Path),
}

impl Stream<'_> {
    /// What it is called where something of it is missing.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Output => "standard output",
            Self::Errors => "standard error",
            Self::File(_) => "file",
        }
    }

    fn opening(&self) -> (u8, &[u8]) {
        match self {
            Self::Output => (OUTPUT, &[]),
            Self::Errors => (ERRORS, &[]),
            Self::File(path) => (FILE, path.as_os_str().as_bytes()),
        }
    }
}

/// Writes frames.
#[derive(Debug)]
pub(crate) struct Sender<W> {
    to: W,
    count: u64,
}

impl<W: Write> Sender<W> {
    /// To `to`, which buffers.
    pub fn new(to: W) -> Self {
        Self { to, count: 0 }
    }

    /// How the command ended.
    pub fn ended(&mut self, code: u8) -> io::Result<()> {
        self.put(ENDED, &[&[code]])
    }

    /// Why the command could not be run.
    pub fn failure(&mut self, words: &str) -> io::Result<()> {
        self.put(FAILURE, &[words.as_bytes()])
    }

    /// What the kernel made of its parameters.
    pub fn parameters(&mut self, json: &[u8]) -> io::Result<()> {
        self.put(PARAMETERS, &[json])
    }

    /// What is not sent, and why.
    pub fn left_out(&mut self, path: &Path, why: &str) -> io::Result<()> {
        let path = path.as_os_str().as_bytes();
        self.put(LEFT_OUT, &[&(path.len() as u32).to_le_bytes(), path, why.as_bytes()])
    }

    /// At most `limit` bytes of `content`, a piece at a time. How many were sent. That `content` cannot be read, or has
    /// more, is said to the other side and no error.
    pub fn stream(&mut self, what: Stream<'_>, content: &mut dyn Read, limit: u64) -> io::Result<u64> {
        let (kind, path) = what.opening();
        self.put(kind, &[path])?;
        let (mut sent, mut piece) = (0, vec![0; LONGEST_PIECE]);
        let why = loop {
            let room = usize::try_from(limit - sent).unwrap_or(usize::MAX).min(LONGEST_PIECE);
            match content.read(&mut piece[..room.max(1)]) {
                Ok(0) => break String::new(),
                Ok(_) if room == 0 => break format!("more than {limit} bytes"),
                Ok(read) => {
                    self.put(PIECE, &[&piece[..read]])?;
                    sent += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break format!("read: {error}"),
            }
        };
        self.put(CLOSED, &[why.as_bytes()])?;
        Ok(sent)
    }

    /// Lets all that was written leave the buffer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// The last frame.
    pub fn finish(mut self) -> io::Result<()> {
        let count = self.count;
        self.put(LAST, &[&count.to_le_bytes()])?;
        self.to.flush()
    }

    fn put(&mut self, kind: u8, content: &[&[u8]]) -> io::Result<()> {
        let length: usize = content.iter().map(|part| part.len()).sum();
        let length = (length as u64).to_le_bytes();
        self.to.write_all(&[kind])?;
        self.to.write_all(&length)?;
        self.to.write_all(&checksum(kind, length, content).to_le_bytes())?;
        self.count += 1;
        content.iter().try_for_each(|part| self.to.write_all(part))
    }
}

/// Writes frames that are in memory, and the last one that counts them.
///
/// # Errors
/// Of `to`.
pub fn write(to: &mut impl Write, frames: &[Frame]) -> io::Result<()> {
    let mut sender = Sender::new(to);
    for frame in frames {
        let mut stream = |what, bytes: &[u8]| sender.stream(what, &mut &*bytes, u64::MAX).map(drop);
        match frame {
            Frame::Output(bytes) => stream(Stream::Output, bytes)?,
            Frame::Errors(bytes) => stream(Stream::Errors, bytes)?,
            Frame::File(path, bytes) => stream(Stream::File(path), bytes)?,
            Frame::Ended(code) => sender.ended(*code)?,
            Frame::LeftOut(path, why) => sender.left_out(path, why)?,
            Frame::Parameters(json) => sender.parameters(json)?,
            Frame::Failure(words) => sender.failure(words)?,
        }
    }
    sender.finish()
}

fn checksum(kind: u8, length: [u8; 8], content: &[&[u8]]) -> u32 {
    let mut crc = Crc::new();
    crc.update(&[kind]);
    crc.update(&length);
    content.iter().for_each(|part| crc.update(part));
    crc.sum()
}

/// A stream that is open.
struct Open {
    kind: u8,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Open {
    /// What came of it, and what is missing.
    fn closed(self, why: &str) -> Vec<Frame> {
        let (name, frame) = match self.kind {
            OUTPUT => (Stream::Output.name().into(), Frame::Output(self.bytes)),
            ERRORS => (Stream::Errors.name().into(), Frame::Errors(self.bytes)),
            _ => (self.path.clone(), Frame::File(self.path, self.bytes)),
        };
        let came = match &frame {
            Frame::Output(bytes) | Frame::Errors(bytes) | Frame::File(_, bytes) => bytes.len(),
            _ => 0,
        };
        let missing = (!why.is_empty())
            .then(|| Frame::LeftOut(name, format!("only its first {came} bytes came back: {why}")));
        std::iter::once(frame).chain(missing).collect()
    }
}

/// Reads what a [`Sender`] wrote: all that came, and why that is not all of it. Bytes after the last frame are not looked
/// at.
pub fn read(bytes: &[u8]) -> (Vec<Frame>, Result<(), FrameError>) {
    let (mut frames, mut open) = (Vec::new(), None);
    let whole = read_into(&mut frames, &mut open, bytes);
    if let Some(open) = open {
        frames.extend(Open::closed(open, "the guest ended"));
    }
    (frames, whole)
}

fn read_into(frames: &mut Vec<Frame>, open: &mut Option<Open>, bytes: &[u8]) -> Result<(), FrameError> {
    let (mut place, mut count) = (0, 0_u64);
    loop {
        let (kind, content, next) = take(bytes, place)?;
        let unknown = FrameError::Unknown(place);
        match (kind, content, &mut *open) {
            (LAST, counted, None) if counted == count.to_le_bytes() => return Ok(()),
            (ENDED, &[code], None) => frames.push(Frame::Ended(code)),
            (FAILURE, words, None) => {
                frames.push(Frame::Failure(String::from_utf8_lossy(words).into_owned()));
            }
            (PARAMETERS, json, None) => frames.push(Frame::Parameters(json.to_vec())),
            (LEFT_OUT, content, None) => frames.push(left_out(content).ok_or(unknown)?),
            (OUTPUT | ERRORS | FILE, path, None) => {
                let path = PathBuf::from(OsString::from_vec(path.to_vec()));
                *open = Some(Open { kind, path, bytes: Vec::new() });
            }
            (PIECE, piece, Some(open)) => open.bytes.extend_from_slice(piece),
            (CLOSED, why, stream) => {
                let stream = stream.take().ok_or(unknown)?;
                frames.extend(stream.closed(&String::from_utf8_lossy(why)));
            }
            _ => return Err(unknown),
        }
        (place, count) = (next, count + 1);
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

fn left_out(content: &[u8]) -> Option<Frame> {
    let (length, rest) = content.split_first_chunk::<4>()?;
    let (path, why) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let path = PathBuf::from(OsString::from_vec(path.to_vec()));
    Some(Frame::LeftOut(path, String::from_utf8_lossy(why).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame() -> impl Strategy<Value = Frame> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..100);
        let path = || bytes().prop_map(|path| PathBuf::from(OsString::from_vec(path)));
        prop_oneof![
            any::<u8>().prop_map(Frame::Ended),
            bytes().prop_map(Frame::Output),
            bytes().prop_map(Frame::Errors),
            (path(), bytes()).prop_map(|(path, bytes)| Frame::File(path, bytes)),
            (path(), ".{0,20}").prop_map(|(path, why)| Frame::LeftOut(path, why)),
            bytes().prop_map(Frame::Parameters),
            ".{0,20}".prop_map(Frame::Failure),
        ]
    }

    fn written(frames: &[Frame]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, frames).unwrap();
        bytes
    }

    /// Fails after a few bytes.
    struct Broken(usize);

    impl Read for Broken {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let count = self.0.min(to.len());
            self.0 -= count;
            if count == 0 { Err(io::Error::from_raw_os_error(5)) } else { Ok(count) }
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_or_is_too_long_costs_no_other() {
        let mut bytes = Vec::new();
        let mut sender = Sender::new(&mut bytes);
        assert_eq!(sender.stream(Stream::File(Path::new("bad")), &mut Broken(3), 100).unwrap(), 3);
        assert_eq!(sender.stream(Stream::File(Path::new("long")), &mut io::repeat(7), 5).unwrap(), 5);
        assert_eq!(sender.stream(Stream::File(Path::new("fits")), &mut &b"12345"[..], 5).unwrap(), 5);
        sender.finish().unwrap();
        let (frames, whole) = read(&bytes);
        assert_eq!(whole, Ok(()));
        let left_out = |frame: &Frame| match frame {
            Frame::LeftOut(path, why) => Some(format!("{}: {why}", path.display())),
            _ => None,
        };
        let left_out: Vec<String> = frames.iter().filter_map(left_out).collect();
        assert!(left_out[0].starts_with("bad: only its first 3 bytes came back: read: Input/output error"));
        assert_eq!(left_out[1..], ["long: only its first 5 bytes came back: more than 5 bytes"]);
        assert_eq!(frames.last(), Some(&Frame::File("fits".into(), b"12345".to_vec())));
    }

    #[test]
    fn what_came_before_the_end_of_a_guest_is_there() {
        let all = [Frame::Output(b"words".to_vec()), Frame::File("a".into(), b"1234567890".to_vec())];
        let bytes = written(&all);
        let last = HEAD + 8;
        let (frames, whole) = read(&bytes[..bytes.len() - last]);
        assert_eq!((frames, whole.is_err()), (all.to_vec(), true));
        let (frames, _) = read(&bytes[..bytes.len() - last - HEAD]);
        assert_eq!(frames[..2], all);
        assert_eq!(
            frames[2],
            Frame::LeftOut("a".into(), "only its first 10 bytes came back: the guest ended".into())
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(frames in proptest::collection::vec(frame(), 0..6)) {
            prop_assert_eq!(read(&written(&frames)), (frames, Ok(())));
        }

        #[test]
        fn what_is_cut_off_or_damaged_is_refused(frames in proptest::collection::vec(frame(), 0..4), place: prop::sample::Index, bit in 0..8_u8) {
            let bytes = written(&frames);
            let place = place.index(bytes.len());
            prop_assert!(read(&bytes[..place]).1.is_err());
            let mut damaged = bytes.clone();
            damaged[place] ^= 1_u8 << bit;
            prop_assert!(read(&damaged).1.is_err());
        }

        #[test]
        fn any_bytes_are_answered_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
