//! `worstcase lab ladder`: the same loads on one kernel after the other, several guests each.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lab::bench::Guests;
use lab::kept;
use lab::kernels::{Cache, Needed, named};
use lab::ladder::{LadderFile, LadderPlan, Rung, RungRuns};
use lab::state::{Kind, KnownKernel, State};
use machine::unseen;
use record::time::UtcTime;
use record::{LabTime, ParameterAnswer, Record};
use sys::signal::Signals;
use units::Nanos;

use super::several::{Several, Terminal};
use crate::error::{CommandError, Result};
use crate::options;
use crate::output::{self, Stream};

/// The page beside the records.
const PAGE: &str = "report.html";

/// Run the same loads on one kernel or kernel command line after the other, and say what each step gained
///
/// Every rung is booted several times, each time with another seed, and measured under every load in each boot. Ends
/// with a table a rung, the worst case of every load on every rung, and for each step how many times the tail before it
/// there is now, with its interval. Ctrl-C keeps what is finished; --resume goes on.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase lab ladder stock                      # Debian's kernels, from preempt=none to PREEMPT_RT\n  \
    worstcase lab ladder mine.toml --seeds 9 --duration 10s --out mine\n  \
    worstcase lab ladder --resume mine")]
pub struct Ladder {
    /// A ladder's file, or the name of one that is built in: stock, p2041
    #[arg(value_name = "FILE|NAME", required_unless_present = "resume")]
    ladder: Option<PathBuf>,

    /// Go on with the ladder in this directory; shows it again if all is done
    #[arg(long, value_name = "DIR", conflicts_with_all = ["ladder", "out", "duration", "loads", "rungs"])]
    resume: Option<PathBuf>,

    /// How long each load is measured, in the guest's time [default: what the file says]
    #[arg(long, value_name = "TIME", value_parser = options::length)]
    duration: Option<Nanos>,

    /// How many guests each rung has, with the seeds 1, 2, 3, ...: steps are judged from 5 on [default: what the file says]
    #[arg(long, value_name = "N")]
    seeds: Option<u32>,

    /// Only these loads, or others
    #[arg(long, value_name = "LOAD", value_delimiter = ',')]
    loads: Vec<String>,

    /// Only these rungs
    #[arg(long, value_name = "RUNG", value_delimiter = ',')]
    rungs: Vec<String>,

    #[command(flatten)]
    several: Several,

    /// Directory for the records and the page [default: worstcase-ladder-<UTC time>-<name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Print the figures as one JSON object
    #[arg(long)]
    json: bool,
}

impl Ladder {
    pub fn run(self) -> Result<ExitCode> {
        let (mut state, directory) = match &self.resume {
            Some(directory) => (self.resumed(directory)?, directory.clone()),
            None => self.begun()?,
        };
        self.measure(&mut state, &directory)?;
        let rungs = state.plan.ladder.rungs.iter();
        let runs = rungs.map(|rung| Ok(state.plan.runs(rung, &directory)?)).collect::<Result<Vec<_>>>()?;
        let code = code(&runs);
        let ladder = shown(&state, runs);
        write_page(&directory, &ladder)?;
        output::final_data(&match self.json {
            true => report::ladder::json(&ladder),
            false => report::ladder::text(&ladder, &output::style(Stream::Output)),
        })?;
        output::words(&format!("report: {}", directory.join(PAGE).display()));
        if code != 0 {
            output::words(&format!(
                "go on with: {} --resume {}",
                Kind::Ladder.command(),
                directory.display()
            ));
        }
        Ok(ExitCode::from(code))
    }

    /// A new ladder in a new directory, with its kernels.
    fn begun(&self) -> Result<(State<LadderPlan>, PathBuf)> {
        let (mut ladder, home) = LadderFile::named(self.ladder.as_deref().unwrap_or(Path::new("")))?;
        self.narrow(&mut ladder)?;
        let started = UtcTime(sys::clock::unix_seconds());
        let name = || format!("worstcase-ladder-{}-{}", started.compact(), ladder.name).into();
        let directory = self.out.clone().unwrap_or_else(name);
        super::kept::check(&directory)?;
        let cache = Cache::of_user()?;
        let mut state = State::new(LadderPlan { ladder }, env!("CARGO_PKG_VERSION"), started);
        for needed in state.plan.kernels(Some(&home))? {
            let kernel = needed.get(&cache, &mut output::words)?;
            state.kernels.insert(needed.name().to_owned(), KnownKernel::of(&kernel));
        }
        state.begin(&directory)?;
        Ok((state, directory))
    }

    /// The ladder in `directory`. More seeds can be added.
    fn resumed(&self, directory: &Path) -> Result<State<LadderPlan>> {
        let mut state = State::<LadderPlan>::load(directory, Kind::Ladder)?;
        let ladder = &mut state.plan.ladder;
        let seeds = self.seeds.unwrap_or(ladder.seeds);
        if seeds < ladder.seeds {
            return Err(CommandError::new(
                format!("{} has {} seeds already", directory.display(), ladder.seeds),
                "--seeds can add some to a ladder, not take them away",
            ));
        }
        if seeds > ladder.seeds {
            ladder.seeds = seeds;
            ladder.check()?;
            state.save(directory)?;
        }
        Ok(state)
    }

    /// What the arguments change of the file.
    fn narrow(&self, ladder: &mut LadderFile) -> Result<()> {
        if let Some(name) =
            self.rungs.iter().find(|name| !ladder.rungs.iter().any(|rung| rung.name == **name))
        {
            let names: Vec<_> = ladder.rungs.iter().map(|rung| rung.name.as_str()).collect();
            return Err(CommandError::new(
                format!("{} has no rung {name}", ladder.name),
                format!("there are {}", names.join(", ")),
            ));
        }
        if !self.rungs.is_empty() {
            ladder.rungs.retain(|rung| self.rungs.contains(&rung.name));
        }
        if !self.loads.is_empty() {
            ladder.loads.clone_from(&self.loads);
        }
        let catalogue = load::Catalogue::shipped()?;
        ladder.loads.iter().try_for_each(|load| catalogue.get(load).map(drop))?;
        ladder.duration = self.duration.unwrap_or(ladder.duration);
        ladder.seeds = self.seeds.unwrap_or(ladder.seeds);
        Ok(ladder.check()?)
    }

    /// Boots what is still to be booted.
    fn measure(&self, state: &mut State<LadderPlan>, directory: &Path) -> Result<()> {
        let (blocks, ladder) = (state.plan.blocks(), &state.plan.ladder);
        let left = blocks.len().saturating_sub(kept::records(directory));
        if left == 0 {
            return Ok(());
        }
        output::words(&announcement(ladder, left, directory));
        let (cache, time) = (Cache::of_user()?, ladder.time);
        let kernels = &mut |needed: &Needed| named(&cache, needed.name(), &mut output::words);
        let signals = Signals::take()?;
        let observer = &mut Terminal { lists: true, ..Terminal::of(&signals) };
        let run = |guests: &mut Guests<'_, LadderPlan>| guests.measure_all(&blocks);
        self.several.with_guests(state, directory, time, kernels, observer, run)?;
        Ok(())
    }
}

/// What is about to be run.
fn announcement(ladder: &LadderFile, left: usize, directory: &Path) -> String {
    let LadderFile { name, rungs, seeds, loads, duration, .. } = ladder;
    format!(
        "{name}: {} rungs, {seeds} seeds, {} loads of {duration} each: {left} guests\nrecords: {}",
        rungs.len(),
        loads.len(),
        directory.display()
    )
}

/// 0 where all was measured, 2 where a guest failed, 3 where some are still to be run, 130 where none was.
fn code(runs: &[RungRuns]) -> u8 {
    let missing = || runs.iter().flat_map(|rung| &rung.missing);
    match () {
        () if missing().any(|(_, failure)| failure.is_some()) => 2,
        () if missing().next().is_none() => 0,
        () if runs.iter().all(|rung| rung.records.is_empty()) => 130,
        () => 3,
    }
}

/// The ladder as it is shown: what was planned, with the records that are there.
fn shown(state: &State<LadderPlan>, runs: Vec<RungRuns>) -> report::ladder::Ladder {
    let ladder = &state.plan.ladder;
    let emulator = runs.iter().flat_map(|rung| &rung.records).find_map(|run| run.header.machine.lab.as_ref());
    let conditions = conditions(ladder, emulator.map(|lab| lab.emulator.as_str()));
    let rung = |(rung, RungRuns { records, missing }): (&Rung, RungRuns)| {
        let kernel = state.kernels.get(&rung.kernel);
        let release = kernel.map_or(String::new(), |kernel| format!(", Linux {}", kernel.release));
        let missing = missing.into_iter().map(|(seed, failure)| match failure {
            Some(why) => format!("seed {seed} failed: {why}"),
            None => format!("seed {seed} was not run"),
        });
        report::ladder::Rung {
            name: rung.name.clone(),
            title: rung.title.clone(),
            booted: [vec![rung.kernel.clone()], rung.all_words()].concat().join(" ") + &release,
            notes: notes(rung, ladder.time, records.first()),
            missing: missing.collect(),
            published: rung.published.clone(),
            runs: records,
        }
    };
    report::ladder::Ladder {
        title: ladder.title.clone(),
        source: ladder.source.clone(),
        differs: ladder.differs.clone(),
        conditions,
        unit: ladder.time.unit(),
        loads: ladder.loads.clone(),
        rungs: ladder.rungs.iter().zip(runs).map(rung).collect(),
    }
}

/// What has to be known of a rung's parameters: what its kernel did not take, and what instruction time cannot show.
fn notes(rung: &Rung, time: LabTime, run: Option<&Record>) -> Vec<String> {
    let parameters = run.and_then(|run| run.header.machine.lab.as_ref()?.parameters.as_deref());
    let doubtful = parameters.into_iter().flatten().filter(|found| found.answer != ParameterAnswer::Read);
    let read = doubtful.map(|found| format!("{}: {}: {}", found.word, found.answer, found.evidence));
    let words = rung.all_words().into_iter().filter(|_| time == LabTime::Instructions);
    let unseen = words.filter_map(|word| {
        unseen::note(&word).map(|note| format!("{word}: these guests cannot tell: {note}"))
    });
    read.chain(unseen).collect()
}

fn conditions(ladder: &LadderFile, emulator: Option<&str>) -> Vec<String> {
    let disk = ladder.disk.map_or_else(|| "no disk".into(), |disk| format!("a disk of {disk}"));
    vec![
        format!(
            "{} seeds a rung, a boot each; {} a load after {} of warm-up.",
            ladder.seeds, ladder.duration, ladder.warm_up
        ),
        format!(
            "{}, clock: {}, CPUs: {}, memory {}, {disk}.",
            emulator.unwrap_or("QEMU"),
            ladder.time,
            ladder.processors,
            ladder.memory
        ),
    ]
}

fn write_page(directory: &Path, ladder: &report::ladder::Ladder) -> Result<()> {
    let page = report::ladder::page(ladder).map_err(|error| CommandError::new(error, ""))?;
    // The figures are in the records: a page that cannot be written must not keep the tables from being shown.
    if let Err(error) = files::write_whole(&directory.join(PAGE), page.as_bytes()) {
        output::words(&format!("warning: {error}"));
    }
    Ok(())
}
