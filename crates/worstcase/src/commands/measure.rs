//! `worstcase measure`: one probe, live, until Ctrl-C or --duration.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use record::{Header, InstrumentPlan, Out, Record, Request, RunPlan};
use report::foot::Notes;
use runner::{Means, Observer, Outcome, Run};
use units::Nanos;

use super::bench::Below;
use super::measure_display::{CyclictestLines, Json, LatmusLines, Lines, Table};
use crate::options::{self, CStatesChoice, Form, MEASURED, Measuring, OUTPUT};
use crate::output::{self, Stream};
use crate::progress::{Progress, amount, longest_scenario};
use failure::{Error, Result};

/// Measure live, until Ctrl-C or --duration
///
/// On a terminal a table, elsewhere a line a CPU and second. SIGUSR1 prints a snapshot. Nothing is loaded: see bench.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Measure {
    #[command(flatten)]
    measuring: Measuring,

    /// How long [default: until Ctrl-C]
    #[arg(short = 'D', long, value_name = "TIME", allow_hyphen_values = true, value_parser = options::duration, help_heading = MEASURED)]
    duration: Option<Nanos>,

    /// Idle states: as-is (as an application finds them), restrict (as cyclictest does)
    #[arg(long, value_name = "POLICY", default_value = "as-is", help_heading = MEASURED)]
    cstates: CStatesChoice,

    /// Lines of another tool while it measures, or a form of the result at its end
    #[arg(long, value_name = "FORM", conflicts_with = "json", help_heading = OUTPUT)]
    format: Option<Format>,

    /// One JSON object a CPU and second, and the record as the last line
    #[arg(long, help_heading = OUTPUT)]
    json: bool,

    /// File for the histogram at the end; - for standard output
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    histogram: Option<PathBuf>,

    /// Whose form the histogram has
    #[arg(long, value_name = "TOOL", default_value = "cyclictest", help_heading = OUTPUT)]
    histogram_format: HistogramFormat,

    /// Directory for a record and a report as bench makes them
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  worstcase measure                               all CPUs, until Ctrl-C
  worstcase measure -a 1 -i 250us -D 1m           CPU 1, every 250 us
  worstcase measure -D 1h --histogram h.txt       as cyclictest -h writes it
  worstcase measure --probe noise -D 30s          what interrupts a busy loop";

/// How the run is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Lines of latmus while it measures.
    Latmus,
    /// Lines of cyclictest while it measures.
    Cyclictest,
    /// The result, at the end.
    Result(Form),
}

/// Other tools' lines, and every form of a result.
static FORMATS: LazyLock<Vec<Format>> = LazyLock::new(|| {
    let results = Form::value_variants().iter().copied().map(Format::Result);
    [Format::Latmus, Format::Cyclictest].into_iter().chain(results).collect()
});

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &FORMATS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Latmus => Some(PossibleValue::new("latmus").help("Lines of latmus: RTT, RTH, RTD, RTS")),
            Self::Cyclictest => Some(PossibleValue::new("cyclictest").help("Lines of cyclictest: T:")),
            Self::Result(form) => form.to_possible_value(),
        }
    }
}

/// Whose histogram file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum HistogramFormat {
    /// As cyclictest -h wrote it up to rt-tests 2.6: every row
    Cyclictest,
    /// As latmus -g; one CPU only
    Latmus,
    /// For the OSADL plot scripts
    Osadl,
}

impl Measure {
    /// Measures and shows, and prints what is to stand below the table. The `means` come from the program: the agent has few.
    pub fn run(self, means: &Means, below: Option<Below>) -> Result<ExitCode> {
        output::quiet(self.measuring.quiet);
        if let Some(file) = self.histogram.as_deref().filter(|file| file.as_os_str() != "-") {
            output::check_file(file, &[])?;
        }
        let run = Run::prepare(self.request()?, means)?;
        let header = run.header();
        self.check_single_cpu(&header.plan)?;
        let mut display = self.display(header);
        if let Some(lab) = header.machine.lab.as_ref().filter(|_| self.tool_format().is_some()) {
            // Lines of other tools have no room for it.
            output::words(formats::guest_note(lab).trim_end());
        }
        if header.plan.scenarios().len() > 1 && longest_scenario(&header.plan).is_some() {
            output::paragraph(&amount(&header.plan));
        }
        let outcome = run.measure(display.as_mut())?;
        drop(display);
        Ok(output::conclude(&outcome, || {
            let saved = self.save_histogram(&outcome.record);
            saved.and(self.conclude(&outcome, below))
        }))
    }

    fn request(&self) -> Result<Request> {
        let [cstates] = self.cstates.0 else {
            return Err(Error::new("measure takes one C-state policy", "worstcase bench --cstates both"));
        };
        if self.measuring.intervals.are_several() {
            return Err(Error::new("measure takes one interval", "worstcase bench --interval TIMES"));
        }
        let request = Request {
            duration: self.duration,
            cstates: vec![*cstates],
            instrument: self.measuring.instrument(None, self.is_long())?,
            out: self.out.clone().map(Out::Directory),
            ..self.measuring.request(None)?
        };
        self.check_formats(&request)?;
        self.check_histogram()?;
        Ok(request)
    }

    /// Whether it lasts so long that a sweep gets anywhere.
    fn is_long(&self) -> bool {
        const SHORT: Nanos = Nanos::from_secs(10);
        let samples =
            self.measuring.samples.map(|samples| self.measuring.intervals.longest().saturating_mul(samples));
        self.duration.or(samples).is_none_or(|length| length > SHORT)
    }

    /// A file that cannot be written is known before hours are measured.
    fn check_histogram(&self) -> Result<()> {
        let Some(path) = self.histogram.as_deref().filter(|path| path.as_os_str() != "-") else {
            return Ok(());
        };
        let directory =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).map_err(|errno| {
            let message = format!("write {}: {}", path.display(), std::io::Error::from(errno));
            Error::new(message, "name a file in a directory that can be written with --histogram")
        })
    }

    /// The forms of other tools are of latencies.
    fn check_formats(&self, request: &Request) -> Result<()> {
        let foreign = [("--format", self.tool_format().is_some()), ("--histogram", self.histogram.is_some())];
        match foreign
            .into_iter()
            .find(|(_, given)| *given && !matches!(request.instrument, InstrumentPlan::Timer(_)))
        {
            None => Ok(()),
            Some((option, _)) => {
                let values = request.instrument.words().values;
                let message =
                    format!("{option} writes latencies of wake-ups, and what is measured are {values}");
                Err(Error::new(message, format!("--json and --out have {values} too")))
            }
        }
    }

    /// latmus has one responder.
    fn check_single_cpu(&self, plan: &RunPlan) -> Result<()> {
        let latmus = self.format == Some(Format::Latmus)
            || (self.histogram.is_some() && self.histogram_format == HistogramFormat::Latmus);
        let first = plan.cpus.first().map_or(String::new(), |cpu| cpu.to_string());
        if latmus && plan.cpus.len() != 1 {
            let message = format!("latmus' form holds one CPU, and {} are to be measured", plan.cpus);
            return Err(Error::new(message, format!("choose one: --cpus {first}")));
        }
        Ok(())
    }

    /// Whose lines are printed while it measures, if another tool's.
    fn tool_format(&self) -> Option<Format> {
        self.format.filter(|format| !matches!(format, Format::Result(_)))
    }

    fn display(&self, header: &Header) -> Box<dyn Observer> {
        let (plan, machine) = (&header.plan, &header.machine);
        match self.format {
            _ if self.json => Box::new(Json),
            None if self.measuring.quiet => Box::new(Progress::of(header)),
            Some(Format::Latmus) => Box::new(LatmusLines::new(plan, machine)),
            Some(Format::Cyclictest) => Box::new(CyclictestLines::new(plan)),
            Some(_) => Box::new(Progress::of(header)),
            None if output::can_redraw(Stream::Output) => Box::new(Table::new(plan, machine.unit())),
            None => Box::new(Lines::new(machine.unit())),
        }
    }

    fn save_histogram(&self, record: &Record) -> Result<()> {
        let (Some(path), Some(scenario)) = (&self.histogram, record.scenarios.first()) else { return Ok(()) };
        let text = match self.histogram_format {
            HistogramFormat::Cyclictest => formats::cyclictest::histogram(&scenario.series, None),
            HistogramFormat::Osadl => formats::osadl::plot(&scenario.series),
            HistogramFormat::Latmus => super::measure_display::latmus_dump(record, scenario),
        };
        let note = record.header.machine.lab.as_ref().map(formats::guest_note).unwrap_or_default();
        let text = note + &text;
        if path.as_os_str() == "-" {
            return output::final_data(&text);
        }
        output::named_file(path, text.as_bytes(), &[])
    }

    /// The verdict: with the table after our own displays, in one line on standard error after other tools' lines.
    fn conclude(&self, outcome: &Outcome, below: Option<Below>) -> Result<()> {
        let record = &outcome.record;
        if self.json {
            let text = serde_json::to_string(record).unwrap_or_default();
            return output::final_data(&format!("{{\"record\":{text}}}\n"));
        }
        if let Some(Format::Result(form)) = self.format {
            return output::final_data(&form.render(record));
        }
        if self.format.is_none() {
            let directory = outcome.path.as_ref().map(|path| path.display().to_string());
            let notes = directory.as_deref().map_or(Notes::All, Notes::Few);
            let style = output::style(Stream::Output);
            let mut parts =
                vec![report::table::bench(record, record.header.plan.cpus.len() > 1, notes, &style)];
            parts.extend(below.into_iter().flat_map(|below| below(record, None, &style)));
            output::final_data(&parts.join("\n"))?;
        } else {
            let style = output::style(Stream::Error);
            output::styled(&report::foot::verdict_lines(record, &style).join("\n"));
        }
        Ok(())
    }
}
