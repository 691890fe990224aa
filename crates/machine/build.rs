//! Compresses the table of kernel parameters: 7 KB in every program instead of 25 KB.

use std::io::Write;
use std::path::Path;
use std::{env, fs, io};

use flate2::{Compression, GzBuilder};

const TABLE: &str = "src/parameters.txt";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={TABLE}");
    let target = env::var("OUT_DIR").map_err(io::Error::other)?;
    let packed = fs::File::create(Path::new(&target).join("parameters.gz"))?;
    let mut packed = GzBuilder::new().write(packed, Compression::best());
    packed.write_all(&fs::read(TABLE)?)?;
    packed.finish().map(drop)
}
