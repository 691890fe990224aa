//! How a test compares with what is committed: as `cargo xtask mend` wants it, and with that command in what it prints when it
//! fails. Integration tests include this file by its path, and libraries whose unit tests need it (`mend` looks for that).

use std::fs;
use std::path::Path;

/// The variable with which `cargo xtask mend` asks tests to write what they compare with.
const VARIABLE: &str = "WORSTCASE_MEND";

/// What to type if what a test found is right.
pub fn command() -> &'static str {
    concat!("if that is right: cargo xtask mend ", env!("CARGO_PKG_NAME"), ", and look at git diff")
}

/// Compares a file that is made from something else with `text`.
///
/// # Panics
/// Where they differ, or the file cannot be read.
#[allow(dead_code, reason = "some executables only have snapshots")]
pub fn check_generated(path: &Path, text: &str) {
    if std::env::var_os(VARIABLE).is_some() {
        fs::create_dir_all(path.parent().unwrap_or(path)).expect("its directory can be made");
        fs::write(path, text).unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
    }
    let committed = fs::read_to_string(path).unwrap_or_default();
    if committed != text {
        let (path, command) = (path.display(), command());
        panic!("{path} is not up to date: {}; {command}", first_difference(&committed, text));
    }
}

/// Where two texts part.
#[allow(dead_code, reason = "some executables only have snapshots")]
pub fn first_difference(committed: &str, generated: &str) -> String {
    let (mut committed, mut generated) = (committed.lines(), generated.lines());
    for line in 1.. {
        match (committed.next(), generated.next()) {
            (None, None) => break,
            (before, now) if before == now => {}
            (before, now) => {
                let shown =
                    |text: Option<&str>| text.map_or("no line".to_owned(), |text| format!("`{text}`"));
                return format!("line {line} is {}, and is generated as {}", shown(before), shown(now));
            }
        }
    }
    "only their line ends differ".to_owned()
}

/// `insta::assert_snapshot`, with the command.
#[allow(unused_macros, reason = "some executables have no snapshots")]
macro_rules! assert_snapshot {
    ($($arguments:tt)*) => {{
        println!("{}", $crate::mend::command());
        ::insta::assert_snapshot!($($arguments)*)
    }};
}
#[allow(unused_imports, reason = "as above")]
pub(crate) use assert_snapshot;
