//! What is delivered, tried: two builds of a commit are equal, the sources build without a network, the Debian package comes and
//! goes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::targets::Target;
use crate::command;
use crate::packages::is_root;
use crate::tally::Tally;
use crate::workspace;

/// All three, for this machine's own target. Minutes: each builds the programs anew.
pub fn stage() -> Result<Tally> {
    let Some(target) = Target::native() else {
        return Ok(Tally::skip("delivery", "no target is this machine's own"));
    };
    let mut tally = Tally::default();
    for (what, test) in [
        ("two_builds_of_a_commit_are_equal", equal as fn(&Target) -> Result<Outcome>),
        ("the_sources_build_without_a_network", offline),
        ("the_debian_package_comes_and_goes", installed),
    ] {
        tally.add(match test(target) {
            Ok(Outcome::Passed) => Tally::of(true),
            Ok(Outcome::Skipped(why)) => Tally::skip(what, why),
            Err(error) => {
                println!("FAILED {what}: {error:#}");
                Tally::of(false)
            }
        });
    }
    Ok(tally)
}

enum Outcome {
    Passed,
    Skipped(String),
}

/// Here and in a clone elsewhere, whose path has another length.
fn equal(target: &Target) -> Result<Outcome> {
    let root = workspace::root();
    let mut status = Command::new("git");
    status.args(["status", "--porcelain", "--untracked-files=no"]).current_dir(&root);
    if !command::output(&mut status)?.is_empty() {
        return Ok(Outcome::Skipped("the checkout differs from its commit".into()));
    }
    let clone = fresh("another-place/clone")?;
    command::output(Command::new("git").args(["clone", "--quiet"]).arg(&root).arg(&clone))?;
    let mut sums = Vec::new();
    for place in [&root, &clone] {
        if place.join("dist").exists() {
            fs::remove_dir_all(place.join("dist")).context("removing dist")?;
        }
        packed(place, target)?;
        let file = place.join("dist/SHA256SUMS");
        sums.push(fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?);
    }
    let differs = |(one, other): &(&str, &str)| one != other;
    let different: Vec<_> = sums[0].lines().zip(sums[1].lines()).filter(differs).collect();
    ensure!(different.is_empty() && sums[0].lines().count() == sums[1].lines().count(), "{different:#?}");
    println!("  equal: {} files", sums[0].lines().count());
    Ok(Outcome::Passed)
}

/// `cargo xtask dist --packages` in `place`.
fn packed(place: &Path, target: &Target) -> Result<()> {
    let mut cargo = workspace::cargo();
    cargo.args(["xtask", "dist", "--packages", "--target", target.triple]).current_dir(place);
    let outcome =
        command::logged(cargo.env_remove("CARGO_TARGET_DIR"), &workspace::logs().join("delivery.log"))?;
    ensure!(outcome.success, "dist failed in {}\n{}", place.display(), outcome.tail());
    Ok(())
}

/// In an empty Cargo home: nothing but the archive is there.
fn offline(_: &Target) -> Result<Outcome> {
    let name = format!("worstcase-{}", env!("CARGO_PKG_VERSION"));
    let archive = workspace::root().join("dist").join(format!("{name}.tar.gz"));
    let place = fresh("offline")?;
    fs::create_dir_all(&place).with_context(|| format!("creating {}", place.display()))?;
    let mut tar = Command::new("tar");
    command::output(tar.arg("--extract").arg("--file").arg(&archive).arg("--directory").arg(&place))?;
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--release", "--offline", "--locked", "--package", "worstcase"]);
    cargo.env("CARGO_HOME", place.join("home")).env("CARGO_TARGET_DIR", place.join("target"));
    let log = workspace::logs().join("offline.log");
    let outcome = command::logged(cargo.current_dir(place.join(&name)), &log)?;
    ensure!(outcome.success, "the sources do not build\n{}", outcome.tail());
    let version = command::output(Command::new(place.join("target/release/worstcase")).arg("--version"))?;
    ensure!(version.contains("commit unknown"), "it names a commit that is not its own: {version}");
    Ok(Outcome::Passed)
}

/// In a Debian that debootstrap makes: installed, run, removed to the last file.
fn installed(target: &Target) -> Result<Outcome> {
    if !is_root() {
        return Ok(Outcome::Skipped("needs root".into()));
    }
    let Some(architecture) = target.debian() else {
        return Ok(Outcome::Skipped(format!("{}: no Debian package", target.triple)));
    };
    if ["debootstrap", "chroot", "dpkg-deb"].iter().any(|program| command::find(program).is_none()) {
        return Ok(Outcome::Skipped("debootstrap, chroot or dpkg-deb is not installed".into()));
    }
    let debian = fresh("debian-root")?;
    let mut make = Command::new("debootstrap");
    if let Err(error) = command::output(make.args(["--variant=minbase", "bookworm"]).arg(&debian)) {
        return Ok(Outcome::Skipped(format!("debootstrap: {error}")));
    }
    let package = format!("worstcase_{}_{architecture}.deb", env!("CARGO_PKG_VERSION"));
    let dist = workspace::root().join("dist");
    fs::copy(dist.join(&package), debian.join(&package)).with_context(|| format!("copying {package}"))?;
    let before = all_files(&debian)?;
    enter(&debian, &["dpkg", "--install", &format!("/{package}")])?;
    let version = enter(&debian, &["worstcase", "--version"])?;
    ensure!(version.starts_with("worstcase "), "{version}");
    let there = |path: &str| debian.join(path).exists();
    for path in [
        "usr/share/bash-completion/completions/worstcase",
        "usr/share/doc/worstcase/copyright",
        "usr/lib/systemd/system/worstcase-tune.service",
    ] {
        ensure!(there(path), "the package has no {path}");
    }
    ensure!(
        !there("etc/systemd/system/multi-user.target.wants/worstcase-tune.service"),
        "a service is enabled"
    );
    enter(&debian, &["dpkg", "--purge", "worstcase"])?;
    let left: Vec<String> = all_files(&debian)?.into_iter().filter(|file| !before.contains(file)).collect();
    ensure!(left.is_empty(), "it left {left:?}");
    fs::remove_dir_all(&debian).context("removing the Debian root")?;
    Ok(Outcome::Passed)
}

fn enter(root: &Path, words: &[&str]) -> Result<String> {
    let mut chroot = Command::new("chroot");
    command::output(
        chroot.arg(root).args(words).env("LC_ALL", "C").env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
    )
}

/// All paths below `root` but dpkg's own lists and logs, which name what was once there.
fn all_files(root: &Path) -> Result<Vec<String>> {
    let mut find = Command::new("find");
    let text = command::output(find.args([".", "-xdev"]).current_dir(root))?;
    let own = |path: &&str| path.starts_with("./var/lib/dpkg") || path.starts_with("./var/log");
    Ok(text.lines().filter(|path| !own(path)).map(str::to_owned).collect())
}

/// A place below `target` where nothing is.
fn fresh(name: &str) -> Result<PathBuf> {
    let place = workspace::root().join("target/xtask").join(name);
    if place.exists() {
        fs::remove_dir_all(&place).with_context(|| format!("removing {}", place.display()))?;
    }
    let parent = place.parent().context("a path below target")?;
    fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
    Ok(place)
}
