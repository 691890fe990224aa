//! The files are read by the programs that they are for.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use sysroot::Tree;

use super::super::{Disk, Live};
use super::*;

const PROGRAM: &str = "/usr/bin/env";
const CHOICE: &str = "/etc/worstcase/tune.toml";

/// The files of one init below a directory of their own.
fn written(init: Init) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let mut disk = Live::at(root.path());
    for file in init.files(PROGRAM, CHOICE) {
        fs::create_dir_all(root.path().join(&file.path[1..]).parent().unwrap()).unwrap();
        disk.create(&file.path, &file.contents, super::super::Attributes { mode: file.mode, owner: None })
            .unwrap();
    }
    root
}

/// What a program says, if this machine has it.
fn say(program: &str, arguments: &[&str], path: &Path) -> Option<Output> {
    let output = Command::new(program).args(arguments).arg(path).output();
    if output.is_err() {
        println!("skipped: needs {program}");
    }
    output.ok()
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let root = written(Init::Systemd);
    for unit in [SERVICE_UNIT, AGAIN_UNIT, TIMER] {
        let path = root.path().join("etc/systemd/system").join(unit);
        let Some(output) = say("systemd-analyze", &["verify", "--man=no"], &path) else { return };
        let lines = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && lines.is_empty(), "{unit}: {lines}");
    }
}

/// Where less is possible, the unit says why.
#[test]
fn systemd_finds_the_units_hardened() {
    let root = written(Init::Systemd);
    for unit in [SERVICE_UNIT, AGAIN_UNIT] {
        let path = root.path().join("etc/systemd/system").join(unit);
        let below_four = ["security", "--offline=true", "--threshold=39", "--no-pager"];
        let Some(output) = say("systemd-analyze", &below_four, &path) else { return };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if said.contains("unrecognized option") {
            println!("skipped: needs systemd 250 or later");
            return;
        }
        assert!(output.status.success(), "{unit}: {}{said}", String::from_utf8_lossy(&output.stdout));
        assert!(String::from_utf8_lossy(&output.stdout).contains("Overall exposure level"), "{output:?}");
    }
}

#[test]
fn systemd_finds_a_mistake_in_a_unit() {
    let root = written(Init::Systemd);
    let path = root.path().join("etc/systemd/system").join(SERVICE_UNIT);
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("ExecStop=", "ExecStopp=")).unwrap();
    let Some(output) = say("systemd-analyze", &["verify", "--man=no"], &path) else { return };
    assert!(String::from_utf8_lossy(&output.stderr).contains("ExecStopp"), "{output:?}");
}

#[test]
fn each_shell_reads_the_scripts() {
    for init in [Init::Sysv, Init::Busybox, Init::Openrc] {
        let root = written(init);
        let script = init.files(PROGRAM, CHOICE).swap_remove(0).path;
        let path = root.path().join(&script[1..]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        for (shell, words) in
            [("sh", &["-n"][..]), ("dash", &["-n"]), ("bash", &["--posix", "-n"]), ("busybox", &["sh", "-n"])]
        {
            let Some(output) = say(shell, words, &path) else { continue };
            assert!(output.status.success() && output.stderr.is_empty(), "{init:?} {shell}: {output:?}");
        }
    }
}

#[test]
fn the_links_are_those_that_the_units_ask_for() {
    let links = |init: Init| -> Vec<(String, String)> {
        let files = init.files(PROGRAM, CHOICE).into_iter();
        let link = |file: StartupFile| match file.contents {
            Contents::Link(target) => Some((file.path, target)),
            Contents::Bytes(_) => None,
        };
        files.filter_map(link).collect()
    };
    let systemd = links(Init::Systemd);
    let wanted = |by: &str, unit: &str| {
        (format!("/etc/systemd/system/{by}.wants/{unit}"), format!("/etc/systemd/system/{unit}"))
    };
    assert_eq!(systemd[0], wanted("multi-user.target", SERVICE_UNIT));
    assert_eq!(systemd[1], wanted("suspend.target", AGAIN_UNIT));
    assert_eq!(systemd.last(), Some(&wanted(SERVICE_UNIT, TIMER)));
    assert_eq!(links(Init::Sysv).len(), 7);
    assert_eq!(links(Init::Openrc).len(), 1);
    assert!(links(Init::Busybox).is_empty());
}

#[test]
fn nothing_is_left_to_be_filled_in() {
    for init in Init::ALL {
        for file in init.files(PROGRAM, CHOICE) {
            let Contents::Bytes(bytes) = file.contents else { continue };
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.contains("# Written by worstcase "), "{}", file.path);
            for place in ["{head}", "{program}", "{choice}"] {
                assert!(!text.contains(place), "{}: {place}", file.path);
            }
        }
    }
}

#[test]
fn what_starts_services_is_reported_by_what_runs_and_then_by_what_is_installed() {
    let of = |paths: &[&str]| {
        let files = paths.iter().map(|path| ((*path).to_owned(), Vec::new()));
        Init::of(&SysRoot::of(Tree::whole(files)))
    };
    let debian =
        ["/etc/systemd/system/a.service", "/lib/systemd/systemd", "/etc/init.d/x", "/etc/rc2.d/S01x"];
    assert_eq!(of(&debian), Some(Init::Systemd));
    assert_eq!(of(&debian[2..]), Some(Init::Sysv));
    assert_eq!(of(&[&debian[..], &["/run/openrc/softlevel"]].concat()), Some(Init::Openrc));
    assert_eq!(of(&["/sbin/openrc-run", "/etc/runlevels/default/x", "/etc/init.d/x"]), Some(Init::Openrc));
    assert_eq!(of(&["/etc/init.d/rcS", "/etc/init.d/S40network"]), Some(Init::Busybox));
    assert_eq!(of(&["/etc/passwd"]), None);
}
