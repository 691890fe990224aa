//! Turns the rules and the tables beside them into JSON, so that the program reads them without a parser of TOML, and
//! compresses them. A new layer of rules is a new file, or a directory of files, and nothing else.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flate2::{Compression, GzBuilder};
use serde_json::json;

fn main() -> io::Result<()> {
    let here = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let directory = Path::new(&here).join("../../rules");
    println!("cargo::rerun-if-changed={}", directory.display());
    let rules = files(&directory)?.into_iter().map(|(layer, path)| Ok(json!([layer, table(&path)?])));
    pack("rules", &json!(rules.collect::<io::Result<Vec<_>>>()?))?;
    pack("origins", &table(Path::new("src/isolation/origins.toml"))?)?;
    pack("known", &table(Path::new("src/recipe/known.toml"))?)?;
    pack("claims", &table(Path::new("src/recipe/claims.toml"))?)?;
    pack("quantities", &table(Path::new("src/recipe/quantities.toml"))?)?;
    TEXTS.iter().try_for_each(|name| pack_text(name))
}

/// Tables of what `check --recipe` knows, a line an entry.
const TEXTS: [&str; 5] = ["keys", "placed", "stressors", "systemd", "tools"];

fn pack_text(name: &str) -> io::Result<()> {
    let path = format!("src/recipe/{name}.txt");
    println!("cargo::rerun-if-changed={path}");
    write(&format!("{name}.txt.gz"), &fs::read(&path)?)
}

/// A file of TOML as JSON.
fn table(path: &Path) -> io::Result<serde_json::Value> {
    println!("cargo::rerun-if-changed={}", path.display());
    let failed = |error: &dyn std::fmt::Display| io::Error::other(format!("{}: {error}", path.display()));
    let table: toml::Table = toml::from_str(&fs::read_to_string(path)?).map_err(|error| failed(&error))?;
    serde_json::to_value(table).map_err(|error| failed(&error))
}

fn pack(name: &str, table: &serde_json::Value) -> io::Result<()> {
    write(&format!("{name}.json.gz"), table.to_string().as_bytes())
}

fn write(file: &str, bytes: &[u8]) -> io::Result<()> {
    let target = env::var("OUT_DIR").map_err(io::Error::other)?;
    let packed = fs::File::create(Path::new(&target).join(file))?;
    let mut packed = GzBuilder::new().write(packed, Compression::best());
    packed.write_all(bytes)?;
    packed.finish().map(drop)
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
