//! `worstcase measure`: one probe, live, until Ctrl-C or --duration.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use record::{InstrumentPlan, Out, Record, Request, RunPlan};
use runner::{Means, Observer, Outcome, Page, Run};
use units::Nanos;

use super::measure_display::{CyclictestLines, Json, LatmusLines, Lines, Table};
use crate::error::{CommandError, Result};
use crate::options::{self, CStatesChoice, Measuring};
use crate::output::{self, Stream};

/// Measure live, until Ctrl-C or --duration
///
/// On a terminal a table, elsewhere a line a CPU and second. SIGUSR1 prints a snapshot. Nothing is loaded: see bench.
#[derive(Args)]
pub struct Measure {
    /// How long [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = options::duration)]
    duration: Option<Nanos>,

    /// Idle states: as-is (as an application finds them), restrict (as cyclictest does)
    #[arg(long, value_name = "POLICY", default_value = "as-is")]
    cstates: CStatesChoice,

    /// Lines in another tool's form
    #[arg(long, value_name = "TOOL", conflicts_with = "json")]
    format: Option<Format>,

    /// One JSON object a CPU and second, and the record as the last line
    #[arg(long)]
    json: bool,

    /// File for the histogram at the end; - for standard output
    #[arg(long, value_name = "FILE")]
    histogram: Option<PathBuf>,

    /// Whose form the histogram has
    #[arg(long, value_name = "TOOL", default_value = "cyclictest")]
    histogram_format: HistogramFormat,

    /// Directory for a record and a report as bench makes them
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    #[command(flatten)]
    measuring: Measuring,
}

/// Whose lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// RTT, RTH, RTD, RTS
    Latmus,
    /// T: lines
    Cyclictest,
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
    /// Measures and shows; makes a `page` beside the record.
    pub fn run(self, page: Option<Page>) -> Result<ExitCode> {
        let run = Run::prepare(self.request()?, &Means { page, ..Means::default() })?;
        let header = run.header();
        self.check_single_cpu(&header.plan)?;
        let mut display = self.display(&header.plan, &header.machine);
        if let Some(lab) = header.machine.lab.as_ref().filter(|_| self.format.is_some()) {
            // Lines of other tools have no room for it.
            output::words(formats::guest_note(lab).trim_end());
        }
        let outcome = run.measure(display.as_mut())?;
        drop(display);
        Ok(output::conclude(&outcome, || {
            let saved = self.save_histogram(&outcome.record);
            saved.and(self.conclude(&outcome))
        }))
    }

    fn request(&self) -> Result<Request> {
        let [cstates] = self.cstates.0 else {
            return Err(CommandError::new(
                "measure takes one C-state policy",
                "worstcase bench --cstates both",
            ));
        };
        if self.measuring.interval.len() > 1 {
            return Err(CommandError::new("measure takes one interval", "worstcase bench --interval TIMES"));
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
            self.measuring.samples.map(|samples| self.measuring.longest_interval().saturating_mul(samples));
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
            CommandError::new(message, "name a file in a directory that can be written with --histogram")
        })
    }

    /// The forms of other tools are of latencies.
    fn check_formats(&self, request: &Request) -> Result<()> {
        let foreign = [("--format", self.format.is_some()), ("--histogram", self.histogram.is_some())];
        match foreign
            .into_iter()
            .find(|(_, given)| *given && !matches!(request.instrument, InstrumentPlan::Timer(_)))
        {
            None => Ok(()),
            Some((option, _)) => {
                let message =
                    format!("{option} writes latencies of wake-ups, which --probe noise has none of");
                Err(CommandError::new(message, "--json and --out have gaps too"))
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
            return Err(CommandError::new(message, format!("choose one: --cpus {first}")));
        }
        Ok(())
    }

    fn display(&self, plan: &RunPlan, machine: &record::Machine) -> Box<dyn Observer> {
        match self.format {
            _ if self.json => Box::new(Json),
            Some(Format::Latmus) => Box::new(LatmusLines::new(plan, machine)),
            Some(Format::Cyclictest) => Box::new(CyclictestLines::new(plan)),
            None if output::is_terminal(Stream::Output) => Box::new(Table::new(machine.unit())),
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
        Ok(files::write_named(path, text.as_bytes())?)
    }

    /// The verdict: with the table after our own displays, in one line on standard error after other tools' lines.
    fn conclude(&self, outcome: &Outcome) -> Result<()> {
        let record = &outcome.record;
        if self.json {
            let text = serde_json::to_string(record).unwrap_or_default();
            return output::final_data(&format!("{{\"record\":{text}}}\n"));
        }
        if self.format.is_none() {
            output::final_data(&report::table::bench(
                record,
                record.header.plan.cpus.len() > 1,
                &output::style(Stream::Output),
            ))?;
        } else {
            let style = output::style(Stream::Error);
            output::styled(&report::foot::verdict_lines(record, &style).join("\n"));
        }
        Ok(())
    }
}
