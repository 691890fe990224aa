//! Commands that change a machine, killed at random moments, on a full disk and on one that is read-only: whatever was
//! done, status does not call it fine, and undo puts all of it back. In a guest, whose power nobody misses.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::{BINARY, guests};

/// Rounds of which each kills one command.
const ROUNDS: u32 = 100;

const SCRIPT: &str = r#"
settings() { cat /proc/sys/vm/stat_interval /proc/sys/kernel/watchdog_cpumask /proc/irq/default_smp_affinity \
    /sys/fs/cgroup/cgroup.subtree_control /sys/devices/virtual/workqueue/cpumask; ls /sys/fs/cgroup | grep worstcase; }
apply="worstcase tune apply --isolate 1 --only rn-stat-interval,rn-cpuset-partition,rn-wq-cpumask,rn-irq-default"
settings > before.txt
wrong() { echo "round $n, $what: $1" >> wrong.txt; cat said.txt >> wrong.txt; }
killed() {
    "$@" > said.txt 2>&1 & pid=$!
    usleep $(( (RANDOM * 32768 + RANDOM) % 400000 ))
    kill -9 $pid 2> /dev/null; wait $pid 2> /dev/null; echo $? >> codes.txt
}
seq ROUNDS > rounds.txt
while read -r n; do
    case $((n % 4)) in
    0) what=apply; killed $apply ;;
    1) what="apply for a time"; killed $apply --for 1h ;;
    2) what=undo; $apply > said.txt 2>&1 || wrong "apply"; killed worstcase tune undo ;;
    3) what=keep; $apply > said.txt 2>&1 || wrong "apply"; echo 1 > /proc/sys/vm/stat_interval
       killed worstcase tune keep --reconcile ;;
    esac
    worstcase tune status > status.txt 2>&1; code=$?
    if [ $code = 0 ] && grep -q "as written" status.txt && [ "$(cat /proc/sys/vm/stat_interval)" != 10 ]; then
        wrong "status calls it fine"
    fi
    if [ -e /var/lib/worstcase/tune/journal ]; then
        worstcase tune undo > said.txt 2>&1 || wrong "undo"
    else
        # The process that undoes may be at it.
        for _ in 1 2 3 4 5 6 7 8 9 10; do settings | cmp -s - before.txt && break; usleep 200000; done
    fi
    settings > after.txt
    cmp -s before.txt after.txt || { diff before.txt after.txt > said.txt; wrong "not as before"; }
done < rounds.txt

n=disk; mkdir -p /disk; mount -t tmpfs -o size=256k none /disk; mkdir -m 700 /disk/tune
what="full disk"; dd if=/dev/zero of=/disk/full bs=1k 2> /dev/null
$apply --state /disk/tune > said.txt 2>&1 && wrong "applied without a journal"
settings | cmp -s - before.txt || wrong "not as before"
rm /disk/full; worstcase tune undo --state /disk/tune > said.txt 2>&1
$apply --state /disk/tune > said.txt 2>&1 || wrong "apply"
dd if=/dev/zero of=/disk/full bs=1k 2> /dev/null
worstcase tune status --state /disk/tune > said.txt 2>&1 || wrong "status"
worstcase tune undo --state /disk/tune > said.txt 2>&1 || wrong "undo"
settings | cmp -s - before.txt || wrong "not as before"

what="read-only"; rm /disk/full
$apply --state /disk/tune > said.txt 2>&1 || wrong "apply"
mount -o remount,ro /disk
worstcase tune status --state /disk/tune > said.txt 2>&1 || wrong "status"
worstcase tune undo --state /disk/tune > said.txt 2>&1 || wrong "undo"
settings | cmp -s - before.txt || wrong "not as before"
worstcase tune status --state /disk/tune > said.txt 2>&1 && wrong "status calls fine what was put back"
$apply > said.txt 2>&1 || wrong "another directory, after the undo"
worstcase tune undo > said.txt 2>&1 || wrong "undo"
settings | cmp -s - before.txt || wrong "not as before"
echo done > end.txt
"#;

#[test]
#[ignore = "long: a hundred kills"]
fn commands_killed_at_random_moments_leave_nothing_that_undo_does_not_put_back() {
    if guests::hindered(&["qemu-system-x86_64", "busybox"], &[&[]]) {
        return;
    }
    for kernel in ["debian-6.1-amd64", "debian-6.12-rt-amd64"] {
        let back = tempfile::tempdir().unwrap();
        let directory = back.path().join("back");
        let output = Command::new(BINARY)
            .args(["lab", "run", "--kernel", kernel, "--cpus", "2", "--time", "wall", "--timeout", "30m"])
            .args(["--with", "busybox", "--out"])
            .arg(&directory)
            .args(["--", "busybox", "sh", "-c", &with_tools(&SCRIPT.replace("ROUNDS", &ROUNDS.to_string()))])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:#?}");
        let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
        assert_eq!(read("wrong.txt"), "", "{kernel}");
        assert_eq!(read("end.txt"), "done\n", "{kernel}");
        let codes = read("codes.txt");
        let killed = codes.lines().filter(|code| *code == "137").count();
        println!("{kernel}: {killed} of {ROUNDS} commands were killed before their end");
        assert!(killed > 0, "{codes}");
    }
}

/// With the programs of busybox by their names.
fn with_tools(script: &str) -> String {
    format!("busybox mkdir -p /tools; busybox --install -s /tools; export PATH=$PATH:/tools\n{script}")
}
