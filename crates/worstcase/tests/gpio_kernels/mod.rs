//! Kernels with the GPIO lines that tests need, which none of Debian's has: Linux 6.12 with and without PREEMPT_RT
//! (`crates/guest-tests/kernels/gpio.cfg`). Building one takes some minutes the first time.

use std::path::Path;
use std::process::Command;

pub const PLAIN: &str = "gpio-plain";
pub const RT: &str = "gpio-rt";

/// Builds `kernel` unless it was built from the same; the last line that this said, which is why where there is none.
pub fn build(kernel: &str) -> Result<String, String> {
    let fragments: &[&str] = match kernel {
        RT => &["base.cfg", "release.cfg", "preempt-rt.cfg"],
        _ => &["base.cfg", "release.cfg"],
    };
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let shipped = crates.parent().unwrap().join("ladders/fragments");
    let own = crates.join("guest-tests/kernels/gpio.cfg");
    let mut build = Command::new(env!("CARGO_BIN_EXE_worstcase"));
    build.args(["lab", "kernels", "build", kernel, "--source", "debian-6.12"]);
    for fragment in fragments.iter().map(|name| shipped.join(name)).chain([own]) {
        build.arg("--fragment").arg(fragment);
    }
    let built = build.output().unwrap();
    let said = String::from_utf8_lossy(&built.stderr).lines().last().unwrap_or_default().to_owned();
    if built.status.success() { Ok(said) } else { Err(said) }
}
