//! The command line: what it says, what it refuses and how, and what it does when nobody reads what it writes.
#![allow(clippy::unwrap_used)]

/// Commands and their answers, in tests/cmd. `TRYCMD=overwrite` writes the answers anew: look at the difference.
#[test]
fn commands_answer_as_they_did() {
    trycmd::TestCases::new()
        .case("tests/cmd/*.trycmd")
        .default_bin_path(env!("CARGO_BIN_EXE_worstcase"))
        .register_bin("worstcase", std::path::Path::new(env!("CARGO_BIN_EXE_worstcase")))
        .env("COLUMNS", "80")
        .env("LC_ALL", "C.UTF-8")
        .env("NO_COLOR", "1")
        .timeout(std::time::Duration::from_secs(20))
        .insert_var("[VERSION]", env!("CARGO_PKG_VERSION"))
        .unwrap();
}
