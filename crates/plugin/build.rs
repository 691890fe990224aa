//! Builds the plugin as a library of its own, without the standard library: the programs carry its bytes.
//!
//! It calls the compiler itself. A dependency on a `cdylib` gives no file that could be embedded, and flags of the programs
//! (a static C library) must not reach a library that QEMU loads.

use std::path::Path;
use std::process::Command;
use std::{env, io};

/// Emulators that a plugin is loaded into run on these.
const HOSTS: [&str; 2] = ["x86_64", "aarch64"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=qemu");
    println!("cargo::rerun-if-changed=src/clock.rs");
    println!("cargo::rerun-if-changed=src/layout.rs");
    println!("cargo::rerun-if-changed=src/sections.rs");
    let variable = |name: &str| env::var(name).map_err(|error| io::Error::other(format!("{name}: {error}")));
    let file = Path::new(&variable("OUT_DIR")?).join("plugin.so");
    let target = variable("TARGET")?;
    if !HOSTS.contains(&variable("CARGO_CFG_TARGET_ARCH")?.as_str()) {
        return std::fs::write(file, []);
    }
    let mut compiler = Command::new(variable("RUSTC")?);
    compiler.args(["--edition", "2024", "--crate-name", "worstcase_plugin", "--crate-type", "cdylib"]);
    compiler.args(["--target", &target, "-C", "opt-level=3", "-C", "lto=fat", "-C", "codegen-units=1"]);
    compiler.args(["-C", "panic=abort", "-C", "strip=symbols", "-C", "link-arg=-nostdlib"]);
    compiler.args(["-C", "target-feature=-crt-static", "-D", "warnings", "-o"]).arg(file);
    // It needs no C library, so that the compiler's own linker will do where none is named for another machine.
    let own = (target != variable("HOST")?).then(|| "rust-lld".to_owned());
    if let Some(linker) = env::var("RUSTC_LINKER").ok().or(own) {
        compiler.arg("-C").arg(format!("linker={linker}"));
    }
    let status = compiler.arg("qemu/plugin.rs").status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("the plugin was not built: {status}")))
    }
}
