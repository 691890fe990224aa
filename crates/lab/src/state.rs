//! What stands in the file of an experiment: what was asked, and what its guests are made of. It holds no path of the
//! machine that it was made on, so that it can be shown to others. Which guests have run is seen from their records.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use experiment::{Arm, Block, Figures};
use record::time::UtcTime;
use record::{LabImages, Record};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use units::Seed;

use crate::boot::Guest;
use crate::kernels::{Kernel, Needed};
use crate::{Error, MadeOf, kept, measure};

/// The file's name.
pub const FILE: &str = "experiment.json";
/// The version of its form that this program writes.
const VERSION: u32 = 3;
/// No such file is longer, in bytes.
const LONGEST: u64 = 64 << 20;

/// A sort of experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Settings, each by itself.
    Trial,
    /// A set of settings that suffices.
    Search,
    /// The change that moved the tail.
    Bisection,
    /// Kernels and their parameters, each against the one before.
    Ladder,
}

impl Kind {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trial => "trial",
            Self::Search => "search",
            Self::Bisection => "bisection",
            Self::Ladder => "ladder",
        }
    }

    /// The command that begins one.
    pub fn command(self) -> &'static str {
        match self {
            Self::Trial => "worstcase tune trial",
            Self::Search => "worstcase tune search",
            Self::Bisection => "worstcase lab bisect",
            Self::Ladder => "worstcase lab ladder",
        }
    }
}

/// What an experiment measures: what is its own in the file.
pub trait Plan: Serialize + DeserializeOwned {
    /// The file's name and the form's version before all experiments had one file; those are still read.
    const FORMER: (&'static str, u32);

    /// Of which sort it is.
    fn kind(&self) -> Kind;

    /// The kernel of its guests, where files of former versions had it among what was asked.
    fn former_kernel(&mut self) -> Option<(String, KnownKernel)> {
        None
    }

    /// Refuses what cannot be answered.
    ///
    /// # Errors
    /// The first thing that makes no sense.
    fn check(&self) -> Result<(), Error>;

    /// The directory that records of an arm lie in.
    fn name(&self, arm: &Arm) -> String;

    /// The directory of a block's record, seen from the experiment's. What one guest measures is one record, whatever it is
    /// measured for.
    fn place(&self, block: &Block) -> String {
        kept::name(&self.name(&block.arm), block.seed)
    }

    /// The kernel of an arm.
    ///
    /// # Errors
    /// Where what it is built from cannot be read.
    fn kernel(&self, arm: &Arm) -> Result<Needed, Error>;

    /// One guest of an arm.
    ///
    /// # Errors
    /// What cannot be tried in guests.
    fn guest(&self, arm: &Arm, seed: Seed, kernel: &Kernel, binary: &Path) -> Result<Guest, Error>;

    /// The directory of what operations take in a block's arm, seen from the experiment's.
    fn cost_place(&self, block: &Block) -> String {
        kept::cost_name(&self.name(&block.arm), block.seed)
    }

    /// A guest of an arm that measures what operations take: as the one that measures latencies, but for its command.
    ///
    /// # Errors
    /// What cannot be tried in guests.
    fn cost_guest(&self, arm: &Arm, seed: Seed, kernel: &Kernel, binary: &Path) -> Result<Guest, Error> {
        let guest = self.guest(arm, seed, kernel, binary)?;
        let (command, time_limit) = (measure::cost_command(seed), measure::COST_PATIENCE);
        Ok(Guest { command, time_limit, ..guest })
    }

    /// The loads that each guest measures.
    fn loads(&self) -> &[String];

    /// What of a block's record is judged.
    ///
    /// # Errors
    /// Where it does not have that.
    fn judged(&self, record: Record) -> Result<Record, failure::Error> {
        Ok(record)
    }

    /// What a guest of one load came to.
    ///
    /// # Errors
    /// Where it did not measure as it was planned.
    fn figures(&self, record: &Record) -> Result<Figures, failure::Error> {
        Figures::of(record)
    }
}

/// An experiment that was begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "P: serde::de::DeserializeOwned"))]
pub struct State<P> {
    /// The form's version.
    #[serde(alias = "schema-version")]
    pub schema_version: u32,
    /// The sort; none in files of former versions.
    pub kind: Option<Kind>,
    /// The program's version.
    pub tool: String,
    /// When it was begun, by the host's clock: guests have one of their own.
    pub started: UtcTime,
    /// The kernels of its guests by their names in the cache, as they were when they were first needed.
    #[serde(default)]
    pub kernels: BTreeMap<String, KnownKernel>,
    /// What is asked.
    #[serde(flatten, deserialize_with = "record::json::flattened")]
    pub plan: P,
}

/// What tells a kernel, and the guests that boot it, from others of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownKernel {
    /// `uname -r`.
    pub release: String,
    /// Where it comes from, in words.
    pub origin: String,
    /// What its guests are made of. None where none has booted yet, or an older version began it.
    #[serde(default)]
    pub made_of: Option<MadeOf>,
}

impl KnownKernel {
    /// Of a kernel whose guests are not known yet.
    pub fn of(kernel: &Kernel) -> Self {
        Self { release: kernel.release.clone(), origin: kernel.origin.clone(), made_of: None }
    }
}

/// What is read of a file of any version.
#[derive(Deserialize)]
struct Head {
    #[serde(alias = "schema-version")]
    schema_version: u32,
    kind: Option<Kind>,
    tool: Option<String>,
}

/// Of which sort the experiment in `directory` is; none where none was begun there, or its file cannot be read. A file of a former version that holds
/// trials and searches alike is called a trial.
pub fn kind(directory: &Path) -> Option<Kind> {
    const FORMER: [(&str, Kind); 3] =
        [("trial.json", Kind::Trial), ("bisect.json", Kind::Bisection), ("ladder.json", Kind::Ladder)];
    let head = || record::json::read::<Head>(&files::read(&directory.join(FILE), LONGEST).ok()?).ok();
    let former = || FORMER.iter().find(|(name, _)| directory.join(name).is_file()).map(|(_, kind)| *kind);
    head().and_then(|head| head.kind).or_else(former)
}

impl<P: Plan> State<P> {
    /// An experiment that has not run yet.
    pub fn new(plan: P, tool: &str, started: UtcTime) -> Self {
        let (schema_version, kind) = (VERSION, Some(plan.kind()));
        Self { schema_version, kind, tool: tool.to_owned(), started, kernels: BTreeMap::new(), plan }
    }

    /// Begins it in `directory`, which is made; one that holds something is refused.
    ///
    /// # Errors
    /// A plan that makes no sense; where the directory cannot be made or written to.
    pub fn begin(&self, directory: &Path) -> Result<(), Error> {
        self.plan.check()?;
        kept::begin(directory, self.plan.kind().name())?;
        self.save(directory)
    }

    /// As [`State::load`], to go on with it: what it says is done, and its shell command is run as a load. So nobody else
    /// may have written it.
    ///
    /// # Errors
    /// As for [`State::load`], and where the directory is another user's or others may write there.
    pub fn resume(directory: &Path, kind: Kind) -> Result<Self, Error> {
        match files::Directory::open_obeyed(directory) {
            Err(files::Error { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
                Err(Error::new(format!("go on with {}: {source}", directory.display()))
                    .hint("chmod go-w, or begin anew in a directory of your own"))
            }
            _ => Self::load(directory, kind),
        }
    }

    /// The one of that sort that was begun in `directory`, by this version or one before.
    ///
    /// # Errors
    /// Where there is none, or none that this program can go on with.
    pub fn load(directory: &Path, kind: Kind) -> Result<Self, Error> {
        let own = (directory.join(FILE), VERSION);
        let former = (directory.join(P::FORMER.0), P::FORMER.1);
        let (path, version) = if !own.0.is_file() && former.0.is_file() { former } else { own };
        let failed = |reason: String| {
            Error::new(format!("read {}: {reason}", path.display()))
                .hint(format!("give the directory that `{}` made", kind.command()))
        };
        let is_none = |error| failed(format!("it is no {}: {error}", kind.name()));
        let bytes = files::read(&path, LONGEST).map_err(|error| failed(error.source.to_string()))?;
        let head: Head = record::json::read(&bytes).map_err(is_none)?;
        if head.schema_version != version {
            let tool =
                head.tool.map_or("another version of worstcase".into(), |tool| format!("worstcase {tool}"));
            let hint =
                format!("{tool} began it: finish it with that one, or begin anew (`{}`)", kind.command());
            return Err(
                failed(format!("its form has version {}, not {version}", head.schema_version)).hint(hint)
            );
        }
        let other = |found: Kind| {
            failed(format!("it is a {}, no {}", found.name(), kind.name()))
                .hint(format!("`{} --resume` goes on with it", found.command()))
        };
        if let Some(found) = head.kind.filter(|found| *found != kind) {
            return Err(other(found));
        }
        let mut state: Self = record::json::read(&bytes).map_err(is_none)?;
        state.kernels.extend(state.plan.former_kernel());
        if state.plan.kind() != kind {
            return Err(other(state.plan.kind()));
        }
        state.plan.check().map_err(|Error { message, hint }| {
            let refused = failed(message);
            Error { hint: hint.or(refused.hint), message: refused.message }
        })?;
        Ok(Self { schema_version: VERSION, kind: Some(kind), ..state })
    }

    /// Writes it, whole or not at all.
    ///
    /// # Errors
    /// Where there is no room, or it may not be written there.
    pub fn save(&self, directory: &Path) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(self).map_err(|error| Error::new(error.to_string()))?;
        kept::write(&directory.join(FILE), &text)
    }

    /// Takes `now` for what guests with `kernel` are made of, if the experiment has none of them yet. Refuses two kernels of
    /// one name, two emulators and two worstcases: their figures must not stand in one experiment. Whether it was taken.
    ///
    /// # Errors
    /// What differs, and what to do.
    pub(crate) fn settle(&mut self, kernel: &Kernel, now: &MadeOf, has_guests: bool) -> Result<bool, Error> {
        let what = self.plan.kind().name();
        for begun in self.kernels.values().filter_map(|known| known.made_of.as_ref()) {
            let images = LabImages { binary: begun.images.binary.clone(), ..now.images.clone() };
            MadeOf { emulator: begun.emulator.clone(), images }.check(now, what)?;
        }
        let fresh = KnownKernel::of(kernel);
        let known = self.kernels.entry(kernel.name.clone()).or_insert_with(|| fresh.clone());
        match &known.made_of {
            Some(begun) => begun.check(now, what)?,
            None if has_guests => {
                return Err(Error::new(format!(
                    "this {what} was begun by a version that did not keep what its guests were made of"
                ))
                .hint(format!(
                    "finish it with worstcase {}, or begin anew in another directory: guests of another QEMU or \
                     worstcase must not stand beside them",
                    self.tool
                )));
            }
            None => {}
        }
        if (&known.release, &known.origin) != (&fresh.release, &fresh.origin) {
            return Err(Error::new(format!("{} is not the kernel that was begun with", kernel.name))
                .hint("begin anew in another directory"));
        }
        let is_new = known.made_of.is_none();
        known.made_of.get_or_insert_with(|| now.clone());
        Ok(is_new)
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
