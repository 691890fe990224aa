//! Running a foreign program that starts itself again.
//!
//! An emulator runs one program; when that program executes itself, it is the kernel that has to know the emulator:
//! binfmt_misc. Since Linux 6.7 a user namespace has a binfmt_misc of its own, so a handler can be registered for one
//! run, needs no privilege, and is gone with it (Documentation/admin-guide/binfmt-misc.rst; Linux 6.7, "binfmt_misc:
//! enable sandboxed mounts").

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;

/// Mounts, registers the first argument, and becomes the rest.
const SANDBOX: &str = "\
    mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc && \
    printf %s \"$1\" >/proc/sys/fs/binfmt_misc/register && shift && exec \"$@\"";

/// How a binary is run here.
pub enum Runner {
    /// By the processor, or by a handler that is registered already.
    Direct,
    /// In a user namespace with a handler of its own.
    Sandbox {
        /// The handler, as binfmt_misc wants it.
        rule: String,
    },
}

impl Runner {
    /// Finds out how `binary` can be run; none where the kernel has no way.
    pub fn find(binary: &Path, emulator: Option<&str>) -> Result<Option<Self>> {
        let sandbox = emulator.map(|emulator| rule(binary, emulator)).transpose()?;
        let ways = std::iter::once(Self::Direct).chain(sandbox.map(|rule| Self::Sandbox { rule }));
        let runs = |way: &Self| command::output(way.command(binary).arg("--version")).is_ok();
        Ok(ways.into_iter().find(runs))
    }

    /// `binary` without arguments.
    pub fn command(&self, binary: &Path) -> Command {
        match self {
            Self::Direct => Command::new(binary),
            Self::Sandbox { rule } => {
                let mut command = Command::new("unshare");
                command.args(["--map-root-user", "--mount", "sh", "-c", SANDBOX, "sh", rule]).arg(binary);
                command
            }
        }
    }
}

/// A handler for all programs whose header is that of `binary`.
fn rule(binary: &Path, emulator: &str) -> Result<String> {
    let mut header = [0; 20];
    let read = File::open(binary).and_then(|mut file| file.read_exact(&mut header));
    read.with_context(|| format!("reading {}", binary.display()))?;
    let emulator = command::find(emulator).with_context(|| format!("{emulator} is gone"))?;
    let mask = mask(header);
    // F: the emulator is opened now, whatever the program's view of the file system will be.
    Ok(format!(":worstcase:M::{}:{}:{}:F", escaped(&header), escaped(&mask), emulator.display()))
}

/// What of an ELF header has to agree: all but the ABI and padding, and the lowest bit of the type, which tells
/// programs that are loaded anywhere (3) from those that are not (2). elf(5).
fn mask(header: [u8; 20]) -> [u8; 20] {
    const BIG_ENDIAN: u8 = 2;
    let mut mask = [0xff; 20];
    mask[7..16].fill(0);
    mask[if header[5] == BIG_ENDIAN { 17 } else { 16 }] = 0xfe;
    mask
}

fn escaped(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_is_made_from_the_header_of_the_program() {
        let me = std::env::current_exe().unwrap();
        let rule = rule(&me, "sh").unwrap();
        assert!(rule.starts_with(":worstcase:M::\\x7f\\x45\\x4c\\x46"), "{rule}");
        assert!(rule.ends_with("/sh:F"), "{rule}");
    }

    #[test]
    fn the_type_is_masked_in_its_low_byte() {
        let mut header = [0; 20];
        header[5] = 2;
        assert_eq!((mask(header)[16], mask(header)[17]), (0xff, 0xfe));
        header[5] = 1;
        assert_eq!((mask(header)[16], mask(header)[17]), (0xfe, 0xff));
    }
}
