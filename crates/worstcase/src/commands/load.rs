//! `worstcase load`: one load alone, or what they all are.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use load::{Catalogue, LoadPlan, RunningLoad};
use machine::Snapshot;
use record::verdict::Verdict;
use record::{Effect, LoadProof, WarningId};
use runner::division::Division;
use runner::guest;
use sys::signal::Signals;
use sysroot::SysRoot;
use units::{CpuList, Nanos, Seed};

use crate::options;
use crate::output::{self, Stream};
use failure::{Error, Result};

/// How often the load is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Run one load alone, or explain them all
///
/// Until Ctrl-C or --duration; then it says what the load did.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase load --list       what each load does\n  \
    worstcase load io -D 10m    beside a measurement of your own")]
pub struct Load {
    /// The load: see --list
    name: Option<String>,

    /// Explain every load
    #[arg(long)]
    list: bool,

    /// A command of your own, run by the shell
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new(), value_name = "COMMAND", conflicts_with = "name")]
    load_command: Option<String>,

    /// What shows that it runs: cpu (it uses the CPU), work (it works, however little CPU that takes), alive (it waits by
    /// design) [default: a command by cpu, a load of the catalogue by what it says itself]
    #[arg(long, value_name = "PROOF")]
    load_proof: Option<LoadProof>,

    /// How long [default: until Ctrl-C]
    #[arg(short = 'D', long, value_name = "TIME", allow_hyphen_values = true, value_parser = options::duration)]
    duration: Option<Nanos>,

    /// CPUs that its workers run on [default: all that are not isolated]
    #[arg(long, value_name = "LIST")]
    load_cpus: Option<CpuList>,

    /// Where it writes, if it writes [default: the working directory]
    #[arg(long, value_name = "DIR")]
    load_dir: Option<PathBuf>,

    /// Who its workers and --load-command run as, by name or as UID[:GID]; root keeps its privileges [default: you,
    /// without capabilities]
    #[arg(long, value_name = "USER")]
    load_user: Option<String>,

    /// Seed of everything random in it
    #[arg(long, value_name = "N", default_value = "0")]
    seed: Seed,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Load {
    pub fn run(self) -> Result<ExitCode> {
        if self.list {
            return self.explain();
        }
        let load = match (&self.load_command, &self.name) {
            (Some(command), _) => load::Load::from_command(command),
            (None, Some(name)) => Catalogue::shipped()?.get(name)?.clone(),
            (None, None) => {
                let hint = "worstcase load --list says what each load does and needs";
                return Err(Error::new("no load is named", hint));
            }
        };
        let load = load.proven_by(self.load_proof);
        let root = SysRoot::live();
        let machine = machine::machine(&root);
        let division = Division::of(&root, &machine, None, self.load_cpus.as_ref())?;
        let mut plan = LoadPlan::new(load, division.load.clone(), self.seed);
        plan.limits = guest::limits(guest::guest()?.as_ref());
        plan.every_cpu = division.load.union(&division.measured);
        plan.duration = self.duration;
        plan.user = self.load_user.as_deref().map(runner::plan::load_user).transpose()?;
        if plan.load.writes() {
            plan.directory = Some(runner::plan::load_directory(self.load_dir.as_deref())?);
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
            sys::signal::wait_readable(&[signals.as_fd()], left.min(LOOK))?;
            running.look();
            if signals.next().is_some() {
                return Ok(());
            }
        }
    }

    fn show(&self, evidence: &record::LoadEvidence) -> Result<ExitCode> {
        if self.json {
            output::final_data(&(serde_json::to_string(evidence).unwrap_or_default() + "\n"))?;
        } else {
            output::final_data(&text(evidence))?;
        }
        Ok(ExitCode::from(judge(evidence).exit_code()))
    }

    fn explain(&self) -> Result<ExitCode> {
        let catalogue = Catalogue::shipped()?;
        let explanations: Vec<_> = catalogue.loads().iter().map(load::Load::explain).collect();
        let text = if self.json {
            serde_json::to_string(&explanations).map_err(|error| Error::new(error, ""))? + "\n"
        } else {
            let width = output::style(Stream::Output).width;
            explanations.iter().map(|load| explained(load, width)).collect()
        };
        output::final_data(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether the load did what it was to do: an error if a part of it failed or did nothing, inconclusive if one ran for
/// less than three quarters of the time. Says why.
fn judge(evidence: &record::LoadEvidence) -> Verdict {
    let mut verdict = Verdict::Pass;
    for warning in record::validity::of_load_alone(evidence) {
        let (label, worse) = match (warning.id, warning.effect) {
            (WarningId::LoadIdle | WarningId::LoadFailed, _) => ("error", Verdict::Error),
            (_, Effect::Inconclusive) => ("warning", Verdict::Inconclusive),
            (_, Effect::Note) => ("warning", Verdict::Pass),
        };
        output::words(&format!("{label}: {}\n  hint: {}", warning.evidence, warning.cure));
        verdict = verdict.max(worse);
    }
    verdict
}

const CPU_TIME: &str = "of CPU time";

/// What a load did, a line a stressor.
fn text(evidence: &record::LoadEvidence) -> String {
    let mut text = String::new();
    for stressor in &evidence.stressors {
        let record::StressorEvidence { name, workers, work, unit, cpu_time, exposure, .. } = stressor;
        let exposure = exposure.map(|exposure| format!(", {exposure}")).unwrap_or_default();
        let workers = if *workers == 1 { "1 worker".to_owned() } else { format!("{workers} workers") };
        // Of a command nothing else is known than its CPU time.
        let done = if unit.ends_with(CPU_TIME) { String::new() } else { format!(", {work} {unit}") };
        text += &format!("{name}: {workers}{done}, {} {CPU_TIME}{exposure}\n", cpu_time.rounded());
    }
    if let Some(device) = &evidence.device {
        text +=
            &format!("bytes that reached device {}, whoever wrote them: {}\n", device.number, device.written);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reached_the_device_is_said_beside_what_was_written() {
        let stressor = |name: &str| record::StressorEvidence {
            name: name.into(),
            work: 27_800_000_000,
            unit: "bytes written".into(),
            ..Default::default()
        };
        let mut evidence = record::LoadEvidence { stressors: vec![stressor("hdd")], ..Default::default() };
        assert!(!text(&evidence).contains("reached"));
        let reached = |written| record::DeviceWrites { number: "254:0".into(), written };
        evidence.device = Some(reached(record::Fact::Value(330_000_000)));
        let said = text(&evidence);
        assert!(said.contains("27800000000 bytes written"), "{said}");
        assert!(said.contains("bytes that reached device 254:0, whoever wrote them: 330000000"), "{said}");
        evidence.device = Some(reached(record::Fact::Unreadable(13)));
        assert!(text(&evidence).contains("254:0") && !text(&evidence).contains(": 0\n"), "unknown is not 0");
    }
}
