//! The run as a whole.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use units::Nanos;

use super::{Explanation, Machine, RunPlan, Scenario, Warning};
use crate::time::UtcTime;
use crate::verdict::Judgement;

/// The version of the form of `record.json` and `journal.ndjson` that this program writes.
pub const SCHEMA_VERSION: u32 = 3;

/// What `record.json` holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// What was known when the run began.
    pub header: Header,
    /// When it ended; none where it was cut off.
    pub ended: Option<UtcTime>,
    /// What was measured, in the order in which it was.
    pub scenarios: Vec<Scenario>,
    /// Scenarios measured once more with tracing, to explain their worst wake-ups. They count for no verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<Explanation>,
    /// Warnings about the run as a whole.
    pub warnings: Vec<Warning>,
    /// What the run means.
    pub judgement: Judgement,
}

/// What is known when a run begins; the journal's first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Header {
    /// [`SCHEMA_VERSION`] of the program that wrote it.
    pub schema_version: u32,
    /// The program.
    pub tool: Tool,
    /// Its command line.
    pub command_line: Vec<String>,
    /// The user's own words.
    pub note: Option<String>,
    /// When it began.
    pub started: UtcTime,
    /// The machine.
    pub machine: Machine,
    /// The plan.
    pub plan: RunPlan,
    /// Settings of the machine that the run holds while it lasts, and that end with it.
    pub held: Vec<Held>,
    /// What `worstcase tune` and `partition create` held on this machine when the run began; absent where that is not known, as in
    /// records of older versions, in those of worstcase-agent, and of users who may not read the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<Vec<Tuned>>,
}

/// The program that made the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tool {
    /// Its version.
    pub version: String,
    /// What it was built for and how: `x86_64-linux-gnu static release`.
    pub build: String,
}

/// What was changed so that a rule passes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tuned {
    /// The rule, as `worstcase why` takes it; several where they ask for the same.
    pub rule: String,
    /// How many settings were changed.
    pub settings: u64,
    /// The values that they were given, each once, at most four.
    pub values: Vec<String>,
}

/// A setting held during the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Held {
    /// What: `/dev/cpu_dma_latency`.
    pub what: String,
    /// The value asked for.
    pub value: String,
    /// The value read back.
    pub effective: String,
    /// During which scenarios.
    pub during: String,
}

/// What stands for the load `idle` where it is alone: then no other column shows what is meant, and nobody knows whether the
/// machine is idle.
pub const NO_LOAD: &str = "no load";

/// The load that is none, by its name in records, options and what programs read.
pub const IDLE: &str = "idle";

impl Record {
    /// Whether nothing was loaded in the whole run.
    pub fn is_unloaded(&self) -> bool {
        self.header.plan.is_unloaded() && self.scenarios.iter().all(|one| one.head.planned.load == IDLE)
    }

    /// What a reader is to call one of its loads.
    pub fn load_name<'a>(&self, load: &'a str) -> &'a str {
        if self.is_unloaded() { NO_LOAD } else { load }
    }

    /// The same record with its loads as a reader calls them: for texts, never for programs or for commands.
    pub fn for_readers(&self) -> Cow<'_, Self> {
        if !self.is_unloaded() {
            return Cow::Borrowed(self);
        }
        let mut named = self.clone();
        named.header.plan.loads = vec![NO_LOAD.to_owned()];
        let explained = named.explanations.iter_mut().map(|one| &mut one.scenario);
        for scenario in named.scenarios.iter_mut().chain(explained) {
            NO_LOAD.clone_into(&mut scenario.head.planned.load);
        }
        for claim in &mut named.judgement.claims.series {
            NO_LOAD.clone_into(&mut claim.load);
        }
        Cow::Owned(named)
    }

    /// The greatest value that any scenario observed, with the scenario and the series it was seen in.
    pub fn worst(&self) -> Option<(Nanos, &Scenario, &super::Series)> {
        self.scenarios
            .iter()
            .flat_map(|scenario| scenario.series.iter().map(move |series| (scenario, series)))
            .filter_map(|(scenario, series)| Some((series.observed.summary().maximum()?, scenario, series)))
            .max_by_key(|(latency, _, _)| *latency)
    }

    /// Whether anything was measured: an activation was due, or time was watched.
    pub fn is_measured(&self) -> bool {
        self.scenarios.iter().any(Scenario::is_measured)
    }

    /// Activations that were due, in all scenarios.
    pub fn activations(&self) -> u64 {
        let series = self.scenarios.iter().flat_map(|scenario| &scenario.series);
        series.fold(0, |sum, series| sum.saturating_add(series.expected()))
    }

    /// Warnings of the run and of its scenarios.
    pub fn all_warnings(&self) -> impl Iterator<Item = &Warning> {
        self.warnings.iter().chain(self.scenarios.iter().flat_map(|scenario| &scenario.warnings))
    }
}
