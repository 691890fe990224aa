//! Programs that measure through this crate: the example, one that forgot to enter, one that names another program.
//!
//! Each is this binary with a word as its first argument.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

use std::process::{Command, ExitCode, Output};

use runner::{Means, Request, Run, Unobserved};

#[path = "../../load/tests/harness/mod.rs"]
mod harness;
#[path = "../examples/measure.rs"]
mod measure;

const TESTS: &[harness::Test] = &[
    ("the_example_measures", the_example_measures),
    ("a_program_that_did_not_enter_is_refused", a_program_that_did_not_enter_is_refused),
    ("a_program_that_is_named_measures", a_program_that_is_named_measures),
    ("a_named_program_that_is_no_probe_is_an_error", a_named_program_that_is_no_probe_is_an_error),
    ("under_a_supervisor_that_is_none_nothing_passes", under_a_supervisor_that_is_none_nothing_passes),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("example") => ended(measure::main()),
        // Without runner::enter(), with the program that comes next, if any.
        Some("outsider") => ended(measured(arguments.get(1), arguments.get(2))),
        _ => {
            runner::enter();
            harness::run(TESTS, &arguments)
        }
    }
}

fn measured(program: Option<&String>, load: Option<&String>) -> runner::Result<()> {
    let request = Request {
        samples: Some(200),
        warm_up: units::Nanos::from_millis(10),
        loads: vec![load.map_or("idle", String::as_str).to_owned()],
        ..Request::default()
    };
    let means = Means { program: program.map(Into::into), ..Means::default() };
    let outcome = Run::prepare(request, &means)?.measure(&mut Unobserved)?;
    for series in &outcome.record.scenarios[0].series {
        println!("{} wake-ups", series.observed.summary().count);
    }
    println!("verdict {}", outcome.record.judgement.verdict);
    outcome.failure.map_or(Ok(()), Err)
}

fn ended(result: runner::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}\nhint: {}", error.hint);
            ExitCode::from(2)
        }
    }
}

fn run(words: &[&str]) -> Output {
    Command::new(std::env::current_exe().unwrap()).args(words).output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// How many CPUs delivered that many wake-ups, missed ones aside.
fn lines(output: &Output) -> usize {
    String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.contains(" wake-ups")).count()
}

fn the_example_measures() {
    let output = run(&["example"]);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(lines(&output) >= 1, "{output:?}");
}

fn a_program_that_did_not_enter_is_refused() {
    let output = run(&["outsider"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = errors(&output);
    assert!(errors.contains("no program to start the probe from"), "{errors}");
    assert!(errors.contains("runner::enter()"), "{errors}");
}

fn a_program_that_is_named_measures() {
    let own = std::env::current_exe().unwrap();
    let output = run(&["outsider", own.to_str().unwrap(), "cpu"]);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(lines(&output) >= 1, "{output:?}");
}

fn a_named_program_that_is_no_probe_is_an_error() {
    for program in ["/bin/true", "/bin/cat", "/bin/echo", "/no/such/program"] {
        let output = run(&["outsider", program]);
        assert_eq!(output.status.code(), Some(2), "{program}: {}", errors(&output));
        assert!(errors(&output).contains("probe"), "{program}: {}", errors(&output));
    }
}

/// The probe comes up and the load does not.
fn under_a_supervisor_that_is_none_nothing_passes() {
    let script = std::env::temp_dir().join(format!("worstcase-half-{}", std::process::id()));
    let own = std::env::current_exe().unwrap();
    let text = format!("#!/bin/sh\ncase $1 in __probe) exec {} \"$@\";; esac\nexit 0\n", own.display());
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = run(&["outsider", script.to_str().unwrap(), "cpu"]);
    std::fs::remove_file(&script).unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned() + &errors(&output);
    assert!(shown.contains("verdict error") || shown.contains("verdict inconclusive"), "{shown}");
}
