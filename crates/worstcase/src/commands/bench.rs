//! `worstcase bench`: the main job. Every CPU under every load, a record, a table, a page, a verdict.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use record::{CStates, CommandLoad, Header, LoadProof, Machine, Out, Record, Request, RunPlan, store};
use report::Style;
use report::foot::Notes;
use runner::{Means, Outcome, Run};
use sysroot::SysRoot;
use units::{CpuList, Nanos};

use crate::options::{self, CStatesChoice, Form, LOADED, MEASURED, Measuring, OUTPUT};
use crate::output::{self, Stream};
use crate::presets::{self, Preset};
use crate::progress::{self, amount};
use failure::{Error, Result};

const EXAMPLES: &str = "\
Examples:
  worstcase bench                                 six loads, 10 s each
  worstcase bench -D 10m --limit 100us            exit code 1 if it is missed
  worstcase bench --loads idle,io --explain       why the worst were late
  worstcase bench --load-command 'make -j8'       a load of your own
  worstcase bench --cstates both                  what idle states cost
  worstcase bench --preset enea                   as in Enea's paper";

/// Measure this machine under load: a table, a report and a verdict
///
/// Wakes a real-time thread on every CPU under one load after another, and leaves a directory with the record and a
/// page. With --limit the exit code says whether the requirement was met.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Bench {
    #[command(flatten)]
    measuring: Measuring,

    /// Loads, one after the other: see worstcase load --list [default: idle,cpu,io,vm,hdd,full]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = options::load_name, help_heading = LOADED)]
    loads: Vec<String>,

    /// A command of your own as a further load, run by the shell
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new(), value_name = "COMMAND", help_heading = LOADED)]
    load_command: Option<String>,

    /// What shows that --load-command runs: cpu (it uses the CPU), work (it works, however little CPU that takes), alive
    /// (it waits by design) [default: cpu]
    #[arg(long, value_name = "PROOF", requires = "load_command", help_heading = LOADED)]
    load_proof: Option<LoadProof>,

    /// CPUs that load workers run on [default: all that are not isolated]
    #[arg(long, value_name = "LIST", help_heading = LOADED)]
    load_cpus: Option<CpuList>,

    /// Where loads that write do so [default: the working directory]
    #[arg(long, value_name = "DIR", help_heading = LOADED)]
    load_dir: Option<PathBuf>,

    /// Who load workers and --load-command run as, by name or as UID[:GID]; root keeps its privileges [default: you,
    /// without capabilities]
    #[arg(long, value_name = "USER", help_heading = LOADED)]
    load_user: Option<String>,

    /// Time for each load (at each period, under each C-state policy) [default: 10s]
    #[arg(short = 'D', long, value_name = "TIME", allow_hyphen_values = true, value_parser = options::duration, help_heading = MEASURED)]
    duration: Option<Nanos>,

    /// Idle states: as-is (as an application finds them), restrict (as cyclictest does), both [default: as-is]
    #[arg(long, value_name = "POLICY", help_heading = MEASURED)]
    cstates: Option<CStatesChoice>,

    /// How often each scenario is measured; from 2 on each pass has an order of its own
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = MEASURED)]
    repeat: u32,

    /// Measure as a paper did: enea, evl, flatscher, osadl; options given beside it win
    #[arg(long, value_name = "NAME", help_heading = MEASURED)]
    preset: Option<String>,

    /// Afterwards measure each load once more, traced, and explain its N worst wake-ups [default: 10]
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "10",
        value_parser = clap::value_parser!(u32).range(1..=100),
        help_heading = MEASURED
    )]
    explain: Option<u32>,

    /// Directory of the record [default: worstcase-<UTC time>-<host>]
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    out: Option<PathBuf>,

    /// Print the run in this form instead of the table
    #[arg(long, value_name = "FORM", help_heading = OUTPUT)]
    format: Option<Form>,

    /// The same as --format json
    #[arg(long, conflicts_with = "format", help_heading = OUTPUT)]
    json: bool,

    /// Compare with an earlier record: its directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "json"], help_heading = OUTPUT)]
    against: Option<PathBuf>,

    /// Print the table of every CPU as well
    #[arg(long, help_heading = OUTPUT)]
    per_cpu: bool,
}

/// What is printed below the table of a record; beside an earlier one if there is one.
pub type Below = fn(&Record, Option<&Earlier>, &Style) -> Vec<String>;

/// A record to compare with.
pub struct Earlier {
    /// Where it lies, as the user named it.
    pub place: PathBuf,
    pub record: Record,
}

/// What the program that has more than measuring does around a run. The agent, which is to be small, is built without: to read a
/// record is a tenth of it.
#[derive(Clone, Copy)]
pub struct Around {
    /// Reads an earlier record, to compare with.
    pub read: fn(&Path) -> std::result::Result<Record, store::StoreError>,
    /// What is printed below the table.
    pub below: Below,
}

impl Bench {
    /// Measures, shows and judges.
    pub fn run(self, means: &Means, around: Option<Around>) -> Result<ExitCode> {
        output::quiet(self.measuring.quiet);
        let preset = self.preset.as_deref().map(presets::get).transpose()?;
        let earlier = self.against.as_deref().map(|path| read_earlier(path, around)).transpose()?;
        let run = Run::prepare(self.request(preset.as_ref())?, means)?;
        announce(&run.header().plan, preset.as_ref(), &run.header().machine);
        if !is_brought_back(run.header(), run.path()) {
            say_where(run.path(), self.out.is_some());
        }
        let outcome = progress::measure(run)?;
        Ok(output::conclude(&outcome, || self.show(&outcome, earlier.as_ref(), around)))
    }

    fn request(&self, preset: Option<&Preset>) -> Result<Request> {
        let options = &self.measuring;
        let samples =
            options.samples.or_else(|| preset.filter(|_| self.duration.is_none()).and_then(|p| p.samples));
        let duration =
            self.duration.or_else(|| preset.and_then(|p| p.duration)).unwrap_or(Request::BENCH_DURATION);
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
            out: Some(self.out.clone().map_or_else(|| self.unnamed_out(), Out::Directory)),
            ..options.request(preset.map(|p| p.priority))?
        })
    }

    /// What is printed whole needs no file.
    fn unnamed_out(&self) -> Out {
        if self.json || self.format.is_some() { Out::IfPossible } else { Out::Named }
    }

    /// The names of the loads to be measured, beside a command.
    fn chosen_loads(&self, preset: Option<&Preset>) -> Vec<String> {
        match preset {
            _ if !self.loads.is_empty() => self.loads.clone(),
            Some(preset) => preset.loads.clone(),
            None if self.load_command.is_some() => vec!["idle".to_owned()],
            None => Request::BENCH_LOADS.map(str::to_owned).to_vec(),
        }
    }

    fn show(&self, outcome: &Outcome, earlier: Option<&Earlier>, around: Option<Around>) -> Result<()> {
        let record = &outcome.record;
        if let Some(form) = self.format.or(self.json.then_some(Form::Json)) {
            return output::final_data(&form.render(record));
        }
        let style = output::style(Stream::Output);
        // Without a record nothing shows the rest later.
        let directory = outcome.path.as_ref().map(|path| path.display().to_string());
        let notes = directory.as_deref().map_or(Notes::All, Notes::Few);
        let mut parts = vec![report::table::bench(record, self.per_cpu, notes, &style)];
        if let Some(around) = around {
            parts.extend((around.below)(record, earlier, &style));
        }
        output::final_data(&parts.join("\n"))?;
        let path = outcome.path.as_deref().filter(|path| !is_brought_back(&record.header, Some(path)));
        if let Some(page) = path.map(|path| path.join(store::PAGE)).filter(|page| page.exists()) {
            output::news(&format!("Report  {}", page.display()));
        }
        Ok(())
    }
}

fn read_earlier(path: &Path, around: Option<Around>) -> Result<Earlier> {
    let Some(around) = around else {
        let hint = "worstcase report RECORD RECORD, on any machine";
        return Err(Error::new("this program compares nothing", hint));
    };
    Ok(Earlier { place: path.to_owned(), record: (around.read)(path)? })
}

/// Whether the lab takes the record out of this guest: it names the place, which here is the directory that it brings back.
fn is_brought_back(header: &Header, path: Option<&Path>) -> bool {
    header.machine.lab.is_some() && path == Some(Path::new("."))
}

/// Where the record is. A path that nobody named and that does not begin here is one that the next boot empties.
fn say_where(path: Option<&Path>, named: bool) {
    let Some(path) = path else {
        output::warning(
            "no record is kept: neither here nor in /run, /dev/shm or /tmp can a directory be made",
        );
        return;
    };
    output::news(&format!("record: {}", path.display()));
    if !named && path.is_absolute() {
        output::warning("the working directory cannot be written: copy the record before the next boot");
    }
}

/// What is measured: a machine, a virtual one, a container; its kernel and how it preempts.
fn subject(machine: &Machine) -> Vec<String> {
    let mut words = machine.whereabouts();
    words.push(format!("Linux {}", machine.kernel.release));
    words.extend(machine.kernel.preemption.value().map(|mode| format!("preemption {mode}")));
    words
}

/// What is about to happen and how long it takes.
fn announce(plan: &RunPlan, preset: Option<&Preset>, machine: &Machine) {
    output::paragraph(&format!("machine: {}", subject(machine).join(", ")));
    output::paragraph(&amount(plan));
    for left_out in &plan.left_out {
        output::warning(&format!("not measured: {}: {}", left_out.cpus.named(), left_out.reason));
    }
    for left_out in &plan.loads_left_out {
        output::warning(&format!(
            "load {} is left out: {} (--load-dir names another place)",
            left_out.load, left_out.reason
        ));
    }
    if let Some(preset) = preset {
        output::news(&format!(
            "preset {}: {}\nit leaves open: {}",
            preset.name, preset.source, preset.leaves_open
        ));
    }
    let temperature = machine::temperature(&SysRoot::live());
    if let Some(temperature) = temperature.value() {
        output::news(&format!("temperature before any load: {} C", temperature / 1000));
    }
    if let Some(why) = &plan.cstates_left_out {
        output::warning(&format!("--cstates restrict is left out: {why}"));
    }
    if plan.cstates.contains(&CStates::Restrict) && machine.idle_states.is_empty() {
        output::warning(
            "this kernel shows no idle states (cpuidle): --cstates restrict has nothing to restrict",
        );
    }
    if plan.cstates == [CStates::AsIs]
        && machine.idle_states.iter().any(|state| state.latency_us > 10 && !state.disabled)
    {
        output::news(
            "idle states are left as they are; cyclictest would restrict them (--cstates restrict, or both)",
        );
    }
}
