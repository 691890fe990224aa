//! All that a machine says of its settings: a whole snapshot, and every file of the kernel that can be written.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use machine::tasks;
use record::Fact;
use sysroot::{SysRoot, Tree};

/// What moves by itself, and why. A `*` at the end stands for anything.
const MOVES: [(&str, &str); 10] = [
    ("/sys/kernel/debug/sched/domains/*/max_newidle_lb_cost", "measured by the kernel while it balances"),
    (
        "/proc/irq/*/effective_affinity_list",
        "of the CPUs that an interrupt may be given to, the kernel picks one",
    ),
    ("/proc/stat", "counts of ticks, interrupts and switches"),
    ("/dev/kmsg", "the kernel's log grows: it lists each partition that is made"),
    ("/proc/sys/kernel/ns_last_pid", "the number of the last process"),
    ("/proc/sys/kernel/random/*", "drawn anew by each reading"),
    ("/sys/fs/cgroup/cgroup.procs", "processes and workers of the kernel come and go"),
    ("/sys/fs/cgroup/cgroup.threads", "the same"),
    ("/sys/fs/cgroup/*.pressure", "counts of time that was waited"),
    ("/proc", "processes come and go, the snapshot's own among them"),
];

/// Where files are that can be written.
const WRITABLE: [&str; 10] = [
    "/proc/sys",
    "/proc/irq",
    "/sys/devices/system",
    "/sys/devices/virtual",
    "/sys/kernel/mm",
    "/sys/kernel/slab",
    "/sys/kernel/debug/sched",
    "/sys/fs/cgroup",
    "/sys/module",
    "/sys/power",
];

/// Each thing, and what it says.
#[derive(Debug)]
pub struct MachineState(BTreeMap<String, String>);

impl MachineState {
    /// As it was before the first test of this guest: each leaves it so.
    pub fn at_first() -> &'static Self {
        static FIRST: OnceLock<MachineState> = OnceLock::new();
        FIRST.get_or_init(Self::now)
    }

    /// This machine's.
    pub fn now() -> Self {
        let tree = snapshot();
        let mut all = BTreeMap::new();
        all.extend(tree.files.iter().map(|(path, fact)| (path.clone(), said(path, fact))));
        all.extend(
            tree.directories.iter().map(|(path, fact)| (format!("names in {path}"), format!("{fact:?}"))),
        );
        all.extend(tree.links.iter().map(|(path, fact)| (format!("link {path}"), format!("{fact:?}"))));
        all.extend(tree.present.iter().map(|(path, fact)| (format!("present {path}"), format!("{fact:?}"))));
        all.retain(|path, _| !moves(path.rsplit(' ').next().unwrap_or_default()));
        WRITABLE.iter().for_each(|directory| walk(Path::new(directory), &mut all));
        all.extend(threads());
        Self(all)
    }

    /// What reads otherwise in `later`.
    pub fn differences(&self, later: &Self) -> Vec<String> {
        let mut paths: Vec<&String> = self.0.keys().chain(later.0.keys()).collect();
        paths.sort();
        paths.dedup();
        let of =
            |state: &Self, path: &str| state.0.get(path).cloned().unwrap_or_else(|| "(not there)".to_owned());
        let differ = paths.into_iter().filter(|path| self.0.get(*path) != later.0.get(*path));
        differ.map(|path| format!("{path}: {} -> {}", of(self, path), of(later, path))).collect()
    }
}

fn snapshot() -> Tree {
    let file = "snapshot.txt";
    let mut command = Command::new("worstcase");
    let made = command.args(["snapshot", file]).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(made.success());
    let tree = Tree::of_text(&fs::read_to_string(file).unwrap()).unwrap();
    fs::remove_file(file).unwrap();
    tree
}

/// Of processes, only the kernel's threads stay: they are compared by themselves.
fn moves(path: &str) -> bool {
    let of_process =
        path.strip_prefix("/proc/").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let fits = |pattern: &str| match pattern.split_once('*') {
        Some((start, end)) => path.starts_with(start) && path.ends_with(end),
        None => path == pattern,
    };
    of_process || MOVES.iter().any(|(pattern, _)| fits(pattern))
}

/// A file's text; of the list of interrupts no counts.
fn said(path: &str, fact: &Fact<Vec<u8>>) -> String {
    let Fact::Value(bytes) = fact else { return format!("{fact:?}") };
    let text = String::from_utf8_lossy(bytes).into_owned();
    match path {
        machine::interrupts::PATH => {
            let words = |line: &str| {
                line.split_whitespace()
                    .filter(|word| word.parse::<u64>().is_err())
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            text.lines().map(|line| words(line) + "\n").collect()
        }
        _ => text,
    }
}

fn walk(directory: &Path, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let name = path.to_string_lossy().into_owned();
        let writable = || entry.metadata().is_ok_and(|data| data.permissions().mode() & 0o222 != 0);
        if kind.is_dir() {
            walk(&path, all);
        } else if kind.is_file() && !moves(&name) && writable() {
            let text = fs::read(&path)
                .map_or_else(|error| error.to_string(), |bytes| String::from_utf8_lossy(&bytes).into_owned());
            all.insert(format!("writable {name}"), text);
        }
    }
}

/// Threads of the kernel by their names, but its pools of workers, which come and go: khugepaged and the like end and
/// begin anew with their settings. Those that nobody may move the kernel moves itself, as the rescuers of its queues, and
/// those of interrupts go where it picks a CPU for the interrupt.
fn threads() -> BTreeMap<String, String> {
    let root = SysRoot::live();
    let mut threads: BTreeMap<String, String> = BTreeMap::new();
    for task in tasks::all(&root).into_iter().filter(|task| task.kernel && !task.name.starts_with("kworker/"))
    {
        let task = tasks::with_affinity(&root, task);
        let is_moved = task.bound || task.name.starts_with("irq/");
        let cpus = if is_moved { String::new() } else { format!(" on {}", task.cpus) };
        let of_name = threads.entry(format!("thread {}", task.name)).or_default();
        *of_name += &format!("{} {}{cpus};", task.policy, task.priority);
    }
    threads
}
