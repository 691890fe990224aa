//! Turns the presets into JSON: no program carries a parser of TOML for them.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src/presets.toml");
    let presets: toml::Value =
        toml::from_str(&fs::read_to_string("src/presets.toml")?).map_err(io::Error::other)?;
    let target = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&target).join("presets.json"), serde_json::to_string(&presets)?)
}
