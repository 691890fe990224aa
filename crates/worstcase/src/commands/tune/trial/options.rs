//! The options that trial and search share, and what is asked by them.

use std::path::{Path, PathBuf};

use clap::Args;
use experiment::{Design, FIRST_SEED};
use lab::parameters;
use lab::state::{Kind, Plan, State};
use record::time::UtcTime;
use record::{LabTime, Wake};
use sys::signal::Signals;
use sysroot::SysRoot;
use units::{Bytes, CpuList, Nanos, Seed};

use super::live;
use super::plan::{Conditions, GuestSetup, Place, TrialPlan};
use super::run::Run;
use super::setting::{self, Setting};
use super::text;
use crate::commands::lab::choice;
use crate::commands::lab::several::Several;
use crate::commands::tune::StateOption;
use crate::options;
use crate::output;
use failure::{Error, Result};

/// The most blocks an arm that a search takes by itself.
const MOST_BLOCKS: u32 = 60;

const MEASURED_BLOCKS: &str = "What a block measures";
const DECIDES: &str = "What decides";
const RULES: &str = "What rules refer to";
const OUTCOME: &str = "Run and output";

/// How blocks are measured and judged.
#[derive(Args)]
pub struct Options {
    /// The load that is measured under: see worstcase load --list
    #[arg(long, value_name = "LOAD", default_value = "cpu", value_parser = options::load_name, help_heading = MEASURED_BLOCKS)]
    load: String,

    /// A command of your own as the load, run by the shell
    #[arg(long, value_name = "COMMAND", conflicts_with = "load", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = MEASURED_BLOCKS)]
    load_command: Option<String>,

    /// How long each block is [default: 10s; 1s of a guest's time]
    #[arg(long, value_name = "TIME", value_parser = options::duration, help_heading = MEASURED_BLOCKS)]
    duration: Option<Nanos>,

    /// How long the load runs before that, the settings written already [default: 1s; 200ms of a guest's time]
    #[arg(long, value_name = "TIME", value_parser = options::duration, help_heading = MEASURED_BLOCKS)]
    warm_up: Option<Nanos>,

    /// Blocks an arm, one in each round: at least 6, more for several settings (11 for 30); in guests each has a seed of its
    /// own [default: two more than that, one more in guests; a search measures as many as the spread asks for, at most 60]
    #[arg(long, visible_alias = "seeds", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = MEASURED_BLOCKS)]
    blocks: Option<u32>,

    /// What decides: quantile (the finest that a block carries, p99.9 from 1000 samples on), exceedances, maxima (of each
    /// second)
    #[arg(long, value_name = "MEASURE", default_value = "quantile", help_heading = DECIDES)]
    measure: experiment::Kind,

    /// From which latency on activations count as exceedances [default: what 99 % of all blocks together stay below]
    #[arg(long, value_name = "TIME", value_parser = options::length, help_heading = DECIDES)]
    threshold: Option<Nanos>,

    /// Effects below it do not matter, in percent
    #[arg(long, value_name = "PERCENT", default_value = "20", help_heading = DECIDES)]
    smallest_effect: f64,

    /// Period of the activations
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = options::interval, help_heading = MEASURED_BLOCKS)]
    interval: Nanos,

    /// What wakes the measuring threads: nanosleep, timerfd, posix-timer, deadline
    #[arg(long, value_name = "WAY", default_value = "nanosleep", help_heading = MEASURED_BLOCKS)]
    wake: Wake,

    /// CPUs to measure [default: all that may be used]
    #[arg(long, value_name = "LIST", help_heading = MEASURED_BLOCKS)]
    cpus: Option<CpuList>,

    /// Set wake-ups apart that the host of this virtual machine delayed: each block is measured once more, traced, and judged
    /// without them
    #[arg(long, conflicts_with = "kernel", help_heading = MEASURED_BLOCKS)]
    without_steal: bool,

    /// What you run, for rules: as for tune plan
    #[arg(long, value_name = "PROFILE", value_delimiter = ',', help_heading = RULES)]
    profile: Vec<String>,

    /// CPUs that are, or are to be, isolated, for rules
    #[arg(long, value_name = "CPUS", help_heading = RULES)]
    isolate: Option<CpuList>,

    /// Random orders come from it, and it is the seed of the first round [default: random; 1 in guests]
    #[arg(long, value_name = "N", help_heading = OUTCOME)]
    seed: Option<Seed>,

    /// Measure what operations take in each block too: what a setting gains, and what it costs
    #[arg(long, help_heading = OUTCOME)]
    cost: bool,

    /// Directory for the records [default: worstcase-trial-<UTC time>, worstcase-search-<UTC time>]
    #[arg(long, value_name = "DIR", help_heading = OUTCOME)]
    out: Option<PathBuf>,

    /// Go on with the trial in this directory, with the options that it was begun with
    #[arg(long, value_name = "DIR", conflicts_with_all = ["settings", "out", "load", "load_command", "duration", "warm_up"], help_heading = OUTCOME)]
    #[arg(conflicts_with_all = ["blocks", "measure", "threshold", "smallest_effect", "interval", "wake", "cpus", "seed", "cost", "without_steal"])]
    #[arg(conflicts_with_all = ["profile", "isolate", "kernel"])]
    resume: Option<PathBuf>,

    #[command(flatten)]
    state: StateOption,

    /// Print the answer as one JSON object
    #[arg(long, help_heading = OUTCOME)]
    json: bool,

    #[command(flatten)]
    lab: InGuests,
}

/// What makes guests measure.
#[derive(Args)]
#[command(next_help_heading = "In guests")]
struct InGuests {
    /// Measure in guests with this kernel: a name from `lab kernels list`, or the path of an image (with a `/`)
    #[arg(long, value_name = "NAME|PATH")]
    kernel: Option<String>,

    /// What their clocks count: instructions, wall
    #[arg(long, value_name = "TIME", default_value = "instructions", requires = "kernel")]
    time: LabTime,

    /// Kernel parameters of all guests, blanks within one in quotes; can be given several times
    #[arg(long, value_name = "PARAMETERS", allow_hyphen_values = true, requires = "kernel")]
    append: Vec<String>,

    /// CPUs of a guest; always 1 in instruction time
    #[arg(long, value_name = "N", default_value = "1", requires = "kernel", value_parser = clap::value_parser!(u32).range(1..=64))]
    guest_cpus: u32,

    /// Memory of a guest
    #[arg(long, value_name = "SIZE", default_value = "512M", requires = "kernel")]
    memory: Bytes,

    /// An ext4 disk of this size for loads that write
    #[arg(long, value_name = "SIZE", requires = "kernel")]
    disk: Option<Bytes>,

    /// A program of this machine to put into the guests, with its libraries; can be given several times
    #[arg(long, value_name = "PROGRAM", requires = "kernel")]
    with: Vec<PathBuf>,

    #[command(flatten)]
    several: Several,
}

impl Options {
    /// Begins it in a directory of its own, or goes on with it.
    pub fn begin(self, settings: Vec<String>, kind: Kind) -> Result<Run> {
        let (state, directory) = match &self.resume {
            Some(directory) => (self.resumed(directory, kind)?, directory.clone()),
            None => self.begun(settings, kind)?,
        };
        output::words(&text::plan(&state.plan));
        let journal = self.state.state();
        let Self { lab: InGuests { several, .. }, json, .. } = self;
        let directory = std::path::absolute(&directory).unwrap_or(directory);
        Ok(Run { state, directory, journal, several, signals: Signals::take()?, json })
    }

    fn resumed(&self, directory: &Path, kind: Kind) -> Result<State<TrialPlan>> {
        let state = State::<TrialPlan>::resume(directory, kind)?;
        match &state.plan.place {
            Place::Here { release } if *release != running() => {
                let message = format!("it was begun with Linux {release}, and this is {}", running());
                Err(Error::new(message, "begin anew: blocks of two kernels do not compare"))
            }
            Place::Here { .. } => {
                live::check(&self.state.state(), state.plan.conditions.without_steal).map(|()| state)
            }
            Place::Guests(_) => Ok(state),
        }
    }

    fn begun(&self, settings: Vec<String>, kind: Kind) -> Result<(State<TrialPlan>, PathBuf)> {
        self.load_name()?;
        let is_live = self.lab.kernel.is_none();
        let selection = super::selection(&self.profile, self.isolate.as_ref())?;
        let settings = match settings.is_empty() && is_live {
            true => failing_rules(&selection.plan(None)?),
            false => settings,
        };
        let parsed = settings.iter().map(|text| Setting::parse(text)).collect::<Result<Vec<_>>>()?;
        if is_live {
            super::refuse_parameters(&parsed)?;
            let plan = setting::plan(&parsed, &selection, &SysRoot::live())?;
            for conflict in &plan.conflicts {
                output::warning(&format!("{} {}", conflict.who, conflict.what));
            }
            live::check(&self.state.state(), self.without_steal)?;
        }
        let plan = self.plan(settings, kind)?;
        if let Place::Guests(guests) = &plan.place {
            // A kernel that is not there is named before a directory is made.
            choice::kernel(guests.kernel.as_ref())?;
        }
        plan.check()?;
        let started = UtcTime(sys::clock::unix_seconds());
        let name = || format!("worstcase-{}-{}", kind.name(), started.compact()).into();
        let directory: PathBuf = self.out.clone().unwrap_or_else(name);
        let state = State::new(plan, env!("CARGO_PKG_VERSION"), started);
        state.begin(&directory)?;
        Ok((state, directory))
    }

    /// What is asked of `settings`.
    pub fn plan(&self, settings: Vec<String>, kind: Kind) -> Result<TrialPlan> {
        let (is_live, search) = (self.lab.kernel.is_none(), kind == Kind::Search);
        let design = self.design(settings, is_live, search);
        Ok(TrialPlan { search, design, conditions: self.conditions(is_live)?, place: self.place()? })
    }

    fn design(&self, settings: Vec<String>, is_live: bool, search: bool) -> Design {
        let own = || if is_live { runner::plan::drawn_seed() } else { FIRST_SEED };
        let needed = statistics::rounds_needed(if search { 1 } else { settings.len() });
        Design {
            settings,
            // With the fewest one block that is out of line hides everything.
            blocks: self.blocks.unwrap_or(needed + if is_live { 2 } else { 1 }),
            most_blocks: (search && self.blocks.is_none()).then_some(MOST_BLOCKS),
            seed: self.seed.unwrap_or_else(own),
            smallest_effect: self.smallest_effect / 100.0,
            measure: self.measure,
            threshold: self.threshold,
        }
    }

    /// As the record calls it.
    fn load_name(&self) -> Result<String> {
        match &self.load_command {
            Some(command) => Ok(load::Load::from_command(command).name),
            None => Ok(load::Catalogue::shipped()?.get(&self.load)?.name.clone()),
        }
    }

    fn conditions(&self, is_live: bool) -> Result<Conditions> {
        let (duration, warm_up) = match is_live {
            true => (Nanos::from_secs(10), Nanos::from_secs(1)),
            false => (Nanos::from_secs(1), Nanos::from_millis(200)),
        };
        Ok(Conditions {
            load: self.load_name()?,
            load_command: self.load_command.clone(),
            duration: self.duration.unwrap_or(duration),
            warm_up: self.warm_up.unwrap_or(warm_up),
            interval: self.interval,
            wake: self.wake,
            cpus: self.cpus.clone(),
            profile: self.profile.clone(),
            isolate: self.isolate.clone(),
            cost: self.cost,
            without_steal: self.without_steal,
        })
    }

    fn place(&self) -> Result<Place> {
        let InGuests { kernel, time, append, guest_cpus, memory, disk, with, .. } = &self.lab;
        let Some(name) = kernel else { return Ok(Place::Here { release: running() }) };
        let words = parameters::split_all(append)?;
        crate::commands::lab::warn_of(&words, name);
        Ok(Place::Guests(Box::new(GuestSetup {
            kernel: name.clone(),
            known: None,
            time: *time,
            words,
            processors: *guest_cpus,
            memory: *memory,
            disk: *disk,
            programs: with.clone(),
        })))
    }
}

/// `uname -r`.
fn running() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// The rules that a plan would make pass, each once.
fn failing_rules(plan: &tune::Plan) -> Vec<String> {
    let rules = plan.steps.iter().flat_map(|step| step.rules.clone());
    rules.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}
