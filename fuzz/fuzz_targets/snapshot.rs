//! Any bytes are answered as an archive and as a text, compressed or not; what is read is written as what reads as the same.
#![no_main]

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use sysroot::Tree;

fuzz_target!(|bytes: &[u8]| {
    let _ = Tree::of_archive(bytes);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
    let compressed = gzip.write_all(bytes).and_then(|()| gzip.finish()).unwrap_or_default();
    let trees = [Tree::of_archive(&compressed).ok(), Tree::of_text(&String::from_utf8_lossy(bytes)).ok()];
    for tree in trees.into_iter().flatten() {
        assert_eq!(Tree::of_text(&tree.text()).as_ref(), Ok(&tree));
    }
});
