//! The workspace as Cargo describes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command;

/// The directory that the workspace's `Cargo.toml` is in.
pub fn root() -> PathBuf {
    // Cargo sets the variable while it runs us; the constant is for a binary that is started by hand.
    let own = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    own.parent().map(PathBuf::from).unwrap_or(own)
}

/// Where the tasks keep their logs.
pub fn logs() -> PathBuf {
    root().join("target/xtask")
}

/// `cargo` in the workspace, without colours: what it prints is read.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root()).env("CARGO_TERM_COLOR", "never");
    cargo
}

/// One crate of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// As in its Cargo.toml.
    pub name: String,
    /// Crates of the workspace that it is built with (not those that only its tests use).
    pub inner: Vec<String>,
    /// Its integration tests.
    pub tests: Vec<String>,
}

/// The crates of the workspace.
pub fn packages() -> Result<Vec<Package>> {
    let text = command::output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&text).context("reading `cargo metadata`")?;
    Ok(array(&metadata, "packages").iter().map(package).collect())
}

/// The programs of a crate outside the workspace.
pub fn binaries(manifest: &Path) -> Result<Vec<String>> {
    let query = ["metadata", "--no-deps", "--format-version", "1", "--manifest-path"];
    let text = command::output(cargo().args(query).arg(manifest))?;
    let metadata: Value = serde_json::from_str(&text).context("reading `cargo metadata`")?;
    let targets = array(&metadata, "packages").iter().flat_map(|package| array(package, "targets"));
    Ok(targets.filter(|target| has_kind(target, "bin")).map(name).collect())
}

fn has_kind(target: &Value, kind: &str) -> bool {
    array(target, "kind").iter().any(|own| own == kind)
}

fn package(value: &Value) -> Package {
    let inner = |of: &&Value| of["kind"].is_null() && of["path"].is_string();
    let is_test = |of: &&Value| has_kind(of, "test");
    Package {
        name: name(value),
        inner: array(value, "dependencies").iter().filter(inner).map(name).collect(),
        tests: array(value, "targets").iter().filter(is_test).map(name).collect(),
    }
}

fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn name(value: &Value) -> String {
    value["name"].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_knows_its_crates() {
        let packages = packages().unwrap();
        let xtask = packages.iter().find(|package| package.name == "xtask").unwrap();
        assert!(xtask.inner.contains(&"record".to_owned()));
        assert!(!xtask.inner.contains(&"serde_json".to_owned()));
    }
}
