//! Into a partition as systemd has it: each process belongs to a unit, which ends with all that it has started.

use std::ffi::OsStr;
use std::process::Command;

use machine::{is_slice, partition_around};
use record::Partition;
use sysroot::SysRoot;

use crate::output;
use failure::{Error, Result};

/// How a command gets into a partition.
#[derive(Debug, PartialEq, Eq)]
pub enum WayIn {
    /// It is there: its service is in the partition's slice.
    Here,
    /// As a scope of its own in that slice.
    Scope(String),
    /// By the control group alone.
    Group,
}

/// How this process gets in.
pub fn way_in(root: &SysRoot, partition: &Partition) -> Result<WayIn> {
    way_of(root, partition, sys::process::own_pid().as_raw_pid(), tune::holder::has_systemd())
}

fn way_of(root: &SysRoot, partition: &Partition, process: i32, has_systemd: bool) -> Result<WayIn> {
    let service = service_of(root, process);
    let slice = partition.group.rsplit('/').next().filter(|_| is_slice(&partition.group));
    match (slice, service) {
        (Some(_), _) if partition_around(root, process).is_some_and(|own| own.group == partition.group) => {
            Ok(WayIn::Here)
        }
        (Some(slice), Some(service)) => Err(Error::new(
            format!(
                "{service} is outside of {slice}, and would lose what it starts there: stopped, it would run on"
            ),
            format!(
                "write Slice={slice} into the section [Service] of its unit, then systemctl daemon-reload"
            ),
        )),
        (Some(slice), None) if has_systemd => Ok(WayIn::Scope(slice.to_owned())),
        (_, service) => {
            if let Some(service) = service {
                output::warning(&format!(
                    "{service} loses what is started here: stopped, it runs on; partition undo and create make a \
                     partition that systemd knows"
                ));
            }
            Ok(WayIn::Group)
        }
    }
}

/// The command that starts `program` as a scope in `slice`. It becomes that program: same process, same terminal.
pub fn scope(slice: &str, program: &OsStr) -> Command {
    let mut command = Command::new("systemd-run");
    command.args(["--scope", "--quiet", "--collect", "--slice", slice, "--"]).arg(program);
    command
}

/// The service of the system in which a process is. Those of users' managers have terminals in them.
fn service_of(root: &SysRoot, process: i32) -> Option<String> {
    let own = machine::cgroups::unified_path(root, process)?;
    let is_of_user = own.starts_with("/user.slice/");
    own.split('/').rev().find(|name| name.ends_with(".service")).map(str::to_owned).filter(|_| !is_of_user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::Tree;

    fn way(group: &str, own: &str, has_systemd: bool) -> Result<WayIn> {
        let files = [
            ("/proc/self/mountinfo", "1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n".to_owned()),
            ("/sys/fs/cgroup/worstcase.slice/cpuset.cpus.partition", "isolated\n".to_owned()),
            ("/sys/fs/cgroup/worstcase.slice/cpuset.cpus.effective", "2-3\n".to_owned()),
            ("/proc/7/cgroup", format!("0::{own}\n")),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.into_bytes()));
        let mut tree = Tree::whole(files);
        tree.present.insert("/sys/fs/cgroup/worstcase.slice".into(), record::Fact::Value(()));
        let group = format!("/sys/fs/cgroup/{group}");
        way_of(&SysRoot::of(tree), &Partition { group, ..Partition::default() }, 7, has_systemd)
    }

    #[test]
    fn a_command_gets_into_a_slice_as_a_scope_and_a_service_by_its_unit() {
        let slice = "worstcase.slice";
        let session = "/user.slice/user-0.slice/session-1.scope";
        assert_eq!(way(slice, session, true).unwrap(), WayIn::Scope(slice.into()));
        let terminal = "/user.slice/user-1000.slice/user@1000.service/app.slice/vte.scope";
        assert_eq!(way(slice, terminal, true).unwrap(), WayIn::Scope(slice.into()));
        assert_eq!(way(slice, "/worstcase.slice/robot.service", true).unwrap(), WayIn::Here);
        let refused = way(slice, "/system.slice/robot.service", true).unwrap_err();
        assert!(refused.message.starts_with("robot.service is outside of worstcase.slice"), "{refused:?}");
        assert!(refused.hint.contains("Slice=worstcase.slice"), "{refused:?}");
        assert_eq!(way("worstcase", "/", false).unwrap(), WayIn::Group);
    }
}
