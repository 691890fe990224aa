//! The command: run, waited for, and what it left.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::termios::{self, Winsize};
use sys::process::Ended;

use super::plan::Plan;
use super::port::Port;
use super::relay::{Pipes, Relay};
use super::{LONGEST, Result};
use crate::frames::{Sender, Stream};

const PATH: &str = "/bin:/sbin:/usr/bin:/usr/sbin";

/// Files of more bytes than this in all do not come back.
const MOST_BYTES: u64 = 1 << 30;

/// A command that has ended.
#[derive(Debug)]
pub struct Ran {
    code: u8,
    /// Where it ran.
    directory: PathBuf,
    port: Port,
}

/// Runs the command with nothing to read. `lab` is what its record is to say of the guest. What it prints is sent.
pub fn run(plan: &Plan, lab: &str, directory: &Path) -> Result<Ran> {
    let port = Port::open(&plan.port)?;
    let mut command = prepare(plan, lab, directory);
    let pipes = Pipes::of(command.stdin(Stdio::null()))?;
    let child = start(plan, command)?;
    let relay = Relay::start(port, pipes, &child)?;
    let code = wait(&child)?;
    Ok(Ran { code, port: relay.finish()?, directory: directory.to_path_buf() })
}

/// Runs the command at the console, for a person.
pub fn at_the_console(plan: &Plan, lab: &str, directory: &Path, (rows, columns): (u16, u16)) -> Result<Ran> {
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
    let mut command = prepare(plan, lab, directory);
    command.stdin(open()?).stdout(open()?).stderr(file);
    sys::process::own_terminal(&mut command);
    let code = wait(&start(plan, command)?)?;
    Ok(Ran { code, port: Port::open(&plan.port)?, directory: directory.to_path_buf() })
}

impl Ran {
    /// Sends the exit code and the files, sorted by path.
    pub fn send(self) -> Result<Port> {
        let Self { code, directory, mut port } = self;
        port.send(|sender| {
            sender.ended(code)?;
            send_files(&directory, sender)
        })?;
        Ok(port)
    }
}

/// Sends the files below `directory`. One that cannot be read, or is too long, is named and costs no other.
fn send_files<W: Write>(directory: &Path, sender: &mut Sender<W>) -> io::Result<()> {
    let mut room = MOST_BYTES;
    let mut found = Found::default();
    found.walk(directory);
    found.files.sort();
    let below = |path: &Path| path.strip_prefix(directory).unwrap_or(path).to_path_buf();
    for path in &found.files {
        match (fs::symlink_metadata(path).map(|file| file.len()), File::open(path)) {
            (Ok(length), Ok(mut file)) if length <= LONGEST.min(room) => {
                room -= sender.stream(Stream::File(&below(path)), &mut file, LONGEST.min(room))?;
            }
            (Ok(length), Ok(_)) => sender.left_out(&below(path), &too_long(length))?,
            (Err(error), _) | (_, Err(error)) => sender.left_out(&below(path), &format!("open: {error}"))?,
        }
    }
    found.unread.iter().try_for_each(|(path, why)| sender.left_out(&below(path), why))
}

fn too_long(length: u64) -> String {
    let limit = if length > LONGEST { LONGEST } else { MOST_BYTES };
    let what = if length > LONGEST { "a file" } else { "all files together" };
    format!("it has {length} bytes; {what} may have {limit} to come back")
}

/// busybox is a program of many names: each becomes a link, where nothing of that name is there already.
pub fn install_applets() {
    if Path::new("/bin/busybox").exists() {
        let _ = Command::new("/bin/busybox").args(["--install", "-s", "/bin"]).status();
    }
}

fn prepare(plan: &Plan, lab: &str, directory: &Path) -> Command {
    let (program, arguments) =
        plan.command.split_first().map_or(("".as_ref(), &[][..]), |(first, rest)| (first.as_os_str(), rest));
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).env_clear();
    command.env("PATH", PATH).env("HOME", directory).env("TERM", "linux");
    command.env(record::Lab::VARIABLE, lab);
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

/// What lies below a directory.
#[derive(Debug, Default)]
struct Found {
    files: Vec<PathBuf>,
    /// Directories that could not be read, and why.
    unread: Vec<(PathBuf, String)>,
}

impl Found {
    /// Links and devices are not followed and not brought back.
    fn walk(&mut self, directory: &Path) {
        let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        match entries {
            Err(error) => self.unread.push((directory.to_path_buf(), format!("list: {error}"))),
            Ok(entries) => entries.iter().for_each(|entry| match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.walk(&entry.path()),
                Ok(kind) if kind.is_file() => self.files.push(entry.path()),
                Ok(_) => {}
                Err(error) => self.unread.push((entry.path(), format!("look at: {error}"))),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{self, Frame};

    fn sent(directory: &Path) -> Vec<Frame> {
        let mut bytes = Vec::new();
        let mut sender = Sender::new(&mut bytes);
        send_files(directory, &mut sender).unwrap();
        sender.finish().unwrap();
        let (frames, whole) = frames::read(&bytes);
        assert_eq!(whole, Ok(()));
        frames
    }

    #[test]
    fn all_files_come_back_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        fs::create_dir_all(at("b/c")).unwrap();
        fs::write(at("b/c/file"), "1").unwrap();
        fs::write(at("a"), "2").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", at("link")).unwrap();
        let file = |path: &str, bytes: &[u8]| Frame::File(path.into(), bytes.to_vec());
        assert_eq!(sent(directory.path()), [file("a", b"2"), file("b/c/file", b"1")]);
    }

    #[test]
    fn a_file_that_is_too_long_is_named_and_costs_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        File::create(at("huge")).unwrap().set_len(10 << 30).unwrap();
        fs::write(at("small"), "1").unwrap();
        let frames = sent(directory.path());
        let Frame::LeftOut(path, why) = &frames[0] else { panic!("{frames:?}") };
        assert_eq!(path, Path::new("huge"));
        assert!(why.starts_with("it has 10737418240 bytes; a file may have 268435456"), "{why}");
        assert_eq!(frames[1..], [Frame::File("small".into(), b"1".to_vec())]);
    }
}
