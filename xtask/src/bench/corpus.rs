//! Recipes with a known truth, put to the program: how many right ones it accuses, how many wrong ones it passes.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};

use crate::workspace;

#[path = "../../../crates/audit/tests/corpus/parsed.rs"]
mod parsed;
use parsed::Case;

/// Parts whose cases are not shown, so that nobody mends by them.
const NOT_MENDED_BY: [&str; 2] = ["b.txt", "c.txt"];

/// What the program made of a case.
#[derive(PartialEq)]
enum Answer {
    /// Exit code 0 and nothing but notes.
    Passed,
    /// Exit code 0 with a warning.
    Warned,
    /// Exit code 1.
    Failed,
    /// Exit code 3.
    NotUnderstood,
}

/// Prints the figures of each file of the corpus, and with `verbose` the cases that were judged wrongly where one may mend by them.
pub fn run(binary: &Path, verbose: bool) -> Result<()> {
    let directory = workspace::root().join("crates/audit/tests/corpus");
    for name in parts(&directory)? {
        let text = std::fs::read_to_string(directory.join(&name))?;
        let cases = parsed::cases(&text).map_err(|error| anyhow!("{name}: {error}"))?;
        let is_shown = verbose && !NOT_MENDED_BY.contains(&name.as_str());
        print!("{}", judge(binary, &name, &cases, is_shown)?);
    }
    Ok(())
}

/// The files with cases, in their order.
fn parts(directory: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".txt") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn judge(binary: &Path, name: &str, cases: &[Case], verbose: bool) -> Result<String> {
    let (mut accused, mut missed, mut warned, mut unknown) = (0, 0, 0, 0);
    let mut shown = String::new();
    for case in cases {
        let answer = ask(binary, case)?;
        let mut note = |what: &str| {
            if verbose {
                let _ =
                    writeln!(shown, "-- {what} ({}, {})\n{}", case.kernel, case.why, case.text.trim_end());
            }
        };
        match (&answer, case.right) {
            (Answer::NotUnderstood, _) => {
                unknown += 1;
                note("not understood");
            }
            (Answer::Warned | Answer::Failed, true) => {
                accused += 1;
                note("right, accused");
            }
            (Answer::Passed, false) => {
                missed += 1;
                note("wrong, passed");
            }
            (Answer::Warned, false) => {
                missed += 1;
                warned += 1;
                note("wrong, only a warning");
            }
            _ => {}
        }
    }
    let right = cases.iter().filter(|case| case.right).count();
    let wrong = cases.len() - right;
    let share = |part: i32, of: usize| f64::from(part) * 100.0 / of.max(1) as f64;
    Ok(format!(
        "{shown}recipes of {name}: {accused} of {right} right ones judged wrong ({:.1} %), {missed} of {wrong} wrong ones passed ({:.1} %, {warned} of them with a warning), {unknown} of {} not understood ({:.1} %)\n",
        share(accused, right),
        share(missed, wrong),
        cases.len(),
        share(unknown, cases.len()),
    ))
}

fn ask(binary: &Path, case: &Case) -> Result<Answer> {
    let mut child = Command::new(binary)
        .args(["check", "--recipe", "-", "--json", "--kernel", &case.kernel])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    child.stdin.take().context("standard input")?.write_all(case.text.as_bytes())?;
    let output = child.wait_with_output()?;
    let warns = String::from_utf8_lossy(&output.stdout).contains("\"severity\": \"warning\"");
    Ok(match output.status.code() {
        Some(0) if warns => Answer::Warned,
        Some(0) => Answer::Passed,
        Some(1) => Answer::Failed,
        Some(3) => Answer::NotUnderstood,
        other => bail!("{other:?} for {}", case.text),
    })
}
