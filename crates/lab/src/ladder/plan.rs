//! A ladder's guests, and what they have measured.

use std::path::Path;

use experiment::{Arm, Block, ladder};
use record::{Record, store};
use serde::{Deserialize, Serialize};
use units::Seed;

use super::{Home, LadderFile, Rung};
use crate::boot::Guest;
use crate::kernels::{Kernel, Needed};
use crate::state::{Kind, Plan};
use crate::{Error, kept, measure};

/// What is run on what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LadderPlan {
    /// As a person wrote it.
    pub ladder: LadderFile,
}

/// The guests of a rung, in the order of their seeds.
#[derive(Debug, Default)]
pub struct RungRuns {
    /// The records of those that have measured all loads.
    pub records: Vec<Record>,
    /// The others, with the reason if one has failed.
    pub missing: Vec<(Seed, Option<String>)>,
}

impl LadderPlan {
    /// All its guests.
    pub fn blocks(&self) -> Vec<Block> {
        ladder::blocks(self.ladder.rungs.len(), self.ladder.seeds)
    }

    /// The kernels of all rungs, each once: to be built where `home` has what they are built from.
    ///
    /// # Errors
    /// Where that cannot be read.
    pub fn kernels(&self, home: Option<&Home>) -> Result<Vec<Needed>, Error> {
        let mut all = Vec::new();
        for rung in &self.ladder.rungs {
            let build = home.map(|home| rung.to_build(home)).transpose()?.flatten();
            let needed =
                build.map_or(Needed::Named(rung.kernel.clone()), |build| Needed::Built(Box::new(build)));
            if !all.iter().any(|other: &Needed| other.name() == needed.name()) {
                all.push(needed);
            }
        }
        Ok(all)
    }

    /// What the guests of `rung` left below `directory`.
    ///
    /// # Errors
    /// Where a record cannot be read.
    pub fn runs(&self, rung: &Rung, directory: &Path) -> Result<RungRuns, Error> {
        let mut runs = RungRuns::default();
        let of_rung = |block: &Block| self.rung(&block.arm).is_some_and(|other| other.name == rung.name);
        for Block { seed, .. } in self.blocks().into_iter().filter(of_rung) {
            let place = directory.join(kept::name(&rung.name, seed));
            if !place.join(store::RECORD).is_file() {
                runs.missing.push((seed, kept::failure(directory, &place)));
                continue;
            }
            let record =
                store::load(&place).map_err(|error| Error::new(error.to_string()).hint(error.hint))?;
            // Former versions kept a guest that had measured too little in the place of one that had not.
            match measure::unfinished(&record, &self.ladder.loads) {
                None => runs.records.push(record),
                Some(load) => {
                    let reason = format!("{load} was not measured to its end: remove {}", place.display());
                    runs.missing.push((seed, Some(reason)));
                }
            }
        }
        Ok(runs)
    }

    fn rung(&self, arm: &Arm) -> Option<&Rung> {
        self.ladder.rungs.get(arm.count())
    }

    fn known(&self, arm: &Arm) -> Result<&Rung, Error> {
        self.rung(arm).ok_or_else(|| Error::new("the ladder has no such rung"))
    }
}

impl Plan for LadderPlan {
    const FORMER: (&'static str, u32) = ("ladder.json", 1);

    fn kind(&self) -> Kind {
        Kind::Ladder
    }

    fn check(&self) -> Result<(), Error> {
        self.ladder.check()
    }

    fn name(&self, arm: &Arm) -> String {
        self.rung(arm).map_or_else(|| arm.to_string(), |rung| rung.name.clone())
    }

    fn kernel(&self, arm: &Arm) -> Result<Needed, Error> {
        Ok(Needed::Named(self.known(arm)?.kernel.clone()))
    }

    /// All loads in one boot.
    fn guest(&self, arm: &Arm, seed: Seed, kernel: &Kernel, binary: &Path) -> Result<Guest, Error> {
        let LadderFile { loads, duration, warm_up, .. } = &self.ladder;
        let measured = (*duration + *warm_up).saturating_mul(loads.len() as u64);
        Ok(Guest {
            kernel: kernel.clone(),
            words: self.known(arm)?.all_words(),
            processors: self.ladder.processors,
            memory: self.ladder.memory,
            time: self.ladder.time,
            disk: self.ladder.disk,
            system: None,
            binary: binary.to_path_buf(),
            programs: Vec::new(),
            command: measure::command(loads, *duration, *warm_up, seed)?,
            time_limit: measure::patience(measured),
        })
    }

    fn loads(&self) -> &[String] {
        &self.ladder.loads
    }
}
