//! `worstcase lab`: the same questions put to kernels in QEMU.

pub(super) mod again;
mod binary;
pub(super) mod bisect;
pub(super) mod choice;
mod explain;
mod kept;
mod kernels;
pub(super) mod ladder;
mod origin;
mod run;
mod sections;
pub mod several;
mod step;

use std::process::ExitCode;

use clap::Subcommand;

use crate::output;
use failure::Result;

/// Warns of kernel parameters that do nothing for the kernel of that release: an experiment may want that.
pub(super) fn warn_of(words: &[String], release: &str) {
    for doubt in lab::parameters::doubts(words, release) {
        output::warning(&format!("kernel parameter {doubt}"));
    }
}

/// Boot kernels in QEMU to measure, compare, bisect and explain them
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    worstcase lab kernels fetch debian --flavour rt            a kernel\n  \
    worstcase lab run --kernel debian-6.1-rt-amd64 -- bench    one guest\n  \
    worstcase lab ladder stock                                 each step's gain")]
pub struct Lab {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Kernels(kernels::Kernels),
    Run(Box<run::Run>),
    Ladder(ladder::Ladder),
    Bisect(Box<bisect::Bisect>),
    Explain(explain::Explain),
    Sections(sections::Sections),
}

impl Lab {
    /// Does what its verb says.
    pub fn run(self) -> Result<ExitCode> {
        match self.verb {
            Verb::Kernels(kernels) => kernels.run(),
            Verb::Run(run) => run.run(),
            Verb::Ladder(ladder) => ladder.run(),
            Verb::Bisect(bisect) => bisect.run(),
            Verb::Explain(explain) => explain.run(),
            Verb::Sections(sections) => sections.run(),
        }
    }
}
