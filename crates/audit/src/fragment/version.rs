//! The version of a kernel's source, as the head of its Makefile states it.

use std::path::Path;

/// The head of the file is enough; the whole one has some 70 KiB.
const LONGEST: u64 = 1 << 20;

/// `6.12.3`, `6.13.0-rc2`, of VERSION, PATCHLEVEL, SUBLEVEL and EXTRAVERSION in the Makefile of `tree`. None where there is no such file, or
/// it does not say.
pub fn version(tree: &Path) -> Option<String> {
    let bytes = files::read(&tree.join("Makefile"), LONGEST).ok()?;
    of_text(&String::from_utf8_lossy(&bytes))
}

fn of_text(text: &str) -> Option<String> {
    let value = |name: &str| {
        text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim_start().strip_prefix('=')?.trim()))
    };
    let number = |name: &str| value(name).filter(|text| text.parse::<u32>().is_ok());
    let (version, patch_level) = (number("VERSION")?, number("PATCHLEVEL")?);
    let sub_level = number("SUBLEVEL").unwrap_or("0");
    let extra = value("EXTRAVERSION").unwrap_or_default();
    Some(format!("{version}.{patch_level}.{sub_level}{extra}"))
}

#[cfg(test)]
mod tests {
    use super::of_text;

    #[test]
    fn versions_are_read_from_the_head_of_a_makefile() {
        let head = "# SPDX-License-Identifier: GPL-2.0\nVERSION = 6\nPATCHLEVEL = 13\nSUBLEVEL = 0\nEXTRAVERSION = -rc2\nNAME = Baby\n";
        assert_eq!(of_text(head).as_deref(), Some("6.13.0-rc2"));
        assert_eq!(
            of_text("VERSION = 6\nPATCHLEVEL=1\nSUBLEVEL = 90\nEXTRAVERSION =\n").as_deref(),
            Some("6.1.90")
        );
        assert_eq!(of_text("VERSION = 6\n"), None);
        assert_eq!(of_text("all:\n\tcc -c x.c\n"), None);
        assert_eq!(of_text("VERSION = $(A)\nPATCHLEVEL = 1\n"), None);
    }
}
