//! Where the cgroup hierarchies are mounted, and in which groups this process is (cgroups(7)).

use std::path::Path;

use sysroot::SysRoot;

use crate::mounts::{Mount, mounts};

/// Whether a mount is of the unified hierarchy.
pub fn is_v2(mount: &Mount) -> bool {
    mount.file_system == "cgroup2"
}

/// Whether a mount is of the cgroup v1 hierarchy with `controller`. The old `cpuset` file system is such a one.
pub(crate) fn is_v1(mount: &Mount, controller: &str) -> bool {
    let has_controller = mount.options.iter().any(|option| option == controller);
    mount.file_system == "cgroup" && has_controller || mount.file_system == "cpuset" && controller == "cpuset"
}

/// The group of `process` in the unified hierarchy, from its top on: `/system.slice/robot.service`.
pub fn unified_path(root: &SysRoot, process: i32) -> Option<String> {
    let groups = root.read(&format!("/proc/{process}/cgroup"));
    groups.value()?.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}

/// The directory of the group of `process`, else of this one, in the v1 hierarchy of `controller`, if it is mounted.
pub fn v1_group(root: &SysRoot, process: Option<i32>, controller: &str) -> Option<String> {
    let mounts = mounts(root);
    let mount = mounts.iter().find(|mount| is_v1(mount, controller))?;
    let process = process.map_or("self".to_owned(), |process| process.to_string());
    let groups = root.read(&format!("/proc/{process}/cgroup"));
    directory(mount, group_path(groups.value()?, controller)?)
}

/// The directories of the groups of `process` that can set CPUs apart: of cgroup v2, and of the cpusets of v1.
pub(crate) fn groups_of(root: &SysRoot, process: i32) -> Vec<String> {
    let groups = root.read(&format!("/proc/{process}/cgroup"));
    let unified = |mount: &Mount| {
        let path = groups.value()?.lines().find_map(|line| line.strip_prefix("0::"))?;
        directory(mount, path)
    };
    let unified = mounts(root).iter().filter(|mount| is_v2(mount)).find_map(unified);
    unified.into_iter().chain(v1_group(root, Some(process), "cpuset")).collect()
}

/// The directories of this process's group and of those above it, in the v1 hierarchy of `controller` and in v2, as far
/// as the mounts show them: the own ones first.
pub(crate) fn line_of_descent(root: &SysRoot, controller: &str) -> Vec<String> {
    let groups = root.read("/proc/self/cgroup");
    let Some(groups) = groups.value() else { return Vec::new() };
    let unified = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let line = |mount: &Mount| {
        let path = if is_v2(mount) {
            unified
        } else if is_v1(mount, controller) {
            group_path(groups, controller)
        } else {
            None
        };
        path.map_or_else(Vec::new, |path| up_to_the_mount(mount, path))
    };
    mounts(root).iter().flat_map(line).collect()
}

/// The directories of a group and of those above it.
fn up_to_the_mount(mount: &Mount, path: &str) -> Vec<String> {
    let Some(own) = directory(mount, path) else { return Vec::new() };
    let up_to = mount.point.to_string_lossy().into_owned();
    let above = Path::new(&own).ancestors().map(|group| group.to_string_lossy().into_owned());
    above.take_while(|group| group.starts_with(&up_to)).collect()
}

/// The group's path in the line of `controller`, as in `4:cpu,cpuacct:/user.slice`.
fn group_path<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then_some(path)
    })
}

/// Where a group is below a mount that may show only a part of the hierarchy.
fn directory(mount: &Mount, group: &str) -> Option<String> {
    let below = Path::new(group).strip_prefix(&mount.root).ok()?;
    Some(mount.point.join(below).to_string_lossy().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_group_is_found_by_its_controller() {
        let text = "12:cpuset:/\n4:cpu,cpuacct:/user.slice/a:b\n1:name=systemd:/x\n0::/unified";
        assert_eq!(group_path(text, "cpu"), Some("/user.slice/a:b"));
        assert_eq!(group_path(text, "cpuset"), Some("/"));
        assert_eq!(group_path(text, "memory"), None);
    }

    #[test]
    fn a_mount_of_a_part_is_taken_off_the_path() {
        let text = "1 1 0:1 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct";
        let mount = &crate::mounts::parse(text)[0];
        assert!(is_v1(mount, "cpu") && !is_v1(mount, "cpuset") && !is_v2(mount));
        assert_eq!(directory(mount, "/docker/abc"), Some("/sys/fs/cgroup/cpu".into()));
        assert_eq!(directory(mount, "/docker/abc/sub"), Some("/sys/fs/cgroup/cpu/sub".into()));
        assert_eq!(directory(mount, "/elsewhere"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "([0-9a-z,]{0,4}:?/?\n?){0,9}|.{0,60}") {
            let _ = group_path(&text, "cpu");
        }
    }
}
