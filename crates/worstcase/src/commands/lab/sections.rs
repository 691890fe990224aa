//! `worstcase lab sections`: the longest sections with interrupts or preemption off in the whole of a guest's run.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use lab::microscope::{self as scope, OfRange};
use microscope::Section;
use record::{Record, store};
use serde::Serialize;
use sys::signal::{Signal, Signals};

use super::{again, origin};
use crate::options;
use crate::output::{self, Stream};
use failure::{Error, Result};

/// Show the longest sections with interrupts or preemption off in a guest's run, by function
///
/// Boots the same guest again, with a QEMU plugin that follows every instruction from the first wake-up of each load to the last,
/// not only around the worst. Shows the functions that kept interrupts or preemption off for longest, how long, how often, and
/// what ran meanwhile. The guest must produce the same record again, to the byte. Needs a guest in instruction time, and
/// QEMU 7.2 to 8.2.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase lab run --kernel debian-6.1-rt-amd64 --out run -- bench --loads io -D 2s\n  \
    worstcase lab sections run\n  \
    worstcase lab sections my-ladder/rt/seed-3 --loads io --longest 20")]
pub struct Sections {
    /// What `lab run` left, or the directory of one guest of a ladder
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// How many functions of each kind, for each load
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u16).range(1..=50))]
    longest: u16,

    /// Only these loads
    #[arg(long, value_name = "LOAD", value_delimiter = ',', value_parser = options::load_name)]
    loads: Vec<String>,

    /// The worstcase that ran in the guest [default: this one]
    #[arg(long, value_name = "FILE")]
    guest_binary: Option<PathBuf>,

    /// Print the sections as JSON
    #[arg(long)]
    json: bool,
}

/// As JSON has it.
#[derive(Serialize)]
struct OfLoad<'a> {
    load: &'a str,
    sections: &'a [Section],
}

impl Sections {
    pub fn run(self) -> Result<ExitCode> {
        let place = origin::place(&self.directory)?;
        let guest = origin::guest(place, self.guest_binary.as_deref())?;
        let bytes = again::record_bytes(place)?;
        let record = store::load(place)?;
        again::check(&guest, &record)?;
        let measured = self.measured(&record)?;
        let ranges: Vec<_> = measured.iter().map(|(_, range)| *range).collect();
        let signals = Signals::take()?;
        let stop = || signals.next().is_some_and(|signal| signal != Signal::User1);
        output::words("boot 1 of 3: the kernel's symbols");
        let symbols = scope::symbols(&guest, &stop)?;
        output::words(
            "boots 2 and 3 of 3: the same run under the microscope, each up to twice as long as it took",
        );
        let found = scope::sections(&guest, &bytes, &ranges, self.longest.into(), &symbols, &stop);
        self.show(&measured, &found.map_err(|failure| failure.error)?)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The loads that are asked for, and when they were measured.
    fn measured<'a>(&self, record: &'a Record) -> Result<Vec<(&'a str, (u64, u64))>> {
        let load =
            |(scenario, range): (&'a record::Scenario, _)| (scenario.head.planned.load.as_str(), range);
        let mut all: Vec<_> = scope::measured(record).into_iter().map(load).collect();
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        again::check_loads(&self.loads, &names)?;
        all.retain(|(name, _)| self.loads.is_empty() || self.loads.iter().any(|wanted| wanted == name));
        if all.is_empty() {
            return Err(again::no_wake_ups());
        }
        Ok(all)
    }

    fn show(&self, measured: &[(&str, (u64, u64))], found: &[OfRange]) -> Result<()> {
        let of_loads = measured.iter().zip(found);
        if self.json {
            let all = of_loads.map(|((load, _), of)| OfLoad { load, sections: &of.sections });
            let text =
                serde_json::to_string(&all.collect::<Vec<_>>()).map_err(|error| Error::new(error, ""))?;
            return output::final_data(&(text + "\n"));
        }
        let style = output::style(Stream::Output);
        let text: String = of_loads
            .map(|((load, _), of)| report::sections::text(load, &of.sections, of.left_out, &style) + "\n")
            .collect();
        output::final_data(&(text + &report::sections::words(&style)))
    }
}
