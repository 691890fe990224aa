//! The kernel's symbols, as they lie in a guest that has loaded its modules.

use std::fs::{self, File};
use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::Result;

/// The one argument by which a guest's program is to write them, into its current directory.
pub const SYMBOLS: &str = "guest-symbols";
/// The file with them, deflated.
pub(crate) const FILE: &str = "symbols";
/// What is no function and needed all the same.
const DATA: [&str; 6] =
    ["tk_core", "__per_cpu_offset", "__preempt_count", "current_task", "pcpu_hot", "init_task"];

/// Writes functions, and what else is needed: the whole list would go through the serial port for ten seconds.
pub(super) fn write() -> Result<()> {
    let failed = |what: &str, error: std::io::Error| format!("{what}: {error}");
    let text = fs::read_to_string("/proc/kallsyms").map_err(|error| failed("read /proc/kallsyms", error))?;
    let file = File::create(FILE).map_err(|error| failed("create the list of symbols", error))?;
    let mut encoder = DeflateEncoder::new(file, Compression::fast());
    for line in text.lines().filter(|line| is_needed(line)) {
        writeln!(encoder, "{line}").map_err(|error| failed("write the list of symbols", error))?;
    }
    encoder.finish().map(drop).map_err(|error| failed("write the list of symbols", error))
}

fn is_needed(line: &str) -> bool {
    let mut words = line.split_whitespace().skip(1);
    match (words.next(), words.next()) {
        (Some("t" | "T" | "w" | "W"), Some(_)) => true,
        (Some(_), Some(name)) => DATA.contains(&name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_what_the_plugin_needs_are_kept() {
        assert!(is_needed("ffffffffc0000000 t ext4_map_blocks\t[ext4]"));
        assert!(is_needed("ffffffff82a0b000 d tk_core") && is_needed("0000000000020a00 A current_task"));
        assert!(!is_needed("ffffffff82a0b000 d jiffies") && !is_needed(""));
    }
}
