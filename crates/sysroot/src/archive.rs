//! A tree as a compressed tar archive (POSIX.1-1988 ustar, with GNU's and pax's long names when read).
//!
//! An archive is read into memory and nothing is unpacked, so that it cannot reach any file of the machine at hand.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use record::Fact;

use super::text::ListError;
use super::{Tree, key};

/// The first member: what files cannot say.
const LIST: &str = "snapshot.txt";

/// What tar writes in units of.
const BLOCK: usize = 512;

/// More is not read: a snapshot has a few MiB.
const LONGEST: u64 = 64 << 20;

/// Why bytes are not a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Not compressed, or cut.
    #[error("it cannot be decompressed: {0}")]
    Compression(std::io::Error),
    /// A bomb, or something else than a snapshot.
    #[error("it holds more than 64 MiB")]
    TooLarge,
    /// Not the blocks of a tar archive.
    #[error("it is not a tar archive, or is cut off, at byte {0}")]
    Malformed(usize),
    /// A member that would leave the archive's directory.
    #[error("its member `{0}` reaches out of the archive")]
    Escapes(String),
    /// The list of what files cannot say.
    #[error(transparent)]
    List(#[from] ListError),
}

impl Tree {
    /// The tree as an archive.
    ///
    /// # Errors
    /// None that memory does not make.
    pub fn archive(&self) -> std::io::Result<Vec<u8>> {
        let mut archive = GzEncoder::new(Vec::new(), Compression::default());
        member(&mut archive, LIST, self.list().as_bytes())?;
        for (path, bytes) in self.contents() {
            member(&mut archive, path.trim_start_matches('/'), bytes)?;
        }
        archive.write_all(&[0; 2 * BLOCK])?;
        archive.finish()
    }

    /// Reads an archive, compressed or not, one of ours or one that somebody made of a directory.
    ///
    /// # Errors
    /// [`ArchiveError`] for what is not a tar archive with its end, is too large, or reaches out of itself.
    pub fn of_archive(bytes: &[u8]) -> Result<Self, ArchiveError> {
        read(bytes)
    }
}

/// Whether bytes begin with a header of a tar archive.
pub(super) fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(MAGIC).is_some_and(|magic| magic.starts_with(b"ustar"))
}

fn member(archive: &mut impl Write, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    if name.len() > NAME.len() {
        let long = [name.as_bytes(), b"\0"].concat();
        archive.write_all(&header("././@LongLink", long.len(), b'L'))?;
        padded(archive, &long)?;
    }
    archive.write_all(&header(name, bytes.len(), b'0'))?;
    padded(archive, bytes)
}

fn padded(archive: &mut impl Write, bytes: &[u8]) -> std::io::Result<()> {
    archive.write_all(bytes)?;
    archive.write_all(&[0; BLOCK][..bytes.len().next_multiple_of(BLOCK) - bytes.len()])
}

const NAME: std::ops::Range<usize> = 0..100;
const SIZE: std::ops::Range<usize> = 124..136;
const CHECKSUM: std::ops::Range<usize> = 148..156;
const KIND: usize = 156;
const TARGET: std::ops::Range<usize> = 157..257;
const MAGIC: std::ops::Range<usize> = 257..265;
const PREFIX: std::ops::Range<usize> = 345..500;

/// A header without owner and time: a snapshot says nothing of who made it and when.
fn header(name: &str, size: usize, kind: u8) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |start: usize, bytes: &[u8]| header[start..start + bytes.len()].copy_from_slice(bytes);
    let name = &name.as_bytes()[..name.len().min(NAME.len())];
    put(NAME.start, name);
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(SIZE.start, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(KIND, &[kind]);
    put(MAGIC.start, b"ustar\x0000");
    let sum = checksum(&header);
    header[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// The sum of a header's bytes with blanks for the sum itself.
fn checksum(header: &[u8; BLOCK]) -> u32 {
    let byte = |(index, byte): (usize, &u8)| u32::from(if CHECKSUM.contains(&index) { b' ' } else { *byte });
    header.iter().enumerate().map(byte).sum()
}

fn read(bytes: &[u8]) -> Result<Tree, ArchiveError> {
    let mut plain = Vec::new();
    match is_tar(bytes) {
        true => plain.extend_from_slice(bytes),
        false => drop(
            GzDecoder::new(bytes)
                .take(LONGEST + 1)
                .read_to_end(&mut plain)
                .map_err(ArchiveError::Compression)?,
        ),
    }
    if plain.len() as u64 > LONGEST {
        return Err(ArchiveError::TooLarge);
    }
    let mut members = Members { bytes: &plain, at: 0, long_name: None, long_target: None };
    let mut files = Tree::default();
    let mut list = None;
    while let Some(member) = members.next_member()? {
        match member.kind {
            b'0' | b'\0' | b'7' if member.name.trim_start_matches("./") == LIST => {
                list = Some(Tree::of_text(&String::from_utf8_lossy(member.content))?);
            }
            b'0' | b'\0' | b'7' => {
                files.files.insert(member.path()?, Fact::Value(member.content.to_vec()));
            }
            b'2' => {
                files.links.insert(member.path()?, Fact::Value(member.target.clone()));
            }
            b'5' => {
                files.present.insert(member.path()?, Fact::Value(()));
            }
            // Devices, pipes and hard links: nothing that a machine's facts are read from.
            _ => {}
        }
    }
    let mut tree = list.unwrap_or_default();
    tree.files.append(&mut files.files);
    tree.links.append(&mut files.links);
    tree.present.append(&mut files.present);
    Ok(tree)
}

struct Member<'a> {
    name: String,
    target: String,
    kind: u8,
    content: &'a [u8],
}

impl Member<'_> {
    fn path(&self) -> Result<String, ArchiveError> {
        if self.name.split('/').any(|part| part == "..") {
            Err(ArchiveError::Escapes(self.name.chars().take(120).collect()))
        } else {
            Ok(key(&self.name))
        }
    }
}

/// The members that are left.
struct Members<'a> {
    bytes: &'a [u8],
    at: usize,
    long_name: Option<String>,
    long_target: Option<String>,
}

impl<'a> Members<'a> {
    /// The next member that is not only the name of another.
    fn next_member(&mut self) -> Result<Option<Member<'a>>, ArchiveError> {
        loop {
            let Some(header) = self.header()? else { return Ok(None) };
            let content = self.content(header)?;
            match header[KIND] {
                b'L' => self.long_name = Some(text(content)),
                b'K' => self.long_target = Some(text(content)),
                b'x' => {
                    self.long_name = pax(content, "path").or(self.long_name.take());
                    self.long_target = pax(content, "linkpath").or(self.long_target.take());
                }
                b'g' => {}
                kind => {
                    let name = self.long_name.take().unwrap_or_else(|| name(header));
                    let target = self.long_target.take().unwrap_or_else(|| text(&header[TARGET]));
                    return Ok(Some(Member { name, target, kind, content }));
                }
            }
        }
    }

    /// The next header; none at the end, which is a block of zeros: an archive without was cut off between two members.
    fn header(&mut self) -> Result<Option<&'a [u8; BLOCK]>, ArchiveError> {
        let rest = &self.bytes[self.at..];
        let header: &[u8; BLOCK] = rest.first_chunk().ok_or(ArchiveError::Malformed(self.at))?;
        if header.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let sum = octal(&header[CHECKSUM]);
        if sum != Some(checksum(header).into()) {
            return Err(ArchiveError::Malformed(self.at));
        }
        self.at += BLOCK;
        Ok(Some(header))
    }

    fn content(&mut self, header: &[u8; BLOCK]) -> Result<&'a [u8], ArchiveError> {
        let malformed = || ArchiveError::Malformed(self.at);
        // Links and devices have no content, whatever size they name.
        let size = if matches!(header[KIND], b'1'..=b'6') { Some(0) } else { octal(&header[SIZE]) };
        let size = usize::try_from(size.ok_or_else(malformed)?).map_err(|_| malformed())?;
        let content = self.bytes[self.at..].get(..size).ok_or_else(malformed)?;
        self.at = (self.at + size.next_multiple_of(BLOCK)).min(self.bytes.len());
        Ok(content)
    }
}

/// A number in octal digits, with blanks and NULs around it.
fn octal(field: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(field).ok()?.trim_matches([' ', '\0']);
    if digits.is_empty() {
        Some(0)
    } else {
        u64::from_str_radix(digits, 8).ok().filter(|_| !digits.starts_with('+'))
    }
}

/// Up to the first NUL.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

fn name(header: &[u8; BLOCK]) -> String {
    match text(&header[PREFIX]) {
        prefix if header[MAGIC].starts_with(b"ustar\0") && !prefix.is_empty() => {
            format!("{prefix}/{}", text(&header[NAME]))
        }
        _ => text(&header[NAME]),
    }
}

/// The value of a key in pax's `LENGTH KEY=VALUE` lines.
fn pax(content: &[u8], key: &str) -> Option<String> {
    let records = String::from_utf8_lossy(content).into_owned();
    let value = |line: &str| line.split_once(' ')?.1.strip_prefix(key)?.strip_prefix('=').map(str::to_owned);
    records.lines().find_map(value)
}
