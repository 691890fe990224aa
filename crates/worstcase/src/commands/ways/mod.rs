//! `worstcase ways`: the same task, done in each way that this machine has.

mod catalogue;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use record::time::UtcTime;
use record::ways::{self, Task, WAYS_VERSION, Way, Ways};
use record::{CStates, Effect, InstrumentPlan, Out, Request, WarningId};
use runner::{Outcome, Run};
use sysroot::SysRoot;
use units::{CpuId, CpuList, Nanos, Policy, Seed};

use self::catalogue::{Known, Measured, Partition};
use crate::options::{self, MEASURED, OUTPUT};
use crate::output::{self, Stream};
use crate::progress;
use failure::{Error, Result};

/// Do the same task in each way that this machine has, and compare
///
/// The task is an activation each period, or a message. It is done by an ordinary thread, a SCHED_FIFO thread, one in a partition, and a core of
/// the runtime that sleeps, pauses or spins; each in turn, under the same loads. With a partition the loads have all CPUs outside it,
/// without one all but the task's. What this machine cannot do is named with the reason.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase ways                            every way that can be measured here\n  \
    worstcase ways -D 1m --loads full         longer, under one load\n  \
    worstcase ways --only fifo,runtime-spin   two of them\n  \
    worstcase ways --task message             a message from another CPU")]
pub struct WaysCommand {
    /// These ways alone
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = MEASURED)]
    only: Vec<String>,

    /// What is done: activation, message (from another CPU), stages (a message that two pass on to a third)
    #[arg(long, value_name = "TASK", default_value = "activation", help_heading = MEASURED)]
    task: Task,

    /// The CPU that the task runs on [default: the last one, or the partition's first]
    #[arg(long, value_name = "CPU", help_heading = MEASURED)]
    cpu: Option<u32>,

    /// The partition for those ways that take CPUs for themselves: see worstcase partition list [default: the only one]
    #[arg(long, value_name = "NAME", help_heading = MEASURED)]
    partition: Option<String>,

    /// Loads: see worstcase load --list
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = options::load_name, default_value = "idle,full", help_heading = MEASURED)]
    loads: Vec<String>,

    /// Time for each way under each load
    #[arg(short = 'D', long, value_name = "TIME", allow_hyphen_values = true, default_value = "10s", value_parser = options::duration, help_heading = MEASURED)]
    duration: Nanos,

    /// From one activation or message to the next
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true, default_value = "1ms", value_parser = options::length, help_heading = MEASURED)]
    interval: Nanos,

    /// Seed of everything random, the same for each way [default: random, and recorded]
    #[arg(long, value_name = "N", help_heading = MEASURED)]
    seed: Option<Seed>,

    /// Directory of the records [default: worstcase-ways-<UTC time>]
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    out: Option<PathBuf>,

    /// Print JSON
    #[arg(long, help_heading = OUTPUT)]
    json: bool,

    /// Print results only
    #[arg(short, long, help_heading = OUTPUT)]
    quiet: bool,
}

impl WaysCommand {
    pub fn run(self) -> Result<ExitCode> {
        output::quiet(self.quiet);
        let known = catalogue::chosen(&self.only)?;
        let setup = Setup::of(&self)?;
        let directory = self.directory(&setup)?;
        let (mut all, mut lost) = (setup.nothing_yet(&self), None);
        for one in known {
            let is_first = all.ways.iter().all(|way| way.record.is_none());
            let (way, interrupted) = self.measure(&setup, one, &directory, is_first).inspect_err(|_| {
                // Nothing is in it yet, or it stays.
                let _ = std::fs::remove_dir(&directory);
            })?;
            all.ways.push(way);
            all.interrupted = interrupted;
            lost = lost.or(save(&directory, &all).err());
            if interrupted {
                break;
            }
        }
        // What was measured is shown, kept or not.
        self.show(&all, &directory)?;
        if let Some(error) = lost {
            return Err(error);
        }
        let is_measured = all.ways.iter().any(|way| !way.figures.is_empty());
        Ok(ExitCode::from(match (is_measured, all.interrupted) {
            (true, false) => 0,
            (false, true) => 130,
            // Ways that were to be compared are missing.
            (true, true) | (false, false) => 3,
        }))
    }

    fn show(&self, all: &Ways, directory: &Path) -> Result<()> {
        match self.json {
            true => print_json(all),
            false => show(all, directory),
        }
    }

    /// One way: its row, and whether the user ended it.
    fn measure(&self, setup: &Setup, known: Known, directory: &Path, is_first: bool) -> Result<(Way, bool)> {
        let why_not = catalogue::why_not(&known, &setup.machine, setup.is_partitioned());
        let mut way = known.way();
        let below = known.below.as_ref().map(|_| catalogue::Below::note(&setup.machine));
        let Some(measured) = known.measured.filter(|_| why_not.is_none()) else {
            return Ok((Way { why_not, ..way }, false));
        };
        let place = setup.place(&measured);
        if self.task != Task::Activation && place.senders.is_empty() {
            let why_not = Some(place.no_sender());
            return Ok((Way { why_not, ..way }, false));
        }
        let senders = place.senders.clone();
        let Some(instrument) = measured.instrument(self.task, self.interval, senders) else {
            let why_not = Some(format!("no call of measure --probe call hands {} a message", way.title));
            return Ok((Way { why_not, ..way }, false));
        };
        let own = directory.join(&way.name);
        output::news(&format!("{}: {}", way.name, way.title));
        let request = setup.request(self, &measured, place, instrument, &own);
        let outcome = match Run::prepare(request, &super::means()).and_then(progress::measure) {
            Ok(outcome) => outcome,
            // What hinders the first hinders all.
            Err(error) if is_first => return Err(error),
            Err(error) => return Ok((Way { why_not: Some(error.message), ..way }, false)),
        };
        way.record = Some(way.name.clone());
        if let Some(refused) = outcome.record.all_warnings().find(|one| one.id == WarningId::PolicyDiffers) {
            let policy = measured.policy.kernel_name();
            let why_not = format!("the kernel refused {policy} to it: {}", refused.cure);
            return Ok((Way { why_not: Some(why_not), ..way }, outcome.interrupted));
        }
        way.figures = report::ways::under_loads(&outcome.record);
        way.locked_memory = report::ways::locked_memory(&outcome.record);
        way.cpus_taken = measured.cpus_taken(setup.is_partitioned());
        way.notes = below.into_iter().chain(notes(self.task, &measured, setup, &outcome)).collect();
        Ok((way, outcome.interrupted))
    }

    fn directory(&self, setup: &Setup) -> Result<PathBuf> {
        let name = format!("worstcase-ways-{}", setup.started.compact());
        let path = self.out.clone().unwrap_or_else(|| PathBuf::from(name));
        let made = std::fs::create_dir(&path);
        made.map_err(|error| {
            let hint = match error.kind() {
                ErrorKind::AlreadyExists => {
                    "name another one with --out: an earlier result is not written over"
                }
                _ => "name a directory that can be made: --out",
            };
            Error::new(format!("make {}: {error}", path.display()), hint)
        })?;
        output::news(&format!("records: {}", path.display()));
        Ok(path)
    }
}

/// What has to be known of a way's figures.
fn notes(task: Task, measured: &Measured, setup: &Setup, outcome: &Outcome) -> Vec<String> {
    let outside = (measured.partition == Partition::Wanted && !setup.is_partitioned())
        .then(|| format!("CPU {} is not a partition: everything else may run there too", setup.cpu));
    let are_shared = setup.others.contains(setup.cpu) && !outcome.record.is_unloaded();
    let shared =
        are_shared.then(|| format!("the loads share CPU {} with it: this program has no other", setup.cpu));
    let judged = &outcome.record.judgement;
    // Time that the hypervisor took is no fault of a way, and in its figures all the same; so is a page that was not there.
    let counts = |id| matches!(id, WarningId::Steal | WarningId::MemoryNotLocked);
    let doubts = outcome.record.all_warnings().filter(|one| one.effect != Effect::Note || counts(one.id));
    let ids: BTreeSet<String> = doubts.map(|one| one.id.to_string()).collect();
    let doubts = (!ids.is_empty()).then(|| format!("in doubt: {}", Vec::from_iter(ids).join(", ")));
    let warns = |id| outcome.record.all_warnings().any(|one| one.id == id);
    // A core that is sent messages rests between two of them.
    let is_busy = task == Task::Activation && measured.wake.keeps_the_cpu();
    let throttled = (is_busy && warns(WarningId::ThrottlingOn)).then(|| {
        "the kernel takes time from real-time threads that never sleep, for ordinary ones that wait: sysctl \
         kernel.sched_rt_runtime_us, and the fair server since Linux 6.12"
            .to_owned()
    });
    let lost = judged.losses.iter().map(|lost| format!("lost: {lost}"));
    let in_guest = report::ways::worst_in_guest(&outcome.record);
    in_guest.into_iter().chain(outside).chain(shared).chain(throttled).chain(doubts).chain(lost).collect()
}

/// Where a way is measured.
struct Place {
    cpu: CpuId,
    /// From where it can be sent messages.
    senders: CpuList,
    partition: Option<String>,
}

impl Place {
    fn no_sender(&self) -> String {
        match &self.partition {
            Some(name) => format!(
                "partition {name} has no second CPU for the sender, which is a thread of the same process"
            ),
            None => "there is no second CPU for the sender that this program may use".to_owned(),
        }
    }
}

/// What is alike for all ways.
struct Setup {
    started: UtcTime,
    machine: record::Machine,
    /// Where the task runs: in the partition, where there is one.
    cpu: CpuId,
    /// Where it does in ways that take no CPU for themselves: a partition's is none of theirs.
    outside: CpuId,
    /// All CPUs but the task's, or but the partition's: those of the loads.
    others: CpuList,
    partition: Option<String>,
    /// The partition's CPUs.
    own: CpuList,
    seed: Seed,
}

impl Setup {
    fn of(asked: &WaysCommand) -> Result<Self> {
        let root = SysRoot::live();
        let machine = runner::guest::machine(&root)?;
        let partition = partition(&root, asked.partition.as_deref())?;
        let own = partition.as_ref().map(|partition| partition.cpus.clone());
        let usual = match &own {
            Some(own) => own.iter().next(),
            None => machine.cpus.allowed.iter().last(),
        };
        let none =
            || Error::new("there is no CPU for the task", "is the partition valid? worstcase partition list");
        let cpu = asked.cpu.map(CpuId).or(usual).ok_or_else(none)?;
        if !machine.cpus.online.contains(cpu) {
            let hint = format!("online are {}", machine.cpus.online);
            return Err(Error::new(format!("--cpu names CPU {cpu}: not online"), hint));
        }
        let others = machine.cpus.for_loads(own.as_ref().unwrap_or(&CpuList::from_iter([cpu])));
        // On a machine of one CPU the loads share it, and a core that spins is refused it.
        let others = if others.is_empty() { machine.cpus.for_loads(&CpuList::default()) } else { others };
        let outside = own.as_ref().and_then(|_| others.iter().last()).unwrap_or(cpu);
        let own = own.unwrap_or_default();
        let seed = asked.seed.unwrap_or_else(runner::plan::drawn_seed);
        Ok(Self {
            started: UtcTime(sys::clock::unix_seconds()),
            machine,
            cpu,
            outside,
            others,
            partition: partition.map(|one| one.group),
            own,
            seed,
        })
    }

    fn is_partitioned(&self) -> bool {
        self.partition.is_some()
    }

    fn place(&self, measured: &Measured) -> Place {
        let partition = self.partition.clone().filter(|_| measured.partition != Partition::No);
        let (cpu, all) = match &partition {
            // The sender is a thread of the same process, which is in the partition as a whole.
            Some(_) => (self.cpu, &self.own),
            None => (self.outside, &self.machine.cpus.for_loads(&self.own)),
        };
        Place { cpu, senders: all.iter().filter(|one| *one != cpu).collect(), partition }
    }

    fn nothing_yet(&self, asked: &WaysCommand) -> Ways {
        Ways {
            ways_version: WAYS_VERSION,
            tool: runner::tool(),
            started: self.started,
            machine: self.machine.clone(),
            task: asked.task,
            partition: self.partition.clone(),
            interval: asked.interval,
            duration: asked.duration,
            loads: asked.loads.clone(),
            ways: Vec::new(),
            interrupted: false,
        }
    }

    fn request(
        &self,
        asked: &WaysCommand,
        measured: &Measured,
        place: Place,
        instrument: InstrumentPlan,
        directory: &Path,
    ) -> Request {
        let usual = Request::default();
        Request {
            instrument,
            loads: asked.loads.clone(),
            cpus: Some(CpuList::from_iter([place.cpu])),
            partition: place.partition,
            load_cpus: Some(self.others.clone()),
            duration: Some(asked.duration),
            policy: measured.policy,
            priority: usual.priority.filter(|_| measured.policy != Policy::Other),
            cstates: vec![CStates::AsIs],
            repeat: 1,
            seed: Some(self.seed),
            // By which a comparison of records names it.
            note: directory.file_name().map(|name| format!("way: {}", name.to_string_lossy())),
            out: Some(Out::Directory(directory.to_owned())),
            ..usual
        }
    }
}

/// The partition that is named, or the only one that is valid.
fn partition(root: &SysRoot, name: Option<&str>) -> Result<Option<record::Partition>> {
    if let Some(name) = name {
        return runner::partition::named(root, name).map(Some);
    }
    let mut all = machine::partitions(root);
    all.retain(record::Partition::is_valid);
    Ok(all.pop().filter(|_| all.is_empty()))
}

fn save(directory: &Path, all: &Ways) -> Result<()> {
    let text = serde_json::to_string_pretty(all).map_err(|error| Error::new(error, ""))?;
    Ok(files::write_whole(&directory.join(ways::FILE), text.as_bytes())?)
}

/// Prints what a directory holds.
pub fn show(all: &Ways, directory: &Path) -> Result<()> {
    let style = output::style(Stream::Output);
    output::final_data(&report::ways::text(all, &directory.display().to_string(), &style))
}

/// Prints it for programs.
pub fn print_json(all: &Ways) -> Result<()> {
    let text = serde_json::to_string(all).map_err(|error| Error::new(error, ""))?;
    output::final_data(&(text + "\n"))
}
