//! `worstcase lab explain`: a guest run again under the microscope.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use microscope::Account;
use sys::signal::Signals;

use super::again::{self, OfLoad, OfTraced};
use super::origin;
use crate::options;
use crate::output::{self, Stream};
use failure::{Error, Result};

/// Show every instruction of a guest's worst wake-ups, by function
///
/// Boots the same guest again, with a QEMU plugin that records every instruction around the worst wake-ups. Shows the causes by
/// function, how long interrupts and preemption were off, and the calls of the worst wake-up. The guest must produce the same
/// record again, to the byte. Needs a guest in instruction time, and QEMU 7.2 to 8.2.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase lab run --kernel debian-6.1-amd64 --out run -- bench --loads idle -D 2s\n  \
    worstcase lab explain run\n  \
    worstcase lab explain my-ladder/none/seed-3 --loads io --folded io.folded\n  \
    worstcase lab explain run --traced       is what bench --explain said true?")]
pub struct Explain {
    /// What `lab run` left, or the directory of one guest of a ladder
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// The wake-ups that `bench --explain` explained: what its trace said beside what the instructions were
    #[arg(long, conflicts_with = "folded")]
    traced: bool,

    /// How many of each load's worst wake-ups
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u16).range(1..=200))]
    worst: u16,

    /// Only these loads
    #[arg(long, value_name = "LOAD", value_delimiter = ',', value_parser = options::load_name)]
    loads: Vec<String>,

    /// The worstcase that ran in the guest [default: this one]
    #[arg(long, value_name = "FILE")]
    guest_binary: Option<PathBuf>,

    /// Write all calls as folded stacks, the input of flame graph tools
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,

    /// Print the accounts as JSON
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub fn run(self) -> Result<ExitCode> {
        if let Some(file) = &self.folded {
            // Before the boots.
            output::check_file(file, &[&self.directory])?;
        }
        let place = origin::place(&self.directory)?;
        let guest = origin::guest(place, self.guest_binary.as_deref())?;
        let signals = Signals::take()?;
        if self.traced {
            let seen = again::compare(place, &guest, self.worst.into(), &self.loads, &signals)?;
            self.show_compared(&seen)?;
            return Ok(ExitCode::SUCCESS);
        }
        self.show(&again::look(place, &guest, self.worst.into(), &self.loads, &signals)?)?;
        Ok(ExitCode::SUCCESS)
    }

    fn show(&self, seen: &[OfLoad]) -> Result<()> {
        let found: Vec<Account> = seen.iter().flat_map(|of_load| of_load.accounts.clone()).collect();
        if let Some(path) = &self.folded {
            output::named_file(path, microscope::folded(&found).as_bytes(), &[&self.directory])?;
        }
        if self.json {
            return as_json(&found);
        }
        output::final_data(&shown(seen))
    }

    fn show_compared(&self, seen: &[OfTraced]) -> Result<()> {
        if self.json {
            return as_json(seen);
        }
        let style = output::style(Stream::Output);
        let text = |one: &OfTraced| {
            report::microscope::compared(&one.load, one.median, &one.comparisons, one.not_found, &style)
        };
        output::final_data(&seen.iter().map(text).collect::<Vec<_>>().join("\n"))
    }
}

fn as_json<T: serde::Serialize>(found: &[T]) -> Result<()> {
    let text = serde_json::to_string(found).map_err(|error| Error::new(error, ""))?;
    output::final_data(&(text + "\n"))
}

/// Causes, account and calls, load by load.
pub fn shown(seen: &[OfLoad]) -> String {
    let style = output::style(Stream::Output);
    let text = |one: &OfLoad| report::microscope::text(&one.load, &one.accounts, one.not_found, &style);
    seen.iter().map(text).collect::<Vec<_>>().join("\n")
}
