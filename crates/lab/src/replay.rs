//! An experiment as it lies in its directory: a bench that measures nothing, so that the answer of whatever was measured, now
//! or by a former version, can be found again from its records.

use std::path::Path;

use experiment::{Arm, Attempt, Bench, Block, Figures, Parameters};
use record::cost::Cost;
use record::{Record, store};

use crate::state::{Plan, State};
use crate::{Error, kept, measure};

/// The records of an experiment. Where one is missing that it asks for, it was not finished, and there is no answer.
pub struct Replay<'a, P> {
    state: &'a State<P>,
    directory: &'a Path,
    /// The blocks that were asked for and measured, each record once, in the order in which they were asked for.
    pub measured: Vec<Measured>,
    /// Those that were not.
    pub missing: Vec<Missing>,
    parameters: Parameters,
}

/// A block that was measured.
#[derive(Debug)]
pub struct Measured {
    /// Which.
    pub block: Block,
    /// Its directory, seen from the experiment's.
    pub place: String,
    /// What it left.
    pub record: Record,
}

/// A block that was not measured, or not to its end.
#[derive(Debug)]
pub struct Missing {
    /// Which.
    pub block: Block,
    /// Its directory, seen from the experiment's.
    pub place: String,
    /// Why, if it has failed.
    pub failure: Option<String>,
}

impl<'a, P: Plan> Replay<'a, P> {
    /// Of `state`, whose records are in `directory`.
    pub fn of(state: &'a State<P>, directory: &'a Path) -> Self {
        let (measured, missing) = (Vec::new(), Vec::new());
        Self { state, directory, measured, missing, parameters: Parameters::new() }
    }

    /// Reads the records of `blocks` that are there.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub fn read(&mut self, blocks: &[Block]) -> Result<(), Error> {
        blocks.iter().try_for_each(|block| self.read_one(block))
    }

    fn read_one(&mut self, block: &Block) -> Result<(), Error> {
        let place = self.state.plan.place(block);
        let is_known = self.measured.iter().any(|known| known.place == place);
        if is_known || self.missing.iter().any(|known| known.place == place) {
            return Ok(());
        }
        let path = self.directory.join(&place);
        let block = block.clone();
        if !path.join(store::RECORD).is_file() {
            let failure = kept::failure(self.directory, &path);
            self.missing.push(Missing { block, place, failure });
            return Ok(());
        }
        let record = store::load(&path).map_err(|error| Error::new(error.to_string()).hint(error.hint))?;
        // Former versions kept a guest that had measured too little in the place of one that had not.
        if let Some(load) = measure::unfinished(&record, self.state.plan.loads()) {
            let failure = Some(format!("{load} was not measured to its end: remove {}", path.display()));
            self.missing.push(Missing { block, place, failure });
            return Ok(());
        }
        if let Some(lab) = &record.header.machine.lab {
            let parameters = lab.parameters.clone().unwrap_or_default();
            self.parameters.entry(block.arm.clone()).or_insert(parameters);
        }
        let record = self.state.plan.judged(record)?;
        self.measured.push(Measured { block, place, record });
        Ok(())
    }

    /// What operations took in each arm of `blocks`, all its guests as one. Guests that did not measure it are named among the
    /// missing ones.
    ///
    /// # Errors
    /// Where a record cannot be read.
    pub fn costs(&mut self, blocks: &[Block]) -> Result<Vec<(Arm, Cost)>, Error> {
        let mut arms: Vec<(Arm, Vec<Cost>)> = Vec::new();
        for block in blocks {
            let place = self.state.plan.cost_place(block);
            let path = self.directory.join(&place);
            let Some(cost) = record::cost::load(&path) else {
                let failure = kept::failure(self.directory, &path);
                self.missing.push(Missing { block: block.clone(), place, failure });
                continue;
            };
            let cost = cost.map_err(|error| Error::new(error.to_string()).hint(error.hint))?;
            match arms.iter_mut().find(|(arm, _)| *arm == block.arm) {
                Some((_, costs)) => costs.push(cost),
                None => arms.push((block.arm.clone(), vec![cost])),
            }
        }
        Ok(arms.into_iter().filter_map(|(arm, costs)| Some((arm, Cost::of_runs(&costs)?))).collect())
    }

    fn figures(&self, block: &Block) -> Result<Option<Figures>, failure::Error> {
        let place = self.state.plan.place(block);
        let known = self.measured.iter().find(|known| known.place == place);
        known.map(|known| self.state.plan.figures(&known.record)).transpose()
    }
}

impl<P: Plan> Bench for Replay<'_, P> {
    fn measure(&mut self, blocks: &[Block]) -> Result<Option<Vec<Figures>>, failure::Error> {
        self.read(blocks)?;
        blocks.iter().map(|block| self.figures(block)).collect()
    }

    /// An arm of which a guest has failed cannot be measured, as it was said then.
    fn attempt(&mut self, blocks: &[Block]) -> Result<Option<Attempt>, failure::Error> {
        if let Some(figures) = self.measure(blocks)? {
            return Ok(Some(Ok(figures)));
        }
        let of_arm = self.missing.iter().filter(|known| blocks.contains(&known.block));
        Ok(of_arm.filter_map(|known| known.failure.clone()).map(Err).next())
    }

    fn parameters(&self) -> Parameters {
        self.parameters.clone()
    }
}
