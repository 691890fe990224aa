//! The directory that the command runs in, on memory or on a disk.

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Result;
use super::plan::{BLOCKS, Disk};
use crate::blocks::{self, Block};

const MOUNT_POINT: &str = "/lab";

/// Where the command's directory is.
pub fn place() -> PathBuf {
    Path::new(MOUNT_POINT).join("run")
}

/// An empty directory on `disk`, or on memory.
pub fn directory(disk: Option<&Disk>) -> Result<PathBuf> {
    let point = Path::new(MOUNT_POINT);
    fs::create_dir_all(point).map_err(|error| format!("create {MOUNT_POINT}: {error}"))?;
    let mounted = match disk {
        None => sys::machine::mount("tmpfs", point, "tmpfs", "mode=0755"),
        Some(Disk::Ready(device)) => {
            wait_for(device)?;
            sys::machine::mount(&device.to_string_lossy(), point, "ext4", "")
        }
        Some(Disk::Memory(device)) => {
            write_blocks(device)?;
            sys::machine::mount(&device.to_string_lossy(), point, "ext4", "")
        }
    };
    mounted.map_err(|error| error.to_string())?;
    let directory = place();
    fs::create_dir(&directory).map_err(|error| format!("create {}: {error}", directory.display()))?;
    Ok(directory)
}

/// A driver may find its device after it was loaded.
fn wait_for(device: &Path) -> Result<()> {
    const PAUSE: Duration = Duration::from_millis(10);
    let found = (0..500).any(|_| {
        device.exists() || {
            std::thread::sleep(PAUSE);
            false
        }
    });
    if found { Ok(()) } else { Err(format!("the guest has no disk {}", device.display())) }
}

/// Puts the disk's image onto the RAM block device; what is not in it is zero there already.
fn write_blocks(device: &Path) -> Result<()> {
    let failed = |what: &str, error: std::io::Error| format!("{what}: {error}");
    let mut image = BufReader::new(File::open(BLOCKS).map_err(|error| failed(BLOCKS, error))?);
    let name = device.to_string_lossy();
    let disk = OpenOptions::new().write(true).open(device).map_err(|error| failed(&name, error))?;
    let mut block = [0; blocks::SIZE];
    loop {
        match image.read_exact(&mut block) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(failed(BLOCKS, error)),
        }
        let Block { place, content } = blocks::read(&block);
        disk.write_all_at(content, place).map_err(|error| failed(&name, error))?;
    }
    disk.sync_all().map_err(|error| failed(&name, error))
}
