//! Refuses a build without coverage counters: libFuzzer would run blind and find nothing, with exit code 0.

fn main() -> Result<(), &'static str> {
    match std::env::var_os("CARGO_CFG_FUZZING") {
        Some(_) => Ok(()),
        None => Err("the flags in fuzz/.cargo/config.toml are not in effect: run cargo from within fuzz/"),
    }
}
