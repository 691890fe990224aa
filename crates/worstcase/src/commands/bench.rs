//! `worstcase bench`: the main job. Every CPU under every load, a record, a table, a page, a verdict.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use load::Catalogue;
use record::{CStates, LoadDirectory, LoadLeftOut, LoadProof, Machine, RunPlan};
use sysroot::SysRoot;
use units::{CpuList, Nanos};

use crate::error::{CommandError, Result};
use crate::options::{self, CStatesChoice, Measuring};
use crate::output::{self, Stream};
use crate::presets::{self, Preset};
use crate::run::course::{self, Outcome};
use crate::run::display::Progress;
use crate::run::division::Division;
use crate::run::lab;
use crate::run::outputs::Out;
use crate::run::session::{Beginning, Loads, Session};

/// The loads of S0's tables.
const LOADS: [&str; 6] = ["idle", "cpu", "io", "vm", "hdd", "full"];
/// A first look.
const DURATION: Nanos = Nanos::from_secs(10);
/// latmus' and cyclictest's default.
const INTERVAL: Nanos = Nanos::from_millis(1);

/// Measure this machine under load: a table, a report and a verdict in one go
///
/// Wakes a real-time thread on every CPU, under one load after the other, and leaves a directory with the record and
/// the page. With --limit the exit code says whether the requirement was met.
#[derive(Args)]
pub struct Bench {
    /// Loads, one after the other: see worstcase load --list [default: idle,cpu,io,vm,hdd,full]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    loads: Vec<String>,

    /// A command of your own as a further load, run by the shell
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new(), value_name = "COMMAND")]
    load_command: Option<String>,

    /// By what --load-command is known to run: cpu (it uses the CPU), work (it works, however little CPU that takes), alive
    /// (it waits by design) [default: cpu]
    #[arg(long, value_name = "PROOF", requires = "load_command")]
    load_proof: Option<LoadProof>,

    /// CPUs that load workers run on [default: all that are not isolated]
    #[arg(long, value_name = "LIST")]
    load_cpus: Option<CpuList>,

    /// Where loads that write do so [default: the working directory]
    #[arg(long, value_name = "DIR")]
    load_dir: Option<PathBuf>,

    /// Length of one scenario (a load at a period under a C-state policy) [default: 10s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = options::duration)]
    duration: Option<Nanos>,

    /// Period of the activations; several, separated by commas, are measured one after the other [default: 1ms]
    #[arg(long, value_name = "TIMES", allow_hyphen_values = true, value_delimiter = ',', value_parser = options::interval)]
    interval: Vec<Nanos>,

    /// Idle states: as-is (as an application finds them), restrict (as cyclictest does), both [default: as-is]
    #[arg(long, value_name = "POLICY")]
    cstates: Option<CStatesChoice>,

    /// How often each scenario is measured; from 2 on each pass has an order of its own
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,

    /// Begin with a seed's own measurement: s0, s1, s3, osadl; options given beside it win
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,

    /// Directory of the record [default: worstcase-<UTC time>-<host>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Print the record as JSON instead of the table
    #[arg(long)]
    json: bool,

    /// Print the table of every CPU as well
    #[arg(long)]
    per_cpu: bool,

    #[command(flatten)]
    measuring: Measuring,
}

impl Bench {
    /// Does it.
    pub fn run(self) -> Result<ExitCode> {
        let preset = self.preset.as_deref().map(presets::get).transpose()?;
        let root = SysRoot::live();
        let machine = lab::machine(&root)?;
        let division = self.measuring.division(&root, &machine, self.load_cpus.as_ref())?;
        let loads = self.known_loads()?;
        let mut plan = self.plan(preset.as_ref(), &division, &loads)?;
        let directory = self.directory(&mut plan, &loads)?;
        let begun = self.session(plan, machine, division, Loads { known: loads, directory })?;
        let plan = begun.header.plan.clone();
        announce(&plan, preset.as_ref(), &begun.header.machine);
        let path = begun.outputs.path().map(Path::to_path_buf).unwrap_or_default();
        output::words(&format!("record: {}", path.display()));
        let lengths = plan.scenarios().into_iter().filter_map(|next| plan.scenario_length(&next.setup));
        let longest = lengths.max();
        let mut progress =
            Progress::new(longest.map(|length| length + plan.warm_up), begun.header.machine.unit());
        let outcome = course::run(begun, &mut progress)?;
        Ok(ExitCode::from(outcome.exit_code(self.show(&outcome))))
    }

    /// The catalogue, and the user's own command as one more.
    fn known_loads(&self) -> Result<Vec<load::Load>> {
        let mut known = Catalogue::shipped()?.loads().to_vec();
        let own = self.load_command.as_deref().map(load::Load::from_command);
        known.extend(own.map(|own| own.proven_by(self.load_proof)));
        Ok(known)
    }

    /// The names of the loads to be measured, each known and able to run.
    fn chosen_loads(&self, preset: Option<&Preset>, known: &[load::Load]) -> Result<Vec<String>> {
        let own = self.load_command.as_deref().map(|command| load::Load::from_command(command).name);
        let mut names = match (self.loads.is_empty(), preset, &own) {
            (false, ..) => self.loads.clone(),
            (true, Some(preset), _) => preset.loads.clone(),
            (true, None, Some(_)) => vec!["idle".to_owned()],
            (true, None, None) => LOADS.map(str::to_owned).to_vec(),
        };
        names.extend(own.filter(|own| !names.contains(own)));
        for name in &names {
            match known.iter().find(|load| load.name == *name) {
                Some(load) => check_programs(load)?,
                // Says which there are.
                None => drop(Catalogue::shipped()?.get(name)?),
            }
        }
        Ok(names)
    }

    fn plan(&self, preset: Option<&Preset>, division: &Division, known: &[load::Load]) -> Result<RunPlan> {
        let options = &self.measuring;
        let samples =
            options.samples.or_else(|| preset.filter(|_| self.duration.is_none()).and_then(|p| p.samples));
        let duration = self.duration.or_else(|| preset.and_then(|p| p.duration)).unwrap_or(DURATION);
        let default_interval = preset.and_then(|p| p.interval).unwrap_or(INTERVAL);
        let intervals = if self.interval.is_empty() { vec![default_interval] } else { self.interval.clone() };
        let preset_cstates = preset.and_then(|p| p.cstates.parse::<CStatesChoice>().ok());
        let cstates = self.cstates.or(preset_cstates).map_or(vec![CStates::AsIs], |choice| choice.0.to_vec());
        let plan = RunPlan {
            loads: self.chosen_loads(preset, known)?,
            duration: samples.is_none().then_some(duration),
            samples,
            // A preset is measured as its authors did.
            instrument: options.instrument(intervals, preset.is_none())?,
            cstates,
            repeat: self.repeat,
            preset: preset.map(|p| p.name.clone()),
            ..options.plan(division, preset.map(|p| p.priority))?
        };
        options::check(&plan)?;
        Ok(plan)
    }

    /// Where loads write, if some of them do. Where they cannot, those that write are left out of the default set.
    fn directory(&self, plan: &mut RunPlan, known: &[load::Load]) -> Result<Option<LoadDirectory>> {
        let writes = |name: &String| known.iter().any(|load| load.name == *name && load.writes());
        if !plan.loads.iter().any(writes) {
            return Ok(None);
        }
        let error = match load_directory(self.load_dir.as_deref()) {
            Ok(directory) => return Ok(Some(directory)),
            Err(error) => error,
        };
        let is_default = self.loads.is_empty() && self.preset.is_none() && self.load_dir.is_none();
        if !is_default {
            return Err(error);
        }
        let (left_out, loads): (Vec<String>, Vec<String>) = plan.loads.drain(..).partition(writes);
        let reason = |load| LoadLeftOut { load, reason: error.message.clone() };
        plan.loads_left_out = left_out.into_iter().map(reason).collect();
        plan.loads = loads;
        Ok(None)
    }

    fn session(&self, plan: RunPlan, machine: Machine, division: Division, loads: Loads) -> Result<Session> {
        let options = &self.measuring;
        Session::begin(Beginning {
            plan,
            machine,
            division,
            loads,
            note: options.note.clone(),
            out: Some(self.out.clone().map_or(Out::Named, Out::Directory)),
            samples_file: options.samples_file.clone(),
            max_temperature: options.max_temperature,
            stop_command: options.stop_command.clone(),
        })
    }

    fn show(&self, outcome: &Outcome) -> Result<()> {
        if self.json {
            return output::final_data(&(serde_json::to_string(&outcome.record).unwrap_or_default() + "\n"));
        }
        let table = report::table::bench(&outcome.record, self.per_cpu, &output::style(Stream::Output));
        output::final_data(&table)?;
        if let Some(path) = &outcome.path {
            output::words(&format!("report: {}", path.join(record::store::PAGE).display()));
        }
        Ok(())
    }
}

/// Refuses a load of which no part can run, before anything is measured.
fn check_programs(load: &load::Load) -> Result<()> {
    let missing = load.missing();
    if missing.is_empty() || missing.len() < load.stressors.len() {
        return Ok(());
    }
    Err(load::Error::Missing { load: load.name.clone(), missing }.into())
}

/// What is about to happen and how long it takes.
fn announce(plan: &RunPlan, preset: Option<&Preset>, machine: &Machine) {
    let scenarios = plan.scenarios();
    let length = |setup| plan.scenario_length(setup).unwrap_or_default();
    let total = scenarios.iter().fold(Nanos::ZERO, |sum, next| sum + length(&next.setup) + plan.warm_up);
    let each = match (plan.duration, plan.samples) {
        (Some(duration), _) => duration.rounded(),
        (None, samples) => format!("{} activations", samples.unwrap_or_default()),
    };
    output::words(&format!(
        "{} of {each} each (and {} to warm up) on CPUs {}: about {}",
        if scenarios.len() == 1 { "1 scenario".into() } else { format!("{} scenarios", scenarios.len()) },
        plan.warm_up.rounded(),
        plan.cpus,
        total.rounded()
    ));
    for left_out in &plan.left_out {
        output::words(&format!("warning: CPUs {} are not measured: {}", left_out.cpus, left_out.reason));
    }
    for left_out in &plan.loads_left_out {
        output::words(&format!(
            "warning: load {} is left out: {} (--load-dir names another place)",
            left_out.load, left_out.reason
        ));
    }
    if let Some(preset) = preset {
        output::words(&format!(
            "preset {}: {}\nit leaves open: {}",
            preset.name, preset.source, preset.leaves_open
        ));
    }
    let temperature = machine::temperature(&SysRoot::live());
    if let Some(temperature) = temperature.value() {
        output::words(&format!("temperature before any load: {} C", temperature / 1000));
    }
    if plan.cstates == [CStates::AsIs]
        && machine.idle_states.iter().any(|state| state.latency_us > 10 && !state.disabled)
    {
        output::words(
            "idle states are left as they are; cyclictest would restrict them (--cstates restrict, or both)",
        );
    }
}

/// Where loads write: a real disk, unless a directory was named.
pub fn load_directory(named: Option<&Path>) -> Result<LoadDirectory> {
    let path = named.unwrap_or(Path::new("."));
    let hint = "name a directory on the disk that is to be stressed with --load-dir";
    let failed = |error: std::io::Error| {
        CommandError::new(format!("load directory {}: {error}", path.display()), hint)
    };
    let metadata = path.metadata().map_err(failed)?;
    if !metadata.is_dir() {
        return Err(CommandError::new(format!("load directory {}: not a directory", path.display()), hint));
    }
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).map_err(|errno| failed(errno.into()))?;
    let directory = machine::directory_of(&SysRoot::live(), path);
    let directory = directory
        .ok_or_else(|| CommandError::new(format!("{} is on no known mount", path.display()), hint))?;
    if named.is_none() && directory.is_in_memory() {
        let message =
            format!("{} is on {}: writing there stresses no disk", directory.path, directory.file_system);
        let hint = match lab::guest()? {
            Some(_) => "give the guest a disk: worstcase lab run --disk",
            None => "name a directory with --load-dir (this one too, if you mean it)",
        };
        return Err(CommandError::new(message, hint));
    }
    Ok(directory)
}
