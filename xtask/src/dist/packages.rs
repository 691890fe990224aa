//! Packages of what was built: an archive and a Debian package for each target, with manual pages, completions and units, and
//! the checksums of all. The same commit gives the same bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::targets::Target;
use super::{PROGRAMS, Program};
use crate::command;
use crate::workspace;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What every package has of the project's texts.
const TEXTS: [&str; 8] = [
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "THIRD-PARTY.md",
];

/// Directories of documents that they link to.
const DOCUMENTS: [&str; 2] = ["docs", "docs/rules"];

/// Packs what is in `dist/` for `targets` and the sources, and writes SHA256SUMS.
pub fn pack(targets: &[&Target]) -> Result<()> {
    source()?;
    let extras = extras()?;
    for target in targets {
        archive(target, &extras)?;
        if let Some(architecture) = target.debian() {
            debian(target, architecture, &extras)?;
        }
    }
    sums()
}

/// Manual pages, completions and units, below one directory.
fn extras() -> Result<PathBuf> {
    let place = workspace::root().join("target/xtask/extras");
    emptied(&place)?;
    let mut cargo = workspace::cargo();
    cargo
        .args(["run", "--locked", "--quiet", "--package", "worstcase", "--example", "manual", "--"])
        .arg(&place);
    let outcome = command::logged(&mut cargo, &workspace::logs().join("manual.log"))?;
    ensure!(outcome.success, "the manual was not written\n{}", outcome.tail());
    Ok(place)
}

/// `worstcase-VERSION.tar.gz`: the commit with all crates that it needs in `VENDOR`, where Buildroot looks for them, so that it is
/// built without a network.
fn source() -> Result<()> {
    let name = format!("worstcase-{VERSION}");
    let home = workspace::root().join("target/xtask/source");
    let content = home.join(&name);
    emptied(&content)?;
    let archive = home.join("commit.tar");
    let mut git = Command::new("git");
    git.args(["archive", "--format=tar", "--output"]).arg(&archive).arg("HEAD");
    done(git.current_dir(workspace::root()))?;
    done(Command::new("tar").arg("--extract").arg("--file").arg(&archive).arg("--directory").arg(&content))?;
    let mut vendor = workspace::cargo();
    vendor.args(["vendor", "--locked", "--versioned-dirs", "VENDOR"]).current_dir(&content);
    let replaced = command::output(&mut vendor)?;
    let config = content.join(".cargo/config.toml");
    let own = fs::read_to_string(&config).with_context(|| format!("reading {}", config.display()))?;
    fs::write(&config, own + "\n" + &replaced).with_context(|| format!("writing {}", config.display()))?;
    packed(&home, &name)
}

/// `worstcase-VERSION-TRIPLE.tar.gz`, unpacked anywhere.
fn archive(target: &Target, extras: &Path) -> Result<()> {
    let name = format!("worstcase-{VERSION}-{}", target.triple);
    let home = workspace::root().join("target/xtask/archive");
    let content = home.join(&name);
    emptied(&content)?;
    for program in &PROGRAMS {
        install(&built(target, program), &content.join(program.name), "755")?;
    }
    for part in ["man", "completions", "units"] {
        install_all(&extras.join(part), &content.join(part))?;
    }
    install_texts(&content)?;
    packed(&home, &name)
}

/// `dist/NAME.tar.gz` of the directory `name` in `home`.
fn packed(home: &Path, name: &str) -> Result<()> {
    let packed = workspace::root().join("dist").join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
    tar.arg("--mode=u=rwX,go=rX").arg(format!("--mtime=@{}", epoch()?));
    tar.args(["--use-compress-program=gzip --no-name --best", "--file"]);
    tar.arg(&packed).arg("--directory").arg(home).arg(name);
    done(&mut tar)?;
    said(&packed)
}

/// `worstcase_VERSION_ARCHITECTURE.deb`: no dependencies, because the programs are static; no service is enabled.
fn debian(target: &Target, architecture: &str, extras: &Path) -> Result<()> {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        println!("  skipped: no .deb for {}: dpkg-deb is not installed", target.triple);
        return Ok(());
    }
    let root = workspace::root().join("target/xtask/debian");
    emptied(&root)?;
    for program in &PROGRAMS {
        install(&built(target, program), &root.join("usr/bin").join(program.name), "755")?;
        let name = program.name;
        for (from, to) in [
            (format!("{name}.bash"), format!("bash-completion/completions/{name}")),
            (format!("{name}.fish"), format!("fish/vendor_completions.d/{name}.fish")),
            (format!("_{name}"), format!("zsh/vendor-completions/_{name}")),
        ] {
            install(&extras.join("completions").join(from), &root.join("usr/share").join(to), "644")?;
        }
    }
    install_all(&extras.join("units"), &root.join("usr/lib/systemd/system"))?;
    install_all(&extras.join("man"), &root.join("usr/share/man/man1"))?;
    for page in files(&root.join("usr/share/man/man1"))? {
        done(Command::new("gzip").args(["--no-name", "--best"]).arg(page))?;
    }
    let texts = root.join("usr/share/doc/worstcase");
    install_texts(&texts)?;
    install(&workspace::root().join("packaging/debian/copyright"), &texts.join("copyright"), "644")?;
    let control = root.join("DEBIAN/control");
    install(&workspace::root().join("packaging/debian/control"), &control, "644")?;
    let text = fs::read_to_string(&control).with_context(|| format!("reading {}", control.display()))?;
    let text = text.replace("{version}", VERSION).replace("{architecture}", architecture);
    fs::write(&control, text).with_context(|| format!("writing {}", control.display()))?;
    let packed = workspace::root().join("dist").join(format!("worstcase_{VERSION}_{architecture}.deb"));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root).arg(&packed);
    done(build.env("SOURCE_DATE_EPOCH", epoch()?))?;
    said(&packed)
}

/// The checksums of all archives, packages and programs in `dist/`, as `sha256sum --check` reads them.
fn sums() -> Result<()> {
    let dist = workspace::root().join("dist");
    let mut sha = Command::new("sha256sum");
    sha.arg("--binary").current_dir(&dist);
    for file in files(&dist)? {
        sha.args(file.file_name().filter(|name| *name != "SHA256SUMS"));
    }
    let text = command::output(&mut sha)?;
    fs::write(dist.join("SHA256SUMS"), text).context("writing SHA256SUMS")
}

fn built(target: &Target, program: &Program) -> PathBuf {
    let name = format!("{}-{VERSION}-{}", program.name, target.triple);
    workspace::root().join("dist").join(name)
}

/// The time of the commit: files in packages have no other.
fn epoch() -> Result<String> {
    if let Ok(given) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(given);
    }
    let mut git = Command::new("git");
    Ok(command::output(git.args(["log", "-1", "--format=%ct"]).current_dir(workspace::root()))?
        .trim()
        .to_owned())
}

fn emptied(place: &Path) -> Result<()> {
    if place.exists() {
        fs::remove_dir_all(place).with_context(|| format!("removing {}", place.display()))?;
    }
    fs::create_dir_all(place).with_context(|| format!("creating {}", place.display()))
}

/// Copies a file with this mode, whatever the umask and its mode here.
fn install(from: &Path, to: &Path, mode: &str) -> Result<()> {
    done(Command::new("install").args(["-D", "--mode", mode]).arg(from).arg(to))
}

/// The project's texts, beside each other as in the checkout: their links lead to each other.
fn install_texts(to: &Path) -> Result<()> {
    for text in TEXTS {
        install(&workspace::root().join(text), &to.join(text), "644")?;
    }
    DOCUMENTS
        .iter()
        .try_for_each(|directory| install_all(&workspace::root().join(directory), &to.join(directory)))
}

fn install_all(from: &Path, to: &Path) -> Result<()> {
    for file in files(from)? {
        install(&file, &to.join(file.file_name().context("a file's name")?), "644")?;
    }
    Ok(())
}

/// The regular files of a directory, by name.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

fn done(command: &mut Command) -> Result<()> {
    command::output(command).map(drop)
}

fn said(packed: &Path) -> Result<()> {
    let size = fs::metadata(packed).with_context(|| format!("reading {}", packed.display()))?.len();
    println!("  {}: {size} bytes", packed.file_name().unwrap_or_default().to_string_lossy());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path of a link's file from the top of the checkout; none for another site and for a place in the same document.
    fn target(document: &str, link: &str) -> Option<String> {
        let file = link.split('#').next().filter(|file| !file.is_empty() && !file.contains("://"))?;
        let mut parts: Vec<&str> = document.split('/').collect();
        parts.pop();
        for part in file.split('/') {
            match part {
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        Some(parts.join("/"))
    }

    #[test]
    fn links_of_packaged_texts_lead_to_packaged_files() {
        let root = workspace::root();
        let mut packaged: Vec<String> = TEXTS.map(str::to_owned).to_vec();
        for directory in DOCUMENTS {
            let names = files(&root.join(directory)).unwrap();
            let name =
                |path: &PathBuf| format!("{directory}/{}", path.file_name().unwrap().to_string_lossy());
            packaged.extend(names.iter().map(name));
        }
        let mut links = 0;
        for document in packaged.iter().filter(|name| name.ends_with(".md")) {
            let text = fs::read_to_string(root.join(document)).unwrap();
            for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                let Some(target) = target(document, link) else { continue };
                assert!(packaged.contains(&target), "{document}: {link} is in no package");
                links += 1;
            }
        }
        assert!(links > 100, "{links}");
    }
}
