//! `worstcase lab ladder`: the same loads on one kernel after the other, several guests each.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use experiment::{Arm, Block};
use lab::bench::Guests;
use lab::boot::Guest;
use lab::kept;
use lab::kernels::{Architecture, Cache, Needed, named};
use lab::ladder::{Home, LadderFile, LadderPlan, Rung};
use lab::replay::Replay;
use lab::state::{Kind, KnownKernel, Plan, State};
use machine::unseen;
use record::cost::FILE as COST;
use record::time::UtcTime;
use record::{LabTime, ParameterAnswer, Record};
use report::experiment::{Answer, Experiment};
use sys::signal::Signals;
use units::Nanos;

use super::several::{Several, Terminal};
use crate::commands::experiments::{self, Shown};
use crate::options;
use crate::output;
use failure::{Error, Result};

/// Run the same loads on one kernel or kernel command line after the other, and say what each step gained
///
/// Every rung is booted several times, each time with another seed, and measured under every load in each boot. Ends with a
/// table a rung, the worst case of every load on every rung, and for each step how much longer or shorter the tail became,
/// with its interval. Ctrl-C keeps what is finished; --resume goes on.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase lab ladder stock                      # preempt=none to PREEMPT_RT\n  \
    worstcase lab ladder mine.toml --seeds 9 --duration 10s --out mine\n  \
    worstcase lab ladder --resume mine")]
pub struct Ladder {
    /// A ladder's file, or the name of one that is built in: stock, p2041, throughput, prices, debugging
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

    /// Measure these loads instead of the file's
    #[arg(long, value_name = "LOAD", value_delimiter = ',', value_parser = options::load_name)]
    loads: Vec<String>,

    /// Only these rungs
    #[arg(long, value_name = "RUNG", value_delimiter = ',')]
    rungs: Vec<String>,

    /// Measure what operations take too, in guests of their own: what each rung gains and what it costs
    #[arg(long)]
    cost: bool,

    #[command(flatten)]
    several: Several,

    /// Directory for the records and the page [default: worstcase-ladder-<UTC time>-<name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Then run the first guest of each rung again under the microscope, and name the three heaviest causes of the N worst
    /// wake-ups of each load, by function
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "10")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=200), conflicts_with = "json")]
    explain: Option<u16>,

    /// Print the figures as one JSON object
    #[arg(long)]
    json: bool,

    /// Print a page in Markdown, without time and place: docs/throughput.md is one
    #[arg(long, conflicts_with_all = ["json", "explain"])]
    markdown: bool,
}

/// The guest of the ladder in `home` that has left its record in `below`; none where it has no such one.
pub fn guest_of(
    home: &Path,
    below: &Path,
    cache: &Cache,
    binary: &dyn Fn(Architecture) -> Result<PathBuf>,
) -> Result<Option<Guest>> {
    let state = State::<LadderPlan>::load(home, Kind::Ladder)?;
    let Some(block) =
        state.plan.blocks().into_iter().find(|block| Path::new(&state.plan.place(block)) == below)
    else {
        return Ok(None);
    };
    let kernel = state.plan.kernel(&block.arm)?.get(cache, &mut output::words)?;
    let binary = binary(kernel.architecture)?;
    Ok(Some(state.plan.guest(&block.arm, block.seed, &kernel, &binary)?))
}

/// The rungs by their names.
fn arms(state: &State<LadderPlan>) -> Vec<(String, Arm)> {
    let rungs = state.plan.ladder.rungs.iter().enumerate();
    rungs.map(|(place, rung)| (rung.name.clone(), Arm::all(place))).collect()
}

impl Ladder {
    pub fn run(self) -> Result<ExitCode> {
        let (mut state, directory) = match &self.resume {
            Some(directory) => (self.resumed(directory)?, directory.clone()),
            None => self.begun()?,
        };
        let rungs = self.explain.map(|_| arms(&state)).unwrap_or_default();
        self.several.check_tails(&state, &rungs)?;
        self.measure(&mut state, &directory)?;
        let shown = shown(&directory)?;
        if self.markdown {
            output::final_data(&report::experiment::markdown(&shown.experiment))?;
            shown.write_page(&directory.join(record::store::PAGE), false, &[])?;
        } else {
            shown.conclude(&directory, self.json)?;
        }
        if let Some(worst) = self.explain {
            self.several.show_tails(&state, &directory, &rungs, worst.into())?;
        }
        let code = code(&state, &directory)?;
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
        let mut state = State::<LadderPlan>::resume(directory, Kind::Ladder)?;
        let ladder = &mut state.plan.ladder;
        let seeds = self.seeds.unwrap_or(ladder.seeds);
        if seeds < ladder.seeds {
            return Err(Error::new(
                format!("{} has {} seeds already", directory.display(), ladder.seeds),
                "--seeds can add some to a ladder, not take them away",
            ));
        }
        if seeds > ladder.seeds || (self.cost && !ladder.cost) {
            ladder.seeds = seeds;
            ladder.cost |= self.cost;
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
            return Err(Error::new(
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
        ladder.cost |= self.cost;
        Ok(ladder.check()?)
    }

    /// Boots what is still to be booted.
    fn measure(&self, state: &mut State<LadderPlan>, directory: &Path) -> Result<()> {
        let (blocks, costs) = (state.plan.blocks(), state.plan.cost_blocks());
        let ladder = &state.plan.ladder;
        let left = blocks.len().saturating_sub(kept::records(directory));
        let has_cost = |block: &&Block| directory.join(state.plan.cost_place(block)).join(COST).is_file();
        let costs_left = costs.len() - costs.iter().filter(has_cost).count();
        if left + costs_left == 0 {
            return Ok(());
        }
        output::words(&announcement(ladder, (left, costs_left), directory));
        let (cache, time) = (Cache::of_user()?, ladder.time);
        let kernels = &mut |needed: &Needed| named(&cache, needed.name(), &mut output::words);
        let signals = Signals::take()?;
        let observer = &mut Terminal { lists: true, ..Terminal::of(&signals) };
        let run = |guests: &mut Guests<'_, LadderPlan>| -> std::result::Result<bool, lab::Error> {
            Ok(guests.measure_all(&blocks)? && guests.measure_costs(&costs)?)
        };
        self.several.with_guests(state, directory, time, kernels, observer, run)?;
        Ok(())
    }
}

/// What is about to be run.
fn announcement(ladder: &LadderFile, (left, costs): (usize, usize), directory: &Path) -> String {
    let LadderFile { name, rungs, seeds, loads, duration, .. } = ladder;
    format!(
        "{name}: {} rungs, {seeds} seeds, {} loads of {duration} each: {left} guests{}\nrecords: {}",
        rungs.len(),
        loads.len(),
        if costs > 0 { format!(", and {costs} for what operations take") } else { String::new() },
        directory.display()
    )
}

/// 0 where all was measured, 2 where a guest failed, 3 where some are still to be run, 130 where none was.
fn code(state: &State<LadderPlan>, directory: &Path) -> Result<u8> {
    let mut replay = read(state, directory)?;
    replay.costs(&state.plan.cost_blocks())?;
    Ok(match () {
        () if replay.missing.iter().any(|one| one.failure.is_some()) => 2,
        () if replay.missing.is_empty() => 0,
        () if replay.measured.is_empty() => 130,
        () => 3,
    })
}

fn read<'a>(state: &'a State<LadderPlan>, directory: &'a Path) -> Result<Replay<'a, LadderPlan>> {
    let mut replay = Replay::of(state, directory);
    replay.read(&state.plan.blocks())?;
    Ok(replay)
}

/// The ladder in `directory`: what was planned, with the records that are there.
pub fn shown(directory: &Path) -> Result<Shown> {
    let state = State::<LadderPlan>::load(directory, Kind::Ladder)?;
    let ladder = &state.plan.ladder;
    let mut replay = read(&state, directory)?;
    let costs = replay.costs(&state.plan.cost_blocks())?;
    let of_arm = |arm: &Arm| replay.measured.iter().find(|one| one.block.arm == *arm).map(|one| &one.record);
    let (mut rungs, bases) = (Vec::new(), ladder.bases());
    for (place, rung) in ladder.rungs.iter().enumerate() {
        let arm = Arm::all(place);
        let kernel = state.kernels.get(&rung.kernel);
        let release = kernel.map_or(String::new(), |kernel| format!(", Linux {}", kernel.release));
        let booted = [vec![rung.kernel.clone()], rung.all_words()].concat().join(" ");
        rungs.push(report::experiment::Arm {
            name: rung.name.clone(),
            what: format!("{}: {booted}{release}", rung.title),
            notes: notes(rung, ladder.time, of_arm(&arm)),
            published: rung.published.clone(),
            base: bases[place].map(Arm::all),
            arm,
        });
    }
    let begun = experiments::begin(&state, replay, directory, &|_| Ok(Default::default()))?;
    let mut shown = Experiment {
        title: ladder.title.clone(),
        question: question(ladder),
        answer: Some(Answer::Ladder),
        arms: rungs,
        costs,
        unit: ladder.time.unit(),
        loads: ladder.loads.clone(),
        source: ladder.source.clone().map(|source| (source, ladder.differs.clone())),
        ..begun
    };
    let lab = shown.costs.iter().find_map(|(_, cost)| cost.machine.lab.as_ref());
    let lab = lab.or_else(|| shown.blocks.iter().find_map(|one| one.record.header.machine.lab.as_ref()));
    let emulator = lab.map(|lab| ("Emulator".to_owned(), format!("{}, CPU {}", lab.emulator, lab.cpu_model)));
    shown.conditions.extend(conditions(&state.plan).into_iter().chain(emulator));
    again(ladder, &mut shown.command);
    let json = report::experiment::json_of_ladder(&shown);
    Ok(Shown { experiment: shown, json })
}

fn question(ladder: &LadderFile) -> String {
    if ladder.bases().iter().any(Option::is_some) {
        return "What does each rung gain, and what does it take from everything else?".into();
    }
    let loads = match ladder.loads.as_slice() {
        [only] => only.clone(),
        several => format!("each of {} loads", several.len()),
    };
    let ends = ladder.rungs.first().zip(ladder.rungs.last());
    let (first, last) = ends.map_or(("", ""), |(first, last)| (&first.name, &last.name));
    format!("What does each step from {first} to {last} do to the tail under {loads}?")
}

/// The command that asks for the same ladder. One of a person's own is in a file, of which only the name is known.
fn again(ladder: &LadderFile, command: &mut Vec<String>) {
    let is_shipped = matches!(LadderFile::named(Path::new(&ladder.name)), Ok((_, Home::Shipped)));
    command.push(if is_shipped { ladder.name.clone() } else { format!("{}.toml", ladder.name) });
    let shipped = is_shipped.then(|| LadderFile::named(Path::new(&ladder.name)).ok()).flatten();
    let usual = shipped.map(|(usual, _)| usual);
    let differs = |same: &dyn Fn(&LadderFile) -> bool| !usual.as_ref().is_some_and(same);
    let mut option = |name: &str, value: String| command.extend([name.to_owned(), value]);
    if differs(&|usual| usual.seeds == ladder.seeds) {
        option("--seeds", ladder.seeds.to_string());
    }
    if differs(&|usual| usual.duration == ladder.duration) {
        option("--duration", ladder.duration.to_string());
    }
    if differs(&|usual| usual.loads == ladder.loads) && !ladder.loads.is_empty() {
        option("--loads", ladder.loads.join(","));
    }
    if differs(&|usual| usual.rungs == ladder.rungs) {
        let rungs: Vec<&str> = ladder.rungs.iter().map(|rung| rung.name.as_str()).collect();
        option("--rungs", rungs.join(","));
    }
    if ladder.cost && differs(&|usual| usual.cost) {
        command.push("--cost".to_owned());
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

fn conditions(plan: &LadderPlan) -> Vec<(String, String)> {
    let ladder = &plan.ladder;
    let disk = ladder.disk.map_or_else(|| "no disk".into(), |disk| format!("a disk of {disk}"));
    let LadderFile { seeds, duration, warm_up, time, processors, memory, .. } = ladder;
    let entry = |name: &str, value: String| (name.to_owned(), value);
    let mut entries = Vec::new();
    if !ladder.loads.is_empty() {
        entries.extend([
            entry("Guests", format!("{seeds} a rung, a boot and a seed each; clock: {time}")),
            entry("Loads", ladder.loads.join(", ")),
            entry("Length", format!("{duration} a load after {warm_up} of warm-up")),
        ]);
    }
    let costs = plan.cost_blocks().len() / ladder.rungs.len().max(1);
    if costs > 0 {
        let value = format!(
            "{costs} a rung, a boot and a seed each, in which each operation is measured once; clock: {time}"
        );
        entries.push(entry("Guests for operations", value));
    }
    entries.push(entry("CPUs, memory, disk of a guest", format!("{processors}, {memory}, {disk}")));
    entries
}
