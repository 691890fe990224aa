//! The C examples against the header and the static library, by this machine's C compiler.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn example(name: &str) {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: needs a C compiler, cc (apt-get install gcc)");
        return;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = library().expect("cargo builds the static library with this test");
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-I"]).arg(here.join("include"));
    cc.arg(here.join(format!("examples/{name}.c"))).arg(library).args(["-lpthread", "-ldl", "-lm", "-o"]);
    let built = cc.arg(&program).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(program).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    println!("{said}");
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
}

/// The newest static library beside this test's executable, or above it.
fn library() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    let beside = executable.parent()?;
    let files =
        [beside, beside.parent()?].into_iter().filter_map(|place| place.read_dir().ok()).flatten().flatten();
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libworstcase_runtime") && name.ends_with(".a")
    };
    files
        .map(|entry| entry.path())
        .filter(is_library)
        .max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok())
}

#[test]
fn ping_pong_pairs_in_c() {
    example("pairs");
}

#[test]
fn scheduling_latency_in_c() {
    example("latency");
}

#[test]
fn datagrams_become_events_in_c() {
    example("source");
}

/// The header and the library have the same functions.
#[test]
fn every_function_of_the_header_is_in_the_library_and_none_else() {
    let declared = called(include_str!("../include/worstcase_runtime.h"));
    assert!(declared.len() > 20, "{declared:?}");
    let mut defined = called(include_str!("../src/lib.rs"));
    defined.extend(called(include_str!("../src/source.rs")));
    assert_eq!(declared, defined);
}

/// Names of ours with a parenthesis behind them, each once.
fn called(text: &str) -> BTreeSet<&str> {
    let in_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let names = text.split_inclusive(|character| !in_name(character));
    names.filter_map(|name| name.strip_suffix('(')).filter(|name| name.starts_with("wr_")).collect()
}
