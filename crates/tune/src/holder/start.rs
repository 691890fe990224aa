//! The side that starts, finds and ends holders. It knows nothing of what they do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use control::KeepLatency;
use machine::tasks;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sys::process::{Pid, leave_session, own_pid};
use sysroot::SysRoot;

/// The first argument that makes the binary a holder.
pub const ARGUMENT: &str = "--hold-settings";

/// The longest announcement that is read, in bytes.
const LONGEST: u64 = 4096;

/// How long a holder may take to announce itself, or to go.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a holder does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Undoes the journal of that name after so many seconds, and at once where the command that writes it was killed.
    Deadline(u64, String),
    /// Holds a limit on exit latencies, in microseconds.
    Latency(u32),
}

/// The two sorts of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of [`Role::Deadline`].
    Deadline,
    /// Of [`Role::Latency`].
    Latency,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Latency => "latency",
        }
    }
}

impl Role {
    fn kind(&self) -> Kind {
        match self {
            Self::Deadline(..) => Kind::Deadline,
            Self::Latency(_) => Kind::Latency,
        }
    }

    fn words(&self) -> Vec<String> {
        match self {
            Self::Deadline(seconds, id) => vec!["deadline".into(), seconds.to_string(), id.clone()],
            Self::Latency(limit) => vec!["latency".into(), limit.to_string()],
        }
    }

    pub(super) fn parse(words: &[String]) -> Option<Self> {
        match words {
            [kind, seconds, id] if kind == "deadline" => {
                Some(Self::Deadline(seconds.parse().ok()?, id.clone()))
            }
            [kind, limit] if kind == "latency" => Some(Self::Latency(limit.parse().ok()?)),
            _ => None,
        }
    }
}

/// What a holder says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Announcement {
    pid: i32,
    start: u64,
    /// Why it holds nothing.
    errno: Option<i32>,
}

fn place(state: &Path, kind: Kind) -> PathBuf {
    state.join(format!("holder-{}", kind.name()))
}

fn announcement(state: &Path, kind: Kind) -> Option<Announcement> {
    record::json::read(&files::read(&place(state, kind), LONGEST).ok()?).ok()
}

/// Whether the holder that announced itself still runs; none where none did.
pub fn is_alive(state: &Path, kind: Kind) -> Option<bool> {
    announcement(state, kind).map(|holder| is_there(&holder))
}

/// Whether the holder that announced itself is stopped (SIGSTOP, a debugger): it does nothing when its time comes.
pub fn is_stopped(state: &Path, kind: Kind) -> bool {
    let holder = announcement(state, kind).filter(is_there);
    holder.is_some_and(|holder| {
        tasks::state(&SysRoot::live(), holder.pid).is_some_and(|state| "Tt".contains(state))
    })
}

/// Whether the holder that announced itself should have undone everything by now, `seconds` after it began.
pub fn is_overdue(state: &Path, seconds: u64) -> bool {
    /// It may have to wait for its turn.
    const GRACE: u64 = 10;
    let Some(holder) = announcement(state, Kind::Deadline) else { return false };
    let age = sys::clock::Clock::Boottime.now() / 1_000_000_000;
    let start = holder.start / rustix::param::clock_ticks_per_second().max(1);
    age > start.saturating_add(seconds).saturating_add(GRACE)
}

fn is_there(holder: &Announcement) -> bool {
    let root = SysRoot::live();
    let task = tasks::task(&root, holder.pid, holder.pid);
    task.is_some_and(|task| task.start == holder.start) && !has_ended(&root, holder.pid)
}

/// Whether only its parent's wait is wanting: it holds nothing any more.
fn has_ended(root: &SysRoot, pid: i32) -> bool {
    tasks::state(root, pid).is_some_and(|state| "ZX".contains(state))
}

/// Starts a holder in the place of one of its kind, and returns when it holds.
///
/// # Errors
/// What the kernel answered it; `ESRCH` where none came up.
pub fn start(state: &Path, role: Role) -> Result<(), Errno> {
    end(state, role.kind())?;
    let program =
        std::env::current_exe().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOENT))?;
    let words = [vec![ARGUMENT.to_owned(), state.display().to_string()], role.words()].concat();
    if !(has_systemd() && start_unit(&program, &role, &words)) {
        start_process(&program, &words)?;
    }
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match announcement(state, role.kind()) {
            Some(Announcement { errno: Some(errno), .. }) => return Err(Errno::from_raw_os_error(errno)),
            Some(holder) if is_there(&holder) => return Ok(()),
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    Err(Errno::SRCH)
}

/// Whether systemd runs, and so can be asked for a unit. sd_booted(3).
pub fn has_systemd() -> bool {
    SysRoot::live().exists("/run/systemd/system").value().is_some()
}

/// A unit of its own belongs to no login, so that nothing ends it when the connection does.
fn start_unit(program: &Path, role: &Role, words: &[String]) -> bool {
    let unit = format!("--unit=worstcase-tune-{}-{}", role.kind().name(), own_pid());
    let mut command = Command::new("systemd-run");
    command.args(["--quiet", "--collect", &unit, "--"]).arg(program).args(words);
    silent(&mut command).status().is_ok_and(|status| status.success())
}

fn start_process(program: &Path, words: &[String]) -> Result<(), Errno> {
    let mut command = Command::new(program);
    silent(command.args(words).current_dir("/"));
    leave_session(&mut command);
    command.spawn().map(drop).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::CHILD))
}

fn silent(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

/// Ends the holder of that kind, if there is one. The caller has the lock, so that it is not undoing anything.
///
/// # Errors
/// What the kernel answered; `EBUSY` where it does not go.
pub fn end(state: &Path, kind: Kind) -> Result<(), Errno> {
    let Some(holder) = announcement(state, kind) else { return Ok(()) };
    if let Some(pid) = Pid::from_raw(holder.pid).filter(|pid| *pid != own_pid() && is_there(&holder)) {
        sys::process::kill(pid).map_err(|error| error.errno)?;
        wait_until_gone(&holder)?;
    }
    let _ = fs::remove_file(place(state, kind));
    Ok(())
}

fn wait_until_gone(holder: &Announcement) -> Result<(), Errno> {
    let until = Instant::now() + PATIENCE;
    while is_there(holder) {
        if Instant::now() > until {
            return Err(Errno::BUSY);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Called by a holder: it is there, and holds unless `errno` says why not. Whether anybody can learn of it.
pub(super) fn announce(state: &Path, kind: Kind, errno: Option<i32>) -> bool {
    let pid = own_pid().as_raw_pid();
    let start = tasks::task(&SysRoot::live(), pid, pid).map_or(0, |task| task.start);
    let text = serde_json::to_vec(&Announcement { pid, start, errno }).unwrap_or_default();
    files::write_whole(&place(state, kind), &text).is_ok()
}

/// The running kernel; a limit on exit latencies is kept by a holder that is known in the directory `state`.
pub fn live(state: impl Into<PathBuf>) -> control::Live {
    control::Live::keeping_latency_by(Holder { state: state.into() })
}

#[derive(Debug)]
struct Holder {
    state: PathBuf,
}

impl KeepLatency for Holder {
    fn limit(&mut self, microseconds: Option<u32>) -> Result<(), Errno> {
        match microseconds {
            Some(limit) => start(&self.state, Role::Latency(limit)),
            None => end(&self.state, Kind::Latency),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_overdue_when_its_time_and_some_grace_are_over() {
        let state = tempfile::tempdir().unwrap();
        let now = sys::clock::Clock::Boottime.now() / 1_000_000_000;
        let begun = |seconds_ago: u64| {
            let start = now.saturating_sub(seconds_ago) * rustix::param::clock_ticks_per_second();
            let holder = Announcement { pid: 1, start, errno: None };
            std::fs::write(place(state.path(), Kind::Deadline), serde_json::to_vec(&holder).unwrap())
                .unwrap();
        };
        assert!(!is_overdue(state.path(), 0), "nobody announced himself");
        begun(0);
        assert!(!is_overdue(state.path(), 0), "it may have to wait for its turn");
        begun(600);
        assert!(is_overdue(state.path(), 500) && !is_overdue(state.path(), 3600));
        assert!(!is_overdue(state.path(), u64::MAX), "a journal that lists no time that ends");
    }
}
