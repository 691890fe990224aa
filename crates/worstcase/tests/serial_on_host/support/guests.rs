//! Whether guests can run on this machine, and commands that have some.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

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

/// A command of the lab, its output kept. Where nobody waits for it any more it is killed, and its guest with it.
pub struct Started(Option<Child>);

impl Started {
    pub fn new(run: &mut Command) -> Self {
        run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(Some(run.spawn().unwrap()))
    }

    pub fn has_ended(&mut self) -> bool {
        self.0.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some())
    }

    /// Waits for its end.
    pub fn output(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
