//! The command: run, waited for, and what it left.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::MemfdFlags;
use rustix::termios::{self, Winsize};
use sys::process::Ended;

use super::Result;
use super::plan::{Plan, VARIABLE};
use crate::frames::{Sender, Stream};

const PATH: &str = "/bin:/sbin:/usr/bin:/usr/sbin";

/// A file of more bytes does not come back whole.
const LONGEST_FILE: u64 = 256 << 20;
/// Nor do more bytes than this in all.
const MOST_BYTES: u64 = 1 << 30;

/// A command that has ended.
#[derive(Debug)]
pub struct Ran {
    code: u8,
    /// What it printed to standard output and standard error, unless that went to a person.
    printed: Option<[File; 2]>,
    /// Where it ran.
    directory: PathBuf,
}

/// Runs the command with nothing to read. `lab` is what its record is to say of the guest.
pub fn run(plan: &Plan, lab: &str, directory: &Path) -> Result<Ran> {
    let (output, errors) = (memory_file()?, memory_file()?);
    let mut command = prepare(plan, lab, directory);
    let copy = |file: &File| file.try_clone().map_err(|error| format!("copy a descriptor: {error}"));
    command.stdin(Stdio::null()).stdout(copy(&output)?).stderr(copy(&errors)?);
    let code = wait(&start(plan, command)?)?;
    Ok(Ran { code, printed: Some([output, errors]), directory: directory.to_path_buf() })
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
    Ok(Ran { code, printed: None, directory: directory.to_path_buf() })
}

impl Ran {
    /// Sends the exit code, what was printed and the files, sorted by path. A file that cannot be read, or is too long, is
    /// named and costs no other.
    pub fn send(self, sender: &mut Sender<&mut dyn Write>) -> io::Result<()> {
        sender.ended(self.code)?;
        let mut room = MOST_BYTES;
        if let Some([mut output, mut errors]) = self.printed {
            for (what, file) in [(Stream::Output, &mut output), (Stream::Errors, &mut errors)] {
                file.rewind()?;
                room -= sender.stream(what, file, LONGEST_FILE.min(room))?;
            }
        }
        let mut found = Found::default();
        found.walk(&self.directory);
        found.files.sort();
        let below = |path: &Path| path.strip_prefix(&self.directory).unwrap_or(path).to_path_buf();
        for path in &found.files {
            match (fs::symlink_metadata(path).map(|file| file.len()), File::open(path)) {
                (Ok(length), Ok(mut file)) if length <= LONGEST_FILE.min(room) => {
                    room -= sender.stream(Stream::File(&below(path)), &mut file, LONGEST_FILE.min(room))?;
                }
                (Ok(length), Ok(_)) => sender.left_out(&below(path), &too_long(length))?,
                (Err(error), _) | (_, Err(error)) => {
                    sender.left_out(&below(path), &format!("open: {error}"))?
                }
            }
        }
        found.unread.iter().try_for_each(|(path, why)| sender.left_out(&below(path), why))
    }
}

fn too_long(length: u64) -> String {
    let limit = if length > LONGEST_FILE { LONGEST_FILE } else { MOST_BYTES };
    let what = if length > LONGEST_FILE { "a file" } else { "all files together" };
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
    command.env(VARIABLE, lab);
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
        let mut sender = Sender::new(&mut bytes as &mut dyn Write);
        let ran = Ran { code: 7, printed: None, directory: directory.to_path_buf() };
        ran.send(&mut sender).unwrap();
        sender.finish().unwrap();
        let (frames, whole) = frames::read(&bytes);
        assert_eq!((whole, frames.first()), (Ok(()), Some(&Frame::Ended(7))));
        frames[1..].to_vec()
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
