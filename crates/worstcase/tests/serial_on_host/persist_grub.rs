//! Kernel parameters through GRUB's own programs: grub-mkconfig makes the menu, grub-script-check reads it, a strict shell sources
//! the drop-in. On this machine's programs with directories of the test's own in the place of /boot and the like; and in a
//! root that debootstrap makes.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_worstcase");

/// As Debian's package grub-pc writes it.
const DEFAULTS: &str = "# If you change this file, run 'update-grub' afterwards to update\n# /boot/grub/grub.cfg.\n\n\
    GRUB_DEFAULT=0\nGRUB_TIMEOUT=5\nGRUB_DISTRIBUTOR=`lsb_release -i -s 2> /dev/null || echo Debian`\n\
    GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n";

const WORDS: &str = "isolcpus=managed_irq,domain,1 memmap=64K$0x18690000 dyndbg=\"file a.c +p; file b.c +p\"";

/// The same as GRUB's script has it.
const SCRIPTED: &str =
    "isolcpus=managed_irq,domain,1 'memmap=64K$0x18690000' 'dyndbg=file a.c +p; file b.c +p'";

const DROP_IN: &str = "etc/default/grub.d/90-worstcase.cfg";

/// A system with GRUB: what a shell does before a command runs in it, and where its files are.
struct Place {
    enter: String,
    files: PathBuf,
}

impl Place {
    fn run(&self, command: &[&str]) -> Output {
        self.command(command).output().unwrap()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-ec", &self.enter, "sh"]).args(words);
        command.env("NO_COLOR", "1").env("COLUMNS", "200").stdin(Stdio::null());
        command
    }

    fn persist(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.run(&[&["worstcase", "tune", "persist", "--boot"], arguments].concat());
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.files.join(path)).unwrap_or_default()
    }

    /// Files that GRUB's programs read, and the menu that they make of them.
    fn prepare(&self) -> Result<(), String> {
        for directory in ["boot/grub", "etc/default/grub.d", "etc/grub.d", "var/lib"] {
            fs::create_dir_all(self.files.join(directory)).unwrap();
        }
        fs::write(self.files.join("etc/default/grub"), DEFAULTS).unwrap();
        for kernel in ["vmlinuz-6.1.0-40-amd64", "vmlinuz-6.1.0-41-amd64", "initrd.img-6.1.0-41-amd64"] {
            fs::write(self.files.join("boot").join(kernel), "").unwrap();
        }
        let made = ["grub-editenv /boot/grub/grubenv create && grub-mkconfig -o /boot/grub/grub.cfg"];
        let output = self.run(&[&["sh", "-c"], &made[..]].concat());
        match output.status.success() && self.text("boot/grub/grub.cfg").contains("menuentry '") {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// What all files below the directories hold that are written to.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        ["boot", "etc/default", "etc/grub.d"]
            .iter()
            .for_each(|part| collect(&self.files.join(part), &mut files));
        files.sort();
        files
    }

    fn script_is_sound(&self) -> bool {
        self.run(&["grub-script-check", "/boot/grub/grub.cfg"]).status.success()
    }

    /// The line of the default, or of our entry.
    fn kernel_line(&self, of_ours: bool) -> String {
        let menu = self.text("boot/grub/grub.cfg");
        let from = if of_ours { menu.find("menuentry 'worstcase: ").unwrap() } else { 0 };
        let line = menu[from..].lines().find(|line| line.trim_start().starts_with("linux\t"));
        line.unwrap().to_owned()
    }
}

fn collect(directory: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(&path, files),
            false => files.push((path.clone(), fs::read(&path).unwrap_or_default())),
        }
    }
}

/// Whether something is missing, which is said.
fn lacks(programs: &[&str]) -> bool {
    let is_there = |program: &&&str| {
        ["/usr/bin", "/usr/sbin"].iter().any(|directory| Path::new(directory).join(program).exists())
    };
    let missing = programs.iter().find(|program| !is_there(program));
    match missing {
        _ if !rustix::process::geteuid().is_root() => println!("skipped: needs root"),
        Some(program) => println!("skipped: needs {program}"),
        None => return false,
    }
    true
}

/// All three ways, each back to the byte.
fn tried(place: &Place) {
    let before = place.files();
    let words = ["--loader", "grub", "--words", WORDS];
    for manner in [None, Some("--entry"), Some("--trial")] {
        let (code, text) = place.persist(&[&words[..], manner.as_slice()].concat());
        assert_eq!(code, Some(0), "{text}");
        assert!(place.script_is_sound());
        assert!(place.kernel_line(manner.is_some()).ends_with(SCRIPTED), "{}", place.kernel_line(false));
        let (code, text) = place.persist(&["--status"]);
        assert!(code == Some(0) && text.contains("not booted since"), "{text}");
        match manner {
            None => strictly_sourced(place),
            Some(_) => assert!(place.kernel_line(false).ends_with(" quiet"), "{}", place.kernel_line(false)),
        }
        let block = place.text("boot/grub/grubenv");
        assert_eq!(block.contains("next_entry=worstcase\n"), manner == Some("--trial"), "{block}");
        let (code, text) = place.persist(&["--undo"]);
        assert!(code == Some(0) && text.contains("proof: every file is as before"), "{text}");
        assert_eq!(place.files(), before, "{manner:?}");
    }
    killed(place, &words);
    assert_eq!(place.files(), before);
}

/// The drop-in as `sh -eu` takes it, byte for byte.
fn strictly_sourced(place: &Place) {
    let script =
        format!("GRUB_CMDLINE_LINUX_DEFAULT=quiet; . /{DROP_IN}; printf %s \"$GRUB_CMDLINE_LINUX_DEFAULT\"");
    let output = place.run(&["sh", "-euc", &script]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("quiet {SCRIPTED}"));
    assert!(output.status.success() && output.stderr.is_empty());
}

/// kill -9 while grub-mkconfig runs: what was done is listed, and taken back.
fn killed(place: &Place, words: &[&str]) {
    let command = [&["worstcase", "tune", "persist", "--boot"], words].concat();
    let mut child = place.command(&command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let has_begun = || place.files.join(DROP_IN).exists();
    while !has_begun() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (code, text) = place.persist(&["--status"]);
    assert!(code == Some(1) && text.contains("was killed"), "{text}");
    let (code, text) = place.persist(words);
    assert!(code == Some(2) && text.contains("--undo"), "{text}");
    let (code, text) = place.persist(&["--undo"]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn this_machines_grub_takes_the_words_and_gives_them_back() {
    if lacks(&["grub-mkconfig", "grub-script-check", "grub-editenv", "unshare"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let files = directory.path();
    let copied = Command::new("sh")
        .args(["-c", "mkdir -p \"$1/etc\" && cp -a /etc/grub.d \"$1/etc\"", "sh"])
        .arg(files)
        .status();
    assert!(copied.unwrap().success());
    // /boot is not always there, and /var/lib/worstcase hardly ever.
    let enter = format!(
        "mkdir -p /boot /etc/default /var/lib; for part in boot etc/default etc/grub.d var/lib; do\n\
         mount --bind '{}'/$part /$part; done\n\
         command=$1; shift; if [ $command = worstcase ]; then command='{BINARY}'; fi; exec \"$command\" \"$@\"",
        files.display()
    );
    let place = Place { enter, files: files.to_owned() };
    match place.prepare() {
        Ok(()) => tried(&place),
        Err(why) => println!("skipped: grub-mkconfig does not work here: {why}"),
    }
}

#[test]
#[ignore = "long"]
fn a_debian_made_by_debootstrap_takes_the_words_and_gives_them_back() {
    if lacks(&["debootstrap", "chroot", "unshare"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let files = directory.path().join("root");
    let mut make = Command::new("debootstrap");
    make.args(["--variant=minbase", "--include=grub-common,grub2-common", "bookworm"]).arg(&files);
    let output = make.stdin(Stdio::null()).output().unwrap();
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        println!("skipped: debootstrap: {}", text.lines().next_back().unwrap_or_default());
        return;
    }
    fs::copy(BINARY, files.join("usr/local/bin/worstcase")).unwrap();
    let enter = format!(
        "cd '{}'; mount --rbind /dev dev; mount -t proc proc proc; mount --rbind /sys sys; exec chroot . \"$@\"",
        files.display()
    );
    let place = Place { enter, files };
    if let Err(why) = place.prepare() {
        println!("skipped: grub-mkconfig does not work in it: {why}");
        return;
    }
    tried(&place);
}
