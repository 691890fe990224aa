//! Lists the files of rules, so that a new layer is a new file, or a directory of files, and nothing else.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let here = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let target = env::var("OUT_DIR").map_err(io::Error::other)?;
    let directory = Path::new(&here).join("../../rules");
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut list = String::from("[\n");
    for (layer, path) in files(&directory)? {
        writeln!(list, "    ({layer:?}, include_str!({:?})),", path.display().to_string())
            .map_err(io::Error::other)?;
    }
    list.push_str("]\n");
    fs::write(Path::new(&target).join("rules.rs"), list)
}

/// Files below `directory`, each with its layer: its own name, or that of the directory that it stands in.
fn files(directory: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for path in sorted(directory)? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            println!("cargo::rerun-if-changed={}", path.display());
            files.extend(sorted(&path)?.into_iter().map(|file| (name.clone(), file)));
        } else {
            files.push((name, path));
        }
    }
    files.retain(|(_, path)| path.extension().is_some_and(|extension| extension == "toml"));
    Ok(files)
}

fn sorted(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}
