//! The Raspberry Pi's firmware ("The boot process" in its documents): one line in cmdline.txt, or in the file that
//! config.txt names.

use record::Fact;
use sysroot::SysRoot;

use super::{Request, Requested, first_of, numbered, piece, text, words_of};

/// What the fact `bootloader` calls it.
pub(super) const NAME: &str = "raspberry-pi";

const DIRECTORIES: [&str; 2] = ["/boot/firmware", "/boot"];

/// Settings that say which file has the line.
const OF_THE_FILE: [&str; 2] = ["os_prefix", "cmdline"];

/// How many files are read that config.txt includes: one can include itself.
const FILES: usize = 16;

pub(super) fn find(root: &SysRoot) -> Fact<Request> {
    let mut lost = Fact::Absent;
    for directory in DIRECTORIES {
        let settings = FirmwareSettings::read(root, directory);
        let Some(file) = settings.file() else { return Fact::Unsupported };
        match first_of(root, &[&format!("{directory}/{file}")]) {
            Fact::Value((path, text)) => {
                return Fact::Value(Request::new(NAME, &path, cmdline_txt(&path, &text)));
            }
            Fact::Absent => {}
            other => lost = other.map(|_| Request::new(NAME, "", Vec::new())),
        }
    }
    lost
}

/// The filter of config.txt because of which nobody but the firmware knows which file has the kernel's words.
pub fn firmware_filter(root: &SysRoot) -> Option<String> {
    let of = |directory| FirmwareSettings::read(root, directory);
    DIRECTORIES.into_iter().find_map(|directory| {
        let settings = of(directory);
        OF_THE_FILE.into_iter().find_map(|name| match settings.get(name) {
            FirmwareSetting::Below(filter) => Some(filter),
            _ => None,
        })
    })
}

/// What config.txt says of a setting on this board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirmwareSetting {
    /// Nothing that holds.
    Absent,
    /// This, whatever the board.
    Value(String),
    /// It depends on this filter (`[pi4]`, `[EDID=..]`), which the firmware alone can judge.
    Below(String),
}

/// config.txt, in which later lines count, with the files that it includes.
#[derive(Clone, Debug, Default)]
pub struct FirmwareSettings {
    /// Names, values and filters in their order.
    lines: Vec<(String, String, Option<String>)>,
    /// How many files were read.
    files: usize,
}

/// Which boards the lines hold for that follow ("Conditional filters" in the firmware's documents).
#[derive(Clone)]
enum Holds {
    /// `[all]`, and where no filter stands.
    ForAll,
    /// `[none]`.
    ForNone,
    /// As the firmware finds it.
    For(String),
}

impl FirmwareSettings {
    /// Reads config.txt in `directory`; empty where there is none.
    pub fn read(root: &SysRoot, directory: &str) -> Self {
        let mut settings = Self::default();
        settings.follow(root, directory, "config.txt", &mut Holds::ForAll);
        settings
    }

    /// The settings of the directory that has them: `/boot/firmware`, or `/boot`.
    pub fn of_this_board(root: &SysRoot) -> Fact<Self> {
        let mut lost = Fact::Absent;
        for directory in DIRECTORIES {
            match text(root, &format!("{directory}/config.txt")) {
                Fact::Value(_) => return Fact::Value(Self::read(root, directory)),
                Fact::Absent => {}
                other => lost = other.map(|_| Self::default()),
            }
        }
        lost
    }

    /// What is said of `name`.
    pub fn get(&self, name: &str) -> FirmwareSetting {
        let mut said = FirmwareSetting::Absent;
        for (_, value, filter) in self.lines.iter().filter(|(of, ..)| of == name) {
            let value = FirmwareSetting::Value(value.clone());
            said = match filter {
                Some(filter) if said != value => FirmwareSetting::Below(filter.clone()),
                _ => value,
            };
        }
        said
    }

    /// The path below the boot directory of the file that has the kernel's words; none where a filter decides it.
    pub fn file(&self) -> Option<String> {
        let [prefix, name] = OF_THE_FILE.map(|name| match self.get(name) {
            FirmwareSetting::Absent => Some(None),
            FirmwareSetting::Value(value) => Some(Some(value)),
            FirmwareSetting::Below(_) => None,
        });
        Some(prefix?.unwrap_or_default() + &name?.unwrap_or_else(|| "cmdline.txt".to_owned()))
    }

    fn follow(&mut self, root: &SysRoot, directory: &str, name: &str, holds: &mut Holds) {
        self.files += 1;
        if self.files > FILES {
            return;
        }
        let Fact::Value(text) = text(root, &format!("{directory}/{name}")) else { return };
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            if line.starts_with('[') {
                *holds = holds.below(line);
            } else if let Some(name) = line.strip_prefix("include ") {
                self.follow(root, directory, name.trim(), holds);
            } else if let Some((name, value)) = line.split_once('=') {
                self.add(name, value, holds);
            }
        }
    }

    fn add(&mut self, name: &str, value: &str, holds: &Holds) {
        let filter = match holds {
            Holds::ForNone => return,
            Holds::ForAll => None,
            Holds::For(filter) => Some(filter.clone()),
        };
        self.lines.push((name.trim().to_owned(), value.trim().to_owned(), filter));
    }
}

impl Holds {
    /// Filters add up until `[all]`; those of one kind take each other's place.
    fn below(&self, filter: &str) -> Self {
        match filter.to_ascii_lowercase().as_str() {
            "[all]" => Self::ForAll,
            "[none]" => Self::ForNone,
            _ => Self::For(filter.to_owned()),
        }
    }
}

/// The words of the file's first line: the firmware reads no other.
pub fn cmdline_txt(path: &str, text: &str) -> Vec<Requested> {
    numbered(text).next().map_or_else(Vec::new, |line| words_of(&[piece(path, line, line.2)]))
}
