//! systemd-boot: the entry's own file is changed, with what the entries of new kernels are made of; or it is copied to one
//! that comes last, or to one whose boots are counted and that comes first until they are used up.

use machine::boot_loader::{self, Request, Requested};
use record::Fact;
use sysroot::SysRoot;

use super::setting::Setting;
use super::{Case, Draft, Manner, OWN, cannot, entry, own_file, text};
use crate::error::Result;

const EFI_VARIABLES: &str = "/sys/firmware/efi/efivars";

/// Comes after every other: what entries are sorted by first, where they have that, or the name, backwards.
const LAST_KEY: &str = "zz-worstcase";
const LAST_NAME: &str = "0-worstcase";

pub(super) fn plan(case: &mut Case<'_>) -> Result<Draft> {
    let mut draft = draft(case)?;
    let name = case.request.file.rsplit('/').next().unwrap_or_default();
    if name.starts_with("nixos-") {
        draft.notes.push(
            "nixos-rebuild makes the entries anew, without these words: boot.kernelParams in the configuration keeps them"
                .to_owned(),
        );
    }
    Ok(draft)
}

fn draft(case: &mut Case<'_>) -> Result<Draft> {
    match case.manner {
        Manner::Default => Ok(Draft { edits: entry::changed(case)?, next: "reboot", ..Draft::default() }),
        Manner::Entry => {
            let next = "reboot and choose the entry `worstcase: ...` in the menu (hold a key down); the default is as before";
            Ok(Draft { next, ..beside(case)? })
        }
        Manner::Trial if has_variables(case) => {
            let next = "reboot: the entry `worstcase: ...` is booted once, and the default again after that, whatever becomes of it";
            let setting = Some(Setting::OneShot(format!("{LAST_NAME}.conf")));
            Ok(Draft { next, setting, ..beside(case)? })
        }
        Manner::Trial => counted(case),
    }
}

fn has_variables(case: &Case<'_>) -> bool {
    case.programs.has("bootctl")
        && matches!(case.root.list(EFI_VARIABLES), Fact::Value(names) if !names.is_empty())
}

fn beside(case: &Case<'_>) -> Result<Draft> {
    let copy = entry::copy(case, |key, value| {
        Some(if key == "sort-key" { LAST_KEY.to_owned() } else { value.to_owned() })
    })?;
    let path = format!("{}/{LAST_NAME}.conf", entry::directory(&case.request.file));
    Ok(Draft { edits: vec![own_file(case.root, &path, copy)?], ..Draft::default() })
}

/// An entry that may fail once: systemd-boot sorts one that has used up its tries behind all others, unless the boot was
/// good and systemd-bless-boot has taken the counter away.
fn counted(case: &Case<'_>) -> Result<Draft> {
    if chosen_by_name(case.root) {
        let hint = "take `default` out of loader.conf, or --entry makes an entry to be chosen";
        return Err(cannot(
            "systemd-boot",
            "loader.conf says by name what is booted, and the firmware's variables are not here",
            hint,
        ));
    }
    let copy = entry::copy(case, |_, value| Some(value.to_owned()))?;
    let name = case.request.file.rsplit('/').next().unwrap_or_default();
    let name = name.strip_suffix(".conf").unwrap_or(name);
    let name = name.split('+').next().unwrap_or(name);
    // Behind a hyphen or a dot it would be an older version of the entry and come after it (systemd-boot 252).
    let path = format!("{}/{name}_{OWN}+1.conf", entry::directory(&case.request.file));
    Ok(Draft {
        edits: vec![own_file(case.root, &path, copy)?],
        takes_over: true,
        next: "reboot: the entry `worstcase: ...` is tried once; a boot that does not become good is followed by the old default",
        notes: vec!["systemd-bless-boot keeps the entry after a good boot: --undo takes it away".to_owned()],
        ..Draft::default()
    })
}

fn chosen_by_name(root: &SysRoot) -> bool {
    let settings = ["/efi/loader/loader.conf", "/boot/loader/loader.conf", "/boot/efi/loader/loader.conf"];
    let text = settings.iter().find_map(|path| root.read(path).value().cloned()).unwrap_or_default();
    text.lines().any(|line| line.split_whitespace().next() == Some("default"))
}

pub(super) fn own(root: &SysRoot, request: &Request) -> Option<Vec<Requested>> {
    let path = format!("{}/{LAST_NAME}.conf", entry::directory(&request.file));
    Some(boot_loader::entry(&path, &text(root, &path).ok()?).plain_words())
}
