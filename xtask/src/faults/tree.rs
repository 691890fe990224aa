//! A copy of the sources below `target`: a fault never comes into those that somebody works on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};

use super::Fault;
use crate::command;
use crate::workspace;

/// The copy.
pub struct Tree(PathBuf);

impl Tree {
    /// Of all files that Git knows or would take, as they are now. A file that is as it was keeps its time, so that its crate is
    /// not built again.
    pub fn copied() -> Result<Self> {
        let tree = Self(workspace::root().join("target/faults/tree"));
        let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let names = command::output(Command::new("git").args(list).current_dir(workspace::root()))?;
        let names: Vec<&str> = names.split('\0').filter(|name| !name.is_empty()).collect();
        for name in &names {
            tree.copy(name)?;
        }
        tree.forget_all_but(&names)?;
        Ok(tree)
    }

    fn copy(&self, name: &str) -> Result<()> {
        let (from, to) = (workspace::root().join(name), self.0.join(name));
        // One that was removed and not yet committed.
        if !from.is_file() {
            return Ok(());
        }
        let bytes = fs::read(&from).with_context(|| format!("reading {}", from.display()))?;
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
        }
        fs::copy(&from, &to).with_context(|| format!("writing {}", to.display()))?;
        self.renew(name)
    }

    /// Has Cargo build what `file` belongs to: it builds what is newer than the last build.
    pub fn renew(&self, file: &str) -> Result<()> {
        set_time(&self.0.join(file), SystemTime::now())
    }

    /// Files of a former copy.
    fn forget_all_but(&self, names: &[&str]) -> Result<()> {
        let there = command::output(Command::new("find").args([".", "-type", "f"]).current_dir(&self.0))?;
        for name in there.lines().filter_map(|name| name.strip_prefix("./")) {
            if !names.contains(&name) || !workspace::root().join(name).is_file() {
                fs::remove_file(self.0.join(name)).with_context(|| format!("removing {name}"))?;
            }
        }
        Ok(())
    }

    /// Has `cargo` build the copy, in a directory of its own.
    pub fn aim(&self, cargo: &mut Command) {
        cargo.current_dir(&self.0).env("CARGO_TARGET_DIR", workspace::root().join("target/faults/build"));
        cargo.env_remove("CARGO_MANIFEST_DIR");
    }

    /// Puts a fault in.
    pub fn put_in(&self, fault: &Fault) -> Result<Former> {
        let path = self.0.join(fault.file);
        let failed = || format!("reading {}", path.display());
        let text = fs::read_to_string(&path).with_context(failed)?;
        let time = fs::metadata(&path).and_then(|kind| kind.modified()).with_context(failed)?;
        ensure!(text.matches(fault.is).count() == 1, "{} does not have once: {}", fault.file, fault.is);
        fs::write(&path, text.replacen(fault.is, fault.becomes, 1))
            .with_context(|| format!("writing {}", path.display()))?;
        Ok(Former { path, text, time })
    }
}

/// A file before a fault came into it: the sources that the copy is of may have changed since.
pub struct Former {
    path: PathBuf,
    text: String,
    time: SystemTime,
}

impl Former {
    /// Takes the fault out. With the former time, Cargo builds nothing again.
    pub fn put_back(self, with_its_time: bool) -> Result<()> {
        fs::write(&self.path, self.text).with_context(|| format!("writing {}", self.path.display()))?;
        if with_its_time { set_time(&self.path, self.time) } else { Ok(()) }
    }
}

fn set_time(path: &Path, time: SystemTime) -> Result<()> {
    let file = fs::File::options().append(true).open(path);
    file.and_then(|file| file.set_modified(time))
        .with_context(|| format!("setting the time of {}", path.display()))
}
