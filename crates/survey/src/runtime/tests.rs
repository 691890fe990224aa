//! What the tests of the topics share.

use sysroot::FakeTree;
use units::CpuList;

use crate::survey::Survey;

/// The CPUs set apart in a test.
#[derive(Clone, Copy)]
pub(super) enum Isolated {
    None,
    Cpus(&'static str),
}

/// What a survey of `tree` says of a fact, as it is shown to a user.
pub(super) fn shown(tree: &FakeTree, isolated: Isolated, fact: &str) -> String {
    survey(tree, isolated).read(fact).value.to_string()
}

/// The same, where process `pid` is asked about.
pub(super) fn shown_about(tree: &FakeTree, isolated: Isolated, pid: i32, fact: &str) -> String {
    survey(tree, isolated).about(pid).read(fact).value.to_string()
}

/// A survey of a machine that runs: there is a /proc, if an empty one.
fn survey(tree: &FakeTree, isolated: Isolated) -> Survey {
    std::fs::create_dir_all(tree.root.path("/proc")).unwrap();
    let cpus: CpuList = match isolated {
        Isolated::None => CpuList::new(),
        Isolated::Cpus(list) => list.parse().unwrap(),
    };
    Survey::new(tree.root.clone(), cpus)
}

/// Writes a thread into a tree: process and thread id, name, flags, policy and priority, CPUs.
pub(super) fn thread(
    tree: &FakeTree,
    (pid, tid): (i32, i32),
    name: &str,
    flags: u64,
    (policy, priority): (u32, u32),
    cpus: &str,
) {
    let place = format!("/proc/{pid}/task/{tid}");
    let parent = if pid == 1 { 0 } else { 1 };
    let stat = format!(
        "{tid} ({name}) S {parent} 1 1 0 -1 {flags} 0 0 0 0 5 6 0 0 -100 0 1 0 4711 0 0 18446744073709551615 \
         0 0 0 0 0 0 0 2147483647 0 0 0 0 17 0 {priority} {policy} 0 0 0 0 0 0 0 0 0 0 0"
    );
    tree.write(&format!("{place}/stat"), stat);
    tree.write(&format!("{place}/status"), format!("Name:\t{name}\nCpus_allowed_list:\t{cpus}\n"));
}

/// Makes a symbolic link in a tree, to something that need not exist.
pub(super) fn link(tree: &FakeTree, path: &str, target: &str) {
    let path = tree.root.path(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(target, path).unwrap();
}
