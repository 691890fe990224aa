//! What stands in `ladder.json`: what was planned, and how far it is. It holds no path of the machine that it was made
//! on, so that it can be shown to others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use record::store;
use record::time::UtcTime;
use serde::{Deserialize, Serialize};
use units::Seed;

use super::LadderFile;
use crate::Error;
use crate::kernels::Kernel;

/// The file's name.
pub const FILE: &str = "ladder.json";
/// The version of its form that this program writes.
const VERSION: u32 = 1;

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
    /// The emulator with its version, as soon as a guest ran.
    pub emulator: Option<String>,
    /// One a rung and seed, in the order in which they are run: seed after seed, so that a ladder that is cut short has
    /// as many guests of every rung.
    pub cells: Vec<Cell>,
}

/// What tells a kernel from another of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelTold {
    /// `uname -r`.
    pub release: String,
    /// Where it comes from, in words.
    pub origin: String,
}

impl KernelTold {
    /// Of a kernel in the cache.
    pub fn of(kernel: &Kernel) -> Self {
        Self { release: kernel.release.clone(), origin: kernel.origin.clone() }
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
            schema_version: VERSION,
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

    /// The ladder that was begun in `directory`.
    ///
    /// # Errors
    /// Where there is none, or none that this program can go on with.
    pub fn load(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(FILE);
        let hint = "give the directory that `worstcase lab ladder` made";
        let failed = |reason: String| Error::new(format!("read {}: {reason}", path.display())).hint(hint);
        let text = std::fs::read(&path).map_err(|error| failed(error.to_string()))?;
        let state: Self =
            serde_json::from_slice(&text).map_err(|error| failed(format!("it is no ladder: {error}")))?;
        if state.schema_version != VERSION {
            return Err(failed(format!("its form has version {}, not {VERSION}", state.schema_version)));
        }
        state.ladder.check()?;
        // The names of records are paths below the directory, whatever the file says.
        let mut own = state.clone();
        own.plan_cells();
        let strange = state.cells.iter().any(|cell| !own.cells.iter().any(|own| own.record == cell.record));
        if strange { Err(failed("its cells are not those of its ladder".into())) } else { Ok(state) }
    }

    /// Writes it, whole or not at all.
    ///
    /// # Errors
    /// Where there is no room, or it may not be written there.
    pub fn save(&self, directory: &Path) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(self).map_err(|error| Error::new(error.to_string()))?;
        store::write_whole(&directory.join(FILE), &text)
            .map_err(|error| Error::new(error.to_string()).hint("make room; --resume goes on from here"))
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
