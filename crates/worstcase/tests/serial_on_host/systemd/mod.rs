//! A machine with systemd, in a guest: the service applies what was chosen at boot, systemd stops and undoes it, what is
//! applied for a time comes back though the login is gone, and a machine that lost its power starts clean.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod partition;
mod root;

use crate::support::guests;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_worstcase");
const STATE: &str = "var/lib/worstcase/tune";

/// What the first boot does. Each file that it leaves is looked at here.
const FIRST: &str = r#"
interval=/proc/sys/vm/stat_interval
until_is() { for _ in $(seq 300); do [ "$(cat $interval)" = "$1" ] && return 0; sleep 0.2; done; return 1; }
systemctl is-system-running --wait > running.txt
systemctl show -p ActiveState,Result worstcase-tune > unit.txt
worstcase tune status > at-boot.txt; echo "exit $?" >> at-boot.txt
worstcase tune persist --status > persisted.txt; echo "exit $?" >> persisted.txt
journalctl -b -u worstcase-tune -o cat > by-unit.txt
systemctl is-active worstcase-tune-again.timer > timer.txt

limit() { od -An -tu4 -N4 /dev/cpu_dma_latency | tr -d ' '; }
limit > limit.txt
systemctl list-units --plain --no-legend 'worstcase-tune-latency*' > latency-holder.txt
kill -9 $(tr , '\n' < /var/lib/worstcase/tune/holder-latency | sed -n 's/.*"pid"://p')
echo 1 > $interval
systemctl start worstcase-tune-again
cat $interval > again.txt
limit >> limit.txt
systemctl stop worstcase-tune
limit >> limit.txt
cat $interval > stopped.txt
systemctl is-active worstcase-tune worstcase-tune-again.timer >> stopped.txt
worstcase tune status >> stopped.txt

worstcase tune apply --keep-going --file > by-hand.txt 2>&1
worstcase tune undo > /dev/null

systemd-run --quiet --unit=login sh -c "worstcase tune apply --for 20s --isolate 1 --only rn-stat-interval; sleep 1000"
until_is 10 || echo "never applied" >> login.txt
systemctl list-units --plain --no-legend 'worstcase-tune-deadline*' > holder.txt
systemctl kill --signal=KILL login
systemctl stop login 2> /dev/null
cat $interval >> login.txt
until_is 1
cat $interval >> login.txt
worstcase tune status >> login.txt

systemctl start --no-block worstcase-tune
for _ in $(seq 300); do [ -e /var/lib/worstcase/tune/journal ] && break; sleep 0.05; done
systemctl kill --signal=KILL worstcase-tune
for _ in $(seq 300); do systemctl is-failed --quiet worstcase-tune && break; sleep 0.2; done
systemctl show -p Result worstcase-tune > killed.txt
cat $interval >> killed.txt
worstcase tune status >> killed.txt

worstcase tune persist --isolate 1 > in-memory.txt 2>&1
systemctl reset-failed
systemctl start worstcase-tune
cp -r /var/lib/worstcase/tune state
"#;

/// The second boot of the same machine, which lost its power, with the service masked on the kernel command line.
const SECOND: &str = r#"
systemctl show -p LoadState,ActiveState worstcase-tune > unit.txt
cat /proc/sys/vm/stat_interval > masked.txt
worstcase tune status >> masked.txt; echo "exit $?" >> masked.txt
worstcase tune persist --status > persisted.txt; echo "exit $?" >> persisted.txt
chmod 700 /var/lib/worstcase/tune
worstcase tune undo >> masked.txt
"#;

/// The third boot, with the service and the journal of the first.
const THIRD: &str = "
journalctl -b -u worstcase-tune -o cat > log.txt
worstcase tune status > status.txt

systemctl stop worstcase-tune
cp -a /etc/worstcase/tune.toml kept.toml
echo nonsense >> /etc/worstcase/tune.toml
systemctl start worstcase-tune 2> /dev/null || echo failed > failed.txt
systemctl is-system-running >> failed.txt
worstcase tune persist --status > why.txt
cp -a kept.toml /etc/worstcase/tune.toml
systemctl start worstcase-tune
worstcase tune persist --undo > undo.txt
cat /proc/sys/vm/stat_interval > after.txt
systemctl show -p LoadState worstcase-tune >> after.txt
systemctl list-units --all --plain --no-legend 'worstcase-tune*' >> after.txt
find /etc -name '*worstcase*' >> after.txt
";

fn hindered() -> bool {
    guests::hindered(&["qemu-system-x86_64", "busybox", "dpkg", "ldd", "systemctl"], &[&[]])
}

/// Boots the system at `root`, and gives back the texts that the script left.
fn boot(root: &Path, words: &str, script: &str) -> (tempfile::TempDir, impl Fn(&str) -> String) {
    let back = tempfile::tempdir().unwrap();
    let directory = back.path().join("back");
    let output = Command::new(PROGRAM)
        .args(["lab", "run", "--kernel", "debian-6.1-amd64", "--cpus", "2", "--time", "wall"])
        .args(["--timeout", "6m", "--with", "busybox", "--append", words, "--system"])
        .arg(root)
        .arg("--out")
        .arg(&directory)
        .args(["--", "sh", "-c", script])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:#?}");
    let read = move |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
    (back, read)
}

#[test]
#[ignore = "long"]
fn a_service_applies_at_boot_and_all_of_it_comes_back() {
    if hindered() {
        return;
    }
    let system = tempfile::tempdir().unwrap();
    if root::make(system.path(), Path::new(PROGRAM)).is_none() {
        println!("skipped: needs package systemd, installed by dpkg");
        return;
    }
    let choice = system.path().join("choice.toml");
    fs::write(&choice, "isolate = \"1\"\n[settings]\n\"/dev/cpu_dma_latency\" = \"5\"\n").unwrap();
    let mut persist = Command::new(PROGRAM);
    persist.args(["tune", "persist", "--root"]).arg(system.path()).arg("--file").arg(choice);
    assert!(persist.stdout(Stdio::null()).status().unwrap().success());

    let (first, read) = boot(system.path(), "systemd.show_status=no", FIRST);
    assert_eq!(read("running.txt"), "running\n", "no unit failed");
    assert_eq!(read("unit.txt"), "Result=success\nActiveState=active\n");
    let at_boot = read("at-boot.txt");
    assert!(at_boot.contains(" as /etc/worstcase/tune.toml says\n"), "{at_boot}");
    assert!(holds(&at_boot), "{at_boot}");
    assert!(holds(&read("persisted.txt")), "{}", read("persisted.txt"));
    assert_eq!(read("timer.txt"), "active\n");
    assert_eq!(
        read("limit.txt"),
        "5\n5\n2000000000\n",
        "at boot, after its holder was killed, after the stop"
    );
    assert!(read("latency-holder.txt").contains("worstcase-tune-latency-"), "{}", read("latency-holder.txt"));
    assert_eq!(read("again.txt"), "10\n", "what was reset is written again");
    assert_eq!(read("stopped.txt"), "1\ninactive\ninactive\nnothing is applied\n");
    assert_eq!(written(&read("by-unit.txt")), written(&read("by-hand.txt")), "the unit forbids no write");
    assert!(read("holder.txt").contains("worstcase-tune-deadline-"), "{}", read("holder.txt"));
    let login = read("login.txt");
    assert!(
        login.starts_with("10\n1\nnothing is applied; the last settings were undone by themselves"),
        "{login}"
    );
    let killed = read("killed.txt");
    assert!(killed.starts_with("Result=signal\n1\nnothing is applied"), "{killed}");
    assert!(read("in-memory.txt").contains("its file system is in memory"), "{}", read("in-memory.txt"));

    for file in fs::read_dir(first.path().join("back/state")).unwrap().flatten() {
        let name = format!("{STATE}/{}", file.file_name().to_string_lossy());
        root::write(system.path(), &name, fs::read(file.path()).unwrap());
    }
    assert!(system.path().join(STATE).join("journal").exists(), "the power went while all was applied");
    let (_second, read) = boot(system.path(), "systemd.mask=worstcase-tune.service", SECOND);
    assert_eq!(read("unit.txt"), "LoadState=masked\nActiveState=inactive\n");
    let masked = read("masked.txt");
    assert!(masked.starts_with("1\nnothing holds: the machine was booted since"), "{masked}");
    let persisted = read("persisted.txt");
    assert!(persisted.contains("LoadState=masked") && persisted.ends_with("exit 1\n"), "{persisted}");
    assert!(masked.contains("exit 1\n") && masked.ends_with("nothing of it holds any more\n"), "{masked}");
    let (_third, read) = boot(system.path(), "systemd.show_status=no", THIRD);
    assert!(read("log.txt").contains("settings of an earlier boot are gone with it"), "{}", read("log.txt"));
    assert!(holds(&read("status.txt")), "{}", read("status.txt"));
    assert_eq!(
        read("failed.txt"),
        "failed\ndegraded\n",
        "a choice that cannot be read is shown, and no more"
    );
    assert!(read("why.txt").contains("Result=exit-code"), "{}", read("why.txt"));
    assert!(read("undo.txt").ends_with("proof: every file is as before\n"), "{}", read("undo.txt"));
    assert_eq!(read("after.txt"), "1\nLoadState=not-found\n", "nothing of it is left");
}

/// Whether a status says that all is as written, but for interrupts of devices that are silent: the next one still comes to the old
/// CPU, and status says so.
fn holds(status: &str) -> bool {
    let pending = status.lines().filter(|line| line.starts_with("pending ")).count();
    let is_said = |line: &str| {
        let all = pending == 0 && line.ends_with(", all as written");
        all || pending > 0 && line.contains(&format!(" settings, {pending} pending"))
    };
    status.lines().any(|line| line.starts_with("holds ")) && status.lines().any(is_said)
}

/// How many settings were written, how many of them were read back as written, and how many were refused.
fn written(text: &str) -> &str {
    let line =
        text.lines().find(|line| line.contains(" settings written")).unwrap_or_else(|| panic!("{text}"));
    line.split_once(';').unwrap().0
}
