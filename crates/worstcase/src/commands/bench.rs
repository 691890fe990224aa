//! `worstcase bench`: the main job. Every CPU under every load, a record, a table, a page, a verdict.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use record::{CStates, CommandLoad, LoadProof, Machine, Out, Request, RunPlan, store};
use runner::{Means, Outcome, Run};
use sysroot::SysRoot;
use units::{CpuList, Nanos};

use crate::error::Result;
use crate::options::{self, CStatesChoice, Measuring};
use crate::output::{self, Stream};
use crate::presets::{self, Preset};
use crate::progress::Progress;

/// The loads of S0's tables.
const LOADS: [&str; 6] = ["idle", "cpu", "io", "vm", "hdd", "full"];
/// A first look.
const DURATION: Nanos = Nanos::from_secs(10);

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

    /// Who load workers and --load-command run as, by name or as UID[:GID]; root keeps its privileges [default: you,
    /// without capabilities]
    #[arg(long, value_name = "USER")]
    load_user: Option<String>,

    /// Length of one scenario (a load at a period under a C-state policy) [default: 10s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = options::duration)]
    duration: Option<Nanos>,

    /// Idle states: as-is (as an application finds them), restrict (as cyclictest does), both [default: as-is]
    #[arg(long, value_name = "POLICY")]
    cstates: Option<CStatesChoice>,

    /// How often each scenario is measured; from 2 on each pass has an order of its own
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,

    /// Begin with a seed's own measurement: s0, s1, s3, osadl; options given beside it win
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,

    /// Afterwards measure each load once more, traced, and explain its N worst wake-ups [default: 10]
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "10",
        value_parser = clap::value_parser!(u32).range(1..=100)
    )]
    explain: Option<u32>,

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
    /// Measures, shows and judges.
    pub fn run(self, means: &Means) -> Result<ExitCode> {
        let preset = self.preset.as_deref().map(presets::get).transpose()?;
        let run = Run::prepare(self.request(preset.as_ref())?, means)?;
        announce(&run.header().plan, preset.as_ref(), &run.header().machine);
        output::words(&format!("record: {}", run.path().unwrap_or(Path::new("")).display()));
        let mut progress = Progress::of(run.header());
        let outcome = run.measure(&mut progress)?;
        Ok(output::conclude(&outcome, || self.show(&outcome)))
    }

    fn request(&self, preset: Option<&Preset>) -> Result<Request> {
        let options = &self.measuring;
        let samples =
            options.samples.or_else(|| preset.filter(|_| self.duration.is_none()).and_then(|p| p.samples));
        let duration = self.duration.or_else(|| preset.and_then(|p| p.duration)).unwrap_or(DURATION);
        let preset_cstates = preset.and_then(|p| p.cstates.parse::<CStatesChoice>().ok());
        let cstates = self.cstates.or(preset_cstates).map_or(vec![CStates::AsIs], |choice| choice.0.to_vec());
        Ok(Request {
            loads: self.chosen_loads(preset),
            command: self.load_command.clone().map(|command| CommandLoad { command, proof: self.load_proof }),
            may_leave_out: self.loads.is_empty() && preset.is_none() && self.load_dir.is_none(),
            load_cpus: self.load_cpus.clone(),
            load_directory: self.load_dir.clone(),
            load_user: self.load_user.clone(),
            duration: samples.is_none().then_some(duration),
            samples,
            // A preset is measured as its authors did.
            instrument: options.instrument(preset.and_then(|p| p.interval), preset.is_none())?,
            cstates,
            repeat: self.repeat,
            explain: self.explain,
            preset: preset.map(|p| p.name.clone()),
            out: Some(self.out.clone().map_or(Out::Named, Out::Directory)),
            ..options.request(preset.map(|p| p.priority))?
        })
    }

    /// The names of the loads to be measured, beside a command.
    fn chosen_loads(&self, preset: Option<&Preset>) -> Vec<String> {
        match preset {
            _ if !self.loads.is_empty() => self.loads.clone(),
            Some(preset) => preset.loads.clone(),
            None if self.load_command.is_some() => vec!["idle".to_owned()],
            None => LOADS.map(str::to_owned).to_vec(),
        }
    }

    fn show(&self, outcome: &Outcome) -> Result<()> {
        if self.json {
            return output::final_data(&(serde_json::to_string(&outcome.record).unwrap_or_default() + "\n"));
        }
        let table = report::table::bench(&outcome.record, self.per_cpu, &output::style(Stream::Output));
        let explained = report::explanation::text(&outcome.record, &output::style(Stream::Output));
        let gap = if explained.is_empty() { "" } else { "\n" };
        output::final_data(&format!("{table}{gap}{explained}"))?;
        if let Some(page) =
            outcome.path.as_ref().map(|path| path.join(store::PAGE)).filter(|page| page.exists())
        {
            output::words(&format!("report: {}", page.display()));
        }
        Ok(())
    }
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
