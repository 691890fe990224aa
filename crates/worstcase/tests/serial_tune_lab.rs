//! Settings of real kernels in guests: applied, found to hold, undone, and all as it was.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_worstcase");

/// Debian's kernels: how each is fetched, and its name in the cache.
const KERNELS: [(&[&str], &str); 2] =
    [(&[], "debian-6.1-amd64"), (&["--flavour", "rt"], "debian-6.1-rt-amd64")];

/// Before and after are plans: they say of each thing what it says. A host of guests raises threads of the kernel too.
const SCRIPT: &str = "\
plan() { worstcase tune plan --isolate 1 --profile $1 --json > $2 || exit 3; }
for profile in isolated host; do
    plan $profile $profile-before.json
    worstcase tune apply --isolate 1 --profile $profile > $profile-apply.txt 2>&1 || exit 4
    worstcase tune status > $profile-status.txt 2>&1 || exit 5
    plan $profile $profile-between.json
    worstcase tune undo > $profile-undo.txt 2>&1 || exit 6
    plan $profile $profile-after.json
done
rule=rn-cpuset-partition
worstcase tune apply --isolate 1 --only $rule > partition-apply.txt 2>&1 || exit 7
worstcase check --isolate 1 $rule --all > partition-check.txt 2>&1
echo $$ > /sys/fs/cgroup/worstcase/cgroup.procs || exit 8
worstcase tune undo > partition-undo.txt 2>&1 || exit 9
test ! -e /sys/fs/cgroup/worstcase || exit 10
";

/// Whether a guest can run that kernel; says why not.
fn hindered(fetch: &[&str]) -> bool {
    let has = |program: &str| {
        ["/bin", "/usr/bin", "/sbin", "/usr/sbin"].iter().any(|path| Path::new(path).join(program).exists())
    };
    if let Some(program) = ["qemu-system-x86_64", "busybox"].into_iter().find(|program| !has(program)) {
        println!("skipped: needs {program}");
        return true;
    }
    let fetched =
        Command::new(PROGRAM).args(["lab", "kernels", "fetch", "debian"]).args(fetch).output().unwrap();
    if !fetched.status.success() {
        println!("skipped: no kernel: {}", String::from_utf8_lossy(&fetched.stderr));
    }
    !fetched.status.success()
}

/// What came back from a guest with two CPUs that ran the script.
fn guest(kernel: &str) -> tempfile::TempDir {
    let back = tempfile::tempdir().unwrap();
    let output = Command::new(PROGRAM)
        .args(["lab", "run", "--kernel", kernel, "--cpus", "2", "--time", "wall", "--timeout", "3m", "--out"])
        .arg(back.path().join("back"))
        .args(["--", "sh", "-c", SCRIPT])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{kernel}: {} {output:#?}", told(back.path()));
    back
}

/// What a plan says of each thing. Threads come and go with settings, so that only their names count.
fn things(plan: &str) -> BTreeMap<String, String> {
    let plan: serde_json::Value = serde_json::from_str(plan).unwrap();
    let thing = |step: &serde_json::Value| {
        let mut target = step["target"].clone();
        for thread in target.as_object_mut().into_iter().flat_map(|object| object.values_mut()) {
            if let Some(ids) = thread.as_object_mut() {
                ["pid", "tid", "start"].into_iter().for_each(|id| drop(ids.remove(id)));
            }
        }
        (target.to_string(), step["old"].to_string())
    };
    plan["steps"].as_array().unwrap().iter().map(thing).collect()
}

/// Every text that came back, for a test that failed.
fn told(directory: &Path) -> String {
    let texts = fs::read_dir(directory.join("back")).into_iter().flatten().flatten();
    let texts = texts.filter(|file| file.path().extension().is_some_and(|end| end == "txt"));
    texts.filter_map(|file| fs::read_to_string(file.path()).ok()).collect()
}

#[test]
fn on_real_kernels_undo_is_the_identity() {
    for (fetch, kernel) in KERNELS {
        if hindered(fetch) {
            continue;
        }
        let back = guest(kernel);
        let read = |name: &str| fs::read_to_string(back.path().join("back").join(name)).unwrap();
        for profile in ["isolated", "host"] {
            let of = |what: &str| read(&format!("{profile}-{what}"));
            let before = things(&of("before.json"));
            assert_eq!(things(&of("after.json")), before, "{kernel} {profile}");
            assert_ne!(things(&of("between.json")), before, "{kernel} {profile}");
            assert!(of("apply.txt").contains("/proc/sys/vm/stat_interval: 1 -> 10"), "{}", of("apply.txt"));
            assert!(of("status.txt").contains("all as written"), "{}", of("status.txt"));
            assert!(of("undo.txt").ends_with("proof: everything reads as before\n"), "{}", of("undo.txt"));
        }
        let partition = (read("partition-check.txt"), read("partition-undo.txt"));
        assert!(
            partition.0.contains("passes   CPUs for real time are out of load balancing: 1"),
            "{partition:?}"
        );
        assert!(partition.1.ends_with("proof: everything reads as before\n"), "{partition:?}");
        let raised = read("host-apply.txt");
        assert_eq!(raised.contains("priority of ktimers/1"), kernel.contains("-rt-"), "{kernel}: {raised}");
    }
}
