//! The runtime as a library for C: header, static and shared library, and what pkg-config says of them, in `dist/runtime`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::command;
use crate::tally::Tally;
use crate::workspace;

/// What is copied: from below the workspace, to below `dist/runtime`.
const FILES: [(&str, &str); 3] = [
    ("crates/runtime-c/include/worstcase_runtime.h", "include/worstcase_runtime.h"),
    ("target/runtime/libworstcase_runtime.a", "lib/libworstcase_runtime.a"),
    ("target/runtime/libworstcase_runtime.so", "lib/libworstcase_runtime.so"),
];

/// Builds the libraries for this machine with the runtime's own profile, and puts all into `dist/`.
pub fn deliver() -> Result<Tally> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--locked", "--profile", "runtime", "--package", "runtime-c"]);
    let outcome = command::logged(&mut cargo, &workspace::logs().join("dist-runtime.log"))?;
    ensure!(outcome.success, "the runtime's build failed\n{}", outcome.tail());
    let place = workspace::root().join("dist/runtime");
    for (from, to) in FILES {
        copy(&workspace::root().join(from), &place.join(to))?;
    }
    let described = place.join("lib/pkgconfig/worstcase-runtime.pc");
    make_parent(&described)?;
    fs::write(&described, description()).with_context(|| format!("writing {}", described.display()))?;
    println!("  runtime: header, static and shared library, pkg-config in {}", place.display());
    Ok(Tally::of(true))
}

fn copy(from: &Path, to: &PathBuf) -> Result<()> {
    make_parent(to)?;
    fs::copy(from, to).with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn make_parent(path: &Path) -> Result<()> {
    let parent = path.parent().context("a path below dist")?;
    fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))
}

/// Found from where the file lies, so that the directory can be moved.
fn description() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "prefix=${{pcfiledir}}/../..\n\
         Name: worstcase-runtime\n\
         Description: An event machine with a worst-case contract\n\
         Version: {version}\n\
         Cflags: -I${{prefix}}/include\n\
         Libs: -L${{prefix}}/lib -lworstcase_runtime\n\
         Libs.private: -lpthread -ldl -lm\n"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn pkg_config_finds_the_library_from_its_own_place() {
        let text = super::description();
        assert!(text.starts_with("prefix=${pcfiledir}/../..\n"), "{text}");
        assert!(text.contains("\nLibs: -L${prefix}/lib -lworstcase_runtime\n"), "{text}");
    }
}
