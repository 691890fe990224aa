//! The Raspberry Pi's firmware: one line in cmdline.txt, which stays one line; for a trial tryboot.txt, which the firmware
//! reads in the place of config.txt for one boot ("tryboot" in its documents).

use machine::boot_loader::{FirmwareSetting, FirmwareSettings, Request, Requested, cmdline_txt};
use sysroot::SysRoot;

use super::{Case, Draft, Manner, cannot, edit, own_file, text, text_if_any};
use crate::error::Result;

const OWN_LINE: &str = "cmdline-worstcase.txt";

pub(super) fn plan(case: &mut Case<'_>) -> Result<Draft> {
    let path = case.request.file.clone();
    let old = text(case.root, &path)?;
    let end = old.find(['\n', '\r']).unwrap_or(old.len());
    let new = case.edited(&old[..end], true) + &old[end..];
    match case.manner {
        Manner::Default => {
            Ok(Draft { edits: vec![edit(&path, Some(old), new)], next: "reboot", ..Draft::default() })
        }
        Manner::Entry => {
            Err(cannot("the Raspberry Pi's firmware", "it has no menu", "--trial boots the words once"))
        }
        Manner::Trial => {
            let directory = directory(&path);
            let settings = text_if_any(case.root, &format!("{directory}/config.txt"))?.unwrap_or_default();
            let between = if settings.is_empty() || settings.ends_with('\n') { "" } else { "\n" };
            let tryboot = format!("{settings}{between}\n[all]\n{}\ncmdline={OWN_LINE}\n", super::HEADER);
            let edits = vec![
                own_file(case.root, &own_path(case.root, &path), new)?,
                own_file(case.root, &format!("{directory}/tryboot.txt"), tryboot)?,
            ];
            let next = "reboot by `reboot '0 tryboot'`: the words are there for that boot alone";
            Ok(Draft { edits, next, ..Draft::default() })
        }
    }
}

/// Where config.txt is.
fn directory(path: &str) -> &'static str {
    if path.starts_with("/boot/firmware/") { "/boot/firmware" } else { "/boot" }
}

/// Our line's file beside the one that is booted: the firmware puts the same prefix before both.
fn own_path(root: &SysRoot, path: &str) -> String {
    let name = match FirmwareSettings::read(root, directory(path)).get("cmdline") {
        FirmwareSetting::Value(name) => name,
        _ => "cmdline.txt".to_owned(),
    };
    let prefix = path.strip_suffix(name.as_str()).unwrap_or(path);
    format!("{prefix}{OWN_LINE}")
}

pub(super) fn own(root: &SysRoot, request: &Request) -> Option<Vec<Requested>> {
    let path = own_path(root, &request.file);
    Some(cmdline_txt(&path, &text(root, &path).ok()?))
}
