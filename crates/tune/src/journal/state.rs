//! The state directory: one journal at a time, one process at a time.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::history::{History, Taken};
use super::line::{Line, read, written};
use super::machine::Machine;
use crate::plan::Relied;
use crate::{Error, Result};

/// The journal of what holds.
const JOURNAL: &str = "journal";
/// That of what was undone last.
const LAST: &str = "last-journal";
const LOCK: &str = "lock";
/// How what was applied last ended, where it ended by itself.
const WORDS: &str = "last-words";

/// No file here is longer, in bytes; a setting takes some 300.
const LONGEST: u64 = 256 << 20;

/// Where the journal is.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) directory: PathBuf,
    pub(super) machine: Option<Machine>,
}

/// Held by the one process that changes something. The kernel gives it back when the process ends.
#[derive(Debug)]
pub struct Lock {
    _files: [Option<File>; 2],
}

/// What a journal is written to.
pub trait Store {
    /// Adds bytes at the end.
    ///
    /// # Errors
    /// What the system answered.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns when they are on the disk.
    ///
    /// # Errors
    /// What the system answered.
    fn sync(&mut self) -> io::Result<()>;
}

impl Store for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// A journal that is being written.
pub struct Journal {
    store: Box<dyn Store>,
    path: PathBuf,
    steps: usize,
}

impl Journal {
    /// One that goes into `store`; `path` is its name in errors.
    pub fn new(store: Box<dyn Store>, path: &Path) -> Self {
        Self { store, path: path.to_owned(), steps: 0 }
    }

    /// Adds a line and returns when it is on the disk: before something is changed.
    ///
    /// # Errors
    /// [`Error`] where it cannot be written: then nothing may be changed.
    pub fn promise(&mut self, line: &Line) -> Result<()> {
        self.tell(line)?;
        self.store.sync().map_err(Error::io("write to the disk", &self.path))
    }

    /// Says on the disk what is about to be done; gives back the number of the step.
    ///
    /// # Errors
    /// As for [`Journal::promise`].
    pub(crate) fn intend(&mut self, step: &Taken) -> Result<usize> {
        let number = self.next();
        let Taken { rules, target, old, new, .. } = step.clone();
        self.promise(&Line::Intend { step: number, rules, target, old, new })?;
        Ok(number)
    }

    /// Says what was done already, and returns when it is on the disk.
    ///
    /// # Errors
    /// As for [`Journal::promise`].
    pub(crate) fn add(&mut self, done: &[Taken]) -> Result<()> {
        for Taken { rules, target, old, new, outcome } in done.iter().cloned() {
            let step = self.next();
            self.tell(&Line::Intend { step, rules, target, old, new })?;
            if let Some(outcome) = outcome {
                self.tell(&Line::Done { step, outcome })?;
            }
        }
        self.store.sync().map_err(Error::io("write to the disk", &self.path))
    }

    /// Says what the settings that follow rest on.
    ///
    /// # Errors
    /// [`Error`] where it cannot be written.
    pub fn rely(&mut self, all: &[Relied]) -> Result<()> {
        for Relied { rules, target, value } in all.iter().cloned() {
            self.tell(&Line::Relied { rules, target, value })?;
        }
        Ok(())
    }

    /// Adds a line. A machine that loses power before it is on the disk loses what it lists too.
    ///
    /// # Errors
    /// [`Error`] where it cannot be written.
    pub fn tell(&mut self, line: &Line) -> Result<()> {
        self.store.append(written(line).as_bytes()).map_err(Error::io("write", &self.path))
    }

    /// The number of the next step.
    pub(crate) fn next(&mut self) -> usize {
        self.steps += 1;
        self.steps - 1
    }
}

impl State {
    /// The directory, which need not exist.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), machine: None }
    }

    /// The same, one of several that change the running machine: no two at a time.
    pub fn of_machine(directory: impl Into<PathBuf>) -> Self {
        Self { machine: Machine::own(), ..Self::at(directory) }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes the directory, and becomes the one process that changes something.
    ///
    /// # Errors
    /// [`Error`] where it cannot be made, where others could write into it, and where another process holds it.
    pub fn lock(&self) -> Result<Lock> {
        self.locked(FlockOperation::NonBlockingLockExclusive)
    }

    /// As [`State::lock`], after the process that holds it.
    ///
    /// # Errors
    /// As for [`State::lock`].
    pub fn wait_for_lock(&self) -> Result<Lock> {
        self.locked(FlockOperation::LockExclusive)
    }

    /// Whether a process changes something right now. Changes nothing itself.
    pub fn is_busy(&self) -> bool {
        let file = files::open(&self.directory.join(LOCK));
        file.is_ok_and(|file| {
            flock(&file, FlockOperation::NonBlockingLockShared).is_err_and(|errno| errno == Errno::WOULDBLOCK)
        })
    }

    fn locked(&self, operation: FlockOperation) -> Result<Lock> {
        self.make()?;
        let path = self.directory.join(LOCK);
        let file = self.lock_file(&path)?;
        flock(&file, operation).map_err(|errno| match errno {
            Errno::WOULDBLOCK => {
                let reason = "another worstcase changes settings right now";
                Error::new("lock", &self.directory, reason, "wait until it is done; ps tells which")
            }
            errno => Error::io("lock", &path)(errno.into()),
        })?;
        let machine = self.machine.as_ref().map(|machine| machine.lock(operation)).transpose()?;
        Ok(Lock { _files: [Some(file), machine.flatten()] })
    }

    /// What is locked: a file that was made once is only read, so that a disk that was mounted read-only since can be
    /// locked too.
    fn lock_file(&self, path: &Path) -> Result<File> {
        match files::open(path) {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => {
                files::open_lock(path, files::PRIVATE).map_err(Error::file)
            }
            opened => opened.map_err(Error::file),
        }
    }

    fn make(&self) -> Result<()> {
        let path = &self.directory;
        files::Directory::make_private(path).map_err(Error::file)?;
        let kind = fs::symlink_metadata(path).map_err(Error::io("look at", path))?;
        let own = rustix::process::geteuid().as_raw();
        if !kind.is_dir() || kind.uid() != own || kind.mode() & 0o077 != 0 {
            let reason =
                "others could write into it, or it is not yours: it must be a directory of mode 0700";
            return Err(Error::new("use", path, reason, "a directory that is missing is made as it must be"));
        }
        // Nor may others put another one in its place.
        let obeyed = files::Directory::open_obeyed(path);
        obeyed.map(drop).map_err(|error| {
            let hint = "choose a directory whose path nobody else may change";
            Error { hint, ..Error::file(error) }
        })
    }

    /// What the journal tells; none where nothing is applied.
    ///
    /// # Errors
    /// [`Error`] where it cannot be read.
    pub fn history(&self) -> Result<Option<History>> {
        let path = self.directory.join(JOURNAL);
        match files::read(&path, LONGEST) {
            Ok(text) => Ok(Some(History::of(read(&text)))),
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error { hint: "run it as the one who applied it: root", ..Error::file(error) }),
        }
    }

    /// Whether it is known of which boot a journal is: by its first line, or because it was begun in this one. Whatever it
    /// lists is nobody's business in another.
    pub fn knows_boot(&self, history: &History) -> bool {
        let is_claimed = || self.machine.as_ref().is_some_and(|machine| machine.is_claimed(&self.directory));
        history.begin.is_some() || is_claimed()
    }

    /// Refuses to plan beside settings of this machine whose journal is in another directory.
    ///
    /// # Errors
    /// [`Error`] where there are some.
    pub fn check_others(&self) -> Result<()> {
        self.machine.as_ref().map_or(Ok(()), |machine| machine.check(&self.directory))
    }

    /// Begins a journal. The directory knows of it when this returns.
    ///
    /// # Errors
    /// [`Error`] where there is one, here or where else settings of this machine are kept, or none can be made.
    pub fn begin(&self, _lock: &Lock) -> Result<Journal> {
        if let Some(machine) = &self.machine {
            machine.claim(&self.directory)?;
        }
        let path = self.directory.join(JOURNAL);
        let file = files::create_new(&path, files::PRIVATE).map_err(Error::file)?;
        let _ = fs::remove_file(self.directory.join(WORDS));
        self.sync()?;
        Ok(Journal::new(Box::new(file), &path))
    }

    /// Goes on with the journal that is there, after `history`; a line that was cut off is cut away.
    ///
    /// # Errors
    /// [`Error`] where it cannot be opened.
    pub fn resume(&self, _lock: &Lock, history: &History) -> Result<Journal> {
        let path = self.directory.join(JOURNAL);
        let file = files::append(&path).map_err(Error::file)?;
        if history.torn {
            file.set_len(history.whole).map_err(Error::io("write", &path))?;
        }
        Ok(Journal { steps: history.steps.len(), ..Journal::new(Box::new(file), &path) })
    }

    /// Puts the journal aside: nothing of it holds any more.
    ///
    /// # Errors
    /// [`Error`] where it cannot be moved.
    pub fn close(&self, _lock: &Lock) -> Result<()> {
        let path = self.directory.join(JOURNAL);
        let moved = fs::rename(&path, self.directory.join(LAST));
        if let Some(machine) = &self.machine {
            machine.release(&self.directory, moved.is_ok());
        }
        moved.map_err(Error::io("rename", &path))?;
        self.sync()
    }

    /// Leaves words about how it ended where nobody was there to read them.
    pub(crate) fn leave_words(&self, words: &str) {
        let _ = files::write_whole(&self.directory.join(WORDS), words.as_bytes());
    }

    /// How it ended, where nobody was there to read it.
    pub fn last_words(&self) -> Option<String> {
        files::read_text(&self.directory.join(WORDS), LONGEST).ok().filter(|words| !words.is_empty())
    }

    fn sync(&self) -> Result<()> {
        files::Directory::open(&self.directory).and_then(|directory| directory.sync()).map_err(Error::file)
    }
}
