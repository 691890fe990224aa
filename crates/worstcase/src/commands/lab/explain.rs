//! `worstcase lab explain`: a guest run again under the microscope.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lab::boot::Guest;
use lab::{kernels::Cache, state::Kind};
use microscope::Account;
use record::store;
use sys::signal::Signals;

use super::again::{self, OfLoad};
use super::{binary, kept, ladder};
use crate::output::{self, Stream};
use failure::{Error, Result};

/// Show every instruction of a guest's worst wake-ups, by function
///
/// Boots the same guest again, with a QEMU plugin that records every instruction around the worst wake-ups. Shows the causes by
/// function, how long interrupts and preemption were off, and the calls of the worst wake-up. The guest must produce the same
/// record again, to the byte. Needs an amd64 guest in instruction time, and QEMU 7.2 to 8.2.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase lab run --kernel debian-6.1-amd64 --out run -- bench --loads idle -D 2s\n  \
    worstcase lab explain run\n  \
    worstcase lab explain my-ladder/none/seed-3 --loads io --folded io.folded")]
pub struct Explain {
    /// What `lab run` left, or the directory of one guest of a ladder
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// How many of each load's worst wake-ups
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u16).range(1..=200))]
    worst: u16,

    /// Only these loads
    #[arg(long, value_name = "LOAD", value_delimiter = ',')]
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
        let place = self.directory.as_path();
        let place = if place.ends_with(store::RECORD) { place.parent().unwrap_or(place) } else { place };
        refuse_of_others(place)?;
        let guest = self.guest(place)?;
        let signals = Signals::take()?;
        self.show(&again::look(place, &guest, self.worst.into(), &self.loads, &signals)?)?;
        Ok(ExitCode::SUCCESS)
    }

    fn guest(&self, place: &Path) -> Result<Guest> {
        let binary = |architecture| binary::choose(self.guest_binary.as_deref(), architecture);
        match kept::again(place)? {
            Some(boot) => boot.guest(&binary),
            None => ladder_guest(place, &binary),
        }
    }

    fn show(&self, seen: &[OfLoad]) -> Result<()> {
        let found: Vec<Account> = seen.iter().flat_map(|of_load| of_load.accounts.clone()).collect();
        if let Some(path) = &self.folded {
            files::write_whole(path, microscope::folded(&found).as_bytes())?;
        }
        if self.json {
            let text = serde_json::to_string(&found).map_err(|error| Error::new(error, ""))?;
            return output::final_data(&(text + "\n"));
        }
        output::final_data(&shown(seen))
    }
}

/// What stands in it is booted: kernel, programs and files of this machine that it names. So nobody else may have written it.
fn refuse_of_others(place: &Path) -> Result<()> {
    match files::Directory::open_obeyed(place) {
        Err(files::Error { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(Error::new(
                format!("boot again what {} names: {source}", place.display()),
                "copy it into a directory of your own, and read its lab.json first",
            ))
        }
        _ => Ok(()),
    }
}

/// Causes, account and calls, load by load.
pub fn shown(seen: &[OfLoad]) -> String {
    let style = output::style(Stream::Output);
    let text = |one: &OfLoad| report::microscope::text(&one.load, &one.accounts, one.not_found, &style);
    seen.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// A guest of the ladder above `place`.
fn ladder_guest(
    place: &Path,
    binary: &dyn Fn(lab::kernels::Architecture) -> Result<PathBuf>,
) -> Result<Guest> {
    let whole = std::path::absolute(place).unwrap_or_else(|_| place.to_path_buf());
    let unknown = || {
        Error::new(
            format!("{}: it is not known which guest left this", place.display()),
            "name a directory that `worstcase lab run` left, or LADDER/RUNG/seed-N",
        )
    };
    let home = whole.ancestors().nth(2).ok_or_else(unknown)?;
    if lab::state::kind(home) != Some(Kind::Ladder) {
        return Err(unknown());
    }
    refuse_of_others(home)?;
    let below = whole.strip_prefix(home).map_err(|_| unknown())?;
    ladder::guest_of(home, below, &Cache::of_user()?, binary)?.ok_or_else(unknown)
}
