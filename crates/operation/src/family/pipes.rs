//! Pipes, named or not, and event counters.

use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open, unlink};
use rustix::pipe::{PipeFlags, pipe_with};

use super::{ALONE, BOTH, Operation, SOURCE_LMBENCH, SOURCE_PERF, SOURCE_STRESS_NG};
use crate::work::{At, Kit, Result, Unable, Work};

const MESSAGE: usize = 64;

pub const OPERATIONS: &[Operation] = &[
    Operation {
        name: "pipe-self",
        title: "pipe write+read, self",
        unit: "1 byte written and read by one thread",
        bytes: 0,
        places: ALONE,
        source: SOURCE_LMBENCH,
        stands_for: "a pipe's own cost, without a switch",
        begin: pipe_self,
    },
    Operation {
        name: "eventfd-self",
        title: "eventfd write+read, self",
        unit: "1 count written and read by one thread",
        bytes: 0,
        places: ALONE,
        source: SOURCE_STRESS_NG,
        stands_for: "event loops that wake themselves",
        begin: eventfd_self,
    },
    Operation {
        name: "pipe-ping-pong",
        title: "pipe ping-pong RTT",
        unit: "1 byte there and back",
        bytes: 0,
        places: BOTH,
        source: SOURCE_PERF,
        stands_for: "two programs that take turns",
        begin: pipe_ping_pong,
    },
    Operation {
        name: "fifo-stream",
        title: "named fifo stream 64 B",
        unit: "1 write of 64 bytes that another thread reads",
        bytes: MESSAGE as u64,
        places: BOTH,
        source: "stress-ng --fifo",
        stands_for: "a stream of small messages: the worst case of PREEMPT_RT in published measurements",
        begin: fifo_stream,
    },
];

fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    pipe_with(PipeFlags::CLOEXEC).at("make a pipe")
}

fn write(to: &OwnedFd, bytes: &[u8]) -> Result<()> {
    rustix::io::write(to, bytes).at("write").map(drop)
}

fn read(from: &OwnedFd, bytes: &mut [u8]) -> Result<()> {
    match rustix::io::read(from, bytes).at("read")? {
        0 => Err(Unable("read: the other end is closed".into())),
        _ => Ok(()),
    }
}

fn pipe_self(_: &Kit) -> Result<Box<dyn Work>> {
    let (out, into) = pipe()?;
    Ok(Box::new(move || {
        write(&into, &[1])?;
        read(&out, &mut [0])
    }))
}

fn eventfd_self(_: &Kit) -> Result<Box<dyn Work>> {
    let counter = eventfd(0, EventfdFlags::CLOEXEC).at("make an eventfd")?;
    Ok(Box::new(move || {
        write(&counter, &1_u64.to_ne_bytes())?;
        read(&counter, &mut [0; 8])
    }))
}

fn pipe_ping_pong(kit: &Kit) -> Result<Box<dyn Work>> {
    let ((out, into), (back_out, back_into)) = (pipe()?, pipe()?);
    kit.partner(move || while read(&out, &mut [0]).is_ok() && write(&back_into, &[1]).is_ok() {})?;
    Ok(Box::new(move || {
        write(&into, &[1])?;
        read(&back_out, &mut [0])
    }))
}

/// The name is gone before anything is written.
fn fifo_stream(kit: &Kit) -> Result<Box<dyn Work>> {
    let path = kit.file("fifo")?;
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).at("make a fifo")?;
    // Opened for both first, because each end alone would wait for the other.
    let both = open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let out = open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let into = open(&path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    let _ = unlink(&path);
    let (both, out, into) = (both.at("open a fifo")?, out.at("open a fifo")?, into.at("open a fifo")?);
    kit.partner(move || {
        let _both = both;
        while read(&out, &mut [0; MESSAGE]).is_ok() {}
    })?;
    Ok(Box::new(move || write(&into, &[1; MESSAGE])))
}
