//! `worstcase report`: records shown again, several side by side; an experiment with its comparisons.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use record::{Record, store};
use report::Style;
use report::foot::Notes;
use units::Nanos;

use super::cost;
use super::experiments::Shown;
use super::found_experiment;
use crate::options::{self, Form};
use crate::output::{self, Stream};
use failure::{Error, Result};

/// Show records again, side by side for several
///
/// Runs that were cut off are shown too. The directory of a trial, search, bisection or ladder is shown as its command
/// showed it. The exit code says whether they could be shown; with --limit it says whether it is met, as that of bench.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase report before after         several records side by side\n  \
    worstcase report DIR --limit 200us    judge a record by another limit\n  \
    worstcase report DIR --format csv     a row a load and CPU\n  \
    worstcase report DIR --extreme 1h     what an hour may bring")]
pub struct Report {
    /// Directories that runs left, or their record.json; the directory of an experiment
    #[arg(required = true, value_name = "DIR")]
    records: Vec<PathBuf>,

    /// Write the page to this file [default for one directory: its report.html, where that is missing or older than the record]
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print the table of every CPU as well
    #[arg(long)]
    per_cpu: bool,

    /// Print all notes on the conditions of a record, not the first three alone
    #[arg(long)]
    notes: bool,

    /// Print what the kernel counted around each scenario: switches, interrupts, softirqs, waiting for a CPU
    #[arg(long)]
    counters: bool,

    /// Estimate the latency that is exceeded once in this time on average, at most ten times the run; refused where the run
    /// is too short for it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = options::duration)]
    extreme: Option<Nanos>,

    /// Judge the record anew: fail if a wake-up was later than this. The record itself stays as it is
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = options::length)]
    limit: Option<Nanos>,

    /// Print a record in this form instead of the table
    #[arg(long, value_name = "FORM", conflicts_with_all = ["json", "extreme"])]
    format: Option<Form>,

    /// What set-ups gain in latency and cost in throughput against the first: of each the records of bench or measure, then that
    /// of cost
    #[arg(long, conflicts_with_all = ["per_cpu", "notes", "counters", "extreme", "limit", "format"])]
    trade: bool,

    /// Print the record as JSON, with --extreme the estimates; several as an array
    #[arg(long)]
    json: bool,
}

impl Report {
    pub fn run(self) -> Result<ExitCode> {
        if self.trade {
            return self.trade_off();
        }
        if let [directory] = &self.records[..] {
            if let Some(shown) = found_experiment::find(directory) {
                return self.experiment(&shown?);
            }
        }
        if let [directory] = &self.records[..] {
            if let Some(ways) = record::ways::load(directory) {
                return self.ways(&ways?, directory);
            }
        }
        if let Some(costs) = cost::records(&self.records) {
            return self.costs(&costs?);
        }
        self.refuse_options_of_one()?;
        let mut records =
            self.records.iter().map(|path| store::load(path)).collect::<std::result::Result<Vec<_>, _>>()?;
        records.iter_mut().for_each(|record| self.judge_anew(record));
        output::final_data(&self.text(&records)?)?;
        if let Some(path) = self.page_to_write() {
            // An estimate that was asked for is on a page that was asked for.
            let extreme = self.extreme.filter(|_| self.html.is_some());
            let page = report::page::page_with(&records, extreme).map_err(|error| Error::new(error, ""))?;
            output::page(&path, &page, self.html.is_some(), &self.read())?;
        }
        Ok(self.code(&records))
    }

    /// What is shown, and must not be written over.
    fn read(&self) -> Vec<&Path> {
        self.records.iter().map(PathBuf::as_path).collect()
    }

    fn trade_off(&self) -> Result<ExitCode> {
        let trade = cost::trade(&self.records)?;
        output::final_data(&match self.json {
            true => trade.json().to_string() + "\n",
            false => trade.text(&output::style(Stream::Output)),
        })?;
        if let Some(path) = &self.html {
            let page = trade.page().map_err(|error| Error::new(error, ""))?;
            output::page(path, &page, true, &self.read())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// By `--limit`, as if the run had had it.
    fn judge_anew(&self, record: &mut Record) {
        if let Some(limit) = self.limit {
            record.header.plan.limit = Some(limit);
            record.judgement = record::verdict::judge(record, &[]);
        }
    }

    /// With a limit that of the verdict, of several records of the worst: else reading a record is all that was asked.
    fn code(&self, records: &[Record]) -> ExitCode {
        let judged = records.iter().filter(|_| self.limit.is_some());
        let worst = judged.map(|record| record.judgement.verdict).max();
        ExitCode::from(worst.map_or(0, record::verdict::Verdict::exit_code))
    }

    fn costs(&self, costs: &[record::cost::Cost]) -> Result<ExitCode> {
        self.refuse_options_of_records("records of costs", "leave it out")?;
        let (text, page) = cost::report(costs, self.json);
        output::final_data(&text)?;
        if let (Some(path), Some(page)) = (self.page_to_write(), page) {
            let page = page.map_err(|error| Error::new(error, ""))?;
            output::page(&path, &page, self.html.is_some(), &self.read())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn ways(&self, all: &record::ways::Ways, directory: &Path) -> Result<ExitCode> {
        self.refuse_options_of_records("ways to do a task", "name the records of its ways, below it")?;
        // The records lie beside the file.
        let above =
            directory.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let place = if directory.is_dir() { directory } else { above };
        match self.json {
            true => super::ways::print_json(all)?,
            false => super::ways::show(all, place)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// A comparison has neither tables of single CPUs nor all findings of each record.
    fn refuse_options_of_one(&self) -> Result<()> {
        let given = [("--per-cpu", self.per_cpu), ("--notes", self.notes)];
        let first = given.iter().find(|(_, is_given)| *is_given && self.records.len() > 1);
        first.map_or(Ok(()), |(name, _)| {
            let message = format!("{name} is about one record, and several are named");
            Err(Error::new(message, "leave it out, or name one record"))
        })
    }

    fn refuse_options_of_records(&self, shown: &str, hint: &str) -> Result<()> {
        let given = [
            ("--per-cpu", self.per_cpu),
            ("--extreme", self.extreme.is_some()),
            ("--limit", self.limit.is_some()),
            ("--format", self.format.is_some()),
        ];
        let first = given.iter().find(|(_, is_given)| *is_given);
        first.map_or(Ok(()), |(name, _)| {
            Err(Error::new(format!("{name} is about a record of latencies, not {shown}"), hint))
        })
    }

    fn experiment(&self, shown: &Shown) -> Result<ExitCode> {
        let hint = "name one of its records: they lie in directories below it";
        self.refuse_options_of_records("an experiment", hint)?;
        shown.print(self.json)?;
        self.page_path().map_or(Ok(()), |path| shown.write_page(&path, self.html.is_some(), &self.read()))?;
        Ok(ExitCode::SUCCESS)
    }

    fn text(&self, records: &[Record]) -> Result<String> {
        let json = |value: serde_json::Result<String>| {
            value.map(|text| text + "\n").map_err(|error| Error::new(error, ""))
        };
        match (self.format, records) {
            (Some(form), [record]) => return Ok(form.render(record)),
            (Some(form), several) => return self.several(form, several),
            (None, _) => {}
        }
        let style = output::style(Stream::Output);
        let text = match (self.json, records, self.extreme) {
            (true, records, Some(exposure)) => {
                let of_each = |record| report::extreme::estimates(record, exposure);
                let estimates: Vec<_> = records.iter().map(of_each).collect();
                return json(match &estimates[..] {
                    [only] => serde_json::to_string(only),
                    several => serde_json::to_string(several),
                });
            }
            (true, [record], None) => return Ok(report::export::json(record)),
            (true, records, None) => return json(serde_json::to_string(records)),
            (false, [record], _) => self.one(record, &style),
            (false, records, _) => self.side_by_side(records, &style),
        };
        let mut text = text;
        if self.counters && !self.json {
            records
                .iter()
                .for_each(|record| text += &format!("\n{}", report::counters::text(record, &style)));
        }
        if let Some(exposure) = self.extreme {
            for record in records {
                text += &format!("\n{}", report::extreme::text(record, exposure, &style));
            }
        }
        Ok(text)
    }

    /// Several records in a form that can hold them.
    fn several(&self, form: Form, records: &[Record]) -> Result<String> {
        let names: Vec<String> = self.records.iter().map(|path| path.display().to_string()).collect();
        form.render_several(names.iter().map(String::as_str).zip(records)).ok_or_else(|| {
            Error::new(
                "this form holds one run, and several records are named",
                "name one; csv, markdown and line hold several, and --json prints an array",
            )
        })
    }

    /// Several records: their comparison, and what to do next.
    fn side_by_side(&self, records: &[Record], style: &Style) -> String {
        let names: Vec<String> = self.records.iter().map(|path| path.display().to_string()).collect();
        let mut text = report::compare::compare(records, &names, style);
        // The exit code is that of the worst: which one it is, and why, is said as it is of one record.
        if self.limit.is_some() {
            let judged = names.iter().zip(records);
            let lines =
                judged.flat_map(|(name, one)| report::foot::verdict_of_one(name, &one.judgement, style));
            text += &lines.fold("\n".to_owned(), |text, line| text + &line + "\n");
        }
        if self.html.is_none() {
            text += "\n";
            text += &report::next::text(&report::next::run::of_several(records, &names), style);
        }
        text
    }

    /// One record: what its run printed at its end, and what to do next.
    fn one(&self, record: &Record, style: &Style) -> String {
        let directory = self.records.first().map(|path| path.display().to_string()).unwrap_or_default();
        let notes = if self.notes { Notes::All } else { Notes::Few(&directory) };
        let mut parts = vec![report::table::bench(record, self.per_cpu, notes, style)];
        parts.extend(super::below(record, None, style));
        parts.join("\n")
    }

    /// The page that was asked for, or a record's own where it is not there or is older than the record. One that is up to date
    /// is named, and left alone: reading a record is no reason to write.
    fn page_to_write(&self) -> Option<PathBuf> {
        let path = self.page_path()?;
        if self.html.is_none() && is_up_to_date(&path) {
            output::words(&format!("Report  {}", path.display()));
            return None;
        }
        Some(path)
    }

    fn page_path(&self) -> Option<PathBuf> {
        let is_as_kept = self.limit.is_none() && self.format.is_none();
        let own = || match &self.records[..] {
            [directory] if is_as_kept && directory.is_dir() => Some(directory.join(store::PAGE)),
            _ => None,
        };
        self.html.clone().or_else(own)
    }
}

/// Whether a page is a file as new as all that lies beside it.
fn is_up_to_date(page: &Path) -> bool {
    let changed = |path: &Path| {
        std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?.modified().ok()
    };
    let records = [store::RECORD, store::JOURNAL, record::cost::FILE];
    let (Some(made), Some(directory)) = (changed(page), page.parent()) else { return false };
    records.iter().filter_map(|name| changed(&directory.join(name))).all(|changed| changed <= made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_page_is_up_to_date_unless_its_record_is_newer() {
        let directory = tempfile::tempdir().unwrap();
        let (page, kept) = (directory.path().join(store::PAGE), directory.path().join(store::RECORD));
        assert!(!is_up_to_date(&page), "there is none");
        std::fs::write(&kept, "").unwrap();
        std::fs::write(&page, "").unwrap();
        let set = |path: &Path, seconds| {
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        };
        set(&kept, 1_000);
        set(&page, 1_000);
        assert!(is_up_to_date(&page));
        set(&kept, 1_001);
        assert!(!is_up_to_date(&page));
    }
}
