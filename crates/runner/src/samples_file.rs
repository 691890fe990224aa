//! The file of every sample, beside the record.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use record::{Header, PlannedScenario, Sweep, samples};
use units::{Bytes, Nanos};

use failure::{Error, Result};

/// Of every scenario; none at all where no series has any.
fn sweeps(planned: &[PlannedScenario]) -> Vec<Vec<Sweep>> {
    let of =
        |next: &PlannedScenario| next.setup.timer().map(|timer| timer.sweeps.clone()).unwrap_or_default();
    let sweeps: Vec<_> = planned.iter().map(of).collect();
    if sweeps.iter().all(Vec::is_empty) { Vec::new() } else { sweeps }
}

/// The file of every sample.
pub struct SamplesFile {
    writer: samples::Writer<BufWriter<File>>,
    path: PathBuf,
    failure: Option<String>,
    looked: Instant,
}

/// Space that stays free on the disk, or a tenth of a small one: a day of samples takes tens of gigabytes.
const FLOOR: u64 = 512 << 20;
/// How often the free space is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Says where less than the floor is free. fstatvfs(3).
fn has_room(file: &File) -> std::io::Result<()> {
    let system = rustix::fs::fstatvfs(file)?;
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    let floor = FLOOR.min(system.f_blocks.saturating_mul(system.f_frsize) / 10);
    if free >= floor {
        return Ok(());
    }
    Err(std::io::Error::new(std::io::ErrorKind::StorageFull, too_little(free, floor)))
}

/// In units in which little does not look like nothing.
fn too_little(free: u64, floor: u64) -> String {
    let shown = |bytes: u64| match bytes {
        whole if whole >= 10 << 20 => format!("{} MiB", whole >> 20),
        some if some >= 1 << 10 => format!("{} KiB", some >> 10),
        few => Bytes(few).to_string(),
    };
    format!("{} are free there, and {} are to stay free", shown(free), shown(floor))
}

/// What to do where the file could not be begun.
fn cure(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull => "free some room there, or choose a file on another file system",
        _ => "choose a file that does not exist yet",
    }
}

impl SamplesFile {
    /// A new file, with its header.
    pub fn create(path: PathBuf, header: &Header) -> Result<Self> {
        let failed =
            |error: std::io::Error| Error::new(format!("create {}: {error}", path.display()), cure(&error));
        let file = files::begin_new(&path, files::READABLE).map_err(|error| failed(error.source))?;
        has_room(&file).map_err(failed)?;
        let planned = header.plan.scenarios();
        let planned = samples::Header {
            program: format!("worstcase {}", header.tool.version),
            started: header.started,
            clock: header.plan.clock(),
            cpus: header.plan.series_cpus(),
            sweeps: sweeps(&planned),
            scenarios: planned.iter().map(samples::Measured::from).collect(),
            lab: header.machine.lab.clone(),
        };
        let writer = samples::Writer::new(BufWriter::new(file), &planned).map_err(failed)?;
        Ok(Self { writer, path, failure: None, looked: Instant::now() })
    }

    /// Appends samples of a series of a scenario, `(activation, latency in ns)`. A failure is kept for the end.
    pub fn save(&mut self, scenario: usize, series: usize, samples: &[(u64, u64)]) {
        if self.failure.is_some() || !self.is_above_floor() {
            return;
        }
        let samples: Vec<(u64, Nanos)> =
            samples.iter().map(|&(activation, latency)| (activation, Nanos(latency))).collect();
        let written =
            self.writer.block(scenario as u16, series as u16, &samples).and_then(|()| self.writer.flush());
        self.note(written);
    }

    /// Says that `lost` samples of a series so far could not be saved. A failure is kept for the end.
    pub fn save_lost(&mut self, scenario: usize, series: usize, lost: u64) {
        let written =
            self.writer.lost(scenario as u16, series as u16, lost).and_then(|()| self.writer.flush());
        self.note(written);
    }

    /// Looks once a second. What follows a failure would be a file with a hole in it.
    fn is_above_floor(&mut self) -> bool {
        if self.looked.elapsed() < LOOK {
            return true;
        }
        self.looked = Instant::now();
        let room = has_room(self.writer.get_ref().get_ref());
        let is_there = room.is_ok();
        self.note(room);
        is_there
    }

    fn note(&mut self, result: std::io::Result<()>) {
        if let Err(error) = result {
            self.failure.get_or_insert_with(|| format!("write {}: {error}", self.path.display()));
        }
    }

    /// Brings it to the disk; the first failure, if there was one.
    pub fn close(&mut self) -> Option<String> {
        let synced = self.writer.flush().and_then(|()| self.writer.get_ref().get_ref().sync_all());
        self.note(synced);
        self.failure.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_room_is_said_in_figures_that_are_not_nothing_and_is_not_cured_by_another_name() {
        assert_eq!(too_little(0, 102_400), "0 B are free there, and 100 KiB are to stay free");
        assert_eq!(too_little(1 << 20, 512 << 20), "1024 KiB are free there, and 512 MiB are to stay free");
        let full = std::io::Error::new(std::io::ErrorKind::StorageFull, too_little(0, 1 << 20));
        assert!(cure(&full).contains("another file system"), "{}", cure(&full));
        assert!(cure(&std::io::Error::from_raw_os_error(17)).contains("does not exist yet"));
    }
}
