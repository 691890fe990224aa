//! Guests that a test makes up: what comes back is a function of what was asked for.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use record::time::UtcTime;
use record::verdict::{Judgement, Verdict};
use record::{
    CStates, Evidence, Header, Lab, LabTime, LoadEvidence, Machine, Record, RunPlan, Scenario, ScenarioEnd,
    ScenarioHead, Series, Tool,
};
use units::{Nanos, Seed};

use crate::Error;
use crate::boot::{Guest, Outcome};
use crate::kernels::{Architecture, Kernel};
use crate::several::Booter;

/// Latencies of a guest under a load, or why nothing came of it.
pub type Script = dyn Fn(&Guest, &str, u64) -> Result<Vec<u64>, String> + Sync;

/// Boots nothing.
pub struct Scripted {
    script: Box<Script>,
    /// The words and the seed of each guest that was booted.
    pub booted: Mutex<Vec<(Vec<String>, u64)>>,
}

impl Scripted {
    pub fn new(script: impl Fn(&Guest, &str, u64) -> Result<Vec<u64>, String> + Sync + 'static) -> Self {
        Self { script: Box::new(script), booted: Mutex::new(Vec::new()) }
    }

    pub fn count(&self) -> usize {
        self.booted.lock().unwrap().len()
    }
}

impl Booter for Scripted {
    fn boot(&self, guest: &Guest, stop: &dyn Fn() -> bool) -> Result<Outcome, Error> {
        if stop() {
            return Err(Error::new("ended before its time"));
        }
        let seed = after(guest, "--seed").parse().unwrap();
        self.booted.lock().unwrap().push((guest.words.clone(), seed));
        let scenarios: Result<Vec<Scenario>, String> = after(guest, "--loads")
            .split(',')
            .map(|load| (self.script)(guest, load, seed).map(|latencies| scenario(load, &latencies)))
            .collect();
        let scenarios = scenarios.map_err(Error::new)?;
        let record = serde_json::to_vec(&record(guest, seed, scenarios)).unwrap();
        Ok(Outcome {
            code: 0,
            output: Vec::new(),
            errors: b"said before the end\n".to_vec(),
            files: vec![(PathBuf::from("record.json"), record), (PathBuf::from("sub/more"), vec![1, 2, 3])],
            console: "Booting\n".into(),
            boot: Duration::from_secs(1),
            emulator: "QEMU 7.2".into(),
        })
    }
}

/// The word after `option` on the guest's command line.
fn after(guest: &Guest, option: &str) -> String {
    let place = guest.command.iter().position(|word| word == OsStr::new(option)).unwrap();
    guest.command[place + 1].to_str().unwrap().to_owned()
}

fn scenario(load: &str, latencies: &[u64]) -> Scenario {
    let mut series = Series { expected: latencies.len() as u64, ..Series::default() };
    latencies.iter().for_each(|&latency| series.observed.record(Nanos(latency)));
    Scenario {
        head: ScenarioHead {
            load: load.into(),
            interval: Nanos::from_millis(1),
            cstates: CStates::AsIs,
            repeat: 1,
            started: UtcTime(0),
            offset: Nanos::ZERO,
            cpus: vec![None],
            phases: vec![Nanos::ZERO],
        },
        end: ScenarioEnd::Complete,
        length: Nanos::from_secs(2),
        series: vec![series],
        load: LoadEvidence::default(),
        evidence: Evidence::default(),
        warnings: Vec::new(),
    }
}

fn record(guest: &Guest, seed: u64, scenarios: Vec<Scenario>) -> Record {
    let lab = Lab {
        time: LabTime::Instructions,
        kernel: guest.kernel.name.clone(),
        words: guest.words.clone(),
        emulator: "QEMU 7.2".into(),
        cpu_model: "max".into(),
        processors: 1,
        not_modelled: Vec::new(),
    };
    Record {
        header: Header {
            schema_version: record::SCHEMA_VERSION,
            tool: Tool { version: "0".into(), build: "test".into() },
            command_line: Vec::new(),
            note: None,
            started: UtcTime(0),
            machine: Machine { lab: Some(lab), ..Machine::default() },
            plan: RunPlan { seed: Some(Seed(seed)), ..RunPlan::default() },
            held: Vec::new(),
        },
        ended: None,
        scenarios,
        warnings: Vec::new(),
        judgement: Judgement {
            verdict: Verdict::Pass,
            reasons: Vec::new(),
            speaks_for: String::new(),
            does_not_speak_for: String::new(),
        },
    }
}

/// A kernel that no emulator has seen.
pub fn kernel(name: &str) -> Kernel {
    Kernel {
        name: name.into(),
        architecture: Architecture::Amd64,
        release: "6.1.0-test".into(),
        image: "nowhere".into(),
        unpacked: None,
        modules: None,
        config: None,
        origin: "made up".into(),
    }
}

/// `count` latencies around `typical`, of which two in a thousand are `tail`, moved by the seed.
pub fn latencies(typical: u64, tail: u64, seed: u64) -> Vec<u64> {
    let mut random = Seed(seed).stream("latencies");
    let of = |place: u64, random: &mut units::Random| {
        let base = if place % 500 == 499 { tail } else { typical };
        base + random.below(base / 4)
    };
    (0..2_000).map(|place| of(place, &mut random)).collect()
}
