//! What a kernel image is, by its first bytes: Documentation/arch/x86/boot.rst, Documentation/arch/arm64/booting.rst.

use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;

use super::Architecture;
use super::cache::failed;
use crate::Error;

/// No image is longer; Debian's arm64 Image has 31 MB.
const LONGEST: u64 = 256 << 20;

/// What is known about an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Image {
    pub architecture: Architecture,
    /// `uname -r`, where it is written in the image.
    pub release: Option<String>,
}

/// Files that are taken for images by mistake: where which bytes stand, what they are, and what to give instead.
const OTHERS: [(usize, &[u8], &str, &str); 6] = [
    (0, b"\x7fELF", "an ELF file, as vmlinux is", "give arch/x86/boot/bzImage or arch/arm64/boot/Image"),
    (4, b"zimg", "an EFI zboot image, which QEMU 7.2 does not unpack", "give arch/arm64/boot/Image"),
    (0x24, b"\x18\x28\x6f\x01", "a kernel for 32-bit ARM", "guests are amd64 or arm64"),
    (0, b"\x27\x05\x19\x56", "a U-Boot image", "give the image that mkimage was given"),
    (0, b"\xd0\x0d\xfe\xed", "a device tree or FIT image", "give the kernel's image alone"),
    (0, b"!<arch>\n", "an archive, as Debian packages are", "give the vmlinuz in it"),
];

/// Says what the file is, or why no guest can boot it.
pub(super) fn recognise(path: &Path) -> Result<Image, Error> {
    let metadata = std::fs::metadata(path).map_err(|error| failed("open", path, &error))?;
    if !metadata.is_file() {
        return Err(refused(path, "no file", ""));
    }
    if metadata.len() > LONGEST {
        return Err(refused(path, "longer than any kernel image", ""));
    }
    let mut bytes = files::read(path, LONGEST).map_err(|error| failed("read", path, &error.source))?;
    if bytes.starts_with(b"\x1f\x8b") {
        bytes = unpack(&bytes)
            .ok_or_else(|| refused(path, "a gzip file that cannot be unpacked: is it cut off?", ""))?;
        if !is_arm64(&bytes) {
            return Err(refused(
                path,
                "a gzip file with no arm64 kernel in it",
                "bzImage and Image are loaded as they are",
            ));
        }
    }
    read(&bytes).map_err(|(what, instead)| refused(path, what, instead))
}

fn refused(path: &Path, what: &str, instead: &str) -> Error {
    let error = Error::new(format!("{} is {what}", path.display()));
    if instead.is_empty() { error } else { error.hint(instead) }
}

fn unpack(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut unpacked = Vec::new();
    let length = GzDecoder::new(bytes).take(LONGEST).read_to_end(&mut unpacked);
    length.ok().map(|_| unpacked)
}

/// The image in `bytes`, or what they are instead and what to give.
fn read(bytes: &[u8]) -> Result<Image, (&'static str, &'static str)> {
    if is_arm64(bytes) {
        let release = after(bytes, b"Linux version ").and_then(word);
        return Ok(Image { architecture: Architecture::Arm64, release });
    }
    if bytes.get(0x202..0x206) == Some(b"HdrS".as_slice()) {
        return read_x86(bytes);
    }
    let other = OTHERS.iter().find(|(at, magic, ..)| bytes.get(*at..at + magic.len()) == Some(*magic));
    let (_, _, what, instead) = other.copied().unwrap_or((
        0,
        b"",
        "no kernel image",
        "give a bzImage (amd64: /boot/vmlinuz-*) or an Image (arm64)",
    ));
    Err((what, instead))
}

fn is_arm64(bytes: &[u8]) -> bool {
    bytes.get(0x38..0x3c) == Some(b"ARM\x64".as_slice())
}

/// The header is at 0x1f1; protocol 2.12 (Linux 3.8) says whether there is a 64-bit entry.
fn read_x86(bytes: &[u8]) -> Result<Image, (&'static str, &'static str)> {
    const TOO_SHORT: (&str, &str) = ("a bzImage that is cut off", "copy it again");
    let word16 = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let word32 = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let protocol = word16(0x206).ok_or(TOO_SHORT)?;
    let has_64_bit_entry = word16(0x236).is_some_and(|flags| flags & 1 != 0);
    if protocol < 0x020c || !has_64_bit_entry {
        return Err(("a kernel for 32-bit x86", "guests are amd64 or arm64"));
    }
    // As boot.rst has it: a boot sector, the set-up sectors (0 stands for 4), then syszize paragraphs of 16 bytes.
    let sectors = u64::from(*bytes.get(0x1f1).ok_or(TOO_SHORT)?);
    let paragraphs = u64::from(word32(0x1f4).ok_or(TOO_SHORT)?);
    let setup = (if sectors == 0 { 4 } else { sectors } + 1) * 512;
    if (bytes.len() as u64) < setup + paragraphs * 16 {
        return Err(TOO_SHORT);
    }
    let version = word16(0x20e).filter(|&at| at != 0).map(|at| usize::from(at) + 0x200);
    let release = version.and_then(|at| word(bytes.get(at..)?));
    Ok(Image { architecture: Architecture::Amd64, release })
}

/// What follows the first place where `sign` stands before a digit: the words stand in format strings too.
fn after<'a>(bytes: &'a [u8], sign: &[u8]) -> Option<&'a [u8]> {
    let places = bytes.windows(sign.len() + 1).enumerate();
    let place = places
        .into_iter()
        .find(|(_, window)| window.starts_with(sign) && window[sign.len()].is_ascii_digit());
    place.map(|(at, _)| &bytes[at + sign.len()..])
}

/// The characters up to a blank, if they can be a kernel's release.
fn word(bytes: &[u8]) -> Option<String> {
    const LONGEST_RELEASE: usize = 64;
    let end = bytes.iter().take(LONGEST_RELEASE + 1).position(|&byte| byte == b' ' || byte == 0)?;
    let word = std::str::from_utf8(&bytes[..end]).ok()?;
    let plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic());
    plain.then(|| word.to_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    /// A header as the kernel's build writes it, and nothing to boot behind it.
    pub fn bzimage(release: &str, has_64_bit_entry: bool) -> Vec<u8> {
        let mut bytes = vec![0; 1024 + 64];
        bytes[0x1f1] = 1;
        bytes[0x1f4..0x1f8].copy_from_slice(&4_u32.to_le_bytes());
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x206..0x208].copy_from_slice(&0x020f_u16.to_le_bytes());
        bytes[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        bytes[0x236] = u8::from(has_64_bit_entry);
        let version = format!("{release} (me@here) #1 SMP\0");
        bytes[0x300..0x300 + version.len()].copy_from_slice(version.as_bytes());
        bytes
    }

    fn arm64_image() -> Vec<u8> {
        let mut bytes = vec![0; 256];
        bytes[0x38..0x3c].copy_from_slice(b"ARM\x64");
        bytes.extend(b"Linux version %s\0Linux version 6.1.0-56-rt-arm64 (me@here)\0");
        bytes
    }

    fn recognised(bytes: &[u8]) -> Result<Image, Error> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        recognise(file.path())
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn images_that_guests_boot_are_known() {
        let amd64 = recognised(&bzimage("6.12.117-p2041-rt", true)).unwrap();
        assert_eq!(
            amd64,
            Image { architecture: Architecture::Amd64, release: Some("6.12.117-p2041-rt".into()) }
        );
        let arm64 = Image { architecture: Architecture::Arm64, release: Some("6.1.0-56-rt-arm64".into()) };
        assert_eq!(recognised(&arm64_image()).unwrap(), arm64);
        assert_eq!(recognised(&gzip(&arm64_image())).unwrap(), arm64);
    }

    #[test]
    fn what_no_guest_boots_is_refused_by_its_name() {
        let whole = bzimage("6.1", true);
        let packed = gzip(&arm64_image());
        let cases: [(&[u8], &str); 9] = [
            (&bzimage("3.12.19", false), "32-bit x86"),
            (&whole[..whole.len() - 1], "cut off"),
            (&whole[..0x208], "32-bit x86"),
            (b"", "no kernel image"),
            (b"#!/bin/sh\n", "no kernel image"),
            (b"\x7fELF\x02\x01\x01", "ELF"),
            (b"MZ\0\0zimg", "zboot"),
            (&packed[..packed.len() / 2], "cut off"),
            (&gzip(b"text"), "no arm64 kernel"),
        ];
        for (bytes, words) in cases {
            let error = recognised(bytes).unwrap_err();
            assert!(error.message.contains(words), "{words}: {error}");
        }
        assert!(
            recognise(Path::new("/nowhere/vmlinuz")).unwrap_err().message.contains("open /nowhere/vmlinuz")
        );
        assert!(recognise(&std::env::temp_dir()).unwrap_err().message.contains("is no file"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(mut bytes in proptest::collection::vec(any::<u8>(), 0..1200), header: bool) {
            if header && bytes.len() > 0x206 {
                bytes[0x202..0x206].copy_from_slice(b"HdrS");
            }
            let _ = read(&bytes);
        }
    }
}
