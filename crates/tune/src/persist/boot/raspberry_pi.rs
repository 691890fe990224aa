//! The Raspberry Pi's firmware: one line in cmdline.txt, which stays one line; for a trial tryboot.txt, which the firmware
//! reads in the place of config.txt for one boot ("tryboot" in its documents).

use machine::boot_loader::{Request, Requested, cmdline_txt};
use sysroot::SysRoot;

use super::{Case, Draft, Manner, cannot, edit, own_file, text, text_if_any};
use crate::error::{Error, Result};

const OWN_LINE: &str = "cmdline-worstcase.txt";

pub(super) fn plan(case: &mut Case<'_>) -> Result<Draft> {
    let path = case.request.file.clone();
    if let Some(filter) = filter_of_the_file(case.root, &path) {
        let reason =
            format!("config.txt names the file below {filter}, which holds for some boards or cables only");
        return Err(Error::new("change", path.as_ref(), reason, "write cmdline= and os_prefix= below [all]"));
    }
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

/// The filter below which config.txt says which file has the line, if there is one: whether it holds the firmware alone
/// knows ("Conditional filters" in its documents). `[all]` ends all of them.
fn filter_of_the_file(root: &SysRoot, path: &str) -> Option<String> {
    let settings = root.read(&format!("{}/config.txt", directory(path)));
    let mut filter = None;
    for line in settings.value()?.lines().map(str::trim) {
        match line {
            "[all]" => filter = None,
            line if line.starts_with('[') => filter = Some(line.to_owned()),
            line if ["cmdline=", "os_prefix="].iter().any(|name| line.starts_with(name))
                && filter.is_some() =>
            {
                return filter;
            }
            _ => {}
        }
    }
    None
}

/// Where config.txt is.
fn directory(path: &str) -> &'static str {
    if path.starts_with("/boot/firmware/") { "/boot/firmware" } else { "/boot" }
}

/// Our line's file beside the one that is booted: the firmware puts the same prefix before both.
fn own_path(root: &SysRoot, path: &str) -> String {
    let settings = root.read(&format!("{}/config.txt", directory(path))).value().cloned().unwrap_or_default();
    let name = settings.lines().filter_map(|line| line.trim().strip_prefix("cmdline=")).next_back();
    let prefix = path.strip_suffix(name.unwrap_or("cmdline.txt")).unwrap_or(path);
    format!("{prefix}{OWN_LINE}")
}

pub(super) fn own(root: &SysRoot, request: &Request) -> Option<Vec<Requested>> {
    let path = own_path(root, &request.file);
    Some(cmdline_txt(&path, &text(root, &path).ok()?))
}
