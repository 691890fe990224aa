//! What all state directories of a machine share: one process at a time changes something, and one directory at a time has
//! a journal that holds. Two journals would each put back what the other wrote.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{State, boot_id};
use crate::{Error, Result};

/// Where it stands: gone with the boot, as is what it lists.
const PLACE: &str = "/run/worstcase";
/// Where the journal is unless said otherwise: one of a version that knew no claims may be there.
const USUAL: &str = "/var/lib/worstcase/tune";

const CLAIM: &str = "applied";
const LOCK: &str = "lock";

/// No claim is longer, in bytes.
const LONGEST: u64 = 16 << 10;

/// The machine's own directory.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    place: PathBuf,
    usual: PathBuf,
}

/// Which directory has the journal of what holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Claim {
    boot_id: String,
    state: PathBuf,
    /// All of it was put back, and the journal could not be put aside.
    undone: bool,
}

impl Machine {
    /// This machine's; none for users who change nothing of it, and where nothing is kept for the boot alone.
    pub fn own() -> Option<Self> {
        let has_place = Path::new(PLACE).parent().is_some_and(Path::is_dir);
        let is_ours = rustix::process::geteuid().is_root() && has_place;
        is_ours.then(|| Self { place: PLACE.into(), usual: USUAL.into() })
    }

    #[cfg(test)]
    pub fn at(place: &Path) -> Self {
        Self { place: place.to_owned(), usual: place.join("usual") }
    }

    /// The lock; none where none can be had, which must keep nobody from undoing: nothing is begun without a claim.
    pub fn lock(&self, operation: FlockOperation) -> Result<Option<File>> {
        let file = || -> files::Result<File> {
            files::Directory::make_private(&self.place)?;
            files::Directory::open_obeyed(&self.place)?;
            files::open_lock(&self.place.join(LOCK), files::PRIVATE)
        };
        let Ok(file) = file() else { return Ok(None) };
        match flock(&file, operation) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => {
                let reason = "another worstcase changes settings right now, with another state directory";
                Err(Error::new("lock", &self.place, reason, "wait until it is done; ps tells which"))
            }
            Err(errno) => Err(Error::io("lock", &self.place)(errno.into())),
        }
    }

    /// Claims the machine for the journal in `state`.
    ///
    /// # Errors
    /// As for [`Machine::check`], or it cannot be written down.
    pub fn claim(&self, state: &Path) -> Result<()> {
        self.check(state)?;
        self.write(&Claim { boot_id: boot_id(), state: whole(state), undone: false })
    }

    /// Refuses a second journal beside one that holds.
    ///
    /// # Errors
    /// The settings of another directory's journal hold, or that is unknown.
    pub fn check(&self, state: &Path) -> Result<()> {
        let (state, claim) = (whole(state), self.read()?);
        let claimed = claim.as_ref().map(|claim| claim.state.clone());
        for other in [claimed, Some(self.usual.clone())].into_iter().flatten() {
            let is_undone = claim.as_ref().is_some_and(|claim| claim.state == other && claim.undone);
            if other != state && !is_undone && holds(&other)? {
                let reason = format!("settings are applied already, by the journal in {}", other.display());
                let hint = "worstcase tune undo --state, with that directory, takes them back";
                return Err(Error::new("use", &state, reason, hint));
            }
        }
        Ok(())
    }

    /// Gives the machine back: nothing of the journal in `state` holds. It is still there where it is not `aside`.
    pub fn release(&self, state: &Path, is_aside: bool) {
        let Ok(Some(claim)) = self.read() else { return };
        if claim.state == whole(state) {
            let _ = match is_aside {
                true => fs::remove_file(self.place.join(CLAIM)).map_err(|_| ()),
                false => self.write(&Claim { undone: true, ..claim }).map_err(|_| ()),
            };
        }
    }

    /// Whether the journal in `state` was begun in this boot.
    pub fn is_claimed(&self, state: &Path) -> bool {
        self.read().is_ok_and(|claim| claim.is_some_and(|claim| claim.state == whole(state)))
    }

    /// The claim of this boot.
    fn read(&self) -> Result<Option<Claim>> {
        let path = self.place.join(CLAIM);
        let bytes = match files::read(&path, LONGEST) {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(Error::file)?,
        };
        let hint = "it says which directory's settings hold: where none do, remove it";
        let claim: Claim =
            record::json::read(&bytes).map_err(|error| Error::new("read", &path, error, hint))?;
        Ok(Some(claim).filter(|claim| claim.boot_id == boot_id()))
    }

    fn write(&self, claim: &Claim) -> Result<()> {
        let bytes = serde_json::to_vec(claim).unwrap_or_default();
        files::write_whole(&self.place.join(CLAIM), &bytes).map_err(Error::file)
    }
}

/// The directory as others call it too.
fn whole(state: &Path) -> PathBuf {
    state.canonicalize().unwrap_or_else(|_| state.to_owned())
}

/// Whether settings hold by the journal in a directory. One that cannot be read may list some.
fn holds(state: &Path) -> Result<bool> {
    let history = State::at(state).history()?;
    Ok(history.is_some_and(|history| !history.is_of_another_boot(&boot_id())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Begin, Line};

    /// Two directories of one machine.
    struct Two(tempfile::TempDir);

    impl Two {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn place(&self) -> PathBuf {
            self.0.path().join("run")
        }

        fn state(&self, name: &str) -> State {
            State { machine: Some(Machine::at(&self.place())), ..State::at(self.0.path().join(name)) }
        }

        fn begun(&self, name: &str, boot_id: &str) -> Result<State> {
            let state = self.state(name);
            let mut journal = state.begin(&state.lock()?)?;
            journal.promise(&Line::Begin(Begin { boot_id: boot_id.to_owned(), ..Begin::default() }))?;
            Ok(state)
        }
    }

    #[test]
    fn a_second_directory_is_refused_while_the_settings_of_the_first_hold() {
        let two = Two::new();
        let first = two.begun("first", &boot_id()).unwrap();
        let refused = two.begun("second", &boot_id()).err().unwrap().to_string();
        assert!(refused.contains("settings are applied already, by the journal in"), "{refused}");
        assert!(refused.contains("/first"), "{refused}");
        assert!(two.state("second").history().unwrap().is_none(), "nothing was begun");
        first.close(&first.lock().unwrap()).unwrap();
        two.begun("second", &boot_id()).unwrap();
        assert!(two.begun("first", &boot_id()).is_err());
    }

    #[test]
    fn one_process_at_a_time_changes_something_whatever_its_directory() {
        let two = Two::new();
        let lock = two.state("first").lock().unwrap();
        let refused = two.state("second").lock().err().unwrap().to_string();
        assert!(refused.contains("with another state directory"), "{refused}");
        drop(lock);
        two.state("second").lock().unwrap();
    }

    #[test]
    fn what_no_longer_holds_is_in_nobodys_way() {
        let two = Two::new();
        let first = two.begun("first", &boot_id()).unwrap();
        std::fs::remove_dir_all(first.directory()).unwrap();
        two.begun("second", "another boot").unwrap();
        let third = two.begun("third", &boot_id()).unwrap();
        two.state("third").machine.unwrap().release(third.directory(), false);
        two.begun("fourth", &boot_id()).expect("what was undone does not hold, though its journal is there");
    }

    #[test]
    fn a_journal_of_a_version_without_claims_counts_where_journals_usually_are() {
        let two = Two::new();
        let usual = State::at(two.place().join("usual"));
        let mut journal = usual.begin(&usual.lock().unwrap()).unwrap();
        journal.promise(&Line::Begin(Begin { boot_id: boot_id(), ..Begin::default() })).unwrap();
        assert!(two.begun("other", &boot_id()).is_err());
    }

    #[test]
    fn a_damaged_claim_is_no_leave() {
        let two = Two::new();
        two.begun("first", &boot_id()).unwrap();
        std::fs::write(two.place().join(CLAIM), "nothing").unwrap();
        assert!(two.begun("second", &boot_id()).is_err());
    }

    #[test]
    fn a_journal_whose_beginning_is_lost_is_of_this_boot_if_it_was_claimed_in_it() {
        let two = Two::new();
        let first = two.begun("first", &boot_id()).unwrap();
        std::fs::write(first.directory().join("journal"), "damaged\n").unwrap();
        let history = first.history().unwrap().unwrap();
        assert!(first.knows_boot(&history));
        std::fs::remove_file(two.place().join(CLAIM)).unwrap();
        assert!(!first.knows_boot(&history), "as after a reboot");
        assert!(!State::at(first.directory()).knows_boot(&history));
    }
}
