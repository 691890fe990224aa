//! The Raspberry Pi's firmware ("The boot process" in its documents): one line in cmdline.txt, or in the file that
//! config.txt names.

use record::Fact;
use sysroot::SysRoot;

use super::{Request, Requested, first_of, numbered, piece, text, words_of};

/// What the fact `bootloader` calls it.
pub(super) const NAME: &str = "raspberry-pi";

const DIRECTORIES: [&str; 2] = ["/boot/firmware", "/boot"];

pub(super) fn find(root: &SysRoot) -> Fact<Request> {
    let mut lost = Fact::Absent;
    for directory in DIRECTORIES {
        let settings = text(root, &format!("{directory}/config.txt")).value().cloned().unwrap_or_default();
        match first_of(root, &[&format!("{directory}/{}", file_of(&settings))]) {
            Fact::Value((path, text)) => {
                return Fact::Value(Request::new(NAME, &path, cmdline_txt(&path, &text)));
            }
            Fact::Absent => {}
            other => lost = other.map(|_| Request::new(NAME, "", Vec::new())),
        }
    }
    lost
}

/// The file's path below the boot directory, as config.txt says it.
fn file_of(settings: &str) -> String {
    let last = |name: &str| {
        settings.lines().filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix('=')).next_back()
    };
    format!("{}{}", last("os_prefix").unwrap_or_default(), last("cmdline").unwrap_or("cmdline.txt"))
}

/// The words of the file's first line: the firmware reads no other.
pub fn cmdline_txt(path: &str, text: &str) -> Vec<Requested> {
    numbered(text).next().map_or_else(Vec::new, |line| words_of(&[piece(path, line, line.2)]))
}
