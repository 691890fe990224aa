//! The kernel as QEMU gets it: unpacked on the host where that is possible, because in an emulator a kernel takes
//! longer to unpack itself than to boot.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::read::GzDecoder;
use record::Digest;

use super::memory_file::MemoryFile;
use crate::kernels::{Architecture, Kernel};
use crate::{Error, hash, input};

/// No kernel is larger, in bytes.
const LONGEST: u64 = 1 << 30;

/// A kernel in memory, with what tells it from others.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// What the emulator gets: the kernel unpacked, or its image where it cannot be unpacked.
    pub file: MemoryFile,
    /// The image's hash.
    pub image: Digest,
    /// The hash of what the emulator gets.
    pub booted: Digest,
}

/// The kernel in `kernel.image`.
///
/// # Errors
/// Where it cannot be read, or is not what came into the cache.
pub(crate) fn load(kernel: &Kernel) -> Result<Loaded, Error> {
    let bytes = input::read(&kernel.image)?;
    let image = hash::of(&bytes);
    kernel.verify(&image)?;
    let (bytes, booted) = match kept(kernel, &image)? {
        Some(kept) => kept,
        None => unpacked(kernel, bytes, &image),
    };
    Ok(Loaded { file: MemoryFile::of("kernel", &bytes)?, image, booted })
}

/// Where the hashes of an image and of what was unpacked from it stand, in this order.
fn hashes(place: &Path) -> PathBuf {
    place.with_extension("sha256")
}

/// What an earlier boot unpacked from this image, with its hash.
fn kept(kernel: &Kernel, image: &Digest) -> Result<Option<(Vec<u8>, Digest)>, Error> {
    let Some(place) = &kernel.unpacked else { return Ok(None) };
    let Ok(text) = files::read_text(&hashes(place), LONGEST) else { return Ok(None) };
    let Some((of_image, of_unpacked)) = text.trim_end().split_once(' ') else { return Ok(None) };
    let Some(bytes) = files::read(place, LONGEST).ok().filter(|_| of_image == image.0) else {
        return Ok(None);
    };
    let found = hash::of(&bytes);
    match found.0 == of_unpacked {
        true => Ok(Some((bytes, found))),
        false => Err(Error::new(format!("{} was altered since it was unpacked", place.display()))
            .hint("remove it: the next boot unpacks the kernel again")),
    }
}

/// Unpacks it now, and keeps it for the next boot where there is a place that can be written.
fn unpacked(kernel: &Kernel, image: Vec<u8>, of_image: &Digest) -> (Vec<u8>, Digest) {
    let unpacked = match kernel.architecture {
        Architecture::Amd64 => payload(&image).and_then(unpack).filter(|vmlinux| starts_by_itself(vmlinux)),
        // QEMU unpacks Image.gz itself.
        Architecture::Arm64 => None,
    };
    let Some(unpacked) = unpacked else { return (image, of_image.clone()) };
    let found = hash::of(&unpacked);
    if let Some(place) = &kernel.unpacked {
        // A cache that is full or of somebody else costs time, and no boot. The hashes come last: without them nothing is
        // taken for kept.
        let both = format!("{of_image} {found}\n");
        let _ = files::write_whole(place, &unpacked)
            .and_then(|()| files::write_whole(&hashes(place), both.as_bytes()));
    }
    (unpacked, found)
}

/// The packed kernel in a bzImage: Documentation/arch/x86/boot.rst, `setup_sects`, `payload_offset`, `payload_length`.
/// Its last four bytes are its unpacked length.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    let sectors = usize::from(*image.get(0x1f1)?);
    let kernel = (if sectors == 0 { 4 } else { sectors } + 1) * 512;
    let start = kernel.checked_add(word(0x248)?)?;
    image.get(start..start.checked_add(word(0x24c)?)?.checked_sub(4)?)
}

/// Unpacks what gzip, xz or zstd packed, as far as the program is on this machine.
fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    match packed {
        [0x1f, 0x8b, ..] => {
            let mut bytes = Vec::new();
            GzDecoder::new(packed).take(LONGEST + 1).read_to_end(&mut bytes).ok()?;
            (bytes.len() as u64 <= LONGEST).then_some(bytes)
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            filter(Command::new("xz").args(["-dc", "--single-stream"]), packed)
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => filter(Command::new("zstd").args(["-dcq"]), packed),
        _ => None,
    }
}

/// What `command` makes of `bytes`.
fn filter(command: &mut Command, bytes: &[u8]) -> Option<Vec<u8>> {
    sys::process::end_with_parent(command);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.ok()?;
    let (mut input, output) = (child.stdin.take()?, child.stdout.take()?);
    let mut unpacked = Vec::new();
    let read = std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(bytes));
        // Closed at its end, so that a program that goes on writing ends.
        output.take(LONGEST + 1).read_to_end(&mut unpacked)
    });
    let ended = child.wait().ok()?;
    (read.is_ok() && ended.success() && unpacked.len() as u64 <= LONGEST).then_some(unpacked)
}

/// Whether QEMU can start the unpacked kernel: an ELF file with the entry point that Xen's PVH defines, given in a note
/// (`XEN_ELFNOTE_PHYS32_ENTRY`, 18; CONFIG_PVH).
fn starts_by_itself(vmlinux: &[u8]) -> bool {
    const NOTE: &[u8] = b"\x12\0\0\0Xen\0";
    vmlinux.starts_with(b"\x7fELF") && vmlinux.windows(NOTE.len()).any(|window| window == NOTE)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    fn image(packed: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 1024];
        image[0x1f1] = 1;
        image[0x248..0x24c].copy_from_slice(&0_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&(packed.len() as u32 + 4).to_le_bytes());
        image.extend_from_slice(packed);
        image.extend_from_slice(&[0; 4]);
        image
    }

    #[test]
    fn a_packed_kernel_is_found_and_unpacked() {
        let image = packed(b"\x7fELF a kernel");
        assert_eq!(payload(&image).and_then(unpack).unwrap(), b"\x7fELF a kernel");
        assert_eq!(unpack(b"something else"), None);
        assert_eq!(unpack(b"\x1f\x8b damaged"), None);
    }

    const ENTRY: &[u8] = b"\x7fELF....\x04\0\0\0\x04\0\0\0\x12\0\0\0Xen\0";

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(bytes).unwrap();
        image(&packer.finish().unwrap())
    }

    fn content(kernel: &Kernel) -> Vec<u8> {
        load(kernel).unwrap().file.content().unwrap()
    }

    #[test]
    fn an_image_of_a_cache_is_unpacked_once() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let mut kernel = crate::scripted::kernel("plain");
        (kernel.image, kernel.unpacked) = (place("image"), Some(place("unpacked")));
        fs::write(&kernel.image, packed(ENTRY)).unwrap();
        let first = load(&kernel).unwrap();
        assert_eq!((first.image, first.booted), (hash::of(&packed(ENTRY)), hash::of(ENTRY)));
        assert_eq!(fs::read(place("unpacked")).unwrap(), ENTRY);
        // Only what is kept can say this: the image does not.
        let other = [ENTRY, b"as it was kept"].concat();
        fs::write(place("unpacked"), &other).unwrap();
        let both = format!("{} {}\n", hash::of(&packed(ENTRY)), hash::of(&other));
        fs::write(place("unpacked.sha256"), both).unwrap();
        assert_eq!(content(&kernel), other);
        let later = [ENTRY, b"later"].concat();
        fs::write(&kernel.image, packed(&later)).unwrap();
        assert_eq!(content(&kernel), later, "another image came in its place");
    }

    #[test]
    fn an_image_or_an_unpacked_kernel_that_was_altered_is_refused_with_the_cure() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let mut kernel = crate::scripted::kernel("plain");
        (kernel.image, kernel.unpacked) = (place("image"), Some(place("unpacked")));
        kernel.sha256 = Some(hash::of(&packed(ENTRY)));
        fs::write(&kernel.image, packed(ENTRY)).unwrap();
        assert_eq!(content(&kernel), ENTRY);
        fs::write(place("unpacked"), "another kernel").unwrap();
        let error = load(&kernel).unwrap_err();
        assert!(error.message.contains("unpacked was altered") && error.hint.unwrap().contains("remove it"));
        fs::remove_file(place("unpacked")).unwrap();
        assert_eq!(content(&kernel), ENTRY);
        fs::write(&kernel.image, packed(b"\x7fELF another")).unwrap();
        let error = load(&kernel).unwrap_err();
        assert!(error.message.contains("image was altered") && error.hint.unwrap().contains("again"));
    }

    #[test]
    fn a_cache_that_cannot_be_written_costs_no_boot() {
        let directory = tempfile::tempdir().unwrap();
        let mut kernel = crate::scripted::kernel("plain");
        kernel.image = directory.path().join("image");
        kernel.unpacked = Some(directory.path().join("nowhere/unpacked"));
        fs::write(&kernel.image, packed(ENTRY)).unwrap();
        assert_eq!(content(&kernel), ENTRY);
        fs::write(&kernel.image, packed(b"\x7fELF another")).unwrap();
        assert!(content(&kernel).starts_with(&[0; 9]), "as it is");
    }

    #[test]
    fn a_kernel_without_the_entry_is_booted_as_it_is() {
        assert!(starts_by_itself(ENTRY));
        assert!(!starts_by_itself(b"\x7fELF....\x04\0\0\0\x04\0\0\0\x11\0\0\0Xen\0"));
    }

    proptest! {
        #[test]
        fn any_image_is_answered_without_a_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..0x300), short: bool) {
            if short {
                bytes.iter_mut().skip(0x248).for_each(|byte| *byte &= 1);
            }
            let _ = payload(&bytes).and_then(|packed| packed.get(..8)).map(|packed| packed.len());
        }
    }
}
