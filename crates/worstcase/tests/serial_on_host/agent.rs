//! The smaller binary: its records are those of the other, which makes their page.

use std::process::Command;

use record::ScenarioEnd;

use crate::support::report;

#[test]
fn an_agents_record_is_shown_by_the_other_program() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("record");
    let mut agent = Command::new(env!("CARGO_BIN_EXE_worstcase-agent"));
    agent.args(["bench", "--loads", "idle,cpu", "--duration", "500ms", "--warm-up", "50ms", "--out"]);
    let ended = agent.arg(&out).output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(!String::from_utf8_lossy(&ended.stderr).contains("report:"), "it makes no page");
    assert!(!out.join("report.html").exists());
    let record = record::store::load(&out).unwrap();
    assert_eq!(record.scenarios.len(), 2);
    assert!(record.scenarios.iter().all(|scenario| scenario.end == ScenarioEnd::Complete));
    assert!(report(&out).contains("\nMeasured, "));
    assert!(out.join("report.html").is_file());
}
