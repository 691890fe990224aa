//! A partition beside everything that systemd does of its own accord: a hundred random events, effective CPUs right after
//! each, and status, which never calls a broken state fine. In a guest with a whole Debian, since packages, logins and
//! a system bus take part.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{PROGRAM, hindered};

/// What Debian's smallest system lacks for logins.
const PACKAGES: &str = "--include=systemd,systemd-sysv,dbus,libpam-systemd";

/// Documents and lists of packages: they fill the guest's memory.
const LEFT_OUT: [&str; 4] = ["usr/share/doc", "usr/share/locale", "usr/share/man", "var/lib/apt/lists"];

/// Ends where there is no partition as asked for, or status is wrong about it.
const SCRIPT: &str = r#"
systemctl is-system-running --wait > running.txt
slice=/sys/fs/cgroup/worstcase.slice
fail() { echo "event $n, $event: $1" >> failed.txt; worstcase tune status >> failed.txt 2>&1; }
allowed() { sed -n 's/^Cpus_allowed_list:\t//p' "/proc/$1/status"; }
whole() {
    [ "$(cat $slice/cpuset.cpus.effective) $(cat $slice/cpuset.cpus.partition)" = "2-3 isolated" ] || fail "the slice"
    [ "$(cat /sys/fs/cgroup/cpuset.cpus.effective) $(allowed 1)" = "0-1 0-1" ] || fail "the rest"
    robot=$(systemctl show -P MainPID robot)
    [ "$(allowed "$robot")" = 2-3 ] || fail "the robot: $(allowed "$robot")"
    worstcase tune status > status.txt 2>&1 || fail "status"
}
broken() { worstcase tune status > status.txt 2>&1 && fail "status calls it fine"; }

mkdir -p package/DEBIAN
printf 'Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n' > package/DEBIAN/control
printf '#!/bin/sh\nsystemctl daemon-reload\n' > package/DEBIAN/postinst
chmod 755 package/DEBIAN/postinst
dpkg-deb --build package x.deb > /dev/null 2>&1

cat > /etc/systemd/system/robot.service <<END
[Service]
ExecStart=/usr/bin/worstcase partition run --policy fifo --priority 80 -- sleep 100000
Slice=worstcase.slice
[Install]
WantedBy=multi-user.target
END
systemctl daemon-reload
systemctl enable --quiet robot
# What holds from the next boot on is written to a disk.
mkdir -p disk/etc disk/bin
cp -a /etc/. disk/etc/
cp /usr/bin/worstcase disk/bin/
chmod 755 /
mount --bind disk/etc /etc
mount --bind disk/bin /usr/local/bin
n=0; event=create
worstcase tune apply --isolate 2-3 --only rn-cpuset-partition > applied.txt 2>&1
systemctl start robot
systemd-run --quiet --wait --pipe --unit=outside worstcase partition run -- sleep 1 > outside.txt 2>&1
echo "exit $?" >> outside.txt
until [ "$(cat /proc/$(systemctl show -P MainPID robot)/comm)" = sleep ]; do sleep 0.1; done
whole
for n in $(seq 100); do
    case $((RANDOM % 11)) in
    0) event=daemon-reload; systemctl daemon-reload ;;
    1) event="unit with AllowedCPUs"
       systemctl is-active --quiet other || systemd-run --quiet --unit=other -p AllowedCPUs=0-1 sleep 100000 ;;
    2) event="unit stopped"; systemctl stop other 2> /dev/null ;;
    3) event=isolate; systemctl isolate multi-user.target ;;
    4) event=package; dpkg -i x.deb > /dev/null 2>&1 ;;
    5) event=login; systemd-run --quiet --wait -p PAMName=login -p User=root true ;;
    6) event=restart; systemctl restart robot
       until [ "$(cat /proc/$(systemctl show -P MainPID robot)/comm)" = sleep ]; do sleep 0.1; done ;;
    7) event=daemon-reexec; systemctl daemon-reexec ;;
    8) event="slice stopped"; systemctl stop worstcase.slice; broken
       worstcase tune keep --reconcile > /dev/null 2>&1; systemctl start robot
       until [ "$(cat /proc/$(systemctl show -P MainPID robot)/comm)" = sleep ]; do sleep 0.1; done ;;
    9) event=persist
       worstcase tune plan --isolate 2-3 > /dev/null 2>&1
       /usr/local/bin/worstcase tune persist --isolate 2-3 --only rn-stat-interval > persisted.txt 2>&1 ||
           grep -q 'it is there already' persisted.txt || fail "persist: $(cat persisted.txt)" ;;
    10) event="persist undone"
       worstcase tune persist --undo > persisted.txt 2>&1 || fail "persist undone: $(cat persisted.txt)" ;;
    esac
    echo "$event" >> events.txt
    whole
done
event=undo
worstcase tune undo > undone.txt 2>&1; echo "exit $?" >> undone.txt
allowed "$(systemctl show -P MainPID robot)" >> undone.txt
cut -d: -f3 "/proc/$(systemctl show -P MainPID robot)/cgroup" >> undone.txt
"#;

/// A Debian at `root` from the mirror from which this machine installs; why not, where there is none.
fn debian(root: &Path) -> Result<(), String> {
    let mut make = Command::new("debootstrap");
    make.args(["--variant=minbase", PACKAGES, "bookworm"]).arg(root).args(mirror());
    let output = make.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        return Err(text.lines().next_back().unwrap_or_default().to_owned());
    }
    for path in LEFT_OUT {
        let _ = fs::remove_dir_all(root.join(path));
    }
    fs::copy(PROGRAM, root.join("usr/bin/worstcase")).map(drop).map_err(|error| error.to_string())
}

/// The first mirror that apt is set up with.
fn mirror() -> Option<String> {
    let targets = ["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"];
    let output = Command::new("apt-get").args(targets).output().ok()?;
    String::from_utf8(output.stdout).ok()?.lines().next().map(str::to_owned)
}

fn holds_on(kernel: &str, root: &Path) {
    let back = tempfile::tempdir().unwrap();
    let directory: PathBuf = back.path().join("back");
    let output = Command::new(PROGRAM)
        .args([
            "lab", "run", "--kernel", kernel, "--cpus", "4", "--time", "wall", "--memory", "2GiB", "--disk",
            "256M",
        ])
        .args(["--timeout", "30m", "--with", "busybox", "--append", "systemd.show_status=no", "--system"])
        .arg(root)
        .arg("--out")
        .arg(&directory)
        .args(["--", "bash", "-c", SCRIPT])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:#?}");
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
    assert_eq!(read("failed.txt"), "", "{kernel}, after: {}", read("events.txt"));
    assert_eq!(read("events.txt").lines().count(), 100);
    let outside = read("outside.txt");
    assert!(
        outside.contains("Slice=worstcase.slice") && outside.ends_with("exit 2\n"),
        "a service that would lose its processes is refused: {outside}"
    );
    let undone = read("undone.txt");
    assert!(
        undone.ends_with("proof: everything reads as before\nexit 0\n0-3\n/worstcase.slice/robot.service\n"),
        "{undone}"
    );
}

#[test]
#[ignore = "long"]
fn a_partition_holds_through_a_hundred_events() {
    if hindered() || crate::support::guests::hindered(&["debootstrap", "apt-get"], &[]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    if let Err(why) = debian(&root) {
        return println!("skipped: debootstrap: {why}");
    }
    std::thread::scope(|guests| {
        for kernel in ["debian-6.1-amd64", "debian-6.12-rt-amd64"] {
            guests.spawn(|| holds_on(kernel, &root));
        }
    });
}
