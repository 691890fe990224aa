//! Texts that are built into the program compressed, by build scripts.

use std::io::Read;

use flate2::read::GzDecoder;

/// The text; empty where the bytes are no compressed text, which tests of those who build it in exclude. 200 KB take half
/// a millisecond: whoever needs one twice keeps it.
pub fn text(gzip: &[u8]) -> String {
    let mut text = String::new();
    match GzDecoder::new(gzip).read_to_string(&mut text) {
        Ok(_) => text,
        Err(_) => String::new(),
    }
}
