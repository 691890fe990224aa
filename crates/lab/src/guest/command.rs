//! The command: run, waited for, and what it left.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::MemfdFlags;
use rustix::termios::{self, Winsize};
use sys::process::Ended;

use super::Result;
use super::plan::Plan;
use crate::frames::Frame;

const PATH: &str = "/bin:/sbin:/usr/bin:/usr/sbin";

/// Runs the command with nothing to read, and gives back what it printed, how it ended and what it left.
pub fn run(plan: &Plan, directory: &Path) -> Result<Vec<Frame>> {
    let (mut output, mut errors) = (memory_file()?, memory_file()?);
    let mut command = prepare(plan, directory);
    let copy = |file: &File| file.try_clone().map_err(|error| format!("copy a descriptor: {error}"));
    command.stdin(Stdio::null()).stdout(copy(&output)?).stderr(copy(&errors)?);
    let code = wait(&start(plan, command)?)?;
    let mut frames = vec![Frame::Ended(code)];
    frames.push(Frame::Output(content(&mut output)?));
    frames.push(Frame::Errors(content(&mut errors)?));
    frames.extend(left_in(directory)?);
    Ok(frames)
}

/// Runs the command at the console, for a person.
pub fn at_the_console(plan: &Plan, directory: &Path, (rows, columns): (u16, u16)) -> Result<Vec<Frame>> {
    let console = OpenOptions::new().read(true).write(true).open("/dev/console");
    let console = console.map_err(|error| format!("open the console: {error}"))?;
    // /dev/console is no terminal that a session can own; what stands behind it is.
    let terminal = fs::read_to_string("/sys/class/tty/console/active").unwrap_or_default();
    let terminal = Path::new("/dev").join(terminal.split_whitespace().last().unwrap_or("console"));
    drop(console);
    let open = || {
        let opened = OpenOptions::new().read(true).write(true).open(&terminal);
        opened.map_err(|error| format!("open {}: {error}", terminal.display()))
    };
    let file = open()?;
    let _ =
        termios::tcsetwinsize(&file, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 });
    let mut command = prepare(plan, directory);
    command.stdin(open()?).stdout(open()?).stderr(file);
    sys::process::own_terminal(&mut command);
    let code = wait(&start(plan, command)?)?;
    let mut frames = vec![Frame::Ended(code)];
    frames.extend(left_in(directory)?);
    Ok(frames)
}

/// busybox is a program of many names: each becomes a link, where nothing of that name is there already.
pub fn install_applets() {
    if Path::new("/bin/busybox").exists() {
        let _ = Command::new("/bin/busybox").args(["--install", "-s", "/bin"]).status();
    }
}

fn prepare(plan: &Plan, directory: &Path) -> Command {
    let (program, arguments) =
        plan.command.split_first().map_or(("".as_ref(), &[][..]), |(first, rest)| (first.as_os_str(), rest));
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).env_clear();
    command.env("PATH", PATH).env("HOME", directory).env("TERM", "linux");
    command.envs(plan.environment.iter().map(|(name, value)| (name, value)));
    command
}

fn start(plan: &Plan, mut command: Command) -> Result<Child> {
    let name = plan.command.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    command.spawn().map_err(|error| format!("run {name}: {error}"))
}

/// Waits for the command, and for orphans on the way, whose parent process 1 has become; what still runs then is killed,
/// unless the system is another's.
fn wait(child: &Child) -> Result<u8> {
    let ended = loop {
        let reaped = sys::process::wait_any().map_err(|error| error.to_string())?;
        if reaped.pid.as_raw_pid() as u32 == child.id() {
            break reaped.ended;
        }
    };
    if sys::process::own_pid().is_init() {
        sys::machine::kill_all_others().map_err(|error| error.to_string())?;
    }
    while sys::process::wait_any().is_ok() {}
    Ok(match ended {
        Ended::Exited(status) => status as u8,
        Ended::Killed(signal) => 128_u8.saturating_add(signal as u8),
    })
}

fn memory_file() -> Result<File> {
    let file = rustix::fs::memfd_create("output", MemfdFlags::CLOEXEC);
    file.map(File::from).map_err(|errno| format!("memfd_create: {errno}"))
}

fn content(file: &mut File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|error| format!("read what the command printed: {error}"))
}

/// The files below `directory`, sorted by path.
fn left_in(directory: &Path) -> Result<Vec<Frame>> {
    let mut paths = Vec::new();
    walk(directory, &mut paths).map_err(|error| format!("read {}: {error}", directory.display()))?;
    paths.sort();
    let frame = |path: &PathBuf| {
        let bytes = fs::read(path).map_err(|error| format!("read {}: {error}", path.display()))?;
        let below = path.strip_prefix(directory).unwrap_or(path);
        Ok(Frame::File(below.to_path_buf(), bytes))
    };
    paths.iter().map(frame).collect()
}

/// Links and devices are not followed and not brought back.
fn walk(directory: &Path, to: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), to)?;
        } else if kind.is_file() {
            to.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_are_found_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        fs::create_dir_all(at("b/c")).unwrap();
        fs::write(at("b/c/file"), "1").unwrap();
        fs::write(at("a"), "2").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", at("link")).unwrap();
        let file = |path: &str, bytes: &[u8]| Frame::File(path.into(), bytes.to_vec());
        assert_eq!(left_in(directory.path()).unwrap(), [file("a", b"2"), file("b/c/file", b"1")]);
    }
}
