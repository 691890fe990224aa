//! Fragments put onto a base: what is asked for, and the text that kconfig reads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use flate2::Crc;
use machine::kernel_config::{Fragment, KernelConfig, Setting, line_of};

use super::cache::{LONGEST_CONFIG, failed};
use crate::Error;

/// The most complaints about one fragment that an error lists.
const MOST_COMPLAINTS: usize = 5;

/// A fragment with the name that messages give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its file's name.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// What fragments are put onto.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// `make tinyconfig`: everything off that can be.
    Tiny,
    /// `make defconfig`: what the architecture's maintainers propose.
    Default,
    /// A whole configuration.
    File(Asked),
}

impl Base {
    /// `tinyconfig`, `defconfig`, or a file that is read.
    pub fn named(name: &str) -> Result<Self, Error> {
        Ok(match name {
            "tinyconfig" => Self::Tiny,
            "defconfig" => Self::Default,
            file => Self::File(Asked::read(Path::new(file))?),
        })
    }

    /// What it goes by.
    pub fn name(&self) -> &str {
        match self {
            Self::Tiny => "tinyconfig",
            Self::Default => "defconfig",
            Self::File(file) => &file.name,
        }
    }
}

impl Asked {
    /// Reads a fragment's file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bytes = files::read(path, LONGEST_CONFIG).map_err(|error| failed("read", path, &error.source))?;
        let name = PathBuf::from(path.file_name().unwrap_or_default()).display().to_string();
        Ok(Self { name, text: String::from_utf8_lossy(&bytes).into_owned() })
    }

    /// Tells it from another of the same name: a CRC-32.
    pub(crate) fn checksum(&self) -> u32 {
        let mut crc = Crc::new();
        crc.update(self.text.as_bytes());
        crc.sum()
    }

    /// What it says. A line that looks like a setting and is none was meant to be one.
    fn parse(&self) -> Result<Fragment, Error> {
        let fragment = Fragment::parse(&self.text);
        if fragment.complaints.is_empty() {
            return Ok(fragment);
        }
        let complaints = fragment.complaints.iter().take(MOST_COMPLAINTS);
        let lines: Vec<String> = complaints.map(|complaint| format!("{} {complaint}", self.name)).collect();
        let more = fragment.complaints.len().saturating_sub(MOST_COMPLAINTS);
        let more = if more == 0 { String::new() } else { format!("\nand {more} more such lines") };
        Err(Error::new(format!("{}{more}", lines.join("\n")))
            .hint("a fragment has lines like CONFIG_HZ_1000=y or # CONFIG_HZ_250 is not set"))
    }
}

/// A line for each symbol that the fragments ask for, as the last one that names it says.
pub(crate) fn lines_of(fragments: &[Asked]) -> Result<Vec<String>, Error> {
    let joined = join(fragments)?;
    Ok(joined.settings().map(|(symbol, setting)| line_of(symbol, setting)).collect())
}

/// The symbol that a line sets; of a line that sets none the line itself.
pub(crate) fn symbol_of(line: &str) -> String {
    let line_alone = KernelConfig::parse(line);
    line_alone.settings().next().map_or(line, |(symbol, _)| symbol).to_owned()
}

/// All that the fragments ask for, each symbol once, as the last fragment that names it says.
pub(super) fn join(fragments: &[Asked]) -> Result<Fragment, Error> {
    let mut joined = String::new();
    for fragment in fragments {
        joined = onto(&KernelConfig::parse(&joined), &fragment.parse()?);
    }
    Ok(Fragment::parse(&joined))
}

/// The settings of `base` that `fragment` does not name, then those of `fragment`: of alternatives that exclude each
/// other, kconfig takes the one that it reads last.
pub(super) fn onto(base: &KernelConfig, fragment: &Fragment) -> String {
    let named: BTreeSet<&str> = fragment.settings().map(|(symbol, _)| symbol).collect();
    let kept = base.settings().filter(|(symbol, _)| !named.contains(symbol));
    let line = |(symbol, setting): (&str, &Setting)| line_of(symbol, setting) + "\n";
    kept.chain(fragment.settings()).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &str, text: &str) -> Asked {
        Asked { name: name.into(), text: text.into() }
    }

    #[test]
    fn later_fragments_win_and_stand_behind() {
        let release = asked("release.cfg", "CONFIG_PREEMPT=y\n# a reason\nCONFIG_HZ_250=y\n");
        let rt = asked("rt.cfg", "CONFIG_PREEMPT_RT=y\n# CONFIG_PREEMPT is not set\n");
        let joined = join(&[release, rt]).unwrap();
        let base = KernelConfig::parse("CONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPT=y\nCONFIG_HZ_100=y\n");
        assert_eq!(
            onto(&base, &joined),
            "CONFIG_PREEMPT_NONE=y\nCONFIG_HZ_100=y\nCONFIG_HZ_250=y\nCONFIG_PREEMPT_RT=y\n\
             # CONFIG_PREEMPT is not set\n"
        );
    }

    #[test]
    fn a_line_that_no_tool_would_read_is_refused() {
        let s0 =
            "# CONFIG_HIGHMEM is not set, but you can set CONFIG_HIGHMEM=y\n#     if more is needed\nHZ=1\n";
        let error = join(&[asked("ok.cfg", "CONFIG_X=y\n"), asked("00051-latency.cfg", s0)]).unwrap_err();
        assert!(error.message.starts_with("00051-latency.cfg line 1 is a comment"), "{error}");
        assert!(error.message.contains("\n00051-latency.cfg line 3 "), "{error}");
        let garbage = "\u{fffd}\u{1}\n".repeat(100);
        assert!(join(&[asked("x", &garbage)]).unwrap_err().message.ends_with("and 95 more such lines"));
    }

    /// Each asks for something, and none has a line that would be passed over.
    #[test]
    fn the_shipped_fragments_are_whole() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ladders/fragments");
        let files: Vec<PathBuf> =
            std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(files.len() >= 5);
        for file in files {
            let fragment = Asked::read(&file).unwrap().parse().unwrap();
            assert!(!fragment.is_empty() && fragment.overridden.is_empty(), "{}", file.display());
        }
    }
}
