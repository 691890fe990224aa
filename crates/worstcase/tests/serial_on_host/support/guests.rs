//! Whether guests can run on this machine.

use std::path::Path;
use std::process::Command;

/// Whether one of `programs` is missing, or one of Debian's kernels cannot be had; says which. `kernels` are the words
/// behind `lab kernels fetch debian`: each is fetched where it is not in the cache yet.
pub fn hindered(programs: &[&str], kernels: &[&[&str]]) -> bool {
    let is_there = |program: &&&str| {
        ["/bin", "/usr/bin", "/sbin", "/usr/sbin"].iter().any(|path| Path::new(path).join(program).exists())
    };
    if let Some(program) = programs.iter().find(|program| !is_there(program)) {
        println!("skipped: needs {program}");
        return true;
    }
    kernels.iter().any(|words| {
        let mut fetch = Command::new(env!("CARGO_BIN_EXE_worstcase"));
        let fetched = fetch.args(["lab", "kernels", "fetch", "debian"]).args(*words).output().unwrap();
        if !fetched.status.success() {
            println!("skipped: no kernel: {}", String::from_utf8_lossy(&fetched.stderr));
        }
        !fetched.status.success()
    })
}
