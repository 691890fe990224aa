//! Where the running kernel's configuration is.

use std::io::{self, Read};

use flate2::read::GzDecoder;
use record::Fact;
use rustix::io::Errno;
use sysroot::SysRoot;

use crate::kernel_config::{KernelConfig, Setting};

/// The kernel's release, `6.1.0-21-amd64`.
pub const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// The running kernel's own copy: the only one that cannot be of another build.
pub const RUNNING: &str = "/proc/config.gz";

/// No configuration is longer; a larger one is refused (EFBIG).
const LONGEST: u64 = 4 << 20;

/// The configuration, and where it was found.
pub struct Configuration {
    /// Unreadable (ENOENT) where no file has it: that says nothing about any symbol.
    pub config: Fact<KernelConfig>,
    /// The file that it was read from, or those that were looked for.
    pub from: Vec<String>,
}

impl Configuration {
    /// Looks where kernels and distributions put it; `name` is what the first place is called, if not by its path.
    pub fn find(root: &SysRoot, name: Option<&str>) -> Self {
        let mut looked_for = Vec::new();
        let mut refusal = Fact::Unreadable(Errno::NOENT.raw_os_error());
        for path in places(root) {
            match root.bytes(&path).and_then(|bytes| fact(parse(&bytes))) {
                Fact::Value(config) => {
                    let from = vec![name.unwrap_or(&path).to_owned()];
                    return Self { config: Fact::Value(config), from };
                }
                Fact::Unreadable(errno) => refusal = Fact::Unreadable(errno),
                Fact::Unsupported if looked_for.is_empty() => refusal = Fact::Unsupported,
                Fact::Absent | Fact::Unsupported => {}
            }
            looked_for.push(path);
        }
        Self { config: refusal, from: looked_for }
    }

    /// What a symbol is set to, if the configuration was read and names it.
    pub fn get(&self, symbol: &str) -> Option<&Setting> {
        self.config.value()?.get(symbol)
    }

    /// Whether a symbol is built in; a module is not.
    pub fn has(&self, symbol: &str) -> bool {
        self.get(symbol) == Some(&Setting::Yes)
    }
}

/// What is said of the preemption of a kernel that decides when it boots.
pub const UNDECIDED_PREEMPTION: &str = "dynamic";

/// What the kernel was built to do where nobody asks for something else.
pub fn configured_preemption(config: &KernelConfig) -> &'static str {
    let modes = [
        ("PREEMPT_RT", "rt"),
        ("PREEMPT_RT_FULL", "rt"),
        ("PREEMPT_LAZY", "lazy"),
        ("PREEMPT", "full"),
        ("PREEMPT__LL", "full"),
        ("PREEMPT_VOLUNTARY", "voluntary"),
        ("PREEMPT_NONE", "none"),
    ];
    let chosen = modes.iter().find(|(symbol, _)| config.get(symbol) == Some(&Setting::Yes));
    chosen.map_or(UNDECIDED_PREEMPTION, |(_, mode)| mode)
}

/// Whether a symbol is built into the running kernel; unreadable where no file has its configuration.
pub(crate) fn built_in(root: &SysRoot, symbol: &str) -> Fact<bool> {
    let found = Configuration::find(root, None);
    let has = found.has(symbol);
    found.config.map(|_| has)
}

/// The files that may hold it, the most trusted first.
fn places(root: &SysRoot) -> Vec<String> {
    let mut places = vec![RUNNING.to_owned()];
    if let Fact::Value(release) = root.read(RELEASE) {
        places.extend([
            format!("/boot/config-{release}"),
            format!("/lib/modules/{release}/config"),
            format!("/usr/lib/modules/{release}/config"),
            format!("/lib/modules/{release}/build/.config"),
        ]);
    }
    places
}

/// Why bytes are not a kernel configuration by which something can be judged.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// Compressed with gzip, and cut off or damaged.
    #[error("it cannot be decompressed, it was cut off or damaged: {0}")]
    Compression(io::Error),
    /// More than any kernel has.
    #[error("it is longer than 4 MiB")]
    TooLong,
    /// A form that is not read: what to do with it first.
    #[error("{0}")]
    Foreign(&'static str),
    /// No setting at all: nothing follows from what it does not name.
    #[error("no kernel configuration, or a damaged one")]
    Empty,
    /// A part is missing: what is not there would pass for off.
    #[error("its end is missing: it was cut off")]
    Cut,
}

/// The whole configuration, or the fragment, in the bytes of a file that may be compressed with gzip.
///
/// # Errors
/// [`ConfigurationError`] for anything else.
pub fn parse(bytes: &[u8]) -> Result<KernelConfig, ConfigurationError> {
    let config = KernelConfig::parse(&text(bytes)?);
    match (config.is_empty(), config.is_cut) {
        (true, _) => Err(ConfigurationError::Empty),
        (false, true) => Err(ConfigurationError::Cut),
        (false, false) => Ok(config),
    }
}

/// How files begin that hold something else than a configuration's text.
const FOREIGN: [(&[u8], &str); 6] = [
    (b"\xfd7zXZ\0", "it is compressed with xz: unpack it first (xz -dc)"),
    (b"\x28\xb5\x2f\xfd", "it is compressed with zstd: unpack it first (zstd -dc)"),
    (b"BZh", "it is compressed with bzip2: unpack it first (bzip2 -dc)"),
    (b"\x04\x22\x4d\x18", "it is compressed with lz4: unpack it first (lz4 -dc)"),
    (b"\xff\xfe", "it is text in UTF-16: kconfig reads and writes UTF-8"),
    (b"\xfe\xff", "it is text in UTF-16: kconfig reads and writes UTF-8"),
];

fn text(bytes: &[u8]) -> Result<String, ConfigurationError> {
    if let Some((_, why)) = FOREIGN.iter().find(|(start, _)| bytes.starts_with(start)) {
        return Err(ConfigurationError::Foreign(why));
    }
    if !bytes.starts_with(&sysroot::GZIP) {
        return Ok(String::from_utf8_lossy(bytes).into_owned());
    }
    let mut plain = Vec::new();
    let unpacked = GzDecoder::new(bytes).take(LONGEST + 1).read_to_end(&mut plain);
    unpacked.map_err(ConfigurationError::Compression)?;
    if plain.len() as u64 > LONGEST {
        return Err(ConfigurationError::TooLong);
    }
    Ok(String::from_utf8_lossy(&plain).into_owned())
}

/// What is said of a configuration that was found in a tree: EBADMSG for a damaged one, EFBIG for one that is too long.
fn fact(parsed: Result<KernelConfig, ConfigurationError>) -> Fact<KernelConfig> {
    match parsed {
        Err(ConfigurationError::TooLong) => Fact::Unreadable(Errno::FBIG.raw_os_error()),
        parsed => sysroot::parsed(parsed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(bytes: &[u8]) -> String {
        parse(bytes).map_or_else(|error| error.to_string(), |config| format!("{} settings", config.len()))
    }

    #[test]
    fn what_is_no_configuration_is_named() {
        assert_eq!(said(b"CONFIG_HZ=250\n"), "1 settings");
        assert!(said(b"\xfd7zXZ\0\0\x04").contains("xz -dc"));
        assert!(said(b"\xff\xfeC\0O\0").contains("UTF-16"));
        assert!(said(&sysroot::GZIP).contains("cannot be decompressed"));
        assert_eq!(said(b"# nothing\n"), "no kernel configuration, or a damaged one");
        assert!(said(b"# Linux/x86 6.1.0 Kernel Configuration\nCONFIG_HZ=250\n").contains("cut off"));
    }

    /// A copy in /boot that was cut off says nothing of what is missing.
    #[test]
    fn a_configuration_in_a_tree_that_was_cut_off_is_unreadable() {
        let release = (RELEASE.to_owned(), b"6.1.0\n".to_vec());
        let cut = b"# Linux/x86 6.1.0 Kernel Configuration\nCONFIG_HZ=250\n".to_vec();
        let tree = sysroot::Tree::whole([release, ("/boot/config-6.1.0".to_owned(), cut)]);
        let found = Configuration::find(&SysRoot::of(tree), None);
        assert_eq!(found.config, Fact::Unreadable(Errno::BADMSG.raw_os_error()));
    }
}
