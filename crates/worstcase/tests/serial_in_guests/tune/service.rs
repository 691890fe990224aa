//! A program that a script of /etc/init.d or a unit of systemd runs: stopped, and started again by the same.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use super::{tune, tuned, undone};

/// A stand-in in the test's own directory: what counts is its name, and who starts it.
const PROGRAM: &str = "./irqbalance";
const SCRIPT: &str = "/etc/init.d/irqbalance";

/// Starts and stops as scripts do.
fn script() -> String {
    let here = std::env::current_dir().unwrap();
    let here = here.display();
    format!(
        "#!/bin/sh\ncd {here}\ncase $1 in\nstart) ./irqbalance 600 & echo $! > pid ;;\nstop) read pid < pid; kill $pid ;;\nesac\n"
    )
}

/// Nobody would start again what somebody has started by hand: that is refused.
pub fn is_stopped_and_started() {
    fs::copy(which("sleep"), PROGRAM).unwrap();
    let mut by_hand = Command::new(PROGRAM).arg("600").spawn().unwrap();
    let (code, said) = tune("apply --isolate 1 --profile isolated --only rn-irqbalance");
    assert!(code == Some(0) && said.contains("stop it yourself"), "{said}");
    by_hand.kill().unwrap();
    by_hand.wait().unwrap();

    fs::create_dir_all("/etc/init.d").unwrap();
    fs::write(SCRIPT, script()).unwrap();
    fs::set_permissions(SCRIPT, fs::Permissions::from_mode(0o755)).unwrap();
    let mut start = Command::new(SCRIPT);
    assert!(start.arg("start").stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().success());
    let said = tuned("apply --isolate 1 --profile isolated --only rn-irqbalance");
    assert!(said.contains("service irqbalance by /etc/init.d/irqbalance: running -> stopped"), "{said}");
    assert!(!runs());
    assert!(tuned("status").contains("all as written"));
    undone();
    assert!(runs());
    assert!(Command::new(SCRIPT).arg("stop").status().unwrap().success());
    fs::remove_file(SCRIPT).unwrap();
}

fn which(name: &str) -> String {
    let directories = std::env::var("PATH").unwrap();
    let places = directories.split(':').map(|directory| format!("{directory}/{name}"));
    places.into_iter().find(|path| fs::exists(path).unwrap()).unwrap()
}

fn runs() -> bool {
    !survey::running(&sysroot::SysRoot::live(), &["irqbalance"]).is_empty()
}
