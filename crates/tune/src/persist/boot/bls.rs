//! GRUB with entries of the boot loader specification (Fedora, RHEL): the entry's own file is changed, or copied to one of
//! our own that comes last in the menu. grubby writes the same lines; it keeps no copy of what was there.

use machine::boot_loader::{self, Request, Requested, environment};
use sysroot::SysRoot;

use super::word::refuse_characters;
use super::{Case, Draft, Manner, OWN, cannot, entry, grub, own_file, text};
use crate::error::Result;

pub(super) fn plan(case: &mut Case<'_>) -> Result<Draft> {
    refuse_characters("GRUB", &case.merged.added, "'\"\\$;&|<>{}`#")?;
    if case.manner == Manner::Default {
        return Ok(Draft { edits: entry::changed(case)?, next: "reboot", ..Draft::default() });
    }
    let id = own_id(&case.request.file)?;
    let copy = entry::copy(case, |key, value| (key != "id").then(|| value.to_owned()))?;
    let path = format!("{}/{id}.conf", entry::directory(&case.request.file));
    let setting = match case.manner {
        Manner::Trial => Some(grub::once(case, &id)?),
        _ => None,
    };
    let edits = vec![own_file(case.root, &path, copy)?];
    Ok(Draft { edits, setting, next: grub::next(case.manner), ..Draft::default() })
}

/// The name of our entry. GRUB sorts entries by their names as RPM sorts versions, the newest first; that of a kernel is
/// `MACHINE-VERSION`, so that version 0 comes last.
fn own_id(path: &str) -> Result<String> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let machine = name.split('-').next().unwrap_or_default();
    match machine.len() == 32 && machine.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(format!("{machine}-0-{OWN}")),
        false => Err(cannot(
            "GRUB",
            "the names of its entries do not begin with a machine's id",
            "leave --entry and --trial out",
        )),
    }
}

pub(super) fn own(root: &SysRoot, request: &Request) -> Option<Vec<Requested>> {
    let path = format!("{}/{}.conf", entry::directory(&request.file), own_id(&request.file).ok()?);
    boot_loader::entry(&path, &text(root, &path).ok()?).words(environment(root).value()?)
}
