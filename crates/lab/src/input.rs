//! What guests are made of, read from files that anybody may have written.

use std::path::Path;

use crate::Error;

/// No image, module, program or file of a guest's system is longer: guests have little more memory.
pub(crate) const LONGEST: u64 = 1 << 30;

/// The bytes of a regular file; a pipe or a device is none.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    files::read(path, LONGEST).map_err(|error| Error::new(error.to_string()))
}

/// As [`read`], of a file that is text.
pub(crate) fn text(path: &Path) -> Result<String, Error> {
    files::read_text(path, LONGEST).map_err(|error| Error::new(error.to_string()))
}
