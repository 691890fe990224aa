//! Sources: what the kernel has for a program, as events.

use std::ffi::{c_char, c_int, c_void};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use runtime::{PoolId, QueueId, Source, SourceSpec};

use crate::{Handle, NULL, handle, name};

const SYSTEM: c_int = 22;
/// Of a source that has not ended.
const GOES_ON: i32 = -1;

/// `wr_source_spec`
#[repr(C)]
pub struct CSourceSpec {
    name: *const c_char,
    pool: u32,
    bytes: u32,
    queue: u32,
    before: Option<Before>,
    context: *mut c_void,
}

/// `wr_source_figures`
#[repr(C)]
pub struct CSourceFigures {
    sent: u64,
    refused: u64,
    ended: i32,
}

type Before = unsafe extern "C" fn(*mut c_void) -> c_int;
/// What a C program has done before each wait of a source.
struct BeforeWait(Option<Before>, *mut c_void);

// SAFETY: the header says that the function is called on the source's thread.
unsafe impl Send for BeforeWait {}

impl BeforeWait {
    fn call(&self) -> io::Result<()> {
        // SAFETY: the program's function, called as the header says.
        match self.0.map_or(0, |before| unsafe { before(self.1) }) {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// A source.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_source_start(
    machine: *mut Handle,
    spec: *const CSourceSpec,
    descriptor: c_int,
    source: *mut *mut Source,
) -> c_int {
    if descriptor < 0 {
        return SYSTEM;
    }
    // SAFETY: the header gives it away.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // SAFETY: null, or a machine that has not ended.
    let Some(handle) = (unsafe { handle(machine) }) else { return NULL };
    // SAFETY: null, or a specification.
    let Some(spec) = (unsafe { spec.as_ref() }).filter(|_| !source.is_null()) else { return NULL };
    let wanted = SourceSpec {
        // SAFETY: the header's promise.
        name: unsafe { name(spec.name) },
        pool: PoolId::from_number(spec.pool),
        bytes: spec.bytes as usize,
        queue: QueueId::from_number(spec.queue),
    };
    let before = BeforeWait(spec.before, spec.context);
    match Source::start(&handle.machine, wanted, descriptor, move || before.call()) {
        Ok(started) => {
            // SAFETY: the header promises that the pointer can be written.
            unsafe { source.write(Box::into_raw(Box::new(started))) };
            0
        }
        Err(_) => SYSTEM,
    }
}

/// Its figures.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_source_read(source: *const Source, figures: *mut CSourceFigures) -> c_int {
    // SAFETY: null, or what `wr_source_start` gave and `wr_source_end` did not end.
    let Some(source) = (unsafe { source.as_ref() }).filter(|_| !figures.is_null()) else { return NULL };
    let read = source.figures();
    let figure =
        CSourceFigures { sent: read.sent, refused: read.refused, ended: read.ended.unwrap_or(GOES_ON) };
    // SAFETY: the header promises that it can be written.
    unsafe { figures.write(figure) };
    0
}

/// Ends it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_source_end(source: *mut Source) {
    if !source.is_null() {
        // SAFETY: made by `wr_source_start`; the header promises that nobody uses it any more.
        drop(unsafe { Box::from_raw(source) });
    }
}
