//! Turns the files of loads into JSON, so that a new load is a new file and nothing else, and no program that is made of
//! this crate carries a parser of TOML.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Those that are shown first, in this order; others follow by name.
const FIRST: &[&str] = &[
    "idle",
    "cpu",
    "io",
    "vm",
    "hdd",
    "disk",
    "full",
    "scary-grinder",
    "pesky-neighbour",
    "stress-ng-cpu",
    "network",
    "rt-crowd",
    "rt-hog",
];

fn main() -> io::Result<()> {
    let variable = |name: &str| env::var(name).map_err(io::Error::other);
    let directory = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../../loads");
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut files: Vec<(usize, PathBuf)> = Vec::new();
    for entry in fs::read_dir(&directory)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        files.push((FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len()), path));
    }
    files.sort();
    let loads = files.iter().map(|(_, path)| load(path)).collect::<io::Result<Vec<_>>>()?;
    let text = serde_json::to_string(&loads)?;
    fs::write(Path::new(&variable("OUT_DIR")?).join("loads.json"), text)
}

fn load(path: &Path) -> io::Result<toml::Value> {
    println!("cargo::rerun-if-changed={}", path.display());
    let failed = |error| io::Error::other(format!("{}: {error}", path.display()));
    toml::from_str(&fs::read_to_string(path)?).map_err(failed)
}
