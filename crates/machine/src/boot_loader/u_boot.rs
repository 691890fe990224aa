//! U-Boot's texts on a boot partition, from which scripts take words for bootargs. The environment itself is in flash
//! memory, and only a program tells it: the words found here are never all.

use record::Fact;
use sysroot::SysRoot;

use super::{Request, Requested, first_of, numbered, piece, words_of};

/// What the fact `bootloader` calls it.
pub(super) const NAME: &str = "u-boot";

const FILES: [&str; 4] = ["/boot/armbianEnv.txt", "/boot/uEnv.txt", "/uEnv.txt", "/boot/firmware/uEnv.txt"];

/// Variables that vendors' scripts put on the line.
const VARIABLES: [&str; 5] = ["bootargs", "optargs", "extraargs", "extrabootargs", "cmdline"];

pub(super) fn find(root: &SysRoot) -> Fact<Request> {
    first_of(root, &FILES).map(|(path, text)| Request {
        is_whole: false,
        ..Request::new(NAME, &path, environment_text(&path, &text))
    })
}

/// The words that such a text sets; of a variable that is set twice the last counts. A blank behind a name belongs to it.
pub fn environment_text(path: &str, text: &str) -> Vec<Requested> {
    let set = |name: &str| {
        let lines = numbered(text).filter_map(|line| {
            let (variable, value) = line.2.split_once('=')?;
            (variable.trim_start() == name).then(|| piece(path, line, value))
        });
        lines.last()
    };
    VARIABLES.iter().filter_map(|name| set(name)).flat_map(|piece| words_of(&[piece])).collect()
}
