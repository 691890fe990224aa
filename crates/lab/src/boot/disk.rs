//! A disk with an empty ext4 file system, made on the host; the same size makes the same bytes.

use std::path::Path;
use std::process::{Command, Stdio};

use units::Bytes;

use super::guest::Time;
use super::memory_file::MemoryFile;
use crate::guest::plan;
use crate::initramfs::programs;
use crate::{Error, blocks};

/// A guest's disk.
#[derive(Debug)]
pub(crate) enum Disk {
    /// A RAM block device in the guest (`brd`), of this size, and the blocks that the guest writes to it: a virtio
    /// disk completes when the host pleases, so that no two runs are equal.
    Memory(Bytes, Vec<u8>),
    /// A virtio disk.
    Virtio(MemoryFile),
}

/// ext4 with its journal, inodes and a load's files wants this much.
const LEAST: Bytes = Bytes::from_mebibytes(16);
/// One for the file system, one for its directories' hashes.
const IDENTITY: &str = "776f7273-7463-4173-a065-6c6162303031";
/// 2020-01-01T00:00:00Z, when a guest in instruction time begins.
const TIME: &str = "1577836800";

impl Disk {
    /// Makes one.
    pub fn make(size: Bytes, time: Time) -> Result<Self, Error> {
        let image = image(size)?;
        Ok(match time {
            Time::Instructions => Self::Memory(size, blocks_of(&image)?),
            Time::Wall => Self::Virtio(image),
        })
    }

    /// The modules that the guest needs for it.
    pub fn modules(&self) -> &'static [&'static str] {
        match self {
            Self::Memory(..) => &["brd", "ext4"],
            Self::Virtio(_) => &["virtio_pci", "virtio_blk", "ext4"],
        }
    }

    /// The parameters of module `name`.
    pub fn parameters(&self, name: &str) -> String {
        match self {
            Self::Memory(size, _) if name == "brd" => of_ram_disk(*size).join(" "),
            _ => String::new(),
        }
    }

    /// What process 1 needs to mount it.
    pub fn in_guest(&self) -> plan::Disk {
        match self {
            Self::Memory(..) => plan::Disk::Memory("/dev/ram0".into()),
            Self::Virtio(_) => plan::Disk::Ready("/dev/vda".into()),
        }
    }

    /// What the guest carries, and what QEMU is given.
    pub fn into_parts(self) -> (Option<Vec<u8>>, Option<MemoryFile>) {
        match self {
            Self::Memory(_, blocks) => (Some(blocks), None),
            Self::Virtio(image) => (None, Some(image)),
        }
    }
}

/// The parameters of brd, the RAM block device, for one disk of `size`: of the module, or with `brd.` before each on the
/// kernel command line where it is built in.
pub(crate) fn of_ram_disk(size: Bytes) -> [String; 2] {
    ["rd_nr=1".to_owned(), format!("rd_size={}", size.0.div_ceil(1024))]
}

/// What was written to `image`, a piece at a time: of a large disk that is little.
fn blocks_of(image: &MemoryFile) -> Result<Vec<u8>, Error> {
    const PIECE: usize = 256 * blocks::CONTENT;
    let (mut blocks, mut place) = (Vec::new(), 0);
    while let Some(written) = image.written_from(place)? {
        let start = written - written % blocks::CONTENT as u64;
        let piece = image.piece(start, PIECE)?;
        blocks::append(&mut blocks, start, &piece);
        place = start + PIECE as u64;
    }
    Ok(blocks)
}

/// mke2fs(8) with everything fixed that is random by default.
fn image(size: Bytes) -> Result<MemoryFile, Error> {
    if size < LEAST {
        return Err(Error::new(format!("a disk of {size} is too small for ext4: at least {LEAST}")));
    }
    let Some(program) = programs::find(Path::new("mke2fs")) else {
        let error = Error::new("mke2fs is not installed: a guest's disk is made with it");
        return Err(error.hint("apt-get install e2fsprogs"));
    };
    let file = MemoryFile::new("disk")?;
    file.stretch(size.0)?;
    let mut command = Command::new(program);
    let path = file.pass_to(&mut command)?;
    command.args(["-q", "-F", "-t", "ext4", "-U", IDENTITY, "-E"]);
    command.arg(format!("hash_seed={IDENTITY},nodiscard,root_owner=0:0")).arg(path);
    command.env("E2FSPROGS_FAKE_TIME", TIME).env("SOURCE_DATE_EPOCH", TIME).stdin(Stdio::null());
    let output = command.output().map_err(|error| Error::new(format!("run mke2fs: {error}")))?;
    if output.status.success() {
        Ok(file)
    } else {
        Err(Error::new(format!("mke2fs: {}", String::from_utf8_lossy(&output.stderr).trim())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::{Block, SIZE, read};

    #[test]
    fn what_stands_far_apart_on_a_large_disk_is_all_found() {
        let file = MemoryFile::new("disk").unwrap();
        file.stretch(1 << 40).unwrap();
        assert_eq!(blocks_of(&file).unwrap(), Vec::<u8>::new());
        let places = [0, 4096, (1 << 20) - 1, 5 << 30, (1 << 40) - 1];
        for place in places {
            file.put(place, &[7]);
        }
        let blocks = blocks_of(&file).unwrap();
        let found: Vec<u64> = blocks
            .chunks_exact(SIZE)
            .map(|block| read(block.try_into().unwrap()))
            .map(|Block { place, content }| {
                place + content.iter().position(|&byte| byte == 7).unwrap() as u64
            })
            .collect();
        assert_eq!(found, places);
    }
}
