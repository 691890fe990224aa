//! `worstcase lab ladder`: the same loads on one kernel after the other, several guests each.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lab::kernels::{Cache, Kernel};
use lab::ladder::state::KernelTold;
use lab::ladder::{Cell, CellState, Course, LadderFile, Rung, State, Told, plan};
use lab::several::Qemu;
use machine::unseen;
use record::time::UtcTime;
use record::{LabTime, ParameterAnswer, Record, store};
use sys::signal::{Signal, Signals};
use units::Nanos;

use super::several::Several;
use crate::error::{CommandError, Result};
use crate::options;
use crate::output::{self, Stream};

/// The page beside the records.
const PAGE: &str = "report.html";

/// Run the same loads on one kernel or boot line after the other, and say what each step gained
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
        let cache = Cache::of_user()?;
        let (mut course, kernels) = match &self.resume {
            Some(directory) => self.resumed(directory, &cache)?,
            None => self.begun(&cache)?,
        };
        let whole = course.state.waiting().is_empty() || self.measure(&mut course, &kernels)?;
        let ladder = told(&course)?;
        write_page(course.directory(), &ladder)?;
        output::final_data(&match self.json {
            true => report::ladder::json(&ladder),
            false => report::ladder::text(&ladder, &output::style(Stream::Output)),
        })?;
        let place = course.directory().display();
        output::words(&format!("report: {}", course.directory().join(PAGE).display()));
        if !course.state.waiting().is_empty() {
            output::words(&format!("go on with: worstcase lab ladder --resume {place}"));
        }
        Ok(ExitCode::from(code(&course.state, whole)))
    }

    /// A new ladder in a new directory, with its kernels.
    fn begun(&self, cache: &Cache) -> Result<(Course, BTreeMap<String, Kernel>)> {
        let (mut ladder, home) = LadderFile::named(self.ladder.as_deref().unwrap_or(Path::new("")))?;
        self.narrow(&mut ladder)?;
        let started = UtcTime(sys::clock::unix_seconds());
        let name = || format!("worstcase-ladder-{}-{}", started.compact(), ladder.name).into();
        let directory = self.out.clone().unwrap_or_else(name);
        super::kept::check(&directory)?;
        let kernels = plan::kernels(&ladder, Some(&home), cache, &mut output::words)?;
        let state = State::new(ladder, &kernels, env!("CARGO_PKG_VERSION"), started);
        Ok((Course::begin(state, &directory)?, kernels))
    }

    /// The ladder in `directory`, with the kernels that it was begun with. More seeds can be added.
    fn resumed(&self, directory: &Path, cache: &Cache) -> Result<(Course, BTreeMap<String, Kernel>)> {
        let mut course = Course::resume(directory)?;
        if let Some(seeds) = self.seeds {
            if seeds < course.state.ladder.seeds {
                return Err(CommandError::new(
                    format!("{} has {} seeds already", directory.display(), course.state.ladder.seeds),
                    "--seeds can add some to a ladder, not take them away",
                ));
            }
            course.state.ladder.seeds = seeds;
            course.state.ladder.check()?;
            course.state.plan_cells();
        }
        if course.state.waiting().is_empty() {
            return Ok((course, BTreeMap::new()));
        }
        let kernels = plan::kernels(&course.state.ladder, None, cache, &mut output::words)?;
        for (name, kernel) in &kernels {
            let is_same = |begun: &KernelTold| begun.is_of_same_kernel(&KernelTold::of(kernel));
            if !course.state.kernels.get(name).is_some_and(is_same) {
                return Err(CommandError::new(
                    format!("{name} is not the kernel that this ladder was begun with"),
                    "begin anew: figures of two kernels must not stand on one rung",
                ));
            }
        }
        Ok((course, kernels))
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

    /// Boots what is still to be booted. Gives back whether all was.
    fn measure(&self, course: &mut Course, kernels: &BTreeMap<String, Kernel>) -> Result<bool> {
        let architecture = kernels.values().next().map(|kernel| kernel.architecture);
        let architecture = architecture.ok_or_else(|| CommandError::new("the ladder has no kernel", ""))?;
        let binary = self.several.binary(architecture)?;
        let jobs = self.several.jobs(course.state.ladder.time);
        output::words(&announcement(course, jobs));
        let mut told = Progress { signals: Signals::take()?, of: course.state.cells.len() };
        Ok(course.run(&Qemu, kernels, &binary, jobs, &mut told)?)
    }
}

/// What is about to be run.
fn announcement(course: &Course, jobs: usize) -> String {
    let ladder = &course.state.ladder;
    format!(
        "{}: {} rungs, {} seeds, {} loads of {} each: {} guests, {jobs} side by side\nrecords: {}",
        ladder.name,
        ladder.rungs.len(),
        ladder.seeds,
        ladder.loads.len(),
        ladder.duration,
        course.state.waiting().len(),
        course.directory().display()
    )
}

/// A line for each guest that ended.
struct Progress {
    signals: Signals,
    of: usize,
}

impl Told for Progress {
    fn begun(&mut self, _: &Cell) {}

    fn ended(&mut self, cell: &Cell, left: usize) {
        let mut line = format!("[{}/{}] {}, seed {}: ", self.of - left, self.of, cell.rung, cell.seed);
        let _ = match &cell.state {
            CellState::Done { seconds } => write!(line, "{seconds} s"),
            CellState::Failed(why) => write!(line, "failed: {why}"),
            CellState::Waiting => write!(line, "not run"),
        };
        output::words(&line);
    }

    fn stop(&mut self) -> bool {
        self.signals.next().is_some_and(|signal| signal != Signal::User1)
    }
}

/// 0 where all was measured, 2 where a guest failed, 3 where some are still to be run, 130 where none was.
fn code(state: &State, whole: bool) -> u8 {
    let done = |cell: &Cell| matches!(cell.state, CellState::Done { .. });
    let failed = |cell: &Cell| matches!(cell.state, CellState::Failed(_));
    match () {
        () if state.cells.iter().any(failed) => 2,
        () if state.cells.iter().all(done) => 0,
        () if !whole && !state.cells.iter().any(done) => 130,
        () => 3,
    }
}

/// The ladder as it is shown: what was planned, with the records that are there.
fn told(course: &Course) -> Result<report::ladder::Ladder> {
    let State { ladder, kernels, emulator, cells, .. } = &course.state;
    let rungs = ladder.rungs.iter().map(|rung| {
        let mut runs = Vec::new();
        let mut missing = Vec::new();
        for (index, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.rung == rung.name) {
            match &cell.state {
                CellState::Done { .. } => {
                    runs.push(store::load(&course.state.place(course.directory(), index))?)
                }
                CellState::Failed(why) => missing.push(format!("seed {} failed: {why}", cell.seed)),
                CellState::Waiting => missing.push(format!("seed {} was not run", cell.seed)),
            }
        }
        let notes = notes(rung, ladder.time, runs.first());
        let release =
            kernels.get(&rung.kernel).map_or(String::new(), |kernel| format!(", Linux {}", kernel.release));
        let booted = [vec![rung.kernel.clone()], rung.all_words()].concat().join(" ") + &release;
        let published = rung.published.as_ref().map(|published| report::ladder::Published {
            source: published.source.clone(),
            unit: published.unit.clone(),
            latencies: published.latencies.clone(),
        });
        Ok(report::ladder::Rung {
            name: rung.name.clone(),
            title: rung.title.clone(),
            booted,
            runs,
            missing,
            notes,
            published,
        })
    });
    Ok(report::ladder::Ladder {
        title: ladder.title.clone(),
        source: ladder.source.clone(),
        differs: ladder.differs.clone(),
        conditions: conditions(ladder, emulator.as_deref()),
        unit: ladder.time.unit(),
        loads: ladder.loads.clone(),
        rungs: rungs.collect::<Result<_>>()?,
    })
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
