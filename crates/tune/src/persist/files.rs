//! Several edits of files as one: all of it stands on the disk before the first is made, and each can be taken back.
//!
//! A transaction has a directory of its own below [`super::STATE`]. In it are, whole, each file as it was
//! (`0-before`) and as it is to be (`0-after`), and a journal that names them; it is there before anything is changed.
//! What was changed is found by looking at the files, so that a process that was killed, or a machine that lost its
//! power, leaves nothing that is unclear: a file is as before, ours, or somebody else's.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::disk::{Attributes, Contents, Disk, Found};
use crate::error::{Error, Result};
use crate::journal::{sum, whole, written};
use crate::status::Now;
use crate::undo::Back;

const JOURNAL: &str = "journal";
/// There once all edits were made.
const DONE: &str = "done";
const OWN_FILES: Attributes = Attributes { mode: 0o600, owner: None };
const OWN_DIRECTORY: u32 = 0o700;
const NEW_DIRECTORY: u32 = 0o755;

/// One file, before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Which, as the system calls it.
    pub path: String,
    /// What it is; none where there is nothing.
    pub before: Option<Contents>,
    /// What it is to be; none if it is to go.
    pub after: Option<Contents>,
    /// The mode of a new file; one that is there keeps its own.
    pub mode: u32,
}

impl Edit {
    /// That makes `path` what `after` says, whatever is there now.
    ///
    /// # Errors
    /// [`Error`] where it cannot be read.
    pub fn of(disk: &dyn Disk, path: &str, after: Option<Contents>) -> Result<Self> {
        let before = disk.read(path).map_err(failed("read", path))?;
        let before = before.map(|found| found.contents);
        Ok(Self { path: path.to_owned(), before, after, mode: 0o644 })
    }

    /// The same with another mode, should the file be new.
    #[must_use]
    pub fn with_mode(self, mode: u32) -> Self {
        Self { mode, ..self }
    }
}

/// What became of a file that was to be put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBack {
    /// The file's absolute path.
    pub path: String,
    /// Whether it is as before, and if not why.
    pub back: Back,
}

/// What a transaction's journal tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// What its maker wrote down with it.
    pub note: Value,
    /// The files that it changes.
    pub paths: Vec<String>,
    /// Whether all was done that was to be done. Otherwise its maker was killed.
    pub is_whole: bool,
}

/// The journal as it stands on the disk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Journal {
    note: Value,
    edits: Vec<Noted>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Noted {
    path: String,
    before: Option<Kept>,
    after: Option<Kept>,
    attributes: Attributes,
    /// Directories that were not there, the outermost first.
    made: Vec<String>,
}

/// Contents of which the bytes stand in a file beside the journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kept {
    Bytes { sum: u32 },
    Link(String),
}

/// One transaction of edits. Whoever uses it holds `State::at(STATE).lock()`.
pub struct Files<'a> {
    disk: &'a mut dyn Disk,
    directory: String,
}

fn failed<'a>(operation: &'static str, path: &'a str) -> impl FnOnce(io::Error) -> Error + 'a {
    Error::io(operation, path.as_ref())
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("/", |(parent, _)| if parent.is_empty() { "/" } else { parent })
}

/// The name under which the new contents of a file lie beside it until they take its place. No program that reads such
/// directories takes it for one of its own files.
fn aside(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    format!("{}/.{name}.worstcase", parent(path).trim_end_matches('/'))
}

fn contents(found: Option<Found>) -> Option<Contents> {
    found.map(|found| found.contents)
}

impl<'a> Files<'a> {
    /// The transaction called `name` among those in the directory `state`.
    pub fn at(disk: &'a mut dyn Disk, state: &str, name: &str) -> Self {
        Self { disk, directory: format!("{state}/{name}") }
    }

    /// The files that it is about, to be read.
    pub fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// Makes all of `edits`, or none: what was made before a failure is taken back.
    ///
    /// # Errors
    /// As for [`Files::begin`] and [`Files::add`]; what could not be taken back is named in the hint.
    pub fn write(&mut self, note: &Value, edits: &[Edit]) -> Result<()> {
        self.begin(note)?;
        let done = self.add(edits).and_then(|()| self.finish());
        done.map_err(|error| self.rolled_back(error))
    }

    /// Takes everything back after an error, which says so if that cannot be done.
    pub fn rolled_back(&mut self, error: Error) -> Error {
        let open = |undone: &[PutBack]| undone.iter().any(|file| !file.back.is_as_before());
        match self.undo() {
            Ok(undone) if !open(&undone) => error,
            _ => Error {
                hint: "not all could be put back: worstcase tune persist --undo tries again",
                ..error
            },
        }
    }

    /// Begins a transaction that changes nothing yet. `note` is kept for whoever reads the transaction later.
    ///
    /// # Errors
    /// [`Error`] where there is one already, or its journal cannot be written.
    pub fn begin(&mut self, note: &Value) -> Result<()> {
        if self.recorded()?.is_some() {
            let hint = "undo it first: worstcase tune persist --undo";
            return Err(Error::new("begin", self.directory.as_ref(), "it is there already", hint));
        }
        let directory = self.directory.clone();
        self.clear(&directory)?;
        self.make_directories(&directory, OWN_DIRECTORY)?;
        self.save(&Journal { note: note.clone(), edits: Vec::new() })
    }

    /// Makes some edits. On an error some of them may have been made: [`Files::undo`] takes them back.
    ///
    /// # Errors
    /// [`Error`] where a file is not what the edit says that it was, cannot be written, or reads otherwise afterwards.
    pub fn add(&mut self, edits: &[Edit]) -> Result<()> {
        let mut journal = self.journal()?.unwrap_or_default();
        let first = journal.edits.len();
        let edits: Vec<&Edit> = edits.iter().filter(|edit| edit.before != edit.after).collect();
        for (number, edit) in (first..).zip(&edits) {
            let noted = self.keep(number, edit)?;
            journal.edits.push(noted);
        }
        self.save(&journal)?;
        let all = journal.edits[first..].iter().zip(edits);
        all.into_iter().try_for_each(|(noted, edit)| self.make(noted, edit))
    }

    /// A path beside the transaction's directory, for what a program is to make.
    pub fn aside(&self, name: &str) -> String {
        format!("{}.{name}", self.directory)
    }

    /// The bytes of a file, which is taken away.
    ///
    /// # Errors
    /// [`Error`] where it cannot be read or taken away.
    pub fn take(&mut self, path: &str) -> Result<Option<Vec<u8>>> {
        let bytes = self.bytes(path)?;
        self.disk.remove(path).map_err(failed("remove", path))?;
        Ok(bytes)
    }

    /// The names in a directory.
    ///
    /// # Errors
    /// [`Error`] where it cannot be read.
    pub fn names(&self, directory: &str) -> Result<Vec<String>> {
        self.disk.names(directory).map_err(failed("read", directory))
    }

    /// Gives a file of the transaction its name back.
    ///
    /// # Errors
    /// [`Error`] where it cannot be renamed.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        let renamed = self.disk.rename(from, to).and_then(|()| self.disk.sync(parent(to)));
        renamed.map_err(failed("rename", from))
    }

    /// Gives a file that is there other bytes, in one step and without a way back: for what a program makes.
    ///
    /// # Errors
    /// [`Error`] where it cannot be written.
    pub fn replace(&mut self, path: &str, bytes: Vec<u8>) -> Result<()> {
        let found = self.disk.read(path).map_err(failed("read", path))?;
        let attributes = found.map_or(Attributes { mode: 0o644, owner: None }, |found| found.attributes);
        self.put(path, Some(&Contents::Bytes(bytes)), attributes)
    }

    /// Says that all was done.
    ///
    /// # Errors
    /// [`Error`] where that cannot be written.
    pub fn finish(&mut self) -> Result<()> {
        self.put(&self.own(DONE), Some(&"".into()), OWN_FILES)
    }

    /// Puts everything back as [`Files::restore`] does. The backups are put aside unless something is to be tried again.
    ///
    /// # Errors
    /// [`Error`] where the journal cannot be read or put aside.
    pub fn undo(&mut self) -> Result<Vec<PutBack>> {
        let undone = self.restore()?;
        self.close_after(&undone)?;
        Ok(undone)
    }

    /// Puts everything back, the last first, and reads it again. Nothing that somebody else has changed since is
    /// touched; where there is no transaction nothing is done.
    ///
    /// # Errors
    /// [`Error`] where the journal cannot be read.
    pub fn restore(&mut self) -> Result<Vec<PutBack>> {
        let journal = self.journal()?.unwrap_or_default();
        let mut undone = Vec::new();
        for (number, noted) in journal.edits.iter().enumerate().rev() {
            let back = self.put_back(number, noted);
            undone.push(PutBack { path: noted.path.clone(), back });
        }
        Ok(undone)
    }

    /// Puts journal and backups aside, in the place of those of the transaction before, unless something is to be tried
    /// again.
    ///
    /// # Errors
    /// [`Error`] where they cannot be put aside.
    pub fn close_after(&mut self, undone: &[PutBack]) -> Result<()> {
        let is_open = undone.iter().any(|file| file.back.is_open());
        if is_open || self.journal()?.is_none() {
            return Ok(());
        }
        let last = format!("{}.last", self.directory);
        self.clear(&last)?;
        self.disk.rename(&self.directory, &last).map_err(failed("rename", &self.directory))?;
        self.disk.sync(parent(&self.directory)).map_err(failed("write to the disk", &self.directory))
    }

    /// What the journal tells; none where there is no transaction.
    ///
    /// # Errors
    /// [`Error`] where it cannot be read.
    pub fn recorded(&self) -> Result<Option<Recorded>> {
        let Some(journal) = self.journal()? else { return Ok(None) };
        let is_whole = self.bytes(&self.own(DONE))?.is_some();
        let paths = journal.edits.into_iter().map(|noted| noted.path).collect();
        Ok(Some(Recorded { note: journal.note, paths, is_whole }))
    }

    /// Each file of the transaction, and how it is now.
    ///
    /// # Errors
    /// [`Error`] where the journal cannot be read.
    pub fn now(&self) -> Result<Vec<(String, Now)>> {
        let journal = self.journal()?.unwrap_or_default();
        let one = |(number, noted): (usize, &Noted)| (noted.path.clone(), self.one(number, noted));
        Ok(journal.edits.iter().enumerate().map(one).collect())
    }

    fn one(&self, number: usize, noted: &Noted) -> Now {
        let kept = |when| self.kept(number, noted, when).ok();
        match self.disk.read(&noted.path).map(contents) {
            Ok(now) if kept(When::After).is_some_and(|after| after == now) => Now::Holds,
            Ok(now) if kept(When::Before).is_some_and(|before| before == now) => Now::AsBefore,
            Ok(None) => Now::Gone("it is no longer there".to_owned()),
            Ok(Some(_)) => Now::Drifted("somebody else has changed it".to_owned()),
            Err(error) => Now::Unreadable(errno(&error)),
        }
    }

    fn own(&self, name: &str) -> String {
        format!("{}/{name}", self.directory)
    }

    fn bytes(&self, path: &str) -> Result<Option<Vec<u8>>> {
        match self.disk.read(path).map_err(failed("read", path))? {
            Some(Found { contents: Contents::Bytes(bytes), .. }) => Ok(Some(bytes)),
            Some(_) => Err(Error::new("read", path.as_ref(), "it is a link", "")),
            None => Ok(None),
        }
    }

    fn journal(&self) -> Result<Option<Journal>> {
        let path = self.own(JOURNAL);
        let Some(bytes) = self.bytes(&path)? else { return Ok(None) };
        let journal = whole(&bytes);
        let hint = "the files beside it, 0-before and so on, are the backups";
        journal.map(Some).ok_or_else(|| Error::new("read", path.as_ref(), "it is damaged", hint))
    }

    fn save(&mut self, journal: &Journal) -> Result<()> {
        let text = written(journal);
        self.put(&self.own(JOURNAL), Some(&text.as_str().into()), OWN_FILES)
    }

    /// Writes down one edit with all that it takes to make it and to take it back.
    fn keep(&mut self, number: usize, edit: &Edit) -> Result<Noted> {
        let found = self.disk.read(&edit.path).map_err(failed("read", &edit.path))?;
        let attributes = match &found {
            Some(found) => found.attributes,
            None => Attributes { mode: edit.mode, owner: None },
        };
        if contents(found) != edit.before {
            let hint = "somebody works on it: try again";
            return Err(Error::new("change", edit.path.as_ref(), "it is not what it was a moment ago", hint));
        }
        let before = self.keep_contents(number, When::Before, edit.before.as_ref())?;
        let after = self.keep_contents(number, When::After, edit.after.as_ref())?;
        let made = self.missing_directories(parent(&edit.path));
        Ok(Noted { path: edit.path.clone(), before, after, attributes, made })
    }

    fn keep_contents(&mut self, number: usize, when: When, of: Option<&Contents>) -> Result<Option<Kept>> {
        Ok(match of {
            None => None,
            Some(Contents::Link(target)) => Some(Kept::Link(target.clone())),
            Some(Contents::Bytes(bytes)) => {
                self.put(&self.own(&when.file(number)), of, OWN_FILES)?;
                Some(Kept::Bytes { sum: sum(bytes) })
            }
        })
    }

    /// What was kept of an edit.
    fn kept(&self, number: usize, noted: &Noted, when: When) -> Result<Option<Contents>> {
        let kept = match when {
            When::Before => &noted.before,
            When::After => &noted.after,
        };
        match kept {
            None => Ok(None),
            Some(Kept::Link(target)) => Ok(Some(Contents::Link(target.clone()))),
            Some(Kept::Bytes { sum: own }) => {
                let path = self.own(&when.file(number));
                let bytes = self.bytes(&path)?.filter(|bytes| sum(bytes) == *own);
                let damaged = || Error::new("read", path.as_ref(), "the backup is lost or damaged", "");
                bytes.map(|bytes| Some(Contents::Bytes(bytes))).ok_or_else(damaged)
            }
        }
    }

    fn make(&mut self, noted: &Noted, edit: &Edit) -> Result<()> {
        self.make_directories(parent(&noted.path), NEW_DIRECTORY)?;
        self.put(&noted.path, edit.after.as_ref(), noted.attributes)?;
        let now = self.disk.read(&noted.path).map_err(failed("read back", &noted.path))?;
        match contents(now) == edit.after {
            true => Ok(()),
            false => Err(Error::new(
                "write",
                noted.path.as_ref(),
                "it reads otherwise than it was written",
                "another program may write there",
            )),
        }
    }

    fn put_back(&mut self, number: usize, noted: &Noted) -> Back {
        if let Err(error) = self.disk.remove(&aside(&noted.path)) {
            return Back::Refused(errno(&error));
        }
        let now = match self.disk.read(&noted.path) {
            Ok(now) => contents(now),
            Err(error) => return Back::Unreadable(errno(&error)),
        };
        let (before, after) =
            match (self.kept(number, noted, When::Before), self.kept(number, noted, When::After)) {
                (Ok(before), Ok(after)) => (before, after),
                (Err(error), _) | (_, Err(error)) => return Back::Unclear(error.to_string()),
            };
        if now != before && now != after {
            return Back::Foreign(if now.is_some() { "changed" } else { "removed" }.to_owned());
        }
        let back =
            if now == before { Ok(()) } else { self.place(&noted.path, before.as_ref(), noted.attributes) };
        let back = back.and_then(|()| self.remove_made(&noted.made));
        match (back, self.disk.read(&noted.path).map(contents)) {
            (Err(error), _) | (_, Err(error)) => Back::Refused(errno(&error)),
            (Ok(()), Ok(again)) if again != before => Back::Differs("something else".to_owned()),
            _ if now == before => Back::AsBefore,
            _ => Back::Restored,
        }
    }

    /// Directories that we made go with what is in them; what others put there stays, and they with it.
    fn remove_made(&mut self, made: &[String]) -> io::Result<()> {
        for directory in made.iter().rev() {
            if !self.disk.is_directory(directory) {
                continue;
            }
            match self.disk.remove_directory(directory) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => return Ok(()),
                result => result?,
            }
            self.disk.sync(parent(directory))?;
        }
        Ok(())
    }

    fn put(&mut self, path: &str, contents: Option<&Contents>, attributes: Attributes) -> Result<()> {
        self.place(path, contents, attributes).map_err(failed("write", path))
    }

    /// Makes a file what it is to be, in one step that is on the disk when this returns.
    fn place(&mut self, path: &str, contents: Option<&Contents>, attributes: Attributes) -> io::Result<()> {
        match contents {
            None => self.disk.remove(path)?,
            Some(contents) => {
                let aside = aside(path);
                self.disk.remove(&aside)?;
                let placed = self.disk.create(&aside, contents, attributes);
                let placed = placed.and_then(|()| self.disk.rename(&aside, path));
                if placed.is_err() {
                    let _ = self.disk.remove(&aside);
                }
                placed?;
            }
        }
        self.disk.sync(parent(path))
    }

    fn missing_directories(&self, directory: &str) -> Vec<String> {
        let mut missing = Vec::new();
        let mut directory = directory;
        while directory != "/" && !self.disk.is_directory(directory) {
            missing.insert(0, directory.to_owned());
            directory = parent(directory);
        }
        missing
    }

    fn make_directories(&mut self, directory: &str, mode: u32) -> Result<()> {
        for missing in self.missing_directories(directory) {
            self.disk.make_directory(&missing, mode).map_err(failed("create directory", &missing))?;
            self.disk.sync(parent(&missing)).map_err(failed("write to the disk", &missing))?;
        }
        Ok(())
    }

    /// Takes a directory of ours away with what is in it.
    fn clear(&mut self, directory: &str) -> Result<()> {
        let names = self.disk.names(directory).map_err(failed("read", directory))?;
        let remove = |name: String| self.disk.remove(&format!("{directory}/{name}"));
        let removed = names.into_iter().try_for_each(remove);
        removed.and_then(|()| self.disk.remove_directory(directory)).map_err(failed("remove", directory))
    }
}

/// Of an edit.
#[derive(Clone, Copy)]
enum When {
    Before,
    After,
}

impl When {
    fn file(self, number: usize) -> String {
        match self {
            Self::Before => format!("{number}-before"),
            Self::After => format!("{number}-after"),
        }
    }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(rustix::io::Errno::IO.raw_os_error())
}
