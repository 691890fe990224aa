//! A cache of its own, and a directory of tools that stand before the real ones on PATH.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub const BINARY: &str = env!("CARGO_BIN_EXE_worstcase");

/// Debian's name for the machine that this runs on; its own lists are the system's.
pub const OWN: &str = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };

/// Everything that a test touches.
pub struct House {
    directory: tempfile::TempDir,
    /// What stands before the PATH; nothing else is on it where `only_tools`.
    pub only_tools: bool,
}

/// How a command ended and what it said.
#[derive(Debug)]
pub struct Answer {
    pub code: Option<i32>,
    pub out: String,
    pub said: String,
}

impl House {
    pub fn new() -> Self {
        let house = Self { directory: tempfile::tempdir().unwrap(), only_tools: false };
        fs::create_dir(house.path("tools")).unwrap();
        house
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// A shell script on PATH; it finds the house as $HOUSE.
    pub fn tool(&self, name: &str, script: &str) {
        let path = self.file(&format!("tools/{name}"), format!("#!/bin/sh\n{script}"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let tools = self.path("tools").display().to_string();
        let path = if self.only_tools { tools } else { format!("{tools}:/usr/bin:/bin") };
        let mut command = Command::new(BINARY);
        command.args(["lab", "kernels"]).args(arguments).env("PATH", path);
        command.env("HOUSE", self.directory.path()).env("WORSTCASE_CACHE", self.path("cache"));
        command.env("COLUMNS", "80").env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Answer {
        answer(&self.command(arguments).output().unwrap())
    }

    pub fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The names in the cache that are no kernels and no rooms of the cache's own.
    pub fn left(&self) -> Vec<String> {
        let names = fs::read_dir(self.path("cache")).into_iter().flatten();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let own = [".apt", ".builds", ".locks", ".sources"];
        names.filter(|name| name.starts_with('.') && !own.contains(&name.as_str())).collect()
    }

    /// How often a word stands in a file that tools write.
    pub fn count(&self, file: &str, word: &str) -> usize {
        fs::read_to_string(self.path(file)).unwrap_or_default().matches(word).count()
    }

    pub fn listed(&self) -> Vec<serde_json::Value> {
        serde_json::from_str(&self.run(&["list", "--json"]).out).unwrap()
    }
}

pub fn answer(output: &Output) -> Answer {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Answer { code: output.status.code(), out: text(&output.stdout), said: text(&output.stderr) }
}

impl Answer {
    /// An error in the form that every error has, with these words.
    pub fn is_error(&self, words: &str, hint: &str) {
        assert_eq!((self.code, self.out.as_str()), (Some(2), ""), "{self:?}");
        let (error, hinted) = self.said.rsplit_once("\n  hint: ").unwrap_or((&self.said, ""));
        assert!(error.contains("error: ") && error.contains(words), "{words}: {self:?}");
        assert!(hinted.contains(hint), "{hint}: {self:?}");
    }

    pub fn is_done(&self) {
        assert_eq!(self.code, Some(0), "{self:?}");
    }
}

/// The header of an x86 image as the kernel's build writes it, and nothing to boot behind it.
pub fn bzimage(release: &str, has_64_bit_entry: bool) -> Vec<u8> {
    let mut bytes = vec![0; 1024 + 64];
    bytes[0x1f1] = 1;
    bytes[0x1f4..0x1f8].copy_from_slice(&4_u32.to_le_bytes());
    bytes[0x202..0x206].copy_from_slice(b"HdrS");
    bytes[0x206..0x208].copy_from_slice(&0x020f_u16.to_le_bytes());
    bytes[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
    bytes[0x236] = u8::from(has_64_bit_entry);
    let version = format!("{release} (me@here) #1 SMP\0");
    bytes[0x300..0x300 + version.len()].copy_from_slice(version.as_bytes());
    bytes
}

/// Waits until a file is there.
pub fn await_file(path: &Path) {
    for _ in 0..600 {
        if path.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{} never came", path.display());
}
