//! What stands in for parts of glibc and of the unwinder in static programs: large parts that nothing reaches, or that do less
//! than they bring. Together they make such a program 0.3 MB smaller. A linker takes an archive's member only for a name that
//! is not there yet, so each of these keeps out its member and all that the member names.

#[cfg(lean_libc)]
mod library;

use std::ffi::{c_char, c_int, c_uint, c_void};

/// The standard library asks for the stack's end, so that an overflow is called one before the signal ends the program; it does
/// without where there is no answer. The C library's own reads /proc/self/maps by `sscanf`, which brings 100 KB of scanning and
/// numbers of every width. pthread_getattr_np(3).
// SAFETY, here and below: the names are those of the C library and its unwinder, with their types; pointers are only read as
// each says.
#[unsafe(no_mangle)]
extern "C" fn pthread_getattr_np(_thread: libc::pthread_t, _attributes: *mut libc::pthread_attr_t) -> c_int {
    libc::ENOSYS
}

/// The C library's assertions about itself: ends the program, with what did not hold. The C library's own formats and
/// translates it, by wide characters and converters of character sets. assert(3).
#[unsafe(no_mangle)]
extern "C" fn __assert_fail(
    assertion: *const c_char,
    _file: *const c_char,
    _line: c_uint,
    _function: *const c_char,
) -> ! {
    // SAFETY: a string of the C library.
    let length = unsafe { libc::strlen(assertion) };
    // SAFETY: so many bytes of it. Nothing can be done where it cannot be written.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, assertion.cast(), length) };
    std::process::abort()
}

/// The C library's messages, the words of errors among them, are not translated: the program's own are not either.
/// dcgettext(3).
#[unsafe(no_mangle)]
extern "C" fn __dcgettext(_domain: *const c_char, message: *const c_char, _category: c_int) -> *const c_char {
    message
}

/// The standard library looks for functions of newer C libraries by name, and does without those that it does not find. The C
/// library's own would load a second copy of itself, and brings the dynamic linker and all that prints. dlsym(3).
#[unsafe(no_mangle)]
extern "C" fn dlsym(_handle: *mut c_void, _name: *const c_char) -> *mut c_void {
    std::ptr::null_mut()
}

/// Begins the state of the resolver, for which each thread has a place: names of hosts are not looked up. resolver(3).
#[unsafe(no_mangle)]
extern "C" fn __res_vinit(_state: *mut c_void, _options: c_int) -> c_int {
    -1
}

/// Ends the resolver's state of a thread, which never began.
#[unsafe(no_mangle)]
extern "C" fn __resolv_conf_detach(_state: *mut c_void) {}

/// Ends the resolver's other state of a thread, which never began either.
#[unsafe(no_mangle)]
extern "C" fn __resolv_context_freeres() {}

/// A panic ends the program, which has neither tables for unwinding nor symbols: the standard library's walk up the stack
/// would find nothing. With an end in its place, its reader of debug information is left out. Itanium C++ ABI: Exception
/// Handling, section 1.6.
///
/// Arm has its own ABI, where every function's entry in the index names the unwinder's routines: its members are linked anyway
/// (Exception Handling ABI for the Arm Architecture, section 6).
#[cfg(all(panic = "abort", not(target_arch = "arm")))]
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Backtrace(_each: *const c_void, _argument: *const c_void) -> c_int {
    const END_OF_STACK: c_int = 5;
    END_OF_STACK
}

/// What else unwinds in both standard libraries, after a panic or when a thread is cancelled: nothing reaches it.
#[cfg(all(panic = "abort", not(target_arch = "arm")))]
macro_rules! unreached {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> ! {
            std::process::abort()
        }
    )*};
}

#[cfg(all(panic = "abort", not(target_arch = "arm")))]
unreached! {
    _Unwind_DeleteException _Unwind_FindEnclosingFunction _Unwind_ForcedUnwind _Unwind_GetCFA _Unwind_GetDataRelBase
    _Unwind_GetIP _Unwind_GetIPInfo _Unwind_GetLanguageSpecificData _Unwind_GetRegionStart _Unwind_GetTextRelBase
    _Unwind_RaiseException _Unwind_Resume _Unwind_SetGR _Unwind_SetIP __gcc_personality_v0
}
