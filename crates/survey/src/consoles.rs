//! Consoles on serial lines.

use machine::facts::consoles::{enabled_with_flags, log_level};

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Item, Reading};

pub(super) const FACTS: &[NamedFact] = &[
    fact("consoles.serial", "enabled consoles on serial lines, each `nbcon` or `legacy`", serial),
    fact("consoles.level", "messages of a lower level than this are printed", |survey| {
        Reading::new(log_level(&survey.root).map(i64::from), &["/proc/sys/kernel/printk"])
    }),
];

const PATH: &str = "/proc/consoles";

/// Serial drivers call their lines `tty` and capitals; `tty0` is the screen.
fn serial(survey: &Survey) -> Reading {
    let is_serial = |name: &str| {
        name.strip_prefix("tty").is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let list = |text: String| {
        let consoles = enabled_with_flags(&text).filter(|(name, _)| is_serial(name));
        let kind = |flags: &str| if flags.contains('N') { "nbcon" } else { "legacy" };
        consoles
            .map(|(name, flags)| Item { name: name.to_owned(), value: kind(flags).to_owned() })
            .collect::<Vec<_>>()
    };
    Reading::new(survey.root.read(PATH).map(list), &[PATH])
}
