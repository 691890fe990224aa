//! What `worstcase ways` leaves: one task done in several ways, each with a record of its own below the directory.

use std::path::Path;

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::document::Kind;
use crate::model::names;
use crate::store_error::StoreError;
use crate::time::UtcTime;
use crate::{Machine, Tool};

/// The file in the directory.
pub const FILE: &str = "ways.json";

/// The version of the form of [`FILE`] that this program writes.
pub const WAYS_VERSION: u32 = 1;

/// What [`FILE`] holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ways {
    /// [`WAYS_VERSION`] of the program that wrote it.
    pub ways_version: u32,
    /// The program.
    pub tool: Tool,
    /// When it began.
    pub started: UtcTime,
    /// The machine.
    pub machine: Machine,
    /// What was done in each way.
    #[serde(default)]
    pub task: Task,
    /// The partition that ways of their own CPUs had; none where the machine had none for them.
    pub partition: Option<String>,
    /// From one activation or message to the next.
    pub interval: Nanos,
    /// How long each way was measured under each load.
    pub duration: Nanos,
    /// The loads, in their order.
    pub loads: Vec<String>,
    /// The ways, those that could not be measured too.
    pub ways: Vec<Way>,
    /// Whether the user ended it before all were measured.
    #[serde(default)]
    pub interrupted: bool,
}

/// What is done again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// An activation each period: how late it is.
    #[default]
    Activation,
    /// A message from another CPU: until it is received.
    Message,
    /// A message from another CPU that two pass on: until the third receives it.
    Stages,
}

names! {
    Task { Activation => "activation", Message => "message", Stages => "stages" }
}

/// One way to do the task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Way {
    /// Its name.
    pub name: String,
    /// What it is, in a few words.
    pub title: String,
    /// What it needs of kernel, privileges, hardware.
    pub needs: String,
    /// What speaks for it.
    pub gains: String,
    /// What speaks against it.
    pub costs: String,
    /// The directory of its record below that of the file; none where it was not measured.
    pub record: Option<String>,
    /// CPUs that nothing else has.
    pub cpus_taken: u32,
    /// Memory that its process had locked, in bytes: the most under any load. None where it was not read.
    #[serde(default)]
    pub locked_memory: Option<u64>,
    /// What was measured, load by load.
    pub figures: Vec<UnderLoad>,
    /// Why nothing was measured.
    pub why_not: Option<String>,
    /// What else has to be known of its figures, a sentence each.
    pub notes: Vec<String>,
}

/// The latencies of a way under one load. None where there was no sample, or there were too few.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnderLoad {
    /// The load.
    pub load: String,
    /// The least.
    pub minimum: Option<Nanos>,
    /// The median.
    pub median: Option<Nanos>,
    /// The latency that one in a thousand activations exceeds, missed ones included.
    pub p999: Option<Nanos>,
    /// The greatest; that of a wake-up that had not come when the run ended is a lower bound.
    pub maximum: Option<Nanos>,
    /// Activations that woke the thread.
    pub samples: u64,
    /// Activations that it was too late for.
    pub missed: u64,
    /// What the load's workers did in a second, in units of their own; none where nothing is counted.
    pub work: Option<f64>,
    /// The mean power of the machine, in watts. None where no meter of the machine says it.
    #[serde(default)]
    pub watts: Option<f64>,
}

/// Reads what `worstcase ways` left in a directory, or its [`FILE`]. None where there is none.
pub fn load(path: &Path) -> Option<Result<Ways, StoreError>> {
    const WAYS: Kind = Kind {
        file: FILE,
        name: "record of ways",
        hint: "give a directory that `worstcase ways` left",
        version: WAYS_VERSION,
        longest: 1 << 24,
    };
    WAYS.load(path, |versioned: Versioned| versioned.ways_version)
}

/// What every version has.
#[derive(Deserialize)]
struct Versioned {
    ways_version: u32,
}
