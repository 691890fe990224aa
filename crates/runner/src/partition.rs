//! Partitions by name, whoever made them.

use control::{Kernel, Live, in_words};
use machine::partitions;
use record::Partition;
use sysroot::SysRoot;

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
    let mut fitting: Vec<Partition> =
        all.into_iter().filter(|one| one.group == name || one.group.ends_with(&end)).collect();
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

/// Puts a process into it.
pub fn put(partition: &Partition, process: u32) -> Result<()> {
    let file = format!("{}/cgroup.procs", partition.group);
    Live::default().write_file(&file, &process.to_string()).map_err(|errno| {
        Error::new(format!("write {file}: {}", in_words(errno.raw_os_error())), "run it as root")
    })
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
