//! The directory that a run leaves: `journal.ndjson`, `record.json`, `report.html`.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use units::Total;

use crate::journal::{self, Journal};
pub use crate::store_error::StoreError;
use crate::time::UtcTime;
use crate::{Record, SCHEMA_VERSION, ScenarioEnd, migrate, validity, verdict};

/// The file that tells the run while it happens.
pub const JOURNAL: &str = "journal.ndjson";
/// The file that holds all of it in the end.
pub const RECORD: &str = "record.json";
/// The page made from it.
pub const PAGE: &str = "report.html";

/// Where a record goes that cannot be written in the working directory: most often memory.
const ELSEWHERE: [&str; 3] = ["/run", "/dev/shm", "/tmp"];

/// No record is longer, in bytes: one of a day on 64 CPUs has some ten million.
const LONGEST: u64 = 1 << 30;

const NOT_WRITTEN: &str = "check room and permissions there; `worstcase report` shows what the journal holds";

/// The directory of a run that is going on.
#[derive(Debug)]
pub struct RunDirectory {
    directory: files::Directory,
}

impl RunDirectory {
    /// Makes the directory, or takes one without a record.
    ///
    /// # Errors
    /// It cannot be made, or holds a record.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        const HINT: &str = "choose a directory that can be written with --out";
        if [JOURNAL, RECORD, crate::cost::FILE].iter().any(|name| path.join(name).exists()) {
            let hint = "choose another directory with --out: a record is never overwritten";
            return Err(StoreError::new("create the record in", path, "it holds a record already", hint));
        }
        let directory = files::Directory::make(path).map_err(|error| StoreError::of(error, HINT))?;
        Ok(Self { directory })
    }

    /// Makes `worstcase-<UTC time>-<host>` in the working directory, or where that cannot be written (boards that boot from a
    /// read-only file system) in one that most often can, as /run.
    ///
    /// # Errors
    /// None of these directories can be written: what kept us from the first.
    pub fn create_somewhere(host: &str, started: UtcTime) -> Result<Self, StoreError> {
        let here = Self::create(&free_name(Path::new(""), host, started));
        let elsewhere = || {
            ELSEWHERE.iter().find_map(|place| Self::create(&free_name(Path::new(place), host, started)).ok())
        };
        here.or_else(|error| elsewhere().ok_or(error))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Begins the journal.
    pub fn journal(&self) -> Result<Journal, StoreError> {
        const HINT: &str = "choose a directory that can be written with --out";
        let file = self.directory.create_new(JOURNAL, files::READABLE);
        file.map(Journal::new).map_err(|error| StoreError::of(error, HINT))
    }

    /// Writes `record.json`, whole or not at all.
    pub fn write_record(&self, record: &Record) -> Result<(), StoreError> {
        const DEFECT: &str = "this is a defect of worstcase";
        let text = serde_json::to_string(record)
            .map_err(|error| StoreError::new("write", &self.path().join(RECORD), error, DEFECT))?;
        let written = self.directory.write_whole(RECORD, text.as_bytes());
        written.map_err(|error| StoreError::of(error, NOT_WRITTEN))
    }

    /// Writes `cost.json`, whole or not at all; it takes the place of the one with the rounds before.
    pub fn write_cost(&self, cost: &crate::cost::Cost) -> Result<(), StoreError> {
        const HINT: &str = "check room and permissions there";
        let text = serde_json::to_string(cost)
            .map_err(|error| StoreError::new("write", &self.path().join(crate::cost::FILE), error, HINT))?;
        let written = self.directory.write_whole(crate::cost::FILE, text.as_bytes());
        written.map_err(|error| StoreError::of(error, HINT))
    }

    /// Writes `report.html`, whole or not at all.
    pub fn write_page(&self, page: &str) -> Result<(), StoreError> {
        let written = self.directory.write_whole(PAGE, page.as_bytes());
        written.map_err(|error| StoreError::of(error, NOT_WRITTEN))
    }
}

/// The host name is not ours: what a path cannot hold is replaced.
fn free_name(parent: &Path, host: &str, started: UtcTime) -> PathBuf {
    let host: String =
        host.chars().map(|c| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '_' }).collect();
    let base = format!("worstcase-{}-{host}", started.compact());
    let numbered = (2..1000).map(|number| format!("{base}-{number}"));
    let mut names = std::iter::once(base.clone()).chain(numbered).map(|name| parent.join(name));
    names.find(|name| !name.exists()).unwrap_or_else(|| parent.join(base))
}

/// Reads the record in `path`: a directory that a run left, or its `record.json`. Of a run that was cut off, what its
/// journal holds, judged now.
pub fn load(path: &Path) -> Result<Record, StoreError> {
    // What is no directory is read as it was named, so that an error names it.
    if !path.is_dir() && path.file_name().is_none_or(|name| name != JOURNAL) {
        return load_record(path);
    }
    let directory = if path.is_file() { path.parent().unwrap_or(Path::new(".")) } else { path };
    let record = directory.join(RECORD);
    if record.exists() && !path.is_file() {
        load_record(&record)
    } else {
        load_journal(&directory.join(JOURNAL))
    }
}

fn load_record(path: &Path) -> Result<Record, StoreError> {
    const HINT: &str = "give a directory that `worstcase bench` left, or its record.json";
    let text = files::read(path, LONGEST).map_err(|error| StoreError::of(error, HINT))?;
    parse(&text).map_err(|refusal| match refusal {
        Refusal::TooNew(_) => {
            StoreError::new("read", path, refusal, "use the worstcase that wrote it, or a newer one")
        }
        Refusal::NotARecord(_) => StoreError::new("read", path, refusal, HINT),
        Refusal::Unsound(_) => {
            StoreError::new("read", path, refusal, "was it edited? read a copy that was not")
        }
    })
}

/// Why bytes are not read as a record.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A later program's.
    #[error("it has schema version {0}, this program reads up to {SCHEMA_VERSION}")]
    TooNew(u32),
    /// Something else.
    #[error("it is not a record: {0}")]
    NotARecord(#[from] serde_json::Error),
    /// What it says of a late wake-up does not add up.
    #[error("it does not add up: {0}")]
    Unsound(String),
}

/// Reads a `record.json` of this program's version or of an older one.
///
/// # Errors
/// It is of a newer version, or no record.
pub fn parse(json: &[u8]) -> Result<Record, Refusal> {
    let version = crate::json::read::<Versioned>(json)?.header.schema_version;
    if version > SCHEMA_VERSION {
        return Err(Refusal::TooNew(version));
    }
    if migrate::is_old(version) {
        let mut old = crate::json::read(json)?;
        migrate::record(&mut old);
        return checked(crate::json::read_value(&old)?);
    }
    checked(crate::json::read(json)?)
}

/// A record whose explanations add up: pieces and causes of a late wake-up sum to its latency.
fn checked(record: Record) -> Result<Record, Refusal> {
    for hit in record.explanations.iter().flat_map(|explanation| &explanation.hits) {
        let pieces = hit.pieces.iter().map(|piece| piece.length.0).total();
        let causes = hit.causes.iter().map(|cause| cause.length.0).total();
        for (what, sum) in [("pieces", pieces), ("causes", causes)] {
            if sum != hit.latency.0 {
                let latency = hit.latency.0;
                let message = format!("a wake-up was {latency} ns late, and its {what} sum to {sum} ns");
                return Err(Refusal::Unsound(message));
            }
        }
    }
    Ok(record)
}

/// As much of a record as every version of it has.
#[derive(Deserialize)]
#[serde(expecting = "a record")]
struct Versioned {
    header: VersionedHeader,
}

#[derive(Deserialize)]
struct VersionedHeader {
    schema_version: u32,
}

fn load_journal(path: &Path) -> Result<Record, StoreError> {
    const HINT: &str = "give a directory that `worstcase bench` left";
    let file = files::open(path).map_err(|error| StoreError::of(error, HINT))?;
    let recovered = journal::read(BufReader::new(file))
        .ok_or_else(|| StoreError::new("read", path, "its first line is not whole", HINT))?;
    let mut record = recovered.record;
    if !recovered.finished {
        judge_cut_off(&mut record);
    }
    Ok(record)
}

/// Judges a run that was killed: nobody has read back the conditions of what it was killed in.
fn judge_cut_off(record: &mut Record) {
    let (header, scenarios) = (&record.header, &mut record.scenarios);
    for scenario in scenarios.iter_mut().filter(|scenario| scenario.end == ScenarioEnd::CutOff) {
        scenario.enter_tick_phases(header);
        scenario.warnings = validity::of_scenario(header, scenario);
    }
    record.warnings.extend(validity::of_run(header, scenarios));
    record.judgement = verdict::judge(record, &[]);
}

impl From<StoreError> for failure::Error {
    fn from(error: StoreError) -> Self {
        let hint = error.hint;
        Self::new(&error, hint)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_record_is_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(directory.path()).unwrap();
        run.journal().unwrap();
        let error = RunDirectory::create(directory.path()).unwrap_err();
        assert!(error.to_string().contains("holds a record already") && !error.hint.is_empty());
    }

    #[test]
    fn a_host_name_cannot_leave_the_directory() {
        assert_eq!(
            free_name(Path::new(""), "../a b", UtcTime(0)),
            PathBuf::from("worstcase-19700101T000000Z-.._a_b")
        );
    }

    #[test]
    fn what_is_not_a_record_is_refused_with_a_hint() {
        let directory = tempfile::tempdir().unwrap();
        assert!(load(directory.path()).unwrap_err().to_string().contains("journal.ndjson"));
        let path = directory.path().join(RECORD);
        for (text, reason) in [
            ("{}", "not a record"),
            (r#"{"header":"#, "EOF"),
            ("[]", "sequence"),
            (r#"{"header":{"schema_version":99}}"#, "version 99"),
        ] {
            fs::write(&path, text).unwrap();
            let error = load(directory.path()).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
            assert!(!error.hint.is_empty());
        }
    }
}
