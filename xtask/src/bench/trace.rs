//! `bench trace`: events a second out of a file of trace-cmd's, against `trace-cmd report`.
//!
//! Both read the same file, in turn, each in a process of its own. Ours once takes every field of every event, and once
//! prints them as `trace-cmd report -R` does, names and values; both write to /dev/null. The file is recorded here, in an
//! instance of its own, unless one is named.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use trace::live::Instance;
use trace::saved::Saved;
use trace::{Event, Item};
use units::Bytes;

use super::spread::Spread;
use crate::arguments::Arguments;
use crate::command;
use crate::workspace;

/// What is recorded: a program that makes nothing but system calls, and what the scheduler does.
const WORK: [&str; 5] = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=400000"];
const EVENTS: [&str; 3] = ["sched", "irq", "raw_syscalls"];

/// For each CPU, emptied every [`SPOOL`].
const BUFFER: Bytes = Bytes(32 << 20);
const SPOOL: Duration = Duration::from_millis(20);

/// `bench trace [--file FILE] [--rounds N]`, and `--read FILE` and `--print FILE` within itself.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let read: Option<PathBuf> = arguments.value("--read")?;
    let print: Option<PathBuf> = arguments.value("--print")?;
    let file: Option<PathBuf> = arguments.value("--file")?;
    let rounds: usize = arguments.value("--rounds")?.unwrap_or(5);
    arguments.finish()?;
    match (read, print) {
        (Some(file), _) => println!("{}", each(&file, &mut take)?),
        (None, Some(file)) => printed(&file)?,
        (None, None) => compare(file, rounds)?,
    }
    Ok(())
}

fn compare(file: Option<PathBuf>, rounds: usize) -> Result<()> {
    ensure!(rounds > 0, "--rounds must be at least 1");
    let report =
        command::find("trace-cmd").ok_or_else(|| anyhow!("needs trace-cmd (apt-get install trace-cmd)"))?;
    let status = workspace::cargo().args(["build", "--quiet", "--release", "--package", "xtask"]).status()?;
    ensure!(status.success(), "the optimised build failed");
    let scratch = workspace::logs().join(format!("trace-{}.dat", std::process::id()));
    let path = match &file {
        Some(file) => file.clone(),
        None => record(&scratch)?,
    };
    let rates = rates(&path, &report, rounds);
    let _ = std::fs::remove_file(&scratch);
    rates
}

fn rates(path: &Path, report: &Path, rounds: usize) -> Result<()> {
    let optimised = workspace::root().join("target/release/xtask");
    let events = command::output(Command::new(&optimised).args(["bench", "trace", "--read"]).arg(path))?;
    let events: f64 = events.trim().parse().context("the number of events")?;
    ensure!(events > 0.0, "{} has no events", path.display());
    let ours = |what: &str| {
        let mut command = Command::new(&optimised);
        command.args(["bench", "trace", what]).arg(path);
        command
    };
    let theirs = |words: &[&str]| {
        let mut command = Command::new(report);
        command.arg("report").args(words).arg("-i").arg(path);
        command
    };
    let mut contenders = [
        ("worstcase, all fields taken", ours("--read")),
        ("worstcase, all fields printed", ours("--print")),
        ("trace-cmd report -R", theirs(&["-R"])),
        ("trace-cmd report", theirs(&[])),
    ];
    let mut times = vec![Vec::new(); contenders.len()];
    for _ in 0..rounds {
        for (times, (_, command)) in times.iter_mut().zip(&mut contenders) {
            times.push(timed(command)?);
        }
    }
    println!(
        "{events:.0} events in {}, {rounds} rounds in turn; million events a second, and the ratio to trace-cmd report",
        path.display()
    );
    let theirs = times[contenders.len() - 1].clone();
    for ((name, _), times) in contenders.iter().zip(&times) {
        let rate = Spread::of(times.iter().map(|seconds| events / seconds / 1e6)).context("no round")?;
        let ratio =
            Spread::of(theirs.iter().zip(times).map(|(theirs, ours)| theirs / ours)).context("no round")?;
        println!("  {name:<32}{rate:<24}x {ratio}");
    }
    Ok(())
}

fn timed(command: &mut Command) -> Result<f64> {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(start.elapsed().as_secs_f64())
}

/// Records in an instance of our own, CPU by CPU, and has trace-cmd make one file of that: to record itself it writes the files of
/// function tracing, which not every kernel permits.
fn record(file: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(workspace::logs())?;
    let raw = RawFiles(file.with_extension("raw"));
    std::fs::create_dir_all(&raw.0)?;
    let pages = recorded(&raw.0).context("recording, which takes root")?;
    let head = raw.0.join("head");
    let restore = |words: &[&Path]| command::output(Command::new("trace-cmd").arg("restore").args(words));
    restore(&[Path::new("-c"), Path::new("-o"), &head])?;
    let mut words = vec![Path::new("-i"), head.as_path(), Path::new("-o"), file];
    words.extend(pages.iter().map(PathBuf::as_path));
    restore(&words)?;
    Ok(file.to_owned())
}

/// A directory that goes when it is dropped.
struct RawFiles(PathBuf);

impl Drop for RawFiles {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The pages of each CPU, each in a file of `directory`.
fn recorded(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut instance = Instance::make(Some(BUFFER))?;
    let cpus = instance.cpus();
    let paths: Vec<PathBuf> = cpus.iter().map(|cpu| directory.join(format!("cpu{cpu}"))).collect();
    let files: Vec<File> = paths.iter().map(File::create).collect::<std::io::Result<_>>()?;
    let spool = |instance: &Instance| -> Result<()> {
        for (cpu, file) in cpus.iter().zip(&files) {
            instance.spool(*cpu, file)?;
        }
        Ok(())
    };
    // Each read would leave events of its own to be read.
    instance.write("set_event_notrace_pid", &std::process::id().to_string())?;
    for system in EVENTS {
        instance.write(&format!("events/{system}/enable"), "1")?;
    }
    let [program, words @ ..] = WORK;
    let mut work = Command::new(program).args(words).stderr(Stdio::null()).spawn()?;
    let status = loop {
        spool(&instance)?;
        match work.try_wait()? {
            Some(status) => break status,
            None => std::thread::sleep(SPOOL),
        }
    };
    ensure!(status.success(), "{program} ended with {status}");
    instance.write("tracing_on", "0")?;
    spool(&instance)?;
    for cpu in &cpus {
        let lost = instance.stats(*cpu)?.lost();
        ensure!(lost == 0, "CPU {cpu} lost {lost} events: the buffer was full");
    }
    Ok(paths)
}

/// Shows all events of a file; how many there are.
fn each(file: &Path, see: &mut dyn FnMut(&Event<'_>)) -> Result<u64> {
    let saved = Saved::open(file)?;
    let mut count = 0;
    for buffer in saved.buffers() {
        let mut events = saved.events(buffer)?;
        while let Some(item) = events.next_item()? {
            if let Item::Event(event) = item {
                see(&event);
                count += 1;
            }
        }
    }
    Ok(count)
}

fn take(event: &Event<'_>) {
    std::hint::black_box((event.time, event.comm));
    event.fields().for_each(|field| drop(std::hint::black_box(field)));
}

fn printed(file: &Path) -> Result<()> {
    let mut out = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    let (mut line, mut result) = (String::new(), Ok(()));
    each(file, &mut |event| {
        line.clear();
        print(&mut line, event);
        if let Err(error) = out.write_all(line.as_bytes()) {
            result = Err(error);
        }
    })?;
    result?;
    Ok(out.flush()?)
}

fn print(line: &mut String, event: &Event<'_>) {
    let (micros, comm) = (event.time.0 / 1000, event.comm.unwrap_or("<...>"));
    let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
    // A String takes everything.
    let _ = write!(
        line,
        "{comm:>16}-{:<7} [{:03}] {seconds:5}.{rest:06}: {}:",
        event.task,
        event.cpu.0,
        event.name()
    );
    for (name, value) in event.fields() {
        let _ = write!(line, " {name}={value}");
    }
    line.push('\n');
}
