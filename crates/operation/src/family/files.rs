//! Files: in memory alone, and in the directory of the record.

use std::fs::File;

use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, fsync, memfd_create, openat, unlink};
use rustix::io::{pread, pwrite};

use super::{ALONE, Operation, SOURCE_LMBENCH};
use crate::work::{At, Kit, Result, Work};

const BLOCK: usize = 4096;

pub const OPERATIONS: &[Operation] = &[
    Operation {
        name: "memory-pwrite",
        title: "ramfs pwrite 4 K",
        unit: "4 KiB written to a file in memory",
        bytes: BLOCK as u64,
        places: ALONE,
        source: SOURCE_LMBENCH,
        stands_for: "writing a file, without a disk",
        begin: memory_write,
    },
    Operation {
        name: "memory-pread",
        title: "ramfs pread 4 K",
        unit: "4 KiB read from a file in memory",
        bytes: BLOCK as u64,
        places: ALONE,
        source: SOURCE_LMBENCH,
        stands_for: "reading a file, without a disk",
        begin: memory_read,
    },
    Operation {
        name: "open-close",
        title: "open+close",
        unit: "1 file opened and closed",
        bytes: 0,
        places: ALONE,
        source: "lmbench lat_syscall open",
        stands_for: "looking up a path",
        begin: open_close,
    },
    Operation {
        name: "file-create",
        title: "create+unlink",
        unit: "1 empty file made, closed and removed in the record's directory",
        bytes: 0,
        places: ALONE,
        source: "lmbench lat_fs",
        stands_for: "temporary files; builds and mail",
        begin: create,
    },
    Operation {
        name: "file-write",
        title: "file write 4 K",
        unit: "4 KiB written to the page cache of a file in the record's directory",
        bytes: BLOCK as u64,
        places: ALONE,
        source: "stress-ng --hdd",
        stands_for: "logging to a disk",
        begin: write,
    },
    Operation {
        name: "file-read",
        title: "file read 4 K",
        unit: "4 KiB read from the page cache of a file in the record's directory",
        bytes: BLOCK as u64,
        places: ALONE,
        source: "lmbench bw_file_rd",
        stands_for: "reading data again",
        begin: read,
    },
    Operation {
        name: "file-fsync",
        title: "write 4 K+fsync",
        unit: "4 KiB written to the disk of the record's directory",
        bytes: BLOCK as u64,
        places: ALONE,
        source: "fio --fsync=1",
        stands_for: "databases and journals; mostly the disk's time",
        begin: sync,
    },
];

fn in_memory() -> Result<File> {
    memfd_create("worstcase", MemfdFlags::CLOEXEC).at("make a file in memory").map(File::from)
}

/// A file whose name is gone.
fn on_disk(kit: &Kit) -> Result<File> {
    let path = kit.file("file")?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(CWD, &path, flags, Mode::RUSR | Mode::WUSR).at("make a file")?;
    unlink(&path).at("unlink a file")?;
    Ok(file.into())
}

fn writing(file: File, synced: bool) -> Result<Box<dyn Work>> {
    let block = [1; BLOCK];
    Ok(Box::new(move || {
        pwrite(&file, &block, 0).at("write a file")?;
        if synced { fsync(&file).at("fsync") } else { Ok(()) }
    }))
}

fn reading(file: File) -> Result<Box<dyn Work>> {
    let mut block = [1; BLOCK];
    pwrite(&file, &block, 0).at("write a file")?;
    Ok(Box::new(move || pread(&file, &mut block, 0).at("read a file").map(drop)))
}

fn memory_write(_: &Kit) -> Result<Box<dyn Work>> {
    writing(in_memory()?, false)
}

fn memory_read(_: &Kit) -> Result<Box<dyn Work>> {
    reading(in_memory()?)
}

fn write(kit: &Kit) -> Result<Box<dyn Work>> {
    writing(on_disk(kit)?, false)
}

fn read(kit: &Kit) -> Result<Box<dyn Work>> {
    reading(on_disk(kit)?)
}

fn sync(kit: &Kit) -> Result<Box<dyn Work>> {
    writing(on_disk(kit)?, true)
}

fn open_close(kit: &Kit) -> Result<Box<dyn Work>> {
    let directory = kit.file("")?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(Box::new(move || openat(CWD, &directory, flags, Mode::empty()).at("open a directory").map(drop)))
}

fn create(kit: &Kit) -> Result<Box<dyn Work>> {
    let path = kit.file("file")?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    Ok(Box::new(move || {
        openat(CWD, &path, flags, Mode::RUSR | Mode::WUSR).at("make a file").map(drop)?;
        unlink(&path).at("unlink a file")
    }))
}
