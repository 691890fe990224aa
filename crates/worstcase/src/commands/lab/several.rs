//! What boots several guests: its options, its progress, its end before the end.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use experiment::bisect::Step;
use experiment::{Arm, Block, FIRST_SEED, Planned};
use lab::bench::{Guests, Means, Observer};
use lab::boot::{Guest, check_watched};
use lab::kept;
use lab::kernels::{Architecture, Cache, Kernel, Needed};
use lab::several::Qemu;
use lab::state::{Kind, Plan, State};
use record::{LabTime, store};
use sys::signal::{Signal, Signals};

use super::{again, binary};
use crate::output::{self, Stream};
use failure::Result;

/// How many at once, and what runs in them.
#[derive(Args)]
pub struct Several {
    /// How many guests run side by side [default: one a core in instruction time, one in wall time]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: Option<u32>,

    /// The worstcase that runs in the guests [default: this one; for another architecture what `cargo xtask dist` made]
    #[arg(long, value_name = "FILE")]
    guest_binary: Option<PathBuf>,
}

impl Several {
    /// How many run side by side. In wall time they would disturb each other, so it takes the user's word.
    fn jobs(&self, time: LabTime) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        match (self.jobs, time) {
            (Some(jobs), _) => jobs as usize,
            (None, LabTime::Instructions) => cores(),
            (None, LabTime::Wall) => 1,
        }
    }

    /// What `run` makes of the guests of `state`, which QEMU boots.
    pub fn with_guests<P: Plan, A>(
        &self,
        state: &mut State<P>,
        directory: &Path,
        time: LabTime,
        kernels: &mut dyn FnMut(&Needed) -> std::result::Result<Kernel, lab::Error>,
        observer: &mut dyn Observer,
        run: impl FnOnce(&mut Guests<'_, P>) -> A,
    ) -> A {
        let binary = |kernel: &Kernel| Ok(self.binary(kernel.architecture)?);
        let means = Means { booter: &Qemu, kernels, binary: &binary, jobs: self.jobs(time), observer };
        run(&mut Guests::of(state, directory, means))
    }

    /// Runs the guest of each arm that measured with the first seed again under the microscope, and prints the heaviest causes of
    /// their `worst` wake-ups.
    pub fn show_tails<P: Plan>(
        &self,
        state: &State<P>,
        directory: &Path,
        arms: &[(String, Arm)],
        worst: usize,
    ) -> Result<()> {
        let (signals, cache) = (Signals::take()?, Cache::of_user()?);
        let mut tails = Vec::new();
        for (name, arm) in arms {
            let block = Block::of(arm.clone(), 1, 1, FIRST_SEED);
            let place = directory.join(state.plan.place(&block));
            if !place.join(store::RECORD).is_file() {
                output::words(&format!("{name}: its first guest has left no record that could be explained"));
                continue;
            }
            output::words(&format!("{name}: once more, under the microscope"));
            let guest = self.first_guest(state, arm, &cache)?;
            let seen = again::look(&place, &guest, worst, &[], &signals)?;
            tails.extend(seen.into_iter().map(|of_load| (name.clone(), of_load.load, of_load.accounts)));
        }
        output::final_data(&report::microscope::tails(&tails, &output::style(Stream::Output)))
    }

    /// Refuses arms whose guests the microscope does not know, before any is measured.
    pub fn check_tails<P: Plan>(&self, state: &State<P>, arms: &[(String, Arm)]) -> Result<()> {
        let cache = Cache::of_user()?;
        arms.iter().try_for_each(|(_, arm)| Ok(check_watched(&self.first_guest(state, arm, &cache)?)?))
    }

    /// The guest of an arm that measures with the first seed.
    fn first_guest<P: Plan>(&self, state: &State<P>, arm: &Arm, cache: &Cache) -> Result<Guest> {
        let kernel = state.plan.kernel(arm)?.get(cache, &mut output::words)?;
        Ok(state.plan.guest(arm, FIRST_SEED, &kernel, &self.binary(kernel.architecture)?)?)
    }

    /// The program that runs in guests of that architecture.
    fn binary(&self, architecture: Architecture) -> Result<PathBuf> {
        binary::choose(self.guest_binary.as_deref(), architecture)
    }
}

/// Follows guests on standard error, and ends them at Ctrl-C.
pub struct Terminal<'a> {
    /// Ctrl-C and the like.
    pub signals: &'a Signals,
    /// A line for each guest that has ended, also where no person reads.
    pub lists: bool,
    /// What a search is going to measure, in words.
    pub planned: &'a dyn Fn(&Planned) -> String,
}

impl<'a> Terminal<'a> {
    /// For what is no search.
    pub fn of(signals: &'a Signals) -> Self {
        Self { signals, lists: false, planned: &|_| String::new() }
    }

    fn line(&self, text: &str) {
        if output::can_redraw(Stream::Error) {
            output::end_progress();
        }
        output::words(text);
    }
}

impl Observer for Terminal<'_> {
    fn begun(&mut self, name: &str, (done, of): (usize, usize)) {
        if output::can_redraw(Stream::Error) {
            output::progress(&format!("{done} of {of} guests done; {name} boots"));
        }
    }

    fn ended(
        &mut self,
        name: &str,
        (done, of): (usize, usize),
        result: std::result::Result<Duration, &lab::Error>,
    ) {
        if self.lists {
            let end = match result {
                Ok(taken) => format!("{:.1} s", taken.as_secs_f64()),
                Err(error) => format!("failed: {}", error.clone().with_hint()),
            };
            self.line(&format!("[{done}/{of}] {name}: {end}"));
        }
    }

    fn planned(&mut self, planned: &Planned) {
        self.line(&(self.planned)(planned));
    }

    fn compared(&mut self, step: &Step) {
        self.line(&super::step::step(step));
    }

    fn stop(&mut self) -> bool {
        self.signals.next().is_some_and(|signal| signal != Signal::User1)
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        if output::can_redraw(Stream::Error) {
            output::end_progress();
        }
    }
}

/// Says that an experiment was interrupted, and how it is gone on with. What is measured is kept.
pub fn stopped(kind: Kind, directory: &Path) -> ExitCode {
    let records = kept::records(directory);
    let done = match records {
        0 => "no block was measured".to_owned(),
        1 => "1 block is measured and kept".to_owned(),
        blocks => format!("{blocks} blocks are measured and kept"),
    };
    output::words(&format!("inconclusive: interrupted; {done}"));
    output::words(&format!("go on with: {} --resume {}", kind.command(), directory.display()));
    ExitCode::from(if records > 0 { 3 } else { 130 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_in_wall_time_run_one_by_one_unless_asked_otherwise() {
        let several = |jobs| Several { jobs, guest_binary: None };
        assert_eq!(several(None).jobs(LabTime::Wall), 1);
        assert_eq!(several(Some(3)).jobs(LabTime::Wall), 3);
        assert!(several(None).jobs(LabTime::Instructions) >= 1);
    }
}
