//! JSON of commands that measure or trace, against its schemas. That of experiments is compared where these are tested.

use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{self, schema};

fn run(arguments: &[&str], directory: &std::path::Path) -> Output {
    Command::new(support::BINARY).args(arguments).current_dir(directory).output().unwrap()
}

#[test]
fn what_verify_counts_conforms() {
    if !rustix::process::geteuid().is_root() {
        return support::skipped("needs root");
    }
    let directory = tempfile::tempdir().unwrap();
    let counted =
        run(&["partition", "verify", "--rt", "0", "--duration", "200ms", "--json"], directory.path());
    let value: Value = serde_json::from_slice(&counted.stdout).unwrap();
    schema::check("partition", &value);
    assert!(!value["residues"].as_array().unwrap().is_empty(), "nothing was counted on CPU 0");
}

#[test]
fn what_bench_and_explain_print_conforms() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["-D", "300ms", "--warm-up", "0s", "--loads", "idle", "--out", "traced"];
    let measured = run(&[&["bench", "--json", "--explain"][..], &words].concat(), directory.path());
    let said = String::from_utf8_lossy(&measured.stderr);
    if measured.stdout.is_empty() {
        return support::skipped(support::refusal(&said));
    }
    let record: Value = serde_json::from_slice(&measured.stdout).unwrap();
    schema::check("record", &record);
    schema::check("figures", &record["figures"]);
    let explained = run(&["explain", "traced", "--json"], directory.path());
    if !explained.status.success() && said.contains("was not explained") {
        return support::skipped(support::refusal(&said));
    }
    let explanations: Value = serde_json::from_slice(&explained.stdout).unwrap();
    schema::check("explanations", &explanations);
}
