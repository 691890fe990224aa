//! A guest with a system of its own: its init becomes process 1, and what is left to the lab runs as a service of
//! systemd once the system is up.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::Result;

/// The first argument that makes this program run the command in a system of its own.
pub const ARGUMENT: &str = "--lab-command";

/// Where units are that nobody keeps.
const UNITS: &str = "/run/systemd/system";
const NAME: &str = "worstcase-lab.service";

/// Ordered after the target that wants it, which the defaults would make a circle of.
const UNIT: &str = "\
[Unit]
Description=The command of the lab
DefaultDependencies=no
After=multi-user.target

[Service]
Type=simple
ExecStart=/init --lab-command
";

/// Puts `init` in the place of this process; why that failed.
pub fn hand_over(init: &Path) -> String {
    if let Err(words) = ask_for_service() {
        return words;
    }
    format!("become {}: {}", init.display(), Command::new(init).exec())
}

fn ask_for_service() -> Result<()> {
    let wants = Path::new(UNITS).join("multi-user.target.wants");
    let unit = Path::new(UNITS).join(NAME);
    let written = fs::create_dir_all(&wants)
        .and_then(|()| fs::write(&unit, UNIT))
        .and_then(|()| symlink(&unit, wants.join(NAME)));
    written.map_err(|error| format!("write {}: {error}", unit.display()))
}
