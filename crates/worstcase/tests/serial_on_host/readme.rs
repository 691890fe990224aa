//! The commands of README, typed by somebody who reads it: each is run in a fresh directory, shortened where it takes long,
//! and prints what it is shown to print, figures apart.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::BINARY;

/// What stands for a command of README in this test.
enum Stands {
    /// It is run with these words behind it, and ends with one of these codes.
    Run(&'static [&'static str], &'static [i32]),
    /// Another command is run in its place, because the one that README has would change this machine, or speaks of files
    /// of the reader.
    As(&'static [&'static str], &'static [i32]),
    /// Why it cannot run here, and which test does the same.
    Elsewhere(&'static str),
}
use Stands::{As, Elsewhere, Run};

const SHORT: &[&str] = &["-D", "300ms", "--warm-up", "0s", "--out", "again"];
const ONE: &[&str] = &["-D", "300ms", "--warm-up", "0s", "--loads", "idle", "--out", "again"];
const MEASURED: &[i32] = &[0, 3];

/// Every command of README, and what stands for it.
const COMMANDS: &[(&str, Stands)] = &[
    ("worstcase bench", Run(SHORT, MEASURED)),
    (
        "worstcase bench -a 1 --limit 100us --out untuned",
        Run(&["-D", "300ms", "--warm-up", "0s", "--loads", "idle"], &[0, 1, 3]),
    ),
    (
        "worstcase bench --explain --loads io",
        Run(&["-D", "300ms", "--warm-up", "0s", "--out", "again"], MEASURED),
    ),
    ("worstcase check", Run(&[], &[0, 1, 3])),
    ("worstcase why rn-thp", Run(&[], &[0])),
    (
        "worstcase lab kernels fetch debian --version 6.1 --flavour rt",
        Elsewhere("fetches: serial_on_host kernels"),
    ),
    (
        "worstcase tune trial 'ktimers/*=fifo:90' --kernel debian-6.1-rt-amd64 --load rt-hog --wake timerfd",
        Elsewhere("minutes of guests: serial_in_guests tune"),
    ),
    ("worstcase tune plan --isolate 1", Run(&[], &[0])),
    (
        "worstcase tune apply --isolate 1 --for 10m",
        As(&["tune", "apply", "--only", "rn-stat-interval", "--for", "10m", "--state", "state"], &[0]),
    ),
    ("worstcase tune undo", Run(&["--state", "state"], &[0])),
    (
        "worstcase bench -a 1 --partition worstcase --against untuned",
        As(
            &[
                "bench",
                "-a",
                "1",
                "-D",
                "300ms",
                "--warm-up",
                "0s",
                "--loads",
                "idle",
                "--against",
                "untuned",
            ],
            MEASURED,
        ),
    ),
    ("worstcase check --recipe howto.txt", Run(&[], &[0, 1, 3])),
    (
        "worstcase check --kconfig .config --against /boot/config-6.1.0-rt",
        As(&["check", "--kconfig", "one.config", "--against", "other.config"], &[0, 1, 3]),
    ),
    ("worstcase bench --cstates both", Run(ONE, MEASURED)),
    ("worstcase bench --preset enea", Run(ONE, MEASURED)),
    ("worstcase bench --limit 100us --format junit", Run(ONE, &[0, 1, 3])),
    ("worstcase cost --out before", Run(&["--only", "getppid", "--rounds", "5", "--sample", "1ms"], &[0, 3])),
    ("worstcase cost --against before --out after", Run(&[], &[0, 3])),
    ("worstcase lab ladder stock", Elsewhere("many minutes of guests: serial_on_host lab_ladder")),
];

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap()
}

/// The commands in README's blocks, and the lines printed below each: none where it shows none.
fn commands() -> Vec<(String, Vec<String>)> {
    let readme = readme();
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    let (mut is_block, mut is_session) = (false, false);
    for line in readme.lines() {
        if let Some(language) = line.strip_prefix("```") {
            is_session = language == "console";
            is_block = is_session || language == "sh";
            continue;
        }
        let typed = line.strip_prefix("$ ").unwrap_or(line);
        let begins = typed.starts_with("worstcase ") && (!is_session || line.starts_with("$ "));
        if is_block && begins {
            let command = typed.split("  #").next().unwrap_or_default().trim().to_owned();
            commands.push((command, Vec::new()));
        } else if is_session && !line.starts_with("$ ") {
            commands.last_mut().unwrap().1.push(line.to_owned());
        }
    }
    commands
}

/// A directory with the files that README's reader has.
fn reader() -> tempfile::TempDir {
    let directory = tempfile::tempdir_in(std::env::var_os("HOME").unwrap_or_else(|| "/tmp".into())).unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    write(
        "howto.txt",
        "Add isolcpus=1 nohz_full=1 rcu_nocbs=1 to GRUB_CMDLINE_LINUX in /etc/default/grub.\n",
    );
    write("one.config", "CONFIG_PREEMPT=y\n# CONFIG_PREEMPT_RT is not set\nCONFIG_HZ=250\n");
    write("other.config", "CONFIG_PREEMPT_RT=y\nCONFIG_HZ=250\n");
    directory
}

/// Runs `words` and returns exit code and output.
fn run(directory: &Path, words: &[String]) -> (Option<i32>, String) {
    let _ = fs::remove_dir_all(directory.join("again"));
    let mut command = Command::new(BINARY);
    command
        .args(words)
        .current_dir(directory)
        .stdin(Stdio::null())
        .env("LC_ALL", "C.UTF-8")
        .env("COLUMNS", "100");
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// The first word of a line that README shows, which is no figure: what the output must have at the start of a line too.
fn label(line: &str) -> Option<&str> {
    let word = line.split_whitespace().next()?;
    (word != "..." && word.chars().any(char::is_alphabetic)).then_some(word)
}

#[test]
fn every_command_of_the_readme_does_what_it_says() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: needs root");
        return;
    }
    let directory = reader();
    let commands = commands();
    assert!(commands.len() >= 15, "README has lost its commands: {commands:?}");
    for (command, shown) in commands {
        let stands = COMMANDS.iter().find(|(known, _)| *known == command);
        let Some((_, stands)) = stands else { panic!("README has a command that no test runs: {command}") };
        let own = || command.split(' ').skip(1).map(str::to_owned);
        let added = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (words, codes): (Vec<String>, _) = match stands {
            Run(more, codes) => (own().chain(added(more)).collect(), codes),
            As(other, codes) => (added(other), codes),
            Elsewhere(why) => {
                println!("{command}: {why}");
                continue;
            }
        };
        let (code, printed) = run(directory.path(), &words);
        assert!(code.is_some_and(|code| codes.contains(&code)), "{command}: {code:?}\n{printed}");
        for label in shown.iter().filter_map(|line| label(line)) {
            let is_there = printed.lines().any(|line| line.split_whitespace().next() == Some(label));
            assert!(is_there || label == "worstcase", "{command}: no line begins with {label}:\n{printed}");
        }
    }
}

#[test]
fn every_file_that_the_documents_link_to_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut documents: Vec<PathBuf> = vec![root.join("README.md"), root.join("SECURITY.md")];
    documents.extend(fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    assert!(documents.len() > 10);
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            let path = document.parent().unwrap().join(file);
            assert!(path.exists(), "{}: {link}", document.display());
        }
    }
}
