//! What the kernel answered.

pub use rustix::io::Errno;

/// A system call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}{}: {} (errno {})", subject(.on), units::errno_in_words(.errno.raw_os_error()), .errno.raw_os_error())]
pub struct Error {
    /// The call, as in its man page: `mlockall`.
    pub call: &'static str,
    /// What it was called on: a path, a CPU, a process. Empty where there is nothing to say.
    pub on: String,
    /// The answer.
    pub errno: Errno,
}

fn subject(on: &str) -> String {
    if on.is_empty() { String::new() } else { format!(" {on}") }
}

/// Result of a system call.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A failed call with nothing to say about its subject.
    pub fn new(call: &'static str, errno: Errno) -> Self {
        Self { call, on: String::new(), errno }
    }

    /// The call that failed just now on `on`, from the thread's errno.
    pub(crate) fn last(call: &'static str, on: impl Into<String>) -> Self {
        let raw = std::io::Error::last_os_error().raw_os_error().unwrap_or_default();
        Self { call, on: on.into(), errno: Errno::from_raw_os_error(raw) }
    }

    /// The errno's number.
    pub fn number(&self) -> i32 {
        self.errno.raw_os_error()
    }
}

/// Names the call of a rustix result.
pub(crate) trait Named<T> {
    fn named(self, call: &'static str) -> Result<T>;
    fn on(self, call: &'static str, on: impl std::fmt::Display) -> Result<T>;
}

impl<T> Named<T> for rustix::io::Result<T> {
    fn named(self, call: &'static str) -> Result<T> {
        self.map_err(|errno| Error::new(call, errno))
    }

    fn on(self, call: &'static str, on: impl std::fmt::Display) -> Result<T> {
        self.map_err(|errno| Error { call, on: on.to_string(), errno })
    }
}

/// Turns the -1 convention of libc into a result, whatever integer a function returns: `long` is `int` on 32 bits.
pub(crate) fn check<T: PartialEq + From<i8>>(
    result: T,
    call: &'static str,
    on: impl std::fmt::Display,
) -> Result<T> {
    if result == T::from(-1) { Err(Error::last(call, on.to_string())) } else { Ok(result) }
}

impl From<Error> for failure::Error {
    fn from(error: Error) -> Self {
        Self::new(&error, "").caused_by(error)
    }
}
