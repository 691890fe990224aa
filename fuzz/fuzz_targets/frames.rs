//! Any bytes are answered as results of a guest; what is read is written as what reads as the same, and not a byte of it
//! can be missing or another.
#![no_main]

use lab::frames::{Frame, read, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let (frames, Ok(())) = read(bytes) {
        holds(&frames, 0);
    }
    // Checksums stop most inputs: so they are the content of frames too.
    let (path, content) = bytes.split_at(bytes.len() / 2);
    let path = std::path::PathBuf::from(String::from_utf8_lossy(path).into_owned());
    let place = bytes.first().copied().unwrap_or_default().into();
    holds(&[Frame::Output(bytes.to_vec()), Frame::File(path, content.to_vec())], place);
});

fn holds(frames: &[Frame], place: usize) {
    let mut written = Vec::new();
    write(&mut written, frames).expect("memory takes all");
    assert_eq!(read(&written), (frames.to_vec(), Ok(())));
    let place = place % written.len();
    assert!(read(&written[..place]).1.is_err());
    written[place] ^= 1;
    assert!(read(&written).1.is_err());
}
