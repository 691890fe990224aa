//! The kernel as QEMU gets it: unpacked on the host where that is possible, because in an emulator a kernel takes
//! longer to unpack itself than to boot.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::read::GzDecoder;
use record::store;

use super::memory_file::MemoryFile;
use crate::Error;
use crate::kernels::{Architecture, Kernel};

/// The kernel in `kernel.image`, or its image as it is where it cannot be unpacked.
pub(crate) fn load(kernel: &Kernel) -> Result<MemoryFile, Error> {
    let bytes = kept(kernel).map_or_else(|| unpacked(kernel), Ok)?;
    MemoryFile::of("kernel", &bytes)
}

/// What an earlier boot has unpacked, unless somebody has put another image in its place since.
fn kept(kernel: &Kernel) -> Option<Vec<u8>> {
    let place = kernel.unpacked.as_ref()?;
    let written = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    if written(place)? < written(&kernel.image)? { None } else { fs::read(place).ok() }
}

/// Unpacks it now, and keeps it for the next boot where there is a place that can be written.
fn unpacked(kernel: &Kernel) -> Result<Vec<u8>, Error> {
    let path = kernel.image.display();
    let image = fs::read(&kernel.image).map_err(|error| Error::new(format!("read {path}: {error}")))?;
    let unpacked = match kernel.architecture {
        Architecture::Amd64 => payload(&image).and_then(unpack).filter(|vmlinux| starts_by_itself(vmlinux)),
        // QEMU unpacks Image.gz itself.
        Architecture::Arm64 => None,
    };
    if let (Some(unpacked), Some(place)) = (&unpacked, &kernel.unpacked) {
        // A cache that is full or of somebody else costs time, and no boot.
        let _ = store::write_whole(place, unpacked);
    }
    Ok(unpacked.unwrap_or(image))
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
            GzDecoder::new(packed).read_to_end(&mut bytes).ok().map(|_| bytes)
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
    let mut input = child.stdin.take()?;
    std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(bytes));
        child.wait_with_output()
    })
    .ok()
    .filter(|output| output.status.success())
    .map(|output| output.stdout)
}

/// Whether QEMU can start the unpacked kernel: an ELF file with the entry point that Xen's PVH defined, told in a note
/// (`XEN_ELFNOTE_PHYS32_ENTRY`, 18; CONFIG_PVH).
fn starts_by_itself(vmlinux: &[u8]) -> bool {
    const NOTE: &[u8] = b"\x12\0\0\0Xen\0";
    vmlinux.starts_with(b"\x7fELF") && vmlinux.windows(NOTE.len()).any(|window| window == NOTE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use std::time::{Duration, SystemTime};

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

    #[test]
    fn an_image_of_a_cache_is_unpacked_once() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let mut kernel = crate::scripted::kernel("plain");
        (kernel.image, kernel.unpacked) = (place("image"), Some(place("unpacked")));
        fs::write(&kernel.image, packed(ENTRY)).unwrap();
        assert_eq!(load(&kernel).unwrap().content().unwrap(), ENTRY);
        assert_eq!(fs::read(place("unpacked")).unwrap(), ENTRY);
        fs::write(place("unpacked"), "as it was kept").unwrap();
        assert_eq!(load(&kernel).unwrap().content().unwrap(), b"as it was kept");
        let later = SystemTime::now() + Duration::from_secs(1);
        fs::File::options().write(true).open(&kernel.image).unwrap().set_modified(later).unwrap();
        assert_eq!(load(&kernel).unwrap().content().unwrap(), ENTRY, "another image came in its place");
    }

    #[test]
    fn a_cache_that_cannot_be_written_costs_no_boot() {
        let directory = tempfile::tempdir().unwrap();
        let mut kernel = crate::scripted::kernel("plain");
        kernel.image = directory.path().join("image");
        kernel.unpacked = Some(directory.path().join("nowhere/unpacked"));
        fs::write(&kernel.image, packed(ENTRY)).unwrap();
        assert_eq!(load(&kernel).unwrap().content().unwrap(), ENTRY);
        fs::write(&kernel.image, packed(b"\x7fELF another")).unwrap();
        assert!(load(&kernel).unwrap().content().unwrap().starts_with(&[0; 9]), "as it is");
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
