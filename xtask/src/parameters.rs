//! `cargo xtask parameters`: the table of boot parameters' names, from the documents in Debian's linux-doc packages.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::{command, workspace};

/// The versions whose documents are read, as Debian's packages name them; `machine::parameters::VERSIONS` says the same.
const VERSIONS: [&str; 2] = ["6.1", "6.12"];

/// Letters of page flags that the documents explain in a parameter's form.
const NO_NAMES: [&str; 5] = ["pcd", "pd", "pf", "pg", "pt"];

/// Fetches the packages, reads them, writes the table.
pub fn run(arguments: Arguments) -> Result<bool> {
    arguments.finish()?;
    let mut names: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for version in VERSIONS {
        for name in names_in(&document(version)?) {
            let versions = names.entry(name).or_default();
            if versions.last() != Some(&version) {
                versions.push(version);
            }
        }
    }
    let lines: Vec<String> =
        names.iter().map(|(name, versions)| format!("{name} {}\n", versions.join(" "))).collect();
    let path = workspace::root().join("crates/machine/src/parameters.txt");
    fs::write(&path, lines.concat()).with_context(|| format!("writing {}", path.display()))?;
    println!("{} names in {}", names.len(), path.display());
    Ok(true)
}

/// The text of kernel-parameters.txt of one version.
fn document(version: &str) -> Result<String> {
    let package = format!("linux-doc-{version}");
    let directory = workspace::root().join("target/parameters").join(&package);
    fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
    command::output(Command::new("apt-get").current_dir(&directory).args(["-q", "download", &package]))?;
    let archive = archive_in(&directory)?;
    command::output(Command::new("dpkg-deb").current_dir(&directory).args(["-x", &archive, "."]))?;
    let text = format!("usr/share/doc/{package}/Documentation/admin-guide/kernel-parameters.txt.gz");
    command::output(Command::new("zcat").current_dir(&directory).arg(text))
}

fn archive_in(directory: &Path) -> Result<String> {
    let entries = fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.retain(|name| name.ends_with(".deb"));
    names.sort();
    let newest = names.pop();
    ensure!(newest.is_some(), "apt-get left no package in {}", directory.display());
    Ok(newest.unwrap_or_default())
}

/// A parameter stands one tab in, and its name ends at `=`, a blank or a bracket; its explanation stands further in.
fn names_in(document: &str) -> Vec<String> {
    let heads = document
        .lines()
        .filter_map(|line| line.strip_prefix('\t').filter(|rest| !rest.starts_with(['\t', ' '])));
    heads.filter_map(name_at_start).collect()
}

fn name_at_start(head: &str) -> Option<String> {
    let end = head.find(|c: char| !c.is_ascii_alphanumeric() && !"_.-/".contains(c)).unwrap_or(head.len());
    let name = head[..end].trim_end_matches(['.', '-', '/']);
    let plausible = name.len() > 1 || name == "S";
    (plausible && !NO_NAMES.contains(&name)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_one_tab_in() {
        let document = "\tisolcpus=\t[KNL,SMP,ISOL] Isolate\n\t\t\tFormat: [flag-list,]<cpu-list>\n\tnosmt\t\t[KNL]\n\tprintk.devkmsg={on,off}\n\t        [PPC]\n\tmeye.*=\t[HW]\n\tpd.\t[PARIDE]\n";
        assert_eq!(names_in(document), ["isolcpus", "nosmt", "printk.devkmsg", "meye"]);
    }
}
