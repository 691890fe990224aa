//! Which crate may know which: the floors of the house as a table of edges. A crate may know some of its own floor too
//! (`load` reads by `machine`), and never all of those below.

use super::{Finding, Tree};
use crate::workspace::Package;

/// A crate and the crates of the house that it may depend on. A new crate gets its line here.
const EDGES: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("failure", &[]),
    ("printable", &[]),
    ("histogram", &["units"]),
    ("statistics", &["units", "histogram"]),
    ("sys", &["units", "failure"]),
    ("wire", &["units", "failure", "sys"]),
    ("runtime", &["units", "histogram", "sys"]),
    ("runtime-c", &["runtime"]),
    ("files", &["failure"]),
    ("record", &["units", "failure", "histogram", "statistics", "files"]),
    ("plugin", &[]),
    ("microscope", &["units", "record", "plugin"]),
    ("formats", &["units", "histogram", "record"]),
    ("sysroot", &["units", "failure", "files", "record"]),
    ("control", &["units", "sys", "record", "sysroot"]),
    ("machine", &["units", "sys", "record", "sysroot"]),
    ("survey", &["units", "record", "sysroot", "machine"]),
    ("operation", &["units", "failure", "files", "sys", "record"]),
    ("wakepath", &["units", "failure", "sys", "record", "sysroot", "machine"]),
    ("probe", &["units", "failure", "histogram", "sys", "record", "control", "wire", "wakepath", "runtime"]),
    ("load", &["units", "printable", "failure", "files", "sys", "record", "sysroot", "control", "machine"]),
    ("trace", &["units", "failure", "files", "sys", "record", "sysroot", "control", "machine"]),
    ("explain", &["units", "histogram", "record", "trace"]),
    ("capture", &["units", "failure", "sys", "record", "sysroot", "control", "machine", "trace", "explain"]),
    ("audit", &["units", "printable", "files", "record", "sysroot", "machine", "survey"]),
    ("tune", &["units", "failure", "files", "sys", "record", "sysroot", "control", "machine", "survey"]),
    ("experiment", &["units", "failure", "histogram", "statistics", "record"]),
    (
        "lab",
        &[
            "units",
            "printable",
            "failure",
            "statistics",
            "files",
            "sys",
            "record",
            "sysroot",
            "control",
            "machine",
            "experiment",
            "plugin",
            "microscope",
        ],
    ),
    ("guest-tests", &["units", "record", "lab"]), // tests of any crate may use it
    ("gpio-wire", &[]),                           // so may they this
    (
        "report",
        &[
            "units",
            "printable",
            "histogram",
            "statistics",
            "record",
            "audit",
            "experiment",
            "explain",
            "microscope",
        ],
    ),
    (
        "runner",
        &[
            "units",
            "failure",
            "files",
            "histogram",
            "sys",
            "record",
            "sysroot",
            "control",
            "machine",
            "probe",
            "load",
            "wire",
        ],
    ),
    ("worstcase", &["*"]),
    ("xtask", &["units", "histogram", "sys", "record", "probe", "trace", "capture"]),
];

/// Edges between crates that the table does not allow.
pub fn edges(tree: &Tree) -> Vec<Finding> {
    tree.packages.iter().flat_map(of).collect()
}

fn of(package: &Package) -> Vec<Finding> {
    let directory = if package.name == "xtask" { "" } else { "crates/" };
    let path = format!("{directory}{}/Cargo.toml", package.name);
    let Some((_, allowed)) = EDGES.iter().find(|(name, _)| *name == package.name) else {
        return vec![Finding::new(path, 0, "the crate has no line in EDGES of xtask/src/tidy/layers.rs")];
    };
    let forbidden = |inner: &&String| !allowed.contains(&"*") && !allowed.contains(&inner.as_str());
    let name = |inner: &String| {
        Finding::new(
            &path,
            0,
            format!("{} must not know {inner}: see EDGES in xtask/src/tidy/layers.rs", package.name),
        )
    };
    package.inner.iter().filter(forbidden).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, inner: &[&str]) -> Package {
        let inner = inner.iter().map(|&name| name.to_owned()).collect();
        Package { name: name.to_owned(), inner, tests: Vec::new() }
    }

    #[test]
    fn a_probe_that_knows_loads_is_found_and_a_crate_without_a_floor_too() {
        assert!(of(&package("probe", &["sys", "record"])).is_empty());
        assert_eq!(of(&package("probe", &["sys", "load"])).len(), 1);
        assert_eq!(of(&package("cellar", &[])).len(), 1);
    }

    #[test]
    fn the_table_has_no_way_round() {
        let mut below: Vec<&str> = Vec::new();
        for (name, allowed) in EDGES {
            if *name != "worstcase" && *name != "xtask" {
                assert!(allowed.iter().all(|inner| below.contains(inner)), "{name} looks up");
            }
            below.push(name);
        }
    }
}
