//! All that a run writes: the journal while it goes on, the samples file, the record and the page at its end.

use std::path::{Path, PathBuf};

use record::journal::{Journal, Line};
use record::store::RunDirectory;
use record::time::UtcTime;
use record::verdict::{self, Judgement};
use record::{Explanation, Header, Out, Record, Scenario, validity};
use units::Nanos;

use crate::samples_file::SamplesFile;
use failure::{Error, Result};

/// Makes a page of a record, or says why it cannot.
pub type Page = fn(&Record) -> std::result::Result<String, String>;

/// What is written, and what could not be. A disk that fails does not end the run.
pub struct Outputs {
    directory: Option<RunDirectory>,
    journal: Option<Journal>,
    samples: Option<SamplesFile>,
    page: Option<Page>,
    losses: Vec<String>,
    /// What is measured now has no place in journal and samples file.
    silent: bool,
}

impl Outputs {
    /// Makes the directory, the journal with its first line, and the samples file, as far as they are asked for.
    pub fn begin(
        header: &Header,
        out: Option<Out>,
        samples_file: Option<PathBuf>,
        page: Option<Page>,
    ) -> Result<Self> {
        let directory = match out {
            None => None,
            Some(Out::Named) => Some(RunDirectory::create_somewhere(&header.machine.host, header.started)?),
            Some(Out::IfPossible) => {
                RunDirectory::create_somewhere(&header.machine.host, header.started).ok()
            }
            Some(Out::Directory(path)) => Some(RunDirectory::create(&path)?),
        };
        let journal = directory.as_ref().map(RunDirectory::journal).transpose()?;
        let samples = samples_file.map(|path| SamplesFile::create(path, header)).transpose()?;
        let mut outputs = Self { directory, journal, samples, page, losses: Vec::new(), silent: false };
        outputs.append(&Line::Begin(Box::new(header.clone())));
        Ok(outputs)
    }

    /// Where the record is written.
    pub fn path(&self) -> Option<&Path> {
        self.directory.as_ref().map(RunDirectory::path)
    }

    /// Appends to the journal, if there is one.
    pub fn append(&mut self, line: &Line) {
        if let Some(journal) = self.journal.as_mut().filter(|_| !self.silent) {
            journal.append(line);
        }
    }

    /// The longest fsync since this was last asked.
    pub fn take_longest_sync(&mut self) -> Nanos {
        self.journal.as_mut().map_or(Nanos::ZERO, Journal::take_longest_sync)
    }

    /// What is measured from now on stands neither in the journal nor in the samples file.
    pub fn be_silent(&mut self) {
        self.silent = true;
    }

    /// Ends that.
    pub fn speak(&mut self) {
        self.silent = false;
    }

    /// Whether samples are saved.
    pub fn saves_samples(&self) -> bool {
        self.samples.is_some() && !self.silent
    }

    /// Appends to the samples file, if there is one.
    pub fn save_samples(&mut self, scenario: usize, series: usize, samples: &[(u64, u64)]) {
        if let Some(file) = self.samples.as_mut().filter(|_| !self.silent) {
            file.save(scenario, series, samples);
        }
    }

    /// Says in the samples file, if there is one, that `lost` samples of a series so far are not in it.
    pub fn save_lost_samples(&mut self, scenario: usize, series: usize, lost: u64) {
        if let Some(file) = self.samples.as_mut().filter(|_| !self.silent) {
            file.save_lost(scenario, series, lost);
        }
    }

    /// Something was lost: it will weigh in the verdict.
    pub fn lost(&mut self, what: String) {
        self.losses.push(what);
    }

    /// Judges the run and writes its end, its record and its page. What fails on the way makes a new judgement.
    pub fn finish(
        mut self,
        header: Header,
        scenarios: Vec<Scenario>,
        (explanations, not_explained): (Vec<Explanation>, Option<&Error>),
    ) -> (Record, Option<PathBuf>) {
        self.losses.extend(self.samples.as_mut().and_then(SamplesFile::close));
        let ended = UtcTime(sys::clock::unix_seconds());
        let mut warnings = validity::of_run(&header, &scenarios);
        warnings.extend(not_explained.map(|why| validity::not_explained(&why.message, &why.hint)));
        let judgement = Judgement::default();
        let mut record = Record { header, ended: Some(ended), scenarios, explanations, warnings, judgement };
        record.judgement = verdict::judge(&record, &self.losses);
        let (warnings, judgement) = (record.warnings.clone(), record.judgement.clone());
        self.append(&Line::Finished { at: ended, warnings, judgement });
        // The journal's own failure can only be known now.
        let journal = self.journal.as_ref().and_then(Journal::failure).map(str::to_owned);
        self.weigh(&mut record, journal);
        let written = self.directory.as_ref().and_then(|directory| directory.write_record(&record).err());
        // Where it could not be written, nobody is to look for it.
        let path = self.path().filter(|_| written.is_none()).map(Path::to_path_buf);
        self.weigh(&mut record, written.map(|error| error.to_string()));
        let page = self.directory.as_ref().zip(self.page);
        let page = page.and_then(|(directory, page)| write_page(directory, &record, page).err());
        self.weigh(&mut record, page);
        (record, path)
    }

    fn weigh(&mut self, record: &mut Record, failure: Option<String>) {
        if let Some(failure) = failure {
            self.losses.push(failure);
            record.judgement = verdict::judge(record, &self.losses);
        }
    }
}

fn write_page(directory: &RunDirectory, record: &Record, page: Page) -> std::result::Result<(), String> {
    directory.write_page(&page(record)?).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_could_not_be_written_has_no_place_and_one_that_was_has_its_own() {
        let place = tempfile::tempdir().unwrap();
        let header = Header {
            schema_version: record::SCHEMA_VERSION,
            tool: record::Tool { version: "0".into(), build: "test".into() },
            command_line: vec![],
            note: None,
            started: UtcTime(0),
            machine: record::Machine::default(),
            plan: record::RunPlan::default(),
            held: vec![],
            tuned: None,
        };
        let finished = |name: &str, is_blocked: bool| {
            let directory = place.path().join(name);
            let out = Some(Out::Directory(directory.clone()));
            let outputs = Outputs::begin(&header, out, None, None).unwrap();
            if is_blocked {
                // A directory in its place is what no privilege writes over.
                std::fs::create_dir(directory.join(record::store::RECORD)).unwrap();
            }
            let (record, path) = outputs.finish(header.clone(), vec![], (vec![], None));
            (!record.judgement.losses.is_empty(), path.is_some())
        };
        assert_eq!(finished("free", false), (false, true));
        assert_eq!(finished("full", true), (true, false));
    }
}
