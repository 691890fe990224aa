//! Stand-ins for the C library's own parts that a Rust program never reaches: its files and formats (`stdio`), the locale with its
//! converters of character sets, and the loading of shared libraries. They name each other in a circle, 300 KB in all, and
//! a static program has them as soon as it starts a thread or asks for the words of an error.
//!
//! The names are glibc's internal ones, those of 2.36. Only `cargo xtask dist` asks for this module (`--cfg lean_libc`), and lets the
//! linker take the first of two definitions: a C library that divides its members otherwise makes a larger program, no other one.

use std::ffi::{CStr, c_char, c_int, c_long, c_ulong, c_void};
use std::ptr;

unsafe extern "C" {
    /// The words of an error, not translated; null where the number is none. strerror(3).
    safe fn strerrordesc_np(errno: c_int) -> *const c_char;
}

// SAFETY, of all below: the names are those of the C library with their types; what is not looked at is left out, which no caller
// notices. Pointers are strings or buffers of the caller, as each says.

/// The C library's own formats the number of an unknown error, by all of `printf`. strerror(3).
///
/// # Safety
/// `buffer` has `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn __xpg_strerror_r(errno: c_int, buffer: *mut c_char, length: usize) -> c_int {
    let known = strerrordesc_np(errno);
    let words = match known.is_null() {
        true => c"Unknown error",
        // SAFETY: a string of the C library's table.
        false => unsafe { CStr::from_ptr(known) },
    };
    let kept = words.count_bytes().min(length.saturating_sub(1));
    if length > 0 {
        // SAFETY: `kept` bytes and the end fit into the buffer.
        unsafe {
            ptr::copy_nonoverlapping(words.as_ptr(), buffer, kept);
            *buffer.add(kept) = 0;
        }
    }
    if kept < words.count_bytes() { libc::ERANGE } else { 0 }
}

/// As above, for errors of the dynamic linker.
///
/// # Safety
/// `buffer` has `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn __strerror_r(errno: c_int, buffer: *mut c_char, length: usize) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe { __xpg_strerror_r(errno, buffer, length) };
    buffer
}

/// Names a thread. Nobody names another thread than their own, for which the C library's own formats a path below /proc.
/// pthread_setname_np(3).
///
/// # Safety
/// `name` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_setname_np(thread: libc::pthread_t, name: *const c_char) -> c_int {
    // SAFETY: no arguments.
    if thread != unsafe { libc::pthread_self() } {
        return libc::ENOSYS;
    }
    // SAFETY: a string, of which the kernel reads at most 16 bytes.
    match unsafe { libc::prctl(libc::PR_SET_NAME, name) } {
        0 => 0,
        // SAFETY: this thread's own.
        _ => unsafe { *libc::__errno_location() },
    }
}

/// The stack of the program is never executable: the linker is called with `-z noexecstack`.
#[unsafe(no_mangle)]
extern "C" fn __nptl_change_stack_perm(_thread: *mut c_void) -> c_int {
    libc::ENOTSUP
}

/// As above, for all threads.
#[unsafe(no_mangle)]
extern "C" fn _dl_make_stacks_executable(_end: *mut *mut c_void) -> c_int {
    libc::ENOTSUP
}

/// Where shared libraries are looked for: none is loaded.
#[unsafe(no_mangle)]
extern "C" fn _dl_init_paths(_path: *const c_char) {}

/// What a growing array of the C library calls when its index is out of range.
#[unsafe(no_mangle)]
extern "C" fn __libc_dynarray_at_failure(_size: usize, _index: usize) -> ! {
    std::process::abort()
}

/// Does nothing and answers as little: no thread has a file of `stdio` that a new one or a child process must take over.
macro_rules! nothing {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> *mut c_void {
            ptr::null_mut()
        }
    )*};
}

nothing! {
    _IO_enable_locks _IO_list_lock _IO_list_unlock _IO_list_resetlock _IO_iter_begin _IO_iter_end _IO_iter_next _IO_iter_file
    __ctype_init
}

/// `malloc_stats` and `malloc_info` print by these: nobody calls them.
macro_rules! nothing_printed {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> c_int {
            -1
        }
    )*};
}

nothing_printed! { fprintf _IO_fputs fwrite }

/// Where they would print.
#[allow(non_upper_case_globals, reason = "the C library's name")]
#[unsafe(no_mangle)]
static stderr: usize = 0;

/// Reads a decimal number, as there is one in files below /sys and /proc that sysconf(3) reads.
///
/// # Safety
/// `text` is a string, and `end` is null or a place for a pointer.
#[unsafe(no_mangle)]
unsafe extern "C" fn strtoul(text: *const c_char, end: *mut *mut c_char, _base: c_int) -> c_ulong {
    // SAFETY: a string.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    let blanks = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let digits = bytes[blanks..].iter().take_while(|byte| byte.is_ascii_digit());
    let (length, number) = digits.fold((0, 0 as c_ulong), |(length, number), digit| {
        (length + 1, number.saturating_mul(10).saturating_add(c_ulong::from(digit - b'0')))
    });
    if !end.is_null() {
        let read = if length == 0 { 0 } else { blanks + length };
        // SAFETY: a place for a pointer, and the string has so many bytes.
        unsafe { *end = text.add(read).cast_mut() };
    }
    number
}

/// As above: none of the numbers is negative.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
unsafe extern "C" fn strtol(text: *const c_char, end: *mut *mut c_char, base: c_int) -> c_long {
    // SAFETY: the caller's promise.
    let number = unsafe { strtoul(text, end, base) };
    c_long::try_from(number).unwrap_or(c_long::MAX)
}
