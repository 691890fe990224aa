//! What lasts a whole run: the plan, the journal, the samples file, the signals.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Instant;

use machine::{KernelLog, LatencyRequest, SysRoot};
use record::journal::{Journal, Line};
use record::samples::{self, PlannedScenario};
use record::store::RunDirectory;
use record::time::UtcTime;
use record::verdict::Verdict;
use record::{CStates, Header, Held, Machine, Record, RunPlan, SCHEMA_VERSION, Scenario, Tool, Wake};
use sys::signal::Signals;
use units::{CpuId, Nanos, Seed};

use super::display::Display;
use super::division::{Claims, Division};
use super::scenario;
use crate::error::{CommandError, Result};
use crate::output;

/// A run that is going on.
pub struct Session {
    /// The live machine.
    pub root: SysRoot,
    /// Plan, machine and all that the record begins with.
    pub header: Header,
    /// The CPUs.
    pub division: Division,
    /// Loads by name, ready to be started.
    pub loads: Loads,
    /// Ctrl-C and the like.
    pub signals: Signals,
    /// The highest temperature allowed, in thousandths of a degree.
    pub max_temperature: Option<i64>,
    /// For the shell, when --stop-at is reached.
    pub stop_command: Option<String>,
    /// The kernel's log from the run's start.
    pub kernel_log: KernelLog,
    /// When the run began.
    pub began: Instant,
    directory: Option<RunDirectory>,
    journal: Option<Journal>,
    samples: Option<SamplesFile>,
    losses: Vec<String>,
    _claims: Claims,
}

/// Where loads come from.
pub struct Loads {
    /// The catalogue and commands of the user's own.
    pub known: Vec<load::Load>,
    /// Where they write.
    pub directory: Option<record::LoadDirectory>,
}

/// The file of every sample.
struct SamplesFile {
    writer: samples::Writer<BufWriter<File>>,
    path: PathBuf,
    failure: Option<String>,
}

/// What a session is made from.
pub struct Beginning {
    /// The plan, complete.
    pub plan: RunPlan,
    /// Facts of the machine.
    pub machine: Machine,
    /// The CPUs.
    pub division: Division,
    /// Loads.
    pub loads: Loads,
    /// The user's words.
    pub note: Option<String>,
    /// Where the record goes; none: no record.
    pub out: Option<Out>,
    /// File of every sample.
    pub samples_file: Option<PathBuf>,
    /// In degrees Celsius.
    pub max_temperature: Option<i64>,
    /// For the shell.
    pub stop_command: Option<String>,
}

/// Where a record goes.
pub enum Out {
    /// A new directory in the working directory.
    Named,
    /// This directory.
    Directory(PathBuf),
}

impl Session {
    /// Claims the CPUs, begins the record, and takes the signals.
    pub fn begin(beginning: Beginning) -> Result<Self> {
        let Beginning { plan, machine, division, loads, .. } = beginning;
        let claims = Claims::on(&division.measured)?;
        let started = UtcTime(sys::clock::unix_seconds());
        let header = Header {
            schema_version: SCHEMA_VERSION,
            tool: tool(),
            command_line: std::env::args_os()
                .map(|argument| argument.to_string_lossy().into_owned())
                .collect(),
            note: beginning.note,
            started,
            held: held(&plan),
            machine,
            plan,
        };
        let directory = match beginning.out {
            None => None,
            Some(Out::Named) => Some(RunDirectory::create(None, &header.machine.host, started)?),
            Some(Out::Directory(path)) => {
                Some(RunDirectory::create(Some(&path), &header.machine.host, started)?)
            }
        };
        let mut journal = directory.as_ref().map(RunDirectory::journal).transpose()?;
        if let Some(journal) = &mut journal {
            journal.append(&Line::Begin(Box::new(header.clone())));
        }
        let samples = beginning.samples_file.map(|path| SamplesFile::create(path, &header)).transpose()?;
        let root = SysRoot::live();
        let kernel_log = KernelLog::open(&root);
        let signals = Signals::take()?;
        // Keeps off the measured CPUs where there are others.
        let _ = sys::schedule::set_affinity(0, &division.own);
        Ok(Self {
            root,
            header,
            division,
            loads,
            signals,
            max_temperature: beginning.max_temperature.map(|degrees| degrees * 1000),
            stop_command: beginning.stop_command,
            kernel_log,
            began: Instant::now(),
            directory,
            journal,
            samples,
            losses: Vec::new(),
            _claims: claims,
        })
    }

    /// Where the record is written.
    pub fn path(&self) -> Option<&Path> {
        self.directory.as_ref().map(RunDirectory::path)
    }

    /// Appends to the journal, if there is one.
    pub fn append(&mut self, line: &Line) {
        if let Some(journal) = &mut self.journal {
            journal.append(line);
        }
    }

    /// The longest fsync since this was last asked.
    pub fn take_longest_sync(&mut self) -> Nanos {
        self.journal.as_mut().map_or(Nanos::ZERO, Journal::take_longest_sync)
    }

    /// Whether there is a samples file.
    pub fn saves_samples(&self) -> bool {
        self.samples.is_some()
    }

    /// Appends to the samples file, if there is one.
    pub fn save_samples(&mut self, scenario: usize, series: usize, samples: &[(u64, u64)]) {
        if let Some(file) = &mut self.samples {
            file.save(scenario, series, samples);
        }
    }

    /// Whether somebody still looks. A view that could not be shown ends the run and weighs in its verdict.
    pub fn is_watched(&mut self, shown: Result<bool>) -> bool {
        shown.unwrap_or_else(|error| {
            self.losses.push(error.message);
            false
        })
    }

    /// Measures every scenario of the plan, or as many as the user and the machine let it, and judges the run.
    pub fn run(mut self, display: &mut dyn Display) -> Result<Outcome> {
        let planned = planned(&self.header.plan);
        let mut scenarios: Vec<Scenario> = Vec::new();
        let mut interrupted = false;
        for (index, next) in planned.iter().enumerate() {
            let scenario = match scenario::measure(&mut self, next, index, planned.len(), display) {
                Ok(scenario) => scenario,
                Err(error) if scenarios.is_empty() => return Err(error),
                Err(error) => {
                    // What was measured before is worth its record.
                    output::error(&error);
                    self.losses.push(error.message);
                    break;
                }
            };
            let (go_on, ended) = (scenario.go_on, scenario.scenario);
            interrupted |= ended.end == record::ScenarioEnd::Interrupted;
            self.append(&Line::Ended(Box::new(ended.clone())));
            let watched = self.is_watched(display.ended(&ended));
            scenarios.push(ended);
            if !go_on || !watched {
                break;
            }
        }
        Ok(self.finish(scenarios, interrupted))
    }

    fn finish(mut self, scenarios: Vec<Scenario>, interrupted: bool) -> Outcome {
        if let Some(failure) = self.samples.as_mut().and_then(SamplesFile::close) {
            self.losses.push(failure);
        }
        let ended = UtcTime(sys::clock::unix_seconds());
        let warnings = record::validity::of_run(&self.header, &scenarios);
        let judgement = record::verdict::Judgement::default();
        let header = self.header.clone();
        let mut record = Record { header, ended: Some(ended), scenarios, warnings, judgement };
        record.judgement = record::verdict::judge(&record, &self.losses);
        let (warnings, judgement) = (record.warnings.clone(), record.judgement.clone());
        self.append(&Line::Finished { at: ended, warnings, judgement });
        // The journal's own failure can only be known now.
        self.losses.extend(self.journal.as_ref().and_then(Journal::failure).map(str::to_owned));
        record.judgement = record::verdict::judge(&record, &self.losses);
        let written = self.directory.as_ref().map(|directory| directory.write_record(&record));
        if let Some(Err(error)) = written {
            self.losses.push(error.to_string());
            record.judgement = record::verdict::judge(&record, &self.losses);
        }
        let page = self.directory.as_ref().map(|directory| write_page(directory, &record));
        if let Some(Err(error)) = page {
            self.losses.push(error);
            record.judgement = record::verdict::judge(&record, &self.losses);
        }
        let path = self.path().map(Path::to_path_buf);
        Outcome { record, path, interrupted }
    }
}

fn write_page(directory: &RunDirectory, record: &Record) -> std::result::Result<(), String> {
    let page = report::page::page(std::slice::from_ref(record)).map_err(|error| error.to_string())?;
    directory.write_page(&page).map_err(|error| error.to_string())
}

/// What a run left.
pub struct Outcome {
    /// The record, judged.
    pub record: Record,
    /// Where it is.
    pub path: Option<PathBuf>,
    /// Whether the user ended it.
    pub interrupted: bool,
}

impl Outcome {
    /// The exit code that the verdict asks for; 130 where the user ended the run before anything was measured. Output
    /// that was lost, as `shown` tells, is said here and is an error, unless the run has failed anyway.
    pub fn exit_code(&self, shown: Result<()>) -> u8 {
        let verdict = self.record.judgement.verdict;
        if let Err(error) = shown {
            output::error(&error);
            return verdict.max(Verdict::Error).exit_code();
        }
        if self.interrupted && self.record.activations() == 0 {
            return 130;
        }
        verdict.exit_code()
    }
}

impl SamplesFile {
    fn create(path: PathBuf, header: &Header) -> Result<Self> {
        let failed = |error: std::io::Error| {
            CommandError::new(
                format!("create {}: {error}", path.display()),
                "choose a file that does not exist yet",
            )
        };
        let file = File::create_new(&path).map_err(failed)?;
        let planned = samples::Header {
            program: format!("worstcase {}", header.tool.version),
            started: header.started,
            clock: header.plan.clock,
            cpus: series_cpus(&header.plan),
            scenarios: planned(&header.plan),
        };
        let writer = samples::Writer::new(BufWriter::new(file), &planned).map_err(failed)?;
        Ok(Self { writer, path, failure: None })
    }

    fn save(&mut self, scenario: usize, series: usize, samples: &[(u64, u64)]) {
        let samples: Vec<(u64, Nanos)> =
            samples.iter().map(|&(activation, latency)| (activation, Nanos(latency))).collect();
        let written =
            self.writer.block(scenario as u16, series as u16, &samples).and_then(|()| self.writer.flush());
        self.note(written);
    }

    fn note(&mut self, result: std::io::Result<()>) {
        if let Err(error) = result {
            self.failure.get_or_insert_with(|| format!("write {}: {error}", self.path.display()));
        }
    }

    fn close(&mut self) -> Option<String> {
        let synced = self.writer.flush().and_then(|()| self.writer.get_ref().get_ref().sync_all());
        self.note(synced);
        self.failure.clone()
    }
}

fn tool() -> Tool {
    let libc = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    let linking = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    Tool {
        version: env!("CARGO_PKG_VERSION").into(),
        build: format!("{}-linux-{libc} {linking} {profile}", std::env::consts::ARCH),
    }
}

/// The CPU of each series: the measured ones, or none of them for threads that are not pinned.
pub fn series_cpus(plan: &RunPlan) -> Vec<Option<CpuId>> {
    // A deadline thread may only be pinned where its affinity spans the root domain: with one CPU in it.
    let pinned = plan.wake != Wake::Deadline;
    plan.cpus.iter().map(|cpu| pinned.then_some(cpu)).collect()
}

/// Settings that the run will hold, for the header; what they came to is read back when they are held.
fn held(plan: &RunPlan) -> Vec<Held> {
    if !plan.cstates.contains(&CStates::Restrict) {
        return Vec::new();
    }
    let effective = LatencyRequest::hold(0)
        .map_or_else(|error| error.to_string(), |request| request.effective().to_string());
    vec![Held {
        what: machine::latency_request::PATH.into(),
        value: "0".into(),
        effective,
        during: "scenarios with restricted C-states".into(),
    }]
}

/// The plan's scenarios in the order in which they are measured: as given for one pass; drawn by lot within each pass
/// where there are several, so that drift (heat, caches of files) does not fall on the same load every time.
pub fn planned(plan: &RunPlan) -> Vec<PlannedScenario> {
    let mut order = plan.seed.unwrap_or(Seed(0)).stream("order");
    let mut all = Vec::new();
    for repeat in 1..=plan.repeat {
        let mut pass = Vec::new();
        for &interval in &plan.intervals {
            for load in &plan.loads {
                for &cstates in &plan.cstates {
                    pass.push(PlannedScenario { load: load.clone(), interval, cstates, repeat });
                }
            }
        }
        if plan.repeat > 1 {
            order.shuffle(&mut pass);
        }
        all.extend(pass);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(repeat: u32) -> RunPlan {
        RunPlan {
            loads: vec!["idle".into(), "cpu".into(), "io".into()],
            intervals: vec![Nanos::from_millis(1)],
            cstates: vec![CStates::AsIs],
            seed: Some(Seed(5)),
            repeat,
            ..RunPlan::default()
        }
    }

    #[test]
    fn one_pass_goes_in_the_order_given() {
        let loads: Vec<_> = planned(&plan(1)).into_iter().map(|scenario| scenario.load).collect();
        assert_eq!(loads, ["idle", "cpu", "io"]);
    }

    #[test]
    fn several_passes_are_each_complete_and_drawn_from_the_seed() {
        let passes = planned(&plan(20));
        assert_eq!(passes, planned(&plan(20)));
        let order =
            |pass: &[PlannedScenario]| pass.iter().map(|scenario| scenario.load.clone()).collect::<Vec<_>>();
        let orders: std::collections::BTreeSet<_> = passes.chunks(3).map(order).collect();
        assert!(orders.len() > 1);
        for mut pass in orders {
            pass.sort_unstable();
            assert_eq!(pass, ["cpu", "idle", "io"]);
        }
    }
}
