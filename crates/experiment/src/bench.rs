//! What measures blocks: this machine, guests, or a script.

use std::collections::BTreeMap;

use failure::Error;
use record::KernelParameter;

use crate::bisect::step::Step;
use crate::{Arm, Block, Figures, Planned};

/// The figures of blocks of one arm, or why that arm cannot be measured.
pub type Attempt = Result<Vec<Figures>, String>;

/// What the kernel of each arm's guests made of their parameters.
pub type Parameters = BTreeMap<Arm, Vec<KernelParameter>>;

/// Measures blocks.
pub trait Bench {
    /// Measures `blocks`, those of one machine in their order, and gives back the figures of each. None where the user
    /// stopped it.
    ///
    /// # Errors
    /// Where a block cannot be measured to its end.
    fn measure(&mut self, blocks: &[Block]) -> Result<Option<Vec<Figures>>, Error>;

    /// Measures `blocks` of one arm, which may be one that cannot be measured: its kernel does not boot.
    ///
    /// # Errors
    /// What is no property of the arm.
    fn attempt(&mut self, blocks: &[Block]) -> Result<Option<Attempt>, Error> {
        Ok(self.measure(blocks)?.map(Ok))
    }

    /// Hears what a search is going to measure, before it does.
    fn planned(&mut self, _: &Planned) {}

    /// Hears of each comparison of a bisection.
    fn compared(&mut self, _: &Step) {}

    /// What the kernels that measured made of their parameters; empty where a block changes none.
    fn parameters(&self) -> Parameters {
        Parameters::new()
    }
}

/// What a kernel made of the parameter `word`, if one was asked.
pub fn parameter<'a>(parameters: &'a Parameters, word: &str) -> Option<&'a KernelParameter> {
    parameters.values().flatten().find(|parameter| parameter.word == word)
}

/// Why an experiment ends without an answer.
pub(crate) enum Halt {
    /// The bench was stopped.
    Stopped,
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// None where the bench was stopped.
pub(crate) fn ended<A>(result: Result<A, Halt>) -> Result<Option<A>, Error> {
    match result {
        Ok(answer) => Ok(Some(answer)),
        Err(Halt::Stopped) => Ok(None),
        Err(Halt::Failed(error)) => Err(error),
    }
}
