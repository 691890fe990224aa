//! Settings as a file of choice asks for them, by command and by the init script.

use super::*;

/// A file of choice beside the state directory.
fn chosen(tuned: &Tuned, text: &str) -> String {
    let path = tuned.directory.path().join("tune.toml");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn what_a_file_asks_for_later_is_added_and_what_was_reset_is_written_again() {
    let Some(tuned) = Tuned::new() else { return };
    let first = format!("only = [\"rn-thp-nosuch\"]\n[settings]\n\"{INTERVAL}\" = \"7\"\n");
    let file = chosen(&tuned, &first);
    let (code, _, err) = tuned.run("apply", &["--file", &file]);
    assert!(code == Some(2) && err.contains("tune.toml: there is no rule or layer `rn-thp-nosuch`"), "{err}");
    chosen(&tuned, &first.replace("rn-thp-nosuch", "rn-stat-interval"));
    let (code, out, err) = tuned.run("apply", &["--file", &file]);
    assert!(code == Some(0) && out.contains("1 setting written and read back"), "{out}{err}");
    let (_, out, _) = tuned.run("status", &[]);
    assert!(out.contains(&format!(" as {file} says\n")), "{out}");
    fs::write(INTERVAL, "1\n").unwrap();
    chosen(&tuned, &format!("only = [\"rn-compaction\"]\n[settings]\n\"{INTERVAL}\" = \"7\"\n"));
    let (code, out, err) = tuned.run("keep", &["--reconcile", "--file", &file]);
    assert!(code == Some(0) && out.contains("1 setting written again"), "{out}{err}");
    assert!(out.contains(&format!("done      {UNEVICTABLE}: 1 -> 0\n1 setting added")), "{out}");
    assert_eq!((read(INTERVAL), read(UNEVICTABLE)), ("7".into(), "0".into()));
    let (_, out, _) = tuned.run("keep", &["--reconcile", "--file", &file]);
    assert_eq!(out, "0 settings written again\n");
    assert_eq!(tuned.run("undo", &[]).0, Some(0));
    assert_eq!((read(INTERVAL), read(UNEVICTABLE)), ("1".into(), "1".into()));
}

#[test]
fn a_service_never_keeps_what_somebody_tries_for_a_while() {
    let Some(tuned) = Tuned::new() else { return };
    let file = chosen(&tuned, "only = [\"rn-stat-interval\"]\n");
    assert_eq!(tuned.run("apply", &["--only", "rn-compaction", "--for", "1m"]).0, Some(0));
    let (code, out, _) = tuned.run("keep", &["--reconcile", "--file", &file]);
    assert!(code == Some(0) && out.contains("is not applied: nothing is done"), "{out}");
    let (_, out, _) = tuned.run("status", &[]);
    assert!(out.contains("undone 60 s after that unless kept"), "{out}");
    assert_eq!(read(INTERVAL), "1");
    let (_, out, _) = tuned.run("undo", &["--left"]);
    assert!(out.contains("what is applied is answered for"), "{out}");
    assert_eq!(read(UNEVICTABLE), "0");
    kill(tuned.holder("deadline"));
    wait_until("killed", || tuned.run("status", &[]).2.contains("was killed"));
    let (code, out, err) = tuned.run("undo", &["--left"]);
    assert!(code == Some(0) && out.ends_with("proof: everything reads as before\n"), "{out}{err}");
    assert_eq!(read(UNEVICTABLE), "1");
}

/// What the init script is asked for, in a mount namespace where nothing of this machine's files is touched. Each line
/// that is printed is a verb, its exit code, and the interval after it.
const SCRIPTED: &str = r#"
set -e
for directory in /var/lib /etc /opt; do mount -t tmpfs tmpfs $directory; done
mkdir /etc/init.d
cp "$1" /opt/worstcase
/opt/worstcase tune persist --root / --init sysv --binary /opt/worstcase --file "$2" > /dev/null
set +e
ask() { $shell /etc/init.d/worstcase-tune $1 > /opt/said 2>&1; echo "$1 $? $(cat /proc/sys/vm/stat_interval)"; }
for shell in "$3" "$4 sh"; do
    ask status; ask start; ask start; ask status
    echo 1 > /proc/sys/vm/stat_interval
    ask status; ask reconcile; ask restart; ask stop; ask stop; ask nonsense
done
"#;

#[test]
fn the_init_script_applies_and_undoes_under_each_shell() {
    let Some(tuned) = Tuned::new() else { return };
    let there = |name: &str| {
        ["/bin", "/usr/bin"]
            .map(|at| format!("{at}/{name}"))
            .into_iter()
            .find(|path| Path::new(path).exists())
    };
    let (Some(dash), Some(busybox), Some(_)) = (there("dash"), there("busybox"), there("unshare")) else {
        println!("skipped: needs dash, busybox and unshare");
        return;
    };
    let file = chosen(&tuned, &format!("only = [\"rn-compaction\"]\n[settings]\n\"{INTERVAL}\" = \"7\"\n"));
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", SCRIPTED, "sh", BINARY, &file, &dash, &busybox]);
    let (code, out, err) = shown(command.output().unwrap());
    let expected = "status 3 1\nstart 0 7\nstart 0 7\nstatus 0 7\n\
                    status 1 1\nreconcile 0 7\nrestart 0 7\nstop 0 1\nstop 0 1\nnonsense 2 1\n";
    assert_eq!((code, out.as_str()), (Some(0), expected.repeat(2).as_str()), "{err}");
}
