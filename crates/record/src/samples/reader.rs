//! Reading the file, whatever became of it.

use std::io::{self, Read};

use super::{Block, Error, Header, MAGIC, checksum, frame};

/// How much is read at a time.
const CHUNK: usize = 1 << 16;
/// Up to a version's number.
const NAME: &str = "worstcase-samples ";
/// The first line: the magic, eight digits, a line feed.
const FIRST_LINE: usize = MAGIC.len() + 9;
/// A header is shorter; what is longer is damage.
const LONGEST_HEADER: usize = 1 << 22;

/// Reads blocks in the order in which they were written.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    header: Option<Header>,
    buffer: Vec<u8>,
    at: usize,
    ended: bool,
    damaged: u64,
}

impl<R: Read> Reader<R> {
    /// Reads the header. A damaged or cut-off one is none: the blocks are readable without it.
    pub fn new(from: R) -> Result<Self, Error> {
        let mut reader = Self { from, header: None, buffer: Vec::new(), at: 0, ended: false, damaged: 0 };
        reader.fill(FIRST_LINE)?;
        let sum = first_line(reader.left())?;
        reader.at += FIRST_LINE;
        reader.header = reader.read_header(sum)?;
        Ok(reader)
    }

    /// What the samples are of, if that could be read.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Bytes that were passed over so far: damage, or the rest of a block that was not written to its end.
    pub fn damaged_bytes(&self) -> u64 {
        self.damaged
    }

    /// The header, if the next line is one and has the checksum `sum`; else nothing is taken.
    fn read_header(&mut self, sum: Option<u32>) -> io::Result<Option<Header>> {
        let mut seen = 0;
        let length = loop {
            if let Some(place) = self.left().iter().skip(seen).position(|&byte| byte == b'\n') {
                break seen + place;
            }
            seen = self.left().len();
            if self.ended || seen > LONGEST_HEADER {
                return Ok(None);
            }
            self.fill(seen + 1)?;
        };
        let json = &self.left()[..length];
        if Some(checksum(json)) != sum {
            return Ok(None);
        }
        let header = crate::json::read(json).ok();
        self.at += length + 1;
        Ok(header)
    }

    fn next_block(&mut self) -> io::Result<Option<Block>> {
        loop {
            self.fill(frame::HEAD)?;
            if self.left().is_empty() {
                return Ok(None);
            }
            if let Some(length) = frame::length(self.left()) {
                self.fill(length)?;
                if let Some(block) = self.left().get(..length).and_then(frame::decode) {
                    self.at += length;
                    return Ok(Some(block));
                }
            }
            self.skip();
        }
    }

    /// Passes over at least a byte, to the next mark or to where one may begin.
    fn skip(&mut self) {
        let left = self.left();
        let mark = left.windows(frame::MARK.len()).skip(1).position(|window| window == frame::MARK);
        let unsure = if self.ended { 0 } else { frame::MARK.len() - 1 };
        let skipped = mark.map_or(left.len().saturating_sub(unsure), |place| place + 1).max(1);
        self.at += skipped;
        self.damaged += skipped as u64;
    }

    fn left(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// Reads until `wanted` bytes are there, or the file ends.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        while self.left().len() < wanted && !self.ended {
            self.buffer.drain(..self.at);
            self.at = 0;
            let old = self.buffer.len();
            self.buffer.resize(old + CHUNK, 0);
            let read = self.from.read(&mut self.buffer[old..]);
            self.buffer.truncate(old + read.as_ref().map_or(0, |&count| count));
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                read => self.ended = read? == 0,
            }
        }
        Ok(())
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = io::Result<Block>;

    /// The next whole block. After an error of the file there is none.
    fn next(&mut self) -> Option<Self::Item> {
        let block = self.next_block();
        if block.is_err() {
            self.at = self.buffer.len();
            self.ended = true;
        }
        block.transpose()
    }
}

/// The header's checksum, if its digits are whole.
fn first_line(bytes: &[u8]) -> Result<Option<u32>, Error> {
    let rest = bytes.strip_prefix(NAME.as_bytes()).ok_or(Error::NotSamples)?;
    let version = rest.split(|&byte| byte == b' ' || byte == b'\n').next().unwrap_or_default();
    if !bytes.starts_with(MAGIC.as_bytes()) {
        return Err(Error::Version(String::from_utf8_lossy(version).into_owned()));
    }
    let digits = bytes.get(MAGIC.len()..FIRST_LINE).ok_or(Error::NotSamples)?.strip_suffix(b"\n");
    let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    let sum = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    Ok(sum.filter(|sum| digits == Some(&format!("{sum:08x}"))))
}
