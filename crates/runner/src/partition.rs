//! Partitions by name, whoever made them.

use control::{Directory, Kernel, Live};
use machine::partitions;
use record::Partition;
use rustix::io::Errno;
use sysroot::SysRoot;
use units::errno_in_words;

use failure::{Error, Result};

/// The partition of that name: its directory, or the end of it.
pub fn named(root: &SysRoot, name: &str) -> Result<Partition> {
    pick(partitions(root), name)
}

fn pick(all: Vec<Partition>, name: &str) -> Result<Partition> {
    let groups = |some: &[Partition]| {
        some.iter().map(|partition| partition.group.clone()).collect::<Vec<_>>().join(", ")
    };
    let known = groups(&all);
    let end = format!("/{}", name.trim_matches('/'));
    let is_named = |one: &Partition| {
        one.group == name || [&one.group[..], slice_name(&one.group)].iter().any(|name| name.ends_with(&end))
    };
    let mut fitting: Vec<Partition> = all.into_iter().filter(is_named).collect();
    match (fitting.len(), known.is_empty()) {
        (1, _) => Ok(fitting.remove(0)),
        (0, true) => Err(Error::new("there is no partition", "worstcase partition create --rt CPUS")),
        (0, false) => Err(Error::new(format!("there is no partition `{name}`"), format!("there is {known}"))),
        _ => Err(Error::new(
            format!("`{name}` is the name of several partitions"),
            format!("name one of {}", groups(&fitting)),
        )),
    }
}

/// It, unless the kernel says that it is none.
pub fn valid(partition: Partition) -> Result<Partition> {
    match partition.is_valid() {
        true => Ok(partition),
        false => Err(Error::new(
            format!("{} is no valid partition: {}", partition.group, partition.state),
            "the reason is in parentheses; worstcase partition undo, then create makes it anew",
        )),
    }
}

/// A slice of systemd goes by its name alone, too.
fn slice_name(group: &str) -> &str {
    group.strip_suffix(".slice").unwrap_or(group)
}

/// Puts this process into it for good: undoing the partition puts it and what it starts back where it came from.
pub fn enter(partition: &Partition) -> Result<()> {
    let own = i32::try_from(std::process::id()).ok();
    let path = own.and_then(|own| machine::cgroups::unified_path(&SysRoot::live(), own));
    let inner = path.filter(|_| machine::is_of_v2(partition)).and_then(|path| machine::origin_name(&path));
    let Some(group) = inner.map(|inner| format!("{}/{inner}", partition.group)) else {
        return put(partition, std::process::id()).map(drop);
    };
    let failed = |errno: Errno| {
        Error::new(format!("enter {group}: {}", errno_in_words(errno.raw_os_error())), "run it as root")
    };
    let mut kernel = Live::default();
    kernel
        .make_directory(&group)
        .or_else(|errno| if errno == Errno::EXIST { Ok(()) } else { Err(failed(errno)) })?;
    kernel.write_file(&format!("{group}/cgroup.procs"), &std::process::id().to_string()).map_err(failed)
}

/// Puts a process into it. In a slice of systemd, which has processes only in groups below it, that is one of its own:
/// it is to be kept until the process has ended.
pub fn put(partition: &Partition, process: u32) -> Result<Option<Directory>> {
    let failed = |what: &str, errno: Errno| {
        Error::new(format!("{what}: {}", errno_in_words(errno.raw_os_error())), "run it as root")
    };
    let own = match machine::is_slice(&partition.group) {
        true => {
            let group = format!("{}/worstcase-{process}", partition.group);
            Some(Directory::make(group.clone()).map_err(|errno| failed(&format!("make {group}"), errno))?)
        }
        false => None,
    };
    let group = own.as_ref().map_or(&partition.group[..], Directory::path);
    let file = format!("{group}/cgroup.procs");
    let put = Live::default().write_file(&file, &process.to_string());
    put.map_err(|errno| failed(&format!("write {file}"), errno))?;
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(groups: &[&str]) -> Vec<Partition> {
        let of = |group: &&str| Partition { group: (*group).to_owned(), ..Partition::default() };
        groups.iter().map(of).collect()
    }

    #[test]
    fn a_partition_is_found_by_the_end_of_its_directory() {
        let of = |groups: &[&str], name| pick(all(groups), name);
        let some = ["/sys/fs/cgroup/worstcase", "/sys/fs/cgroup/robots/arm", "/sys/fs/cgroup/tools/arm"];
        assert_eq!(of(&some, "worstcase").unwrap().group, some[0]);
        assert_eq!(of(&some, "robots/arm").unwrap().group, some[1]);
        assert_eq!(of(&some, some[2]).unwrap().group, some[2]);
        let slice = ["/sys/fs/cgroup/worstcase.slice"];
        assert_eq!(of(&slice, "worstcase").unwrap().group, slice[0]);
        assert_eq!(of(&slice, "worstcase.slice").unwrap().group, slice[0]);
        assert!(of(&some, "arm").unwrap_err().hint.contains(some[2]));
        assert!(of(&some, "rm").unwrap_err().hint.contains(some[0]));
        assert!(of(&[], "worstcase").unwrap_err().hint.contains("create"));
    }

    #[test]
    fn an_invalid_partition_is_refused_with_the_kernels_reason() {
        let state = "isolated invalid (Cpu list in cpuset.cpus not exclusive)".to_owned();
        let error = valid(Partition { state, ..Partition::default() }).unwrap_err();
        assert!(error.message.contains("not exclusive"));
    }
}
