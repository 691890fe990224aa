//! Files of other programs: each is read as that program reads it, or not at all.

mod automation;
mod blocks;
mod compose;
mod daemons;
mod dockerfile;
mod ini;
mod json;
mod kubernetes;
mod limits;
mod lists;
mod nodes;
mod placed;
mod udev;
mod yaml;

use super::Target;
use super::reading::Reading;

/// What a whole text says, if it is a file of a format that is known: nothing for any other.
pub fn read(text: &str, target: Target) -> Option<Reading> {
    let readers: [fn(&str, Target) -> Option<Reading>; 10] = [
        placed::read,
        json::read,
        ini::read,
        udev::read,
        limits::read,
        lists::read,
        daemons::read,
        dockerfile::read,
        blocks::read,
        yaml::read,
    ];
    readers.into_iter().find_map(|read| read(text, target))
}
