//! What applies settings at boot: the files of a service, for each program that starts services.
//!
//! They name the file of choice, not what is written: the plan is made anew at each boot.

#[cfg(test)]
#[allow(clippy::print_stdout)]
mod tests;

use serde::{Deserialize, Serialize};
use sysroot::SysRoot;

use super::Contents;

/// The name that the service goes by.
pub const SERVICE: &str = "worstcase-tune";
/// The unit that writes again what was reset.
pub const TIMER: &str = "worstcase-tune-again.timer";

const UNIT: &str = include_str!("files/worstcase-tune.service");
const AGAIN: &str = include_str!("files/worstcase-tune-again.service");
const TIMER_TEXT: &str = include_str!("files/worstcase-tune-again.timer");
const SCRIPT: &str = include_str!("files/script.sh");
const OPENRC: &str = include_str!("files/openrc.sh");

/// Where an administrator's units are.
const UNITS: &str = "/etc/systemd/system";

/// What starts services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Init {
    /// systemd.
    Systemd,
    /// OpenRC.
    Openrc,
    /// Scripts by run levels: `/etc/rc2.d` and its like.
    Sysv,
    /// BusyBox: a script that runs the others in `/etc/init.d`.
    Busybox,
}

/// One file of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartupFile {
    /// Its absolute path, below the root of the system.
    pub path: String,
    /// What is in it.
    pub contents: Contents,
    /// The bits of chmod(2).
    pub mode: u32,
}

impl std::str::FromStr for Init {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|init| init.name() == text);
        named.ok_or_else(|| format!("`{text}` is none of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

impl Init {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Systemd, Self::Openrc, Self::Sysv, Self::Busybox];

    /// Its name, as it is typed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Systemd => "systemd",
            Self::Openrc => "openrc",
            Self::Sysv => "sysv",
            Self::Busybox => "busybox",
        }
    }

    /// What starts services in the system at `root`; none where that is unknown. What runs counts more than what is
    /// installed.
    pub fn of(root: &SysRoot) -> Option<Self> {
        let has = |path: &str| root.exists(path).value().is_some();
        let signs: [(Self, &[&str]); 7] = [
            (Self::Systemd, &["/run/systemd/system"]),
            (Self::Openrc, &["/run/openrc/softlevel"]),
            (Self::Openrc, &["/sbin/openrc-run", "/etc/runlevels/default"]),
            (Self::Systemd, &["/etc/systemd/system", "/lib/systemd/systemd"]),
            (Self::Systemd, &["/etc/systemd/system", "/usr/lib/systemd/systemd"]),
            (Self::Sysv, &["/etc/init.d", "/etc/rc2.d"]),
            (Self::Busybox, &["/etc/init.d/rcS"]),
        ];
        signs.into_iter().find(|(_, paths)| paths.iter().all(|path| has(path))).map(|(init, _)| init)
    }

    /// The files that make it apply the file of choice at `choice` at each boot, by the program at `program`.
    pub fn files(self, program: &str, choice: &str) -> Vec<StartupFile> {
        let filled = |text: &str| {
            text.replace("{head}", &head()).replace("{program}", program).replace("{choice}", choice)
        };
        match self {
            Self::Systemd => {
                let units = [(SERVICE_UNIT, UNIT), (AGAIN_UNIT, AGAIN), (TIMER, TIMER_TEXT)];
                units.into_iter().flat_map(|(name, text)| unit(name, &filled(text))).collect()
            }
            Self::Openrc => vec![
                script("/etc/init.d/worstcase-tune", &filled(OPENRC)),
                link("/etc/runlevels/default/worstcase-tune", "/etc/init.d/worstcase-tune"),
            ],
            Self::Sysv => {
                let starts = ["2", "3", "4", "5"].map(|level| format!("/etc/rc{level}.d/S99{SERVICE}"));
                let ends = ["0", "1", "6"].map(|level| format!("/etc/rc{level}.d/K01{SERVICE}"));
                let links = starts.iter().chain(&ends).map(|path| link(path, "../init.d/worstcase-tune"));
                let mut files = vec![script("/etc/init.d/worstcase-tune", &filled(SCRIPT))];
                files.extend(links);
                files
            }
            Self::Busybox => vec![script("/etc/init.d/S99worstcase-tune", &filled(SCRIPT))],
        }
    }
}

const SERVICE_UNIT: &str = "worstcase-tune.service";
const AGAIN_UNIT: &str = "worstcase-tune-again.service";

/// A unit, and the links by which its section `[Install]` has it wanted.
fn unit(name: &str, text: &str) -> Vec<StartupFile> {
    let wanted = text.lines().find_map(|line| line.strip_prefix("WantedBy=")).unwrap_or_default();
    let links = wanted
        .split_whitespace()
        .map(|by| link(&format!("{UNITS}/{by}.wants/{name}"), &format!("{UNITS}/{name}")));
    let file = StartupFile { path: format!("{UNITS}/{name}"), contents: Contents::from(text), mode: 0o644 };
    std::iter::once(file).chain(links).collect()
}

fn script(path: &str, text: &str) -> StartupFile {
    StartupFile { path: path.to_owned(), contents: Contents::from(text), mode: 0o755 }
}

fn link(path: &str, target: &str) -> StartupFile {
    StartupFile { path: path.to_owned(), contents: Contents::Link(target.to_owned()), mode: 0o777 }
}

fn head() -> String {
    format!(
        "# Written by worstcase {} (tune persist); worstcase tune persist --undo takes it away.",
        env!("CARGO_PKG_VERSION")
    )
}
