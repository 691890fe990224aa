//! Where the running kernel's configuration is.

use std::io::Read;

use flate2::read::GzDecoder;
use record::Fact;
use rustix::io::Errno;
use sysroot::SysRoot;

use crate::facts::kernel::RELEASE;
use crate::kernel_config::{KernelConfig, Setting};

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
            match root.bytes(&path).and_then(|bytes| text(&bytes)).and_then(|text| configuration(&text)) {
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

/// What has no setting at all is no configuration (EBADMSG): nothing follows from what it does not name.
fn configuration(text: &str) -> Fact<KernelConfig> {
    let config = KernelConfig::parse(text);
    sysroot::parsed(if config.is_empty() { Err(()) } else { Ok(config) })
}

/// The text of a file that may be compressed.
fn text(bytes: &[u8]) -> Fact<String> {
    if !bytes.starts_with(&sysroot::GZIP) {
        return Fact::Value(String::from_utf8_lossy(bytes).into_owned());
    }
    let mut plain = Vec::new();
    let read = GzDecoder::new(bytes).take(LONGEST + 1).read_to_end(&mut plain);
    match read {
        Ok(_) if plain.len() as u64 > LONGEST => Fact::Unreadable(Errno::FBIG.raw_os_error()),
        result => sysroot::parsed(result.map(|_| String::from_utf8_lossy(&plain).into_owned())),
    }
}
