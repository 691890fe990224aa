//! Guests that a test makes up: what comes back is a function of what was asked for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use record::instrument::timer::TimerSeries;
use record::time::UtcTime;
use record::verdict::{Judgement, Verdict};
use record::{
    CStates, Evidence, Header, KernelParameter, Lab, LabImages, LabTime, LoadEvidence, Machine,
    ParameterAnswer, PlannedScenario, Record, Request, RunPlan, Scenario, ScenarioEnd, ScenarioHead, Series,
    Setup, Tool,
};
use units::{Bytes, Nanos, Seed};

use crate::boot::{Failure, Guest, Left, Outcome};
use crate::kernels::{Architecture, Kernel};
use crate::several::Booter;
use crate::{Error, MadeOf, hash};

/// Latencies of a guest under a load, or why nothing came of it.
pub type Script = dyn Fn(&Guest, &str, u64) -> Result<Vec<u64>, String> + Sync;

/// Boots nothing.
pub struct Scripted {
    script: Box<Script>,
    /// The emulator's version.
    pub emulator: String,
    /// What the guests' worstcase is.
    pub binary: String,
    /// Parameters that the guests' kernel does not know.
    pub unknown: Vec<String>,
    /// The words and the seed of each guest that was booted.
    pub booted: Mutex<Vec<(Vec<String>, u64)>>,
}

impl Scripted {
    pub fn new(script: impl Fn(&Guest, &str, u64) -> Result<Vec<u64>, String> + Sync + 'static) -> Self {
        Self {
            script: Box::new(script),
            emulator: "QEMU 7.2".into(),
            binary: "worstcase".into(),
            unknown: Vec::new(),
            booted: Mutex::new(Vec::new()),
        }
    }

    pub fn count(&self) -> usize {
        self.booted.lock().unwrap().len()
    }
}

impl Booter for Scripted {
    fn boot(&self, guest: &Guest, stop: &dyn Fn() -> bool) -> Result<Outcome, Failure> {
        if stop() {
            return Err(Error::new("ended before its time").into());
        }
        let request = request(guest);
        let seed = request.seed.unwrap().0;
        self.booted.lock().unwrap().push((guest.words.clone(), seed));
        let scenarios: Result<Vec<Scenario>, String> = request
            .loads
            .iter()
            .map(|load| (self.script)(guest, load, seed).map(|latencies| scenario(load, &latencies)))
            .collect();
        let mut left = Left {
            output: Vec::new(),
            errors: b"said before the end\n".to_vec(),
            files: Vec::new(),
            left_out: Vec::new(),
            console: "Booting\n".into(),
            boot: Some(Duration::from_secs(1)),
            made_of: self.made_of(guest)?,
            parameters: self.parameters(guest),
        };
        let scenarios = match scenarios {
            Ok(scenarios) => scenarios,
            Err(why) => return Err(Failure { error: Error::new(why), left: Some(Box::new(left)) }),
        };
        let record = serde_json::to_vec(&record(guest, seed, scenarios, &left)).unwrap();
        left.files = vec![(PathBuf::from("record.json"), record), (PathBuf::from("sub/more"), vec![1, 2, 3])];
        Ok(Outcome { code: 0, left })
    }

    fn made_of(&self, guest: &Guest) -> Result<MadeOf, Error> {
        let kernel = hash::of(format!("{} {}", guest.kernel.name, guest.kernel.origin).as_bytes());
        let binary = hash::of(self.binary.as_bytes());
        let initramfs = hash::of(format!("{kernel} {binary}").as_bytes());
        let images = LabImages { booted: kernel.clone(), kernel, binary, initramfs };
        Ok(MadeOf { emulator: self.emulator.clone(), images })
    }
}

impl Scripted {
    fn parameters(&self, guest: &Guest) -> Vec<KernelParameter> {
        let parameter = |word: &String| KernelParameter {
            word: word.clone(),
            answer: match self.unknown.contains(word) {
                true => ParameterAnswer::NotRead,
                false => ParameterAnswer::Read,
            },
            evidence: "made up".into(),
        };
        guest.words.iter().filter(|word| !word.starts_with("worstcase.")).map(parameter).collect()
    }
}

/// What the guest is to measure.
fn request(guest: &Guest) -> Request {
    assert_eq!(guest.command[..2], ["worstcase", Request::ARGUMENT].map(OsString::from));
    serde_json::from_str(guest.command[2].to_str().unwrap()).unwrap()
}

fn scenario(load: &str, latencies: &[u64]) -> Scenario {
    let timer = TimerSeries { expected: latencies.len() as u64, ..TimerSeries::default() };
    let mut series = Series { own: timer.into(), ..Series::default() };
    latencies.iter().for_each(|&latency| series.observed.record(Nanos(latency)));
    Scenario {
        head: ScenarioHead {
            planned: PlannedScenario {
                load: load.into(),
                cstates: CStates::AsIs,
                repeat: 1,
                setup: Setup::every(Nanos::from_millis(1)),
            },
            started: UtcTime(0),
            offset: Nanos::ZERO,
            cpus: vec![None],
        },
        end: ScenarioEnd::Complete,
        length: Nanos::from_secs(2),
        series: vec![series],
        load: LoadEvidence::default(),
        evidence: Evidence::default(),
        warnings: Vec::new(),
    }
}

fn record(guest: &Guest, seed: u64, scenarios: Vec<Scenario>, left: &Left) -> Record {
    let lab = Lab {
        time: LabTime::Instructions,
        kernel: None,
        words: guest.words.clone(),
        emulator: left.made_of.emulator.clone(),
        cpu_model: "max".into(),
        under: None,
        processors: 1,
        not_modelled: Vec::new(),
        images: Some(left.made_of.images.clone()),
        parameters: Some(left.parameters.clone()),
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
            tuned: None,
        },
        ended: None,
        scenarios,
        explanations: Vec::new(),
        warnings: Vec::new(),
        judgement: Judgement { verdict: Verdict::Pass, ..Judgement::default() },
    }
}

/// A kernel that no emulator has seen.
pub fn kernel(name: &str) -> Kernel {
    Kernel {
        name: name.into(),
        architecture: Architecture::Amd64,
        release: "6.1.0-test".into(),
        image: "nowhere".into(),
        sha256: None,
        unpacked: None,
        modules: None,
        config: None,
        origin: "made up".into(),
        hypervisor: false,
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

/// A guest in instruction time with such a kernel, given up after 30 s.
pub fn guest(name: &str) -> Guest {
    Guest {
        kernel: kernel(name),
        under: None,
        words: Vec::new(),
        processors: 1,
        threads_per_core: 1,
        cpu_model: None,
        memory: Bytes::from_mebibytes(512),
        time: LabTime::Instructions,
        devices: Vec::new(),
        disk: None,
        system: None,
        binary: "worstcase".into(),
        programs: Vec::new(),
        command: vec!["worstcase".into()],
        time_limit: Duration::from_secs(30),
    }
}
