//! `worstcase lab bisect`: which single change moved the tail.

mod shown;
mod subject;
pub(super) mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use experiment::Arm;
use experiment::bisect::{Answer, Outcome, bisect};
use lab::bench::Guests;
use lab::bisect::BisectPlan;
use lab::kernels::{Cache, Needed};
use lab::state::{Kind, Plan, State};
use record::LabTime;
use record::time::UtcTime;
use statistics::Tail;
use sys::signal::Signals;
use units::{Bytes, Nanos};

use super::kept;
use super::several::{Several, Terminal, stopped};
use crate::options;
use crate::output;
use failure::Result;
pub use shown::shown;
use subject::Asked;

/// Find the single change that moved the tail: a kernel parameter, a kernel of a list, a symbol of a configuration
///
/// Guests in instruction time measure the good set-up, the bad one, and what lies between, half of it at a time: several
/// guests an arm, each with another seed, compared by their tails against the spread within the arms. What is found is
/// confirmed both ways by fresh guests: good with it is bad, bad without it is good. A control arm with a parameter that
/// nobody reads must not move. A change that does nothing is called guilty in at most 2.5 % of bisections.
/// Exit code 1: found; 0: nothing moves the tail by the ratio; 3: no answer. Ctrl-C keeps what is measured.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase lab bisect --kernel debian-6.1-amd64 --good preempt=full --bad preempt=none\n  \
    worstcase lab bisect --kernel debian-6.1-amd64 --words words.txt --load scary-grinder --ratio 3\n  \
    worstcase lab bisect --kernels debian-6.1-rt-amd64,debian-6.1-amd64,debian-6.12-amd64\n  \
    worstcase lab bisect --source debian-6.12 --fragment base.cfg --good release.cfg --bad debug.cfg")]
pub struct Bisect {
    #[command(flatten)]
    asked: Asked,

    /// The load that is measured under
    #[arg(long, value_name = "LOAD", default_value = "cpu", value_parser = options::load_name)]
    load: String,

    /// How long each guest measures, in its own time; once a millisecond
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = options::duration)]
    duration: Nanos,

    /// How long the load runs before that
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = options::duration)]
    warm_up: Nanos,

    /// How many guests each arm has, with the seeds 1, 2, 3, ...: at least 5; those that confirm have the seeds after them
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,

    /// How many times longer a culprit makes the tail, at least
    #[arg(long, value_name = "RATIO", default_value = "2")]
    ratio: f64,

    /// What stands for the tail: p99.9, p99, p90 [default: the finest that --duration carries]
    #[arg(long, value_name = "TAIL")]
    tail: Option<Tail>,

    /// The guests' memory
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    memory: Bytes,

    /// An ext4 disk of this size for loads that write
    #[arg(long, value_name = "SIZE")]
    disk: Option<Bytes>,

    #[command(flatten)]
    several: Several,

    /// Directory for the records [default: worstcase-bisect-<UTC time>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Go on with the bisection in this directory, with the options that it was begun with
    #[arg(long, value_name = "DIR", conflicts_with_all = subject::NAMES)]
    #[arg(conflicts_with_all = ["out", "load", "duration", "warm_up", "seeds", "ratio", "tail", "memory", "disk"])]
    resume: Option<PathBuf>,

    /// Then run a guest of the good and one of the bad set-up again under the microscope, and name the three heaviest causes of
    /// their N worst wake-ups, by function
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "10")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=200), conflicts_with = "json")]
    explain: Option<u16>,

    /// Print the answer as one JSON object
    #[arg(long)]
    json: bool,
}

impl Bisect {
    pub fn run(self) -> Result<ExitCode> {
        let (mut state, directory) = match &self.resume {
            Some(directory) => (State::resume(directory, Kind::Bisection)?, directory.clone()),
            None => self.begun()?,
        };
        output::words(&text::plan(&state.plan));
        let ends = [("good", Arm::off()), ("bad", state.plan.subject.bad())];
        let ends = ends.map(|(name, arm)| (name.to_owned(), arm));
        if self.explain.is_some() {
            self.several.check_tails(&state, &ends)?;
        }
        let Some(answer) = self.search(&mut state, &directory)? else {
            return Ok(stopped(Kind::Bisection, &directory));
        };
        shown(&directory)?.conclude(&directory, self.json)?;
        if let Some(worst) = self.explain {
            self.several.show_tails(&state, &directory, &ends, worst.into())?;
        }
        Ok(ExitCode::from(code(&answer)))
    }

    fn begun(&self) -> Result<(State<BisectPlan>, PathBuf)> {
        load::Catalogue::shipped()?.get(&self.load)?;
        let started = UtcTime(sys::clock::unix_seconds());
        let plan = BisectPlan {
            load: self.load.clone(),
            duration: self.duration,
            warm_up: self.warm_up,
            seeds: self.seeds,
            ratio: self.ratio,
            tail: self.tail.map_or_else(|| BisectPlan::finest(self.duration), Ok)?,
            memory: self.memory,
            disk: self.disk,
            ..BisectPlan::about(self.asked.subject()?)
        };
        let name = || format!("worstcase-bisect-{}", started.compact()).into();
        let directory: PathBuf = self.out.clone().unwrap_or_else(name);
        kept::check(&directory)?;
        plan.check()?;
        look_for_kernels(&plan)?;
        let state = State::new(plan, env!("CARGO_PKG_VERSION"), started);
        state.begin(&directory)?;
        Ok((state, directory))
    }

    fn search(&self, state: &mut State<BisectPlan>, directory: &Path) -> Result<Option<Answer>> {
        let (cache, bisection) = (Cache::of_user()?, state.plan.bisection());
        let kernels = &mut |needed: &Needed| needed.get(&cache, &mut output::words);
        let signals = Signals::take()?;
        let observer = &mut Terminal::of(&signals);
        let time = LabTime::Instructions;
        let run = |guests: &mut Guests<'_, BisectPlan>| bisect(&bisection, guests);
        self.several.with_guests(state, directory, time, kernels, observer, run)
    }
}

/// A kernel that cannot be booted is named before a directory is made. Those of the good and the bad set-up boot in any case.
fn look_for_kernels(plan: &BisectPlan) -> Result<()> {
    let cache = Cache::of_user()?;
    (0..=plan.subject.count()).try_for_each(|first| plan.kernel(&Arm::all(first))?.check(&cache))?;
    for arm in [Arm::off(), plan.subject.bad()] {
        let needed = plan.kernel(&arm)?;
        if matches!(needed, Needed::Named(_)) {
            needed.get(&cache, &mut output::words)?;
        }
    }
    Ok(())
}

/// Found is what `fail` is elsewhere: something moved the tail.
fn code(answer: &Answer) -> u8 {
    match answer.outcome {
        Outcome::NoneGuilty => 0,
        Outcome::Guilty => 1,
        Outcome::Inconclusive(_) => 3,
    }
}
