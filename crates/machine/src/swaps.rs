//! Where memory is swapped to (proc_swaps(5), `swap_show` in mm/swapfile.c).

use record::Fact;
use sysroot::SysRoot;

/// Where it is listed.
pub const PATH: &str = "/proc/swaps";

/// A partition or a file to which memory is swapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swap {
    /// Its path.
    pub path: String,
    /// `partition` or `file`.
    pub kind: String,
    /// What is there of memory, in KiB.
    pub used: u64,
    /// Higher ones are used first; the kernel gives negative ones to those that nobody gave one.
    pub priority: i32,
}

/// All that are in use.
pub fn swaps(root: &SysRoot) -> Fact<Vec<Swap>> {
    root.read(PATH).map(|text| parse(&text))
}

/// `/dev/dm-1   partition   1000444   0   -2`, below a line of titles.
fn parse(text: &str) -> Vec<Swap> {
    let parts = |line: &str| {
        let mut words = line.split_whitespace();
        let (path, kind) = (unescaped(words.next()?), words.next()?.to_owned());
        let used = words.nth(1)?.parse().ok()?;
        Some(Swap { path, kind, used, priority: words.next()?.parse().ok()? })
    };
    text.lines().skip(1).filter_map(parts).collect()
}

/// Blanks and backslashes stand as `\040` and `\134` (`seq_file_path`).
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .into_iter()
        .fold(text.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TITLES: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

    #[test]
    fn each_has_a_path_a_use_and_a_priority() {
        let text = format!("{TITLES}/dev/dm-1   partition\t1000\t\t12\t\t-2\n/a\\040b  file\t8\t\t0\t\t5\n");
        let swap = |path: &str, kind: &str, used, priority| Swap {
            path: path.into(),
            kind: kind.into(),
            used,
            priority,
        };
        assert_eq!(parse(&text), [swap("/dev/dm-1", "partition", 12, -2), swap("/a b", "file", 0, 5)]);
        assert_eq!(parse(TITLES), []);
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "\\PC{0,80}") {
            let _ = parse(&format!("{TITLES}{text}"));
        }
    }
}
