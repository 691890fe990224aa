//! `bench trace`: events a second out of a file of trace-cmd's, against `trace-cmd report`.
//!
//! Both read the same file, in turn, each in a process of its own. Ours once takes every field of every event, and once
//! prints them as `trace-cmd report -R` does, names and values; both write to /dev/null. The file is recorded here, in an
//! instance of its own, unless one is named.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use trace::saved::Saved;
use trace::{Event, Item};

use super::spread::Spread;
use crate::arguments::Arguments;
use crate::command;
use crate::workspace;

/// What is recorded: a program that makes nothing but system calls, and what the scheduler does.
const WORK: [&str; 5] = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=400000"];
const EVENTS: [&str; 3] = ["sched", "irq", "raw_syscalls"];

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

/// What trace-cmd is started by, in a mount namespace that ends with the recording. It writes the files of function tracing in
/// any case, and gives up where the kernel refuses them, though only events are recorded: there a plain file stands in their place.
const PREPARED: &str = r#"
instance=/sys/kernel/tracing/instances/$1 plain=$2
shift 2
test -e /sys/kernel/tracing/trace || mount -t tracefs none /sys/kernel/tracing || exit 1
mkdir "$instance" || exit 1
{ echo 1 > /proc/sys/kernel/ftrace_enabled; } 2> /dev/null || mount --bind "$plain" /proc/sys/kernel/ftrace_enabled
for file in "$instance/set_ftrace_filter" "$instance/set_ftrace_notrace"; do
    test ! -e "$file" || { : >> "$file"; } 2> /dev/null || mount --bind "$plain" "$file"
done
"$@"
code=$?
umount "$instance"/set_ftrace_filter "$instance"/set_ftrace_notrace 2> /dev/null
rmdir "$instance" 2> /dev/null
exit $code
"#;

/// Records in an instance of its own.
fn record(file: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(workspace::logs())?;
    let instance = format!("worstcase-{}-bench", std::process::id());
    let plain = file.with_extension("plain");
    std::fs::write(&plain, "1\n")?;
    let mut recording = Command::new("unshare");
    recording.args(["--mount", "sh", "-c", PREPARED, "sh", &instance]).arg(&plain);
    recording.args(["trace-cmd", "record", "--file-version", "6", "-o"]).arg(file);
    recording
        .args(["-B", &instance, "-C", "mono"])
        .args(EVENTS.iter().flat_map(|event| ["-e", event]))
        .args(WORK);
    let recorded = command::output(&mut recording).context("recording, which takes root");
    let _ = std::fs::remove_file(&plain);
    recorded.map(|_| file.to_owned())
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
