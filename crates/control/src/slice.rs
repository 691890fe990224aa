//! Slices of systemd with resources of their own (systemd.resource-control(5)).

use std::fs;

use record::Fact;
use rustix::io::Errno;
use sysroot::SysRoot;

use crate::kernel::Kernel;
use crate::place;
use crate::programs::systemctl;
use crate::slice_property::SliceProperty;

/// Where systemd keeps properties that were set until the next boot.
const CONTROL: &str = "/run/systemd/system.control";

/// Sets a property of the slice at `group` until the next boot and starts it; an empty value takes it back, and ends
/// the slice where nothing is in it. `EXDEV` for what is no name of a slice.
pub(crate) fn set(
    kernel: &mut impl Kernel,
    group: &str,
    property: SliceProperty,
    value: &str,
) -> Result<(), Errno> {
    let root = &kernel.root();
    let unit = group.rsplit('/').next().unwrap_or_default();
    if !place::is_slice(unit) {
        return Err(Errno::XDEV);
    }
    let is_free = value.is_empty() && !is_populated(root, group);
    if is_free && root.exists(group) == Fact::Absent {
        forget(unit, property);
        return Ok(());
    }
    if value.is_empty() {
        // systemd leaves the kernel's value where another unit keeps the controller, and where none does Linux 6.12 leaves
        // threads on the CPUs that they had. The kernel refuses nothing at all (ENOSPC) while a process is in the group.
        let all = property.around(root, group).value().cloned().unwrap_or_default();
        let _ = kernel.write_file(&format!("{group}/{}", property.file()), &all);
    }
    systemctl(&["set-property", "--runtime", unit, &format!("{property}={value}")])?;
    if !value.is_empty() {
        return systemctl(&["start", unit]);
    }
    if is_free {
        systemctl(&["stop", unit])?;
        forget(unit, property);
    }
    Ok(())
}

/// Whether a process is in the group, or in one below it; unknown counts as one.
fn is_populated(root: &SysRoot, group: &str) -> bool {
    match root.read(&format!("{group}/cgroup.events")) {
        Fact::Value(text) => !text.lines().any(|line| line == "populated 0"),
        Fact::Absent => false,
        _ => true,
    }
}

/// What `set-property` has left of an empty property. Where it stays, it says nothing.
fn forget(unit: &str, property: SliceProperty) {
    let directory = format!("{CONTROL}/{unit}.d");
    let _ = fs::remove_file(format!("{directory}/50-{property}.conf"));
    let _ = fs::remove_dir(directory);
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::Tree;

    #[test]
    fn only_a_group_that_says_so_is_empty() {
        let populated = |text: Option<&str>| {
            let file = text.map(|text| ("/group/cgroup.events".to_owned(), text.as_bytes().to_vec()));
            is_populated(&SysRoot::of(Tree::whole(file)), "/group")
        };
        assert!(!populated(Some("populated 0\nfrozen 0\n")));
        assert!(populated(Some("populated 1\nfrozen 0\n")) && populated(Some("frozen 0\n")));
        assert!(!populated(None));
    }
}
