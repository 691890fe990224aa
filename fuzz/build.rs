//! Refuses a build without coverage counters: libFuzzer would run blind and find nothing, with exit code 0.
#![allow(clippy::print_stdout)] // how a build script speaks

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_CFG_FUZZING").is_none() {
        println!(
            "cargo::error=the flags in fuzz/.cargo/config.toml are not in effect: run cargo from within fuzz/"
        );
    }
}
