//! As much of a program's file as the lab needs to know (elf(5)): 64-bit, little-endian.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::kernels::Architecture;

/// A program or a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elf {
    /// What it runs on; none for a machine that the lab has no guests of.
    pub architecture: Option<Architecture>,
    /// The loader that it asks for, if it is dynamic.
    pub interpreter: Option<PathBuf>,
    /// Where what is loaded ends in the file; symbols and debugging information come after it.
    loaded: usize,
}

/// Why a file is not such a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// Something else.
    #[error("it is no ELF program")]
    Foreign,
    /// For a machine of another kind.
    #[error("it is not a 64-bit little-endian program")]
    Narrow,
    /// Cut off or damaged.
    #[error("it is cut off or damaged")]
    Damaged,
}

const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const X86_64: u16 = 62;
const AARCH64: u16 = 183;
const LOAD: u32 = 1;
const INTERPRETER: u32 = 3;
const SECTION_TABLE: usize = 0x28;
const SECTION_COUNTS: usize = 0x3c;

impl Elf {
    /// Reads the header and the program headers.
    pub fn read(bytes: &[u8]) -> Result<Self, ElfError> {
        match bytes {
            [0x7f, b'E', b'L', b'F', CLASS_64, LITTLE_ENDIAN, ..] => {}
            [0x7f, b'E', b'L', b'F', ..] => return Err(ElfError::Narrow),
            _ => return Err(ElfError::Foreign),
        }
        Self::parse(bytes).ok_or(ElfError::Damaged)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let architecture = match u16_at(bytes, 0x12)? {
            X86_64 => Some(Architecture::Amd64),
            AARCH64 => Some(Architecture::Arm64),
            _ => None,
        };
        let headers = usize_at(bytes, 0x20)?;
        let (size, count) = (usize::from(u16_at(bytes, 0x36)?), usize::from(u16_at(bytes, 0x38)?));
        let mut elf = Self { architecture, interpreter: None, loaded: headers.checked_add(size * count)? };
        for number in 0..count {
            let header = headers.checked_add(number * size)?;
            let kind = u32_at(bytes, header)?;
            let (from, length) = (usize_at(bytes, header + 0x08)?, usize_at(bytes, header + 0x20)?);
            let content = bytes.get(from..from.checked_add(length)?)?;
            match kind {
                LOAD => elf.loaded = elf.loaded.max(from + length),
                INTERPRETER => {
                    let name = content.split(|&byte| byte == 0).next().unwrap_or_default();
                    elf.interpreter = Some(PathBuf::from(OsStr::from_bytes(name)));
                }
                _ => {}
            }
        }
        (elf.loaded <= bytes.len()).then_some(elf)
    }

    /// The file without what is never loaded: a test executable is ten times smaller so.
    pub fn stripped(&self, bytes: &[u8]) -> Vec<u8> {
        let mut kept = bytes.get(..self.loaded).unwrap_or(bytes).to_vec();
        for range in [SECTION_TABLE..SECTION_TABLE + 8, SECTION_COUNTS..SECTION_COUNTS + 4] {
            if let Some(field) = kept.get_mut(range) {
                field.fill(0);
            }
        }
        kept
    }
}

/// The content of the section `wanted`, as in a kernel module.
pub fn section<'a>(bytes: &'a [u8], wanted: &str) -> Result<Option<&'a [u8]>, ElfError> {
    Elf::read(bytes)?;
    find_section(bytes, wanted).ok_or(ElfError::Damaged)
}

fn find_section<'a>(bytes: &'a [u8], wanted: &str) -> Option<Option<&'a [u8]>> {
    let table = usize_at(bytes, SECTION_TABLE)?;
    let size = usize::from(u16_at(bytes, 0x3a)?);
    let (count, names) = (u16_at(bytes, SECTION_COUNTS)?, u16_at(bytes, SECTION_COUNTS + 2)?);
    let header = |number: u16| table.checked_add(usize::from(number) * size);
    let content = |header: usize| {
        let from = usize_at(bytes, header.checked_add(0x18)?)?;
        bytes.get(from..from.checked_add(usize_at(bytes, header + 0x20)?)?)
    };
    let names = content(header(names)?)?;
    for number in 0..count {
        let header = header(number)?;
        let name = names.get(u32_at(bytes, header)? as usize..)?;
        if name.split(|&byte| byte == 0).next() == Some(wanted.as_bytes()) {
            return Some(Some(content(header)?));
        }
    }
    Some(None)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    field(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    field(bytes, at).map(u32::from_le_bytes)
}

fn usize_at(bytes: &[u8], at: usize) -> Option<usize> {
    field(bytes, at).map(u64::from_le_bytes)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn me() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn this_test_is_a_program_with_a_loader_and_sections() {
        let bytes = me();
        let elf = Elf::read(&bytes).unwrap();
        assert!(elf.interpreter.as_ref().unwrap().is_file(), "{elf:?}");
        let interpreter = section(&bytes, ".interp").unwrap().unwrap();
        assert!(interpreter.starts_with(elf.interpreter.unwrap().as_os_str().as_bytes()));
        assert_eq!(section(&bytes, ".nowhere"), Ok(None));
    }

    #[test]
    fn what_is_stripped_still_runs() {
        use std::os::unix::fs::PermissionsExt;
        let bytes = me();
        let stripped = Elf::read(&bytes).unwrap().stripped(&bytes);
        assert!(stripped.len() < bytes.len());
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("test");
        std::fs::write(&file, stripped).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        // A test beside this one may fork while the file is open for writing; its child has it open until it execs.
        let run = loop {
            match std::process::Command::new(&file).arg("--list").output() {
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    std::thread::yield_now()
                }
                run => break run.unwrap(),
            }
        };
        assert!(run.status.success() && String::from_utf8_lossy(&run.stdout).contains(": test"));
    }

    static BEGINNING: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| me()[..0x8000].to_vec());

    proptest! {
        #[test]
        fn any_bytes_are_answered_without_a_panic(place in 0..0x200_usize, byte: u8, length in 0..0x1000_usize) {
            let mut bytes = BEGINNING.clone();
            bytes[place] = byte;
            let _ = (Elf::read(&bytes), section(&bytes, ".interp"));
            bytes.truncate(length);
            let _ = (Elf::read(&bytes), section(&bytes, ".interp"));
        }
    }
}
