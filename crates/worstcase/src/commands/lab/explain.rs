//! `worstcase lab explain`: a guest run again under the microscope.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lab::boot::{self, Guest};
use lab::microscope::{self as scope, Seen, WakeUp};
use lab::{kernels::Cache, state::Kind};
use microscope::Account;
use record::{Record, store};
use sys::signal::{Signal, Signals};

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
        let path = place.join(store::RECORD);
        let bytes = files::read(&path, LONGEST_RECORD)?;
        let record = store::load(place)?;
        let guest = self.guest(place)?;
        let wake_ups = self.wake_ups(&record)?;
        check(&guest, &record)?;
        let signals = Signals::take()?;
        let stop = || signals.next().is_some_and(|signal| signal != Signal::User1);
        output::words("one boot for the kernel's symbols, one under the microscope");
        let symbols = scope::symbols(&guest, &stop)?;
        let seen =
            scope::look(&guest, &bytes, &wake_ups, &symbols, &stop).map_err(|failure| failure.error)?;
        self.show(&wake_ups, &seen)?;
        Ok(ExitCode::SUCCESS)
    }

    fn guest(&self, place: &Path) -> Result<Guest> {
        let binary = |architecture| binary::choose(self.guest_binary.as_deref(), architecture);
        match kept::again(place)? {
            Some(boot) => boot.guest(&binary),
            None => ladder_guest(place, &binary),
        }
    }

    fn wake_ups<'a>(&self, record: &'a Record) -> Result<Vec<WakeUp<'a>>> {
        let mut all = scope::worst(record, self.worst.into());
        let load = |wake_up: &WakeUp<'_>| wake_up.scenario.head.planned.load.clone();
        if let Some(unknown) = self.loads.iter().find(|name| !all.iter().any(|one| load(one) == **name)) {
            let message = format!("no wake-up under the load {unknown} stands in the record");
            return Err(Error::new(message, "worstcase report DIR shows its loads"));
        }
        all.retain(|wake_up| self.loads.is_empty() || self.loads.contains(&load(wake_up)));
        if all.is_empty() {
            return Err(Error::new(
                "the record has no wake-ups of timers on the guest's clock",
                "worstcase lab run ... -- bench measures some",
            ));
        }
        Ok(all)
    }

    fn show(&self, wake_ups: &[WakeUp<'_>], seen: &Seen) -> Result<()> {
        let found: Vec<Account> = seen.accounts.iter().flatten().cloned().collect();
        if let Some(path) = &self.folded {
            files::write_whole(path, microscope::folded(&found).as_bytes())?;
        }
        if self.json {
            let text = serde_json::to_string(&found).map_err(|error| Error::new(error, ""))?;
            return output::final_data(&(text + "\n"));
        }
        let style = output::style(Stream::Output);
        let mut texts = Vec::new();
        let pairs: Vec<_> = wake_ups.iter().zip(&seen.accounts).collect();
        for group in pairs.chunk_by(|(a, _), (b, _)| std::ptr::eq(a.scenario, b.scenario)) {
            let accounts: Vec<Account> = group.iter().filter_map(|(_, account)| (*account).clone()).collect();
            let load = group.first().map_or("", |(wake_up, _)| &wake_up.scenario.head.planned.load);
            texts.push(report::microscope::text(load, &accounts, group.len() - accounts.len(), &style));
        }
        output::final_data(&texts.join("\n"))
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

/// No record is longer, in bytes.
const LONGEST_RECORD: u64 = 256 << 20;

/// A guest that is made of something else is another guest, and would take as long to be found out.
fn check(guest: &Guest, record: &Record) -> Result<()> {
    let of_record = record.header.machine.lab.as_ref();
    let Some((emulator, images)) =
        of_record.and_then(|lab| Some((lab.emulator.clone(), lab.images.clone()?)))
    else {
        return Err(Error::new(
            "the record does not say what its guest was made of",
            "only what was measured in a guest of the lab can be run again",
        ));
    };
    let made_of = lab::MadeOf { emulator, images };
    let differences = made_of.differences(&boot::made_of(guest)?);
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        format!("the guest cannot be made again: {}", differences.join("; ")),
        "--guest-binary names the worstcase that measured; or measure anew with this one",
    ))
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
