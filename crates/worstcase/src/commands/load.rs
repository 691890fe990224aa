//! `worstcase load`: one load alone, or what they all are.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use load::{Catalogue, LoadPlan, RunningLoad};
use machine::{Snapshot, SysRoot};
use sys::signal::Signals;
use units::{CpuList, Nanos, Seed};

use crate::error::{CommandError, Result};
use crate::options;
use crate::output::{self, Stream};
use crate::run::division::Division;
use crate::run::lab;

/// Run one load alone, or explain them all
///
/// Until Ctrl-C or --duration; then it says what the load did.
#[derive(Args)]
pub struct Load {
    /// The load: see --list
    #[arg(required_unless_present_any = ["list", "load_command"])]
    name: Option<String>,

    /// Explain every load
    #[arg(long)]
    list: bool,

    /// A command of your own, run by the shell
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new(), value_name = "COMMAND", conflicts_with = "name")]
    load_command: Option<String>,

    /// How long [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = options::duration)]
    duration: Option<Nanos>,

    /// CPUs that its workers run on [default: all that are not isolated]
    #[arg(long, value_name = "LIST")]
    load_cpus: Option<CpuList>,

    /// Where it writes, if it writes [default: the working directory]
    #[arg(long, value_name = "DIR")]
    load_dir: Option<PathBuf>,

    /// Seed of what it draws by lot
    #[arg(long, value_name = "N", default_value = "0")]
    seed: Seed,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Load {
    /// Does it.
    pub fn run(self) -> Result<ExitCode> {
        if self.list {
            return self.explain();
        }
        let load = match (&self.load_command, &self.name) {
            (Some(command), _) => load::Load::from_command(command),
            (None, name) => Catalogue::shipped()?.get(name.as_deref().unwrap_or_default())?.clone(),
        };
        let root = SysRoot::live();
        let machine = machine::machine(&root);
        let division = Division::of(&root, &machine, None, self.load_cpus.as_ref())?;
        let mut plan = LoadPlan::new(load, division.load.clone(), self.seed);
        plan.limits = lab::limits(lab::guest()?.as_ref());
        plan.every_cpu = division.load.union(&division.measured);
        plan.duration = self.duration;
        if plan.load.writes() {
            plan.directory = Some(super::bench::load_directory(self.load_dir.as_deref())?);
        }
        let signals = Signals::take()?;
        let mut running = load::start(plan)?;
        running.wait_running(Duration::from_secs(20))?;
        let before = Snapshot::take(&root, &machine.cpus.online);
        running.mark_begin();
        self.wait(&signals, &mut running)?;
        running.mark_end();
        let after = Snapshot::take(&root, &machine.cpus.online);
        let mut evidence = running.stop();
        evidence.shares = machine::busy_between(&before, &after);
        self.show(&evidence)
    }

    /// Until the time is up, a signal comes, or the load dies.
    fn wait(&self, signals: &Signals, running: &mut RunningLoad) -> Result<()> {
        let until = self.duration.map(|duration| Instant::now() + duration.duration());
        loop {
            let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() || !running.alive() {
                return Ok(());
            }
            sys::signal::wait_readable(&[signals.as_fd()], left.min(Duration::from_secs(1)))?;
            if signals.next().is_some() {
                return Ok(());
            }
        }
    }

    fn show(&self, evidence: &record::LoadEvidence) -> Result<ExitCode> {
        if self.json {
            output::final_data(&(serde_json::to_string(evidence).unwrap_or_default() + "\n"))?;
        } else {
            output::final_data(&told(evidence))?;
        }
        let failed =
            evidence.stressors.iter().any(|stressor| stressor.work == 0 || !stressor.failures.is_empty());
        Ok(ExitCode::from(if failed { 2 } else { 0 }))
    }

    fn explain(&self) -> Result<ExitCode> {
        let catalogue = Catalogue::shipped()?;
        let explanations: Vec<_> = catalogue.loads().iter().map(load::Load::explain).collect();
        let text = if self.json {
            serde_json::to_string(&explanations).map_err(|error| CommandError::new(error, ""))? + "\n"
        } else {
            let width = output::style(Stream::Output).width;
            explanations.iter().map(|load| explained(load, width)).collect()
        };
        output::final_data(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What a load did, a line a stressor.
fn told(evidence: &record::LoadEvidence) -> String {
    let mut text = String::new();
    for stressor in &evidence.stressors {
        let record::StressorEvidence { name, workers, work, unit, cpu_time, failures, .. } = stressor;
        text += &format!("{name}: {workers} workers, {work} {unit}, {} of CPU time\n", cpu_time.rounded());
        text.extend(failures.iter().map(|failure| format!("  {failure}\n")));
    }
    for share in &evidence.shares {
        text +=
            &format!("CPU {}: {}.{} % busy\n", share.cpu, share.busy_permille / 10, share.busy_permille % 10);
    }
    text
}

/// A load in words.
fn explained(load: &load::Explanation, width: usize) -> String {
    let mut text = format!("{}: {}\n", load.name, load.title);
    let mut say = |label: &str, words: &str| {
        text += &report::paragraph(&format!("{label}{words}"), 4, width);
    };
    say("disturbs: ", &load.disturbs);
    load.stressors.iter().for_each(|stressor| say("runs ", stressor));
    load.remarks.iter().for_each(|remark| say("", remark));
    load.missing.iter().for_each(|missing| say("missing: ", missing));
    say("source: ", &load.source);
    text + "\n"
}
