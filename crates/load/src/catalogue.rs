//! The loads that exist: data in `loads/*.toml`, built into the binary, and what each is, in words.

use record::LoadProof;
use serde::{Deserialize, Serialize};
use units::CpuList;

use crate::error::Error;
use crate::program::Program;
use crate::stressor::{About, Work};

/// A command of the user's own may do anything; one that uses less than a hundredth of a CPU waits.
const COMMAND_FLOOR_PERMILLE: u32 = 10;

/// Every file of `loads/`, in the order in which they are shown: made by the build script.
const LOADS: &str = include_str!(concat!(env!("OUT_DIR"), "/loads.json"));

/// A load: stressors that run at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// The name that selects it.
    pub name: String,
    /// What it is, in a few words.
    pub title: String,
    /// Which parts of the machine it disturbs.
    pub disturbs: String,
    /// Where it comes from: a seed and its words, or the command line.
    pub source: String,
    /// Set where the source does not print the load's options: what they were inferred from.
    pub inferred: Option<String>,
    /// Where it differs from its source, and why.
    pub differs: Option<String>,
    /// Set where its figures do not compare with those of other loads: why.
    pub apart: Option<String>,
    /// What runs; nothing for `idle`.
    #[serde(default, rename = "stressor")]
    pub stressors: Vec<Stressor>,
}

/// Workers that all do the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stressor {
    /// How many of them.
    pub workers: Workers,
    /// Whether they run on measured CPUs too, not on the load's CPUs alone.
    #[serde(default)]
    pub everywhere: bool,
    /// What each does.
    pub work: Work,
    /// Its name in the record, where that is not its work's.
    #[serde(default)]
    pub name: Option<String>,
    /// By what it is known to run; by default a stressor of our own by its work, a program by its CPU time.
    #[serde(default)]
    pub proof: Option<LoadProof>,
    /// The least share of the CPU time that it could have had, in per mille, with which it counts as running, where
    /// that is not its kind's.
    #[serde(default)]
    pub floor_permille: Option<u32>,
}

/// How many workers a stressor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Workers {
    /// This many.
    Number(u32),
    /// One for each CPU that the stressor may use, as Enea has 4 on 4 cores.
    #[serde(with = "per_cpu")]
    PerCpu,
}

/// Every load that the binary knows.
#[derive(Clone, Debug)]
pub struct Catalogue {
    loads: Vec<Load>,
}

impl Catalogue {
    /// The loads built into the binary.
    ///
    /// # Errors
    /// [`Error::Catalogue`] where a file says what no load is; a test makes sure that none does.
    pub fn shipped() -> Result<Self, Error> {
        record::json::read(LOADS.as_bytes())
            .map(|loads| Self { loads })
            .map_err(|error| Error::Catalogue(error.to_string()))
    }

    /// In the catalogue's order.
    pub fn loads(&self) -> &[Load] {
        &self.loads
    }

    /// The load of that name.
    ///
    /// # Errors
    /// [`Error::Unknown`] or [`Error::Unnamed`], with the names that exist.
    pub fn get(&self, name: &str) -> Result<&Load, Error> {
        self.loads.iter().find(|load| load.name == name).ok_or_else(|| {
            let known = self.loads.iter().map(|load| load.name.as_str()).collect::<Vec<_>>().join(", ");
            match name.is_empty() {
                true => Error::Unnamed { known },
                false => Error::Unknown { name: name.to_owned(), known },
            }
        })
    }
}

impl Load {
    /// A load of one shell command: `--load-command`. Its name is `command:` and the command's first word.
    pub fn from_command(command: &str) -> Self {
        let program = Program::shell(command);
        Self {
            name: format!("command:{}", program.shown()),
            title: command.to_owned(),
            disturbs: "Whatever the command does.".to_owned(),
            source: format!("--load-command {command:?}"),
            inferred: None,
            differs: None,
            apart: None,
            stressors: vec![Stressor {
                workers: Workers::Number(1),
                everywhere: false,
                work: Work::Program(program),
                name: None,
                proof: None,
                floor_permille: Some(COMMAND_FLOOR_PERMILLE),
            }],
        }
    }

    /// Judges all its stressors by `proof`: `--load-proof`.
    pub fn proven_by(mut self, proof: Option<LoadProof>) -> Self {
        if let Some(proof) = proof {
            self.stressors.iter_mut().for_each(|stressor| stressor.proof = Some(proof));
        }
        self
    }

    /// Whether it writes files, so that it needs a directory.
    pub fn writes(&self) -> bool {
        self.abouts().any(|about| about.writes)
    }

    /// Whether what it writes must reach a device to be of use.
    pub fn needs_device(&self) -> bool {
        self.abouts().any(|about| about.needs_device)
    }

    /// Whether some of its workers are real-time threads by intent.
    pub fn is_real_time(&self) -> bool {
        self.abouts().any(|about| about.real_time)
    }

    fn abouts(&self) -> impl Iterator<Item = About> {
        self.stressors.iter().map(|stressor| stressor.work.about())
    }

    /// Programs that it needs and that are not on this machine, with the way to get them.
    pub fn missing(&self) -> Vec<crate::Missing> {
        self.stressors.iter().filter_map(Stressor::missing).collect()
    }

    /// What it is, for a reader.
    pub fn explain(&self) -> Explanation {
        Explanation {
            name: self.name.clone(),
            title: self.title.clone(),
            disturbs: self.disturbs.clone(),
            source: self.source.clone(),
            remarks: [&self.inferred, &self.differs, &self.apart].into_iter().flatten().cloned().collect(),
            stressors: self.stressors.iter().map(Stressor::explain).collect(),
            missing: self.missing().iter().map(ToString::to_string).collect(),
        }
    }
}

/// A load in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The word that selects it: `hdd`.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// What it disturbs.
    pub disturbs: String,
    /// Where it comes from.
    pub source: String,
    /// What was inferred, what differs from the source, what sets it apart.
    pub remarks: Vec<String>,
    /// One sentence a stressor.
    pub stressors: Vec<String>,
    /// Programs that it needs and that are not there.
    pub missing: Vec<String>,
}

impl Stressor {
    /// The program that it needs, where that is not on this machine.
    pub fn missing(&self) -> Option<crate::Missing> {
        match &self.work {
            Work::Program(program) => program.missing(),
            _ => None,
        }
    }

    /// How many workers it has on `cpus`.
    pub fn count(&self, cpus: &CpuList) -> u32 {
        match self.workers {
            Workers::Number(number) => number,
            Workers::PerCpu => u32::try_from(cpus.len()).unwrap_or(u32::MAX),
        }
    }

    fn explain(&self) -> String {
        let workers = match self.workers {
            Workers::Number(1) => "one worker".to_owned(),
            Workers::Number(number) => format!("{number} workers"),
            Workers::PerCpu => "one worker per CPU".to_owned(),
        };
        format!("{}, {workers}: {}", self.name(), self.work.about().does)
    }

    /// Its name in the record.
    pub(crate) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.work.about().name)
    }

    /// Whether waiting for a device is part of its work: a program may do anything.
    pub(crate) fn waits(&self) -> bool {
        self.proof() == LoadProof::Work && (matches!(self.work, Work::Program(_)) || self.work.about().waits)
    }

    /// By what it is known to run.
    pub(crate) fn proof(&self) -> LoadProof {
        self.proof.unwrap_or(match self.work {
            Work::Program(_) => LoadProof::Cpu,
            _ => LoadProof::Work,
        })
    }
}

/// The word `per-cpu`.
mod per_cpu {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("per-cpu")
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "per-cpu" => Ok(()),
            other => Err(D::Error::custom(format!("`{other}` is neither a number nor `per-cpu`"))),
        }
    }
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
