//! A ladder's guests, and what they have measured.

use std::path::Path;

use experiment::{Arm, Block, ladder};
use serde::{Deserialize, Serialize};
use units::Seed;

use super::{Home, LadderFile, Rung};
use crate::boot::Guest;
use crate::kernels::{Kernel, Needed};
use crate::state::{Kind, Plan};
use crate::{Error, measure, parameters};

/// Operations on one CPU, and the mean of all: they share one error.
const COMPARISONS: usize = 40;

/// What is run on what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LadderPlan {
    /// As a person wrote it.
    pub ladder: LadderFile,
}

impl LadderPlan {
    /// All guests that measure latencies.
    pub fn blocks(&self) -> Vec<Block> {
        if self.ladder.loads.is_empty() {
            return Vec::new();
        }
        ladder::blocks(self.ladder.rungs.len(), self.ladder.seeds)
    }

    /// For each rung the one that it is compared with, where the file says so.
    pub fn bases(&self) -> Vec<Option<usize>> {
        self.ladder.bases()
    }

    /// All guests that measure what operations take: of each rung at least as many as it takes to compare so many operations.
    pub fn cost_blocks(&self) -> Vec<Block> {
        let seeds = self.ladder.seeds.max(statistics::runs_needed(COMPARISONS) as u32);
        if self.ladder.cost { ladder::blocks(self.ladder.rungs.len(), seeds) } else { Vec::new() }
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

    /// The rung that an arm is.
    pub fn rung(&self, arm: &Arm) -> Option<&Rung> {
        self.ladder.rungs.get(arm.count())
    }

    fn words(&self, rung: &Rung, seed: Seed) -> Vec<String> {
        let drawn = self.ladder.draw_parameter.then(|| parameters::drawn(&rung.name, seed));
        rung.all_words().into_iter().chain(drawn).collect()
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
            under: None,
            words: self.words(self.known(arm)?, seed),
            processors: self.ladder.processors,
            threads_per_core: 1,
            cpu_model: self.ladder.cpu_model.clone(),
            memory: self.ladder.memory,
            time: self.ladder.time,
            devices: Vec::new(),
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
