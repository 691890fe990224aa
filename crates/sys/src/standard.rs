//! The standard streams that this process was started without, as by `>&-`.
//!
//! Before `main` the standard library opens /dev/null in their place, so that no file of ours takes their numbers. All that is written
//! is lost there without an error: only who looks before it knows.

use std::sync::atomic::{AtomicU8, Ordering};

/// A bit for each descriptor that was not open.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// The C library calls what stands here before `main`, and so before the standard library begins.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for descriptor in 0..3 {
        // SAFETY: it asks for flags and touches no memory.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
            CLOSED.fetch_or(1 << descriptor, Ordering::Relaxed);
        }
    }
}

/// Whether standard output was closed when this process began. fcntl(2), `F_GETFD`.
pub fn output_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed) & (1 << libc::STDOUT_FILENO) != 0
}
