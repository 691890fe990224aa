//! A disk that is made up: it knows what of it a power cut would spare, and errs where a script says so.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rustix::io::Errno;

use super::disk::{Attributes, Contents, Disk, Found};
use crate::scripted::Killed;

/// What goes wrong with one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Refuse(Errno),
    /// It says yes and writes something else.
    Garble,
    KillBefore,
    KillAfter,
}

/// Files and directories by their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub files: BTreeMap<String, Found>,
    pub directories: BTreeSet<String>,
}

/// A change of names in one directory.
#[derive(Clone, Debug)]
struct Change {
    directory: String,
    files: Vec<(String, Option<Found>)>,
    directories: Vec<(String, bool)>,
}

impl Names {
    fn take(&mut self, change: &Change) {
        for (path, found) in change.files.clone() {
            match found {
                Some(found) => self.files.insert(path, found),
                None => self.files.remove(&path),
            };
        }
        for (path, is_there) in &change.directories {
            match is_there {
                true => self.directories.insert(path.clone()),
                false => self.directories.remove(path),
            };
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct ScriptedDisk {
    /// As programs see it.
    pub now: Names,
    /// What is on the disk for certain.
    safe: Names,
    /// What may be on it, or not, if the power fails now.
    pending: Vec<Change>,
    /// How many changes were asked for.
    pub changes: usize,
    fault: Option<(usize, Fault)>,
}

pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("/", |(parent, _)| if parent.is_empty() { "/" } else { parent })
}

impl ScriptedDisk {
    /// With these files, and the directories that they need.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let mut disk = Self::default();
        for (path, text) in files {
            disk.put(path, text);
            let mut directory = parent(path);
            while directory != "/" {
                disk.now.directories.insert(directory.to_owned());
                directory = parent(directory);
            }
        }
        disk.safe = disk.now.clone();
        disk
    }

    /// The same, on which the change of that number goes wrong, counted from now on.
    pub fn with(mut self, change: usize, fault: Fault) -> Self {
        self.fault = Some((self.changes + change, fault));
        self
    }

    /// Somebody else writes a file.
    pub fn put(&mut self, path: &str, text: &str) {
        let attributes = Attributes { mode: 0o640, owner: Some((7, 8)) };
        self.now.files.insert(path.to_owned(), Found { contents: text.into(), attributes });
    }

    pub fn text(&self, path: &str) -> Option<String> {
        match &self.now.files.get(path)?.contents {
            Contents::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Contents::Link(target) => Some(format!("-> {target}")),
        }
    }

    /// What may be found after a power cut: any of what is pending may have reached the disk.
    pub fn after_power_cuts(&self) -> Vec<Self> {
        let one = |mask: usize| {
            let mut names = self.safe.clone();
            let survives = |(bit, _): &(usize, &Change)| mask >> bit & 1 == 1;
            self.pending.iter().enumerate().filter(survives).for_each(|(_, change)| names.take(change));
            Self { now: names.clone(), safe: names, ..Self::default() }
        };
        (0..1 << self.pending.len()).map(one).collect()
    }

    fn change(&mut self, make: impl FnOnce(&mut Self, bool) -> io::Result<()>) -> io::Result<()> {
        let fault = self.fault.filter(|(at, _)| *at == self.changes).map(|(_, fault)| fault);
        self.changes += 1;
        match fault {
            Some(Fault::Refuse(errno)) => Err(errno.into()),
            Some(Fault::KillBefore) => std::panic::panic_any(Killed),
            Some(Fault::KillAfter) => {
                let _ = make(self, false);
                std::panic::panic_any(Killed)
            }
            fault => make(self, fault == Some(Fault::Garble)),
        }
    }

    fn pend(&mut self, change: Change) -> io::Result<()> {
        self.now.take(&change);
        self.pending.push(change);
        Ok(())
    }

    fn with_files(&mut self, path: &str, files: Vec<(String, Option<Found>)>) -> io::Result<()> {
        self.pend(Change { directory: parent(path).to_owned(), files, directories: Vec::new() })
    }

    fn with_directory(&mut self, path: &str, is_there: bool) -> io::Result<()> {
        let directories = vec![(path.to_owned(), is_there)];
        self.pend(Change { directory: parent(path).to_owned(), files: Vec::new(), directories })
    }

    fn below(&self, directory: &str) -> Vec<String> {
        let prefix = format!("{directory}/");
        let names = self.now.files.keys().chain(&self.now.directories);
        names.filter_map(|path| path.strip_prefix(&prefix).map(str::to_owned)).collect()
    }
}

impl Disk for ScriptedDisk {
    fn read(&self, path: &str) -> io::Result<Option<Found>> {
        Ok(self.now.files.get(path).cloned())
    }

    fn is_directory(&self, path: &str) -> bool {
        path == "/" || self.now.directories.contains(path)
    }

    fn names(&self, path: &str) -> io::Result<Vec<String>> {
        Ok(self.below(path))
    }

    fn create(&mut self, path: &str, contents: &Contents, attributes: Attributes) -> io::Result<()> {
        let found = Found { contents: contents.clone(), attributes };
        self.change(|disk, is_garbled| {
            if !disk.is_directory(parent(path)) {
                return Err(Errno::NOENT.into());
            }
            if disk.now.files.contains_key(path) {
                return Err(Errno::EXIST.into());
            }
            let found = if is_garbled { Found { contents: "garbled".into(), ..found } } else { found };
            disk.with_files(path, vec![(path.to_owned(), Some(found))])
        })
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.change(|disk, _| {
            if let Some(found) = disk.now.files.get(from).cloned() {
                return disk.with_files(to, vec![(from.to_owned(), None), (to.to_owned(), Some(found))]);
            }
            if !disk.now.directories.contains(from) {
                return Err(Errno::NOENT.into());
            }
            let (mut files, mut directories) =
                (Vec::new(), vec![(from.to_owned(), false), (to.to_owned(), true)]);
            for name in disk.below(from) {
                let (old, new) = (format!("{from}/{name}"), format!("{to}/{name}"));
                match disk.now.files.get(&old).cloned() {
                    Some(found) => files.extend([(old, None), (new, Some(found))]),
                    None => directories.extend([(old, false), (new, true)]),
                }
            }
            disk.pend(Change { directory: parent(to).to_owned(), files, directories })
        })
    }

    fn remove(&mut self, path: &str) -> io::Result<()> {
        if !self.now.files.contains_key(path) {
            return Ok(());
        }
        self.change(|disk, _| disk.with_files(path, vec![(path.to_owned(), None)]))
    }

    fn make_directory(&mut self, path: &str, _mode: u32) -> io::Result<()> {
        self.change(|disk, _| match disk.is_directory(parent(path)) {
            true => disk.with_directory(path, true),
            false => Err(Errno::NOENT.into()),
        })
    }

    fn remove_directory(&mut self, path: &str) -> io::Result<()> {
        if !self.now.directories.contains(path) {
            return Ok(());
        }
        self.change(|disk, _| match disk.below(path).is_empty() {
            true => disk.with_directory(path, false),
            false => Err(Errno::NOTEMPTY.into()),
        })
    }

    fn sync(&mut self, directory: &str) -> io::Result<()> {
        self.change(|disk, _| {
            if !disk.is_directory(directory) {
                return Err(Errno::NOENT.into());
            }
            let (synced, pending): (Vec<Change>, Vec<Change>) =
                disk.pending.drain(..).partition(|change| change.directory == directory);
            synced.iter().for_each(|change| disk.safe.take(change));
            disk.pending = pending;
            Ok(())
        })
    }
}
