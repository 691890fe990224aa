//! Runs of the binary as the tests see them, from outside: started, watched, ended, and never left behind.
#![allow(dead_code, clippy::unwrap_used, clippy::print_stdout)]

pub mod boot_disk;
pub mod guests;
pub mod leftovers;
pub mod schema;

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use record::Record;
use record::journal::Line;
use rustix::process::{Pid, Signal};

/// The program under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_worstcase");
/// How long a run may take before its test gives it up.
const PATIENCE: Duration = Duration::from_secs(60);
/// An environment variable that marks all that a run has started.
const MARK: &str = "WORSTCASE_TEST_RUN";

/// Tries until an attempt comes out as it should: others on this machine may have had a part in one that does not. A fault of the
/// product's is in all of them.
pub fn in_one_of(attempts: u32, mut attempt: impl FnMut() -> Result<(), String>) {
    let mut seen = Vec::new();
    for _ in 0..attempts {
        match attempt() {
            Ok(()) => return,
            Err(found) => {
                println!("again: {found}");
                seen.push(found);
            }
        }
    }
    panic!("in none of {attempts} attempts: {seen:#?}");
}

/// A run in a process group and a directory of its own. Dropped, all that it has started is killed.
pub struct Run {
    child: Child,
    mark: String,
    directory: tempfile::TempDir,
}

/// What a run left.
pub struct Ended {
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub out: String,
    /// What it wrote to standard error.
    pub err: String,
    directory: tempfile::TempDir,
}

impl Run {
    /// `worstcase` with `arguments`.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_as(Command::new(BINARY).args(arguments))
    }

    /// `worstcase bench --out record` with `arguments`.
    pub fn bench(arguments: &[&str]) -> Self {
        Self::start(&[&["bench", "--out", "record"], arguments].concat())
    }

    /// `worstcase measure --out record` with `arguments`.
    pub fn measure(arguments: &[&str]) -> Self {
        Self::start(&[&["measure", "--out", "record"], arguments].concat())
    }

    /// A command made elsewhere. It must be allowed to write into the working directory, which is a new one.
    pub fn start_as(command: &mut Command) -> Self {
        wait_for_cpus();
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let directory = tempfile::tempdir().unwrap();
        let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(directory.path(), everybody).unwrap();
        let create = |name| File::create(directory.path().join(name)).unwrap();
        command.current_dir(directory.path()).process_group(0).env(MARK, &mark).env("LC_ALL", "C.UTF-8");
        command.stdin(Stdio::null()).stdout(create("stdout")).stderr(create("stderr"));
        Self { child: command.spawn().unwrap(), mark, directory }
    }

    /// A file in the run's working directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What a file in the run's working directory holds by now; nothing where there is none.
    pub fn text(&self, name: &str) -> String {
        fs::read(self.path(name)).map_or(String::new(), |text| String::from_utf8_lossy(&text).into_owned())
    }

    /// The whole lines of the journal so far.
    pub fn journal(&self) -> Vec<Line> {
        lines(&self.text("record/journal.ndjson"))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the process alone.
    pub fn signal(&self, signal: Signal) {
        kill(self.child.id() as i32, signal);
    }

    /// Ctrl-C as a terminal has it: to the whole process group.
    pub fn interrupt(&self) {
        let _ = rustix::process::kill_process_group(pid(self.child.id() as i32), Signal::INT);
    }

    /// All that it has started and that still runs, itself included.
    pub fn processes(&self) -> Vec<Process> {
        marked(&self.mark)
    }

    /// The process that the binary became when called with `argument`, the parent's own child.
    pub fn helper(&self, argument: &str) -> Process {
        let is_it = |process: &Process| {
            process.parent == self.child.id() as i32
                && process.words.get(1).is_some_and(|word| word == argument)
        };
        self.processes().into_iter().find(is_it).unwrap()
    }

    /// Waits for `event`; gives the run up where it does not come or the run ends before.
    pub fn wait_until(&mut self, what: &str, mut event: impl FnMut(&Self) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !event(self) {
            let ended = self.child.try_wait().unwrap();
            let shown = (self.text("stdout"), self.text("stderr"));
            assert!(ended.is_none() || event(self), "{what}: ended before: {ended:?} {shown:#?}");
            assert!(Instant::now() < until, "{what}: did not come: {shown:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until `seconds` seconds of a scenario under `load` are in the journal.
    pub fn wait_measured(&mut self, load: &str, seconds: u64) {
        self.wait_until(&format!("{seconds} s under {load}"), |run| {
            open_scenario(&run.journal()).is_some_and(|open| open.0 == load && open.1 >= seconds)
        });
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ended {
        let mut status = None;
        self.wait_ended(&mut status);
        let directory = tempfile::tempdir().unwrap();
        let (out, err) = (self.text("stdout"), self.text("stderr"));
        let directory = std::mem::replace(&mut self.directory, directory);
        assert!(!err.contains("panicked"), "{err}");
        Ended { status: status.unwrap(), out, err, directory }
    }

    fn wait_ended(&mut self, status: &mut Option<ExitStatus>) {
        let until = Instant::now() + PATIENCE;
        while status.is_none() {
            assert!(Instant::now() < until, "did not end: {}", self.text("stderr"));
            std::thread::sleep(Duration::from_millis(5));
            *status = self.child.try_wait().unwrap();
        }
    }

    /// Waits until nothing that it has started is left; what is left is killed and the test fails.
    pub fn assert_nothing_survives(&mut self, what: &str) {
        let _ = self.child.wait();
        let until = Instant::now() + Duration::from_secs(10);
        while !self.processes().is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        let survivors = self.processes();
        survivors.iter().for_each(|process| kill(process.pid, Signal::KILL));
        assert!(survivors.is_empty(), "{what}: survived: {survivors:#?}");
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for process in self.processes() {
            kill(process.pid, Signal::KILL);
        }
    }
}

impl Ended {
    /// The exit code; none where a signal ended it.
    pub fn code(&self) -> Option<i32> {
        assert!(self.status.signal().is_none(), "{:?}: {}", self.status, self.err);
        self.status.code()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The record that it left, of which the exit code must be the verdict.
    pub fn record(&self) -> Record {
        let record =
            record::store::load(&self.path("record")).unwrap_or_else(|error| panic!("{error}: {}", self.err));
        let verdict = &record.judgement;
        assert_eq!(self.code(), Some(verdict.verdict.exit_code().into()), "{verdict:#?} {}", self.err);
        record
    }

    /// `worstcase report` of what it left: what that prints.
    pub fn report(&self) -> String {
        report(&self.path("record"))
    }
}

/// What `worstcase report` prints of a directory.
pub fn report(directory: &Path) -> String {
    let output = Command::new(BINARY).arg("report").arg(directory).env("COLUMNS", "100").output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(directory.join("report.html").exists());
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that is expected to say what is wrong instead of measuring: `error:` and `hint:`, exit code 2.
pub fn refused(arguments: &[&str]) -> Ended {
    let ended = Run::start(arguments).end();
    assert_eq!((ended.code(), ended.out.as_str()), (Some(2), ""), "{arguments:?}: {}", ended.err);
    let starts: Vec<&str> = ended.err.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(starts, ["error:", "hint:"], "{arguments:?}: {}", ended.err);
    ended
}

/// A process that carries a mark.
#[derive(Clone, Debug)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    /// Its command line.
    pub words: Vec<String>,
}

fn marked(mark: &str) -> Vec<Process> {
    let entry = format!("{MARK}={mark}");
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|directory| directory.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| process(pid, entry.as_bytes())).collect()
}

/// The process, if it runs and has `entry` in its environment. A zombie has none any more.
fn process(pid: i32, entry: &[u8]) -> Option<Process> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    environment.split(|&byte| byte == 0).find(|found| *found == entry)?;
    let words = String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).ok()?).into_owned();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
    Some(Process { pid, parent, words: words.split('\0').map(str::to_owned).collect() })
}

fn pid(pid: i32) -> Pid {
    Pid::from_raw(pid).unwrap()
}

/// Sends a signal to a process that may be gone.
pub fn kill(id: i32, signal: Signal) {
    let _ = rustix::process::kill_process(pid(id), signal);
}

/// The journal lines in `text` that are whole.
pub fn lines(text: &str) -> Vec<Line> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The load of the scenario that has not ended, and how many of its seconds are written.
pub fn open_scenario(journal: &[Line]) -> Option<(String, u64)> {
    let mut open = None;
    for line in journal {
        match line {
            Line::Scenario(head) => open = Some((head.planned.load.clone(), 0)),
            Line::Seconds(seconds) => {
                let shown = seconds.iter().map(|figures| figures[1] + 1).max().unwrap_or(0);
                open.iter_mut().for_each(|open| open.1 = open.1.max(shown));
            }
            Line::Ended(_) => open = None,
            _ => {}
        }
    }
    open
}

/// Waits until no other worstcase measures here: whoever runs these tests may have started one.
fn wait_for_cpus() {
    let until = Instant::now() + PATIENCE;
    let taken = || {
        fs::read_to_string("/proc/net/unix").is_ok_and(|sockets| sockets.contains("@worstcase-measures-cpu-"))
    };
    while taken() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until it is so, which `what` says.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what}: not within {} s", PATIENCE.as_secs());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a program is not on this machine.
pub fn is_missing(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    !std::env::split_paths(&path).any(|directory| directory.join(program).exists())
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Says why a test does nothing here.
pub fn skipped(why: &str) {
    println!("skipped: {why}");
}

/// The line in which a command says what it could not do, without what it says of the machine before and its hint
/// after; all lines if there is none.
pub fn refusal(said: &str) -> &str {
    said.lines().find(|line| line.starts_with("error: ") || line.starts_with("warning: ")).unwrap_or(said)
}
