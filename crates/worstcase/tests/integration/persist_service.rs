//! A service is written into a system that lies in a directory, and taken back.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const BINARY: &str = env!("CARGO_BIN_EXE_worstcase");

/// A system with nothing but a program in it, and what its init brings.
fn system(has: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for path in has.iter().chain(&["etc/passwd", "usr/bin/worstcase"]) {
        fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
        fs::write(root.path().join(path), "").unwrap();
    }
    let program = root.path().join("usr/bin/worstcase");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    root
}

/// Exit code, and all that was said.
fn persist(root: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(BINARY);
    command.args(["tune", "persist", "--root"]).arg(root).args(arguments).env("COLUMNS", "200");
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

/// Every file and link but our own backups, with what is in it.
fn everything(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if name.starts_with("var/lib/worstcase") {
                continue;
            }
            let what = match (kind.is_dir(), kind.is_symlink()) {
                (true, _) => String::new(),
                (_, true) => fs::read_link(&path).unwrap().display().to_string(),
                _ => fs::read_to_string(&path).unwrap(),
            };
            found.insert(name, what);
            if kind.is_dir() {
                open.push(path);
            }
        }
    }
    found
}

/// What each program that starts services brings, and the file that is written for it.
const INITS: [(&[&str], &str); 4] = [
    (&["etc/systemd/system/x", "lib/systemd/systemd"], "etc/systemd/system/worstcase-tune.service"),
    (&["sbin/openrc-run", "etc/runlevels/default/x"], "etc/init.d/worstcase-tune"),
    (&["etc/init.d/x", "etc/rc2.d/x"], "etc/init.d/worstcase-tune"),
    (&["etc/init.d/rcS"], "etc/init.d/S99worstcase-tune"),
];

#[test]
fn a_service_is_written_for_each_init_and_undo_is_the_identity() {
    for (has, file) in INITS {
        let root = system(has);
        fs::create_dir(root.path().join("var")).unwrap();
        let before = everything(root.path());
        let (code, said) = persist(root.path(), &["--isolate", "2-3", "--profile", "isolated,rt"]);
        assert_eq!(code, Some(0), "{said}");
        let text = fs::read_to_string(root.path().join(file)).unwrap();
        assert!(text.contains("/usr/bin/worstcase") && text.contains("/etc/worstcase/tune.toml"), "{text}");
        let choice = fs::read_to_string(root.path().join("etc/worstcase/tune.toml")).unwrap();
        assert!(choice.ends_with("profile = [\"isolated\", \"rt\"]\nisolate = \"2-3\"\n"), "{choice}");
        let (code, said) = persist(root.path(), &["--status"]);
        let (words, files) = said.split_once('\n').unwrap();
        assert_eq!(words, "no kernel parameters were written");
        assert!(code == Some(0) && files.lines().all(|line| line.starts_with("holds ")), "{said}");
        let (code, said) = persist(root.path(), &["--undo"]);
        assert!(code == Some(0) && said.ends_with("proof: every file is as before\n"), "{said}");
        let mut after = everything(root.path());
        after.remove("var/lib");
        assert_eq!(after, before, "{file}");
        let (code, said) = persist(root.path(), &["--undo"]);
        assert!(code == Some(0) && said.ends_with("no service was written\n"), "{said}");
    }
}

#[test]
fn a_dry_run_shows_the_files_and_writes_none() {
    let root = system(INITS[0].0);
    let before = everything(root.path());
    let (code, said) = persist(root.path(), &["--isolate", "1", "--dry-run"]);
    assert!(code == Some(0) && said.contains("==> /etc/worstcase/tune.toml <==\n"), "{said}");
    assert!(said.contains("ExecStart=/usr/bin/worstcase tune apply --keep-going --file"), "{said}");
    assert_eq!(everything(root.path()), before);
}

#[test]
fn a_dry_run_needs_no_installed_program() {
    let root = system(INITS[0].0);
    fs::remove_file(root.path().join("usr/bin/worstcase")).unwrap();
    let (code, said) = persist(root.path(), &["--isolate", "1", "--dry-run"]);
    assert!(code == Some(0) && said.contains("ExecStart=/usr/local/bin/worstcase tune apply"), "{said}");
    assert!(said.contains("shown as if it were /usr/local/bin/worstcase"), "{said}");
    let (code, said) = persist(root.path(), &["--isolate", "1"]);
    assert!(code == Some(2) && said.contains("hint: install it first"), "{said}");
}

#[test]
fn what_the_administrator_has_changed_since_is_left_and_reported() {
    let root = system(INITS[0].0);
    assert_eq!(persist(root.path(), &["--isolate", "1"]).0, Some(0));
    let choice = root.path().join("etc/worstcase/tune.toml");
    fs::write(&choice, "isolate = \"3\"\n").unwrap();
    let (code, said) = persist(root.path(), &["--status"]);
    assert!(code == Some(0) && said.contains("yours     /etc/worstcase/tune.toml: changed since"), "{said}");
    let unit = root.path().join("etc/systemd/system/worstcase-tune.service");
    fs::write(&unit, "[Service]\n").unwrap();
    let (code, said) = persist(root.path(), &["--status"]);
    assert!(
        code == Some(1) && said.contains("drifted   /etc/systemd/system/worstcase-tune.service"),
        "{said}"
    );
    let (code, said) = persist(root.path(), &["--undo"]);
    assert!(code == Some(1) && said.ends_with("not every file is as before\n"), "{said}");
    assert_eq!(fs::read_to_string(choice).unwrap(), "isolate = \"3\"\n");
    assert_eq!(fs::read_to_string(unit).unwrap(), "[Service]\n");
}

#[test]
fn a_file_of_choice_is_taken_as_it_is() {
    let root = system(INITS[2].0);
    let own = root.path().join("own.toml");
    fs::write(&own, "# mine\nisolate = \"1\"\n").unwrap();
    assert_eq!(persist(root.path(), &["--file", own.to_str().unwrap()]).0, Some(0));
    let choice = fs::read_to_string(root.path().join("etc/worstcase/tune.toml")).unwrap();
    assert_eq!(choice, "# mine\nisolate = \"1\"\n");
}

#[test]
fn what_could_not_work_at_boot_is_refused_before_anything_is_written() {
    let root = system(INITS[0].0);
    let own = root.path().join("own.toml");
    fs::write(&own, "isolated = \"1\"\n").unwrap();
    let before = everything(root.path());
    for (arguments, why) in [
        (&["--only", "rn-nosuch"][..], "there is no rule or layer `rn-nosuch`"),
        (&["--file", own.to_str().unwrap()], "unknown field `isolated`"),
        (&["--binary", "/tmp/worstcase"], "programs are installed below /usr"),
        (&["--binary", "/usr/bin/nosuch"], "No such file"),
        (&["--init", "upstart"], "`upstart` is none of systemd"),
    ] {
        let (code, said) = persist(root.path(), arguments);
        assert!(code == Some(2) && said.contains(why), "{arguments:?}: {said}");
    }
    let bare = system(&[]);
    let (code, said) = persist(bare.path(), &["--isolate", "1"]);
    assert!(
        code == Some(2) && said.contains("name it with --init: systemd, openrc, sysv, busybox"),
        "{said}"
    );
    assert_eq!(everything(root.path()), before);
}
