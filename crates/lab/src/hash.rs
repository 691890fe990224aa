//! SHA-256 of what guests are made of.

use std::path::Path;

use record::Digest;
use sha2::{Digest as _, Sha256};

use crate::{Error, input};

/// Of `bytes`.
pub(crate) fn of(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Of the file at `path`.
///
/// # Errors
/// Where it cannot be read.
pub(crate) fn of_file(path: &Path) -> Result<Digest, Error> {
    Ok(of(&input::read(path)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, appendix B.1; and of no bytes.
    #[test]
    fn it_is_sha_256() {
        assert_eq!(of(b"abc").0, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(of(b"").0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(of(b"").short(), "e3b0c44298fc");
    }
}
