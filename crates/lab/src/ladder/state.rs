//! What stands in `ladder.json`: what was planned, and how far it is. It holds no path of the machine that it was made
//! on, so that it can be shown to others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use record::time::UtcTime;
use serde::{Deserialize, Serialize};
use units::Seed;

use super::LadderFile;
use crate::kept::Resumable;
use crate::kernels::Kernel;
use crate::{Error, MadeOf};

/// A ladder that was begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The form's version.
    pub schema_version: u32,
    /// The program's version.
    pub tool: String,
    /// When it was begun, by the host's clock: guests have one of their own.
    pub started: UtcTime,
    /// What is run on what.
    pub ladder: LadderFile,
    /// The kernels by their names in the cache, as they were when it was begun.
    pub kernels: BTreeMap<String, KernelTold>,
    /// The emulator with its version, as soon as a guest is to be booted.
    pub emulator: Option<String>,
    /// One a rung and seed, in the order in which they are run: seed after seed, so that a ladder that is cut short has
    /// as many guests of every rung.
    pub cells: Vec<Cell>,
}

/// What tells a kernel, and the guests that boot it, from others of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelTold {
    /// `uname -r`.
    pub release: String,
    /// Where it comes from, in words.
    pub origin: String,
    /// What its guests are made of. None where none has booted yet, or an older version began it.
    #[serde(default)]
    pub made_of: Option<MadeOf>,
}

impl KernelTold {
    /// Of a kernel in the cache, whose guests are not known yet.
    pub fn of(kernel: &Kernel) -> Self {
        Self { release: kernel.release.clone(), origin: kernel.origin.clone(), made_of: None }
    }

    /// Whether it is the same kernel, as far as its release and its origin say.
    pub fn is_of_same_kernel(&self, other: &Self) -> bool {
        (&self.release, &self.origin) == (&other.release, &other.origin)
    }

    /// Takes `now` for what guests with this kernel are made of, if `what` (a ladder, a bisection) has no guest yet;
    /// refuses it where it is not what they were made of. Whether it was taken.
    ///
    /// # Errors
    /// What differs, and what to do.
    pub fn settle(&mut self, now: &MadeOf, has_guests: bool, what: &str) -> Result<bool, Error> {
        match &self.made_of {
            Some(begun) => begun.check(now, what).map(|()| false),
            None if has_guests => Err(Error::new(format!(
                "this {what} was begun by a version that did not keep what its guests were made of"
            ))
            .hint("begin anew in another directory: guests of another QEMU or worstcase must not stand beside them")),
            None => {
                self.made_of = Some(now.clone());
                Ok(true)
            }
        }
    }
}

/// One guest: a rung with a seed, all loads one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The rung's name.
    pub rung: String,
    /// The guest's seed.
    pub seed: Seed,
    /// The record's directory, seen from the ladder's.
    pub record: String,
    /// How far it is.
    pub state: CellState,
}

/// How far a cell is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellState {
    /// It was not run, or its end was not awaited.
    Waiting,
    /// Its record is there. How long it took, in seconds of the host's time.
    Done {
        /// Seconds, one decimal.
        seconds: f64,
    },
    /// What went wrong. It is tried again when the ladder is resumed.
    Failed(String),
}

impl State {
    /// A ladder that has not run yet.
    pub fn new(ladder: LadderFile, kernels: &BTreeMap<String, Kernel>, tool: &str, started: UtcTime) -> Self {
        let told = kernels.iter().map(|(name, kernel)| (name.clone(), KernelTold::of(kernel))).collect();
        let mut state = Self {
            schema_version: Self::VERSION,
            tool: tool.to_owned(),
            started,
            ladder,
            kernels: told,
            emulator: None,
            cells: Vec::new(),
        };
        state.plan_cells();
        state
    }

    /// Makes a cell for each rung and seed; those that are there already keep their states.
    pub fn plan_cells(&mut self) {
        let before = std::mem::take(&mut self.cells);
        let rungs = &self.ladder.rungs;
        let planned = (1..=self.ladder.seeds).flat_map(|seed| rungs.iter().map(move |rung| (rung, seed)));
        let cell = |(rung, seed): (&super::Rung, u32)| Cell {
            rung: rung.name.clone(),
            seed: Seed(u64::from(seed)),
            record: format!("{}/seed-{seed}", rung.name),
            state: CellState::Waiting,
        };
        let kept = |cell: Cell| before.iter().find(|old| old.record == cell.record).cloned().unwrap_or(cell);
        self.cells = planned.map(cell).map(kept).collect();
    }

    /// The record's directory of a cell.
    pub fn place(&self, directory: &Path, cell: usize) -> PathBuf {
        directory.join(&self.cells[cell].record)
    }

    /// The cells that are still to be run.
    pub fn waiting(&self) -> Vec<usize> {
        let waiting = |cell: &(usize, &Cell)| !matches!(cell.1.state, CellState::Done { .. });
        self.cells.iter().enumerate().filter(waiting).map(|(index, _)| index).collect()
    }
}

impl Resumable for State {
    const FILE: &'static str = "ladder.json";
    const VERSION: u32 = 1;
    const WHAT: &'static str = "ladder";
    const COMMAND: &'static str = "`worstcase lab ladder`";

    /// The names of records are paths below the directory, whatever the file says.
    fn check(&self) -> Result<(), Error> {
        self.ladder.check()?;
        let mut own = self.clone();
        own.plan_cells();
        let is_own = |cell: &Cell| own.cells.iter().any(|own| own.record == cell.record);
        match self.cells.iter().all(is_own) {
            true => Ok(()),
            false => Err(Error::new("its cells are not those of its ladder")),
        }
    }
}
