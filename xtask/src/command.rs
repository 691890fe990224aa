//! Running other programs: with a log, a time limit, and what they said.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::processes;

/// Something hung if a step takes longer; the slowest, a cold build, takes a few minutes.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// How a logged step ended.
pub struct Outcome {
    /// Whether it ended well, in time.
    pub success: bool,
    /// All that it printed.
    pub text: String,
    /// Where that stands.
    pub log: PathBuf,
}

impl Outcome {
    /// The last lines of the log, for the reader of a failure.
    pub fn tail(&self) -> String {
        const LINES: usize = 80;
        let lines: Vec<&str> = self.text.lines().filter(|line| !is_progress(line)).collect();
        let tail = lines[lines.len().saturating_sub(LINES)..].join("\n");
        format!("{tail}\n(log: {})", self.log.display())
    }

    /// What failing tests said, where the test harness got so far as to show it; else the last lines.
    pub fn failures(&self) -> String {
        let shown: Vec<&str> = failures(&self.text).collect();
        if shown.is_empty() {
            self.tail()
        } else {
            format!("{}\n(log: {})", shown.join("\n"), self.log.display())
        }
    }
}

/// Whether Cargo only says what it is about.
fn is_progress(line: &str) -> bool {
    let verbs =
        ["Adding", "Blocking", "Checking", "Compiling", "Downloaded", "Downloading", "Locking", "Updating"];
    line.starts_with("  ") && verbs.iter().any(|verb| line.trim_start().starts_with(verb))
}

/// The lines between `failures:` and `test result:`.
fn failures(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter(move |line| {
        inside = !line.starts_with("test result:") && (inside || *line == "failures:");
        inside
    })
}

/// Runs `command` with its output in `log`; kills it and all its descendants if it takes half an hour.
pub fn logged(command: &mut Command, log: &Path) -> Result<Outcome> {
    logged_within(LIMIT, command, log)
}

/// As [`logged`], and kills it after `limit`.
pub fn logged_within(limit: Duration, command: &mut Command, log: &Path) -> Result<Outcome> {
    if let Some(directory) = log.parent() {
        fs::create_dir_all(directory).with_context(|| format!("creating {}", directory.display()))?;
    }
    let file = File::create(log).with_context(|| format!("creating {}", log.display()))?;
    let errors = file.try_clone().with_context(|| format!("sharing {}", log.display()))?;
    let status = wait(command.stdin(Stdio::null()).stdout(file).stderr(errors), limit)?;
    let mut text = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    if status.is_none() {
        text.push_str(&format!("\nkilled: it took longer than {} min\n", limit.as_secs() / 60));
    }
    Ok(Outcome { success: status.is_some_and(|status| status.success()), text, log: log.to_owned() })
}

/// Waits for `command`; none where it had to be killed.
fn wait(command: &mut Command, limit: Duration) -> Result<Option<ExitStatus>> {
    let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    processes::kill_tree(child.id());
    child.wait()?;
    Ok(None)
}

/// What `command` prints on its standard output; an error with its standard error if it fails.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("starting {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} ended with {}: {}", output.status, errors.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Where `program` is found in the search path.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_killed_with_its_children() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & wait"]);
        let start = Instant::now();
        assert!(wait(&mut command, Duration::from_millis(100)).unwrap().is_none());
        assert!(start.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn a_failure_carries_what_was_said() {
        let error = output(Command::new("sh").args(["-c", "echo no luck >&2; exit 3"])).unwrap_err();
        assert!(error.to_string().contains("no luck"), "{error}");
    }
}
