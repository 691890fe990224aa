//! What the rules say of a machine.

use record::Fact;
use record::verdict::Verdict;
use serde::{Deserialize, Serialize};

use crate::division::Division;
use crate::profile::Profiles;
use crate::rule::{Grade, Severity};

/// The version of the form of [`Audit`] in JSON. Fields that may be absent are added without raising it.
pub const SCHEMA_VERSION: u32 = 2;

/// All findings about one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Audit {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The version of the program that judged.
    pub tool_version: String,
    /// What was judged.
    pub subject: Subject,
    /// For what it was judged.
    pub profiles: Profiles,
    /// Why for that, one reason a profile.
    pub reasons: Vec<String>,
    /// The CPUs for real time, and the others.
    pub division: Division,
    /// One for each rule that was asked: failed ones first, the worst of them first.
    pub findings: Vec<Finding>,
    /// Fail: a rule of severity error failed. Inconclusive: such a rule could not be read, or none was judged. Else pass,
    /// where a profile was asked for; measured, where the machine alone suggested what to ask.
    pub verdict: Verdict,
}

/// The machine, as far as its names go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Subject {
    /// The kernel's release.
    pub kernel: Fact<String>,
    /// `uname -m`.
    pub architecture: Fact<String>,
    /// How the kernel preempts.
    pub preemption: Fact<String>,
    /// The hypervisor, or `none`.
    pub guest: Fact<String>,
    /// Who made the container that this runs in, or `none`.
    #[serde(default)]
    pub container: Fact<String>,
    /// The machine's name, by its firmware.
    #[serde(default)]
    pub model: Fact<String>,
    /// The CPUs that run.
    pub online: Fact<String>,
}

/// What one rule says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The rule's id.
    pub rule: String,
    /// The rule's layer.
    pub layer: String,
    /// What should be.
    pub title: String,
    /// What is so where the rule fails.
    #[serde(default)]
    pub problem: String,
    /// How bad it is, or would be.
    pub severity: Severity,
    /// What stands behind the rule.
    pub grade: Grade,
    /// What came out.
    pub outcome: Outcome,
    /// Why nothing could be judged.
    pub reason: Option<String>,
    /// The items that failed, of a list that did.
    pub offenders: Vec<Offender>,
    /// What was wanted, in the grammar of wants; empty where nothing was.
    pub wanted: String,
    /// What was read: the fact that is judged, then those that stand beside it.
    pub evidence: Vec<Evidence>,
    /// How what the rule wants works on latencies.
    pub why: String,
    /// What the boot loader's files change at the next boot: of a rule that fails how it comes to pass, of one that
    /// passes how it comes to fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_boot: Option<String>,
    /// How it is cured where it fails, the way with the least trouble first.
    pub cure: Vec<Remedy>,
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is not as wanted.
    Failed,
    /// It is there and could not be read.
    Unreadable,
    /// It is as wanted.
    Passed,
    /// Nobody can tell here: this kernel or this source of facts has no such thing.
    Unsupported,
    /// The rule is not about a machine or a profile like this.
    NotApplicable,
}

/// A fact that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// The fact's name: `boot:isolcpus`.
    pub fact: String,
    /// Its value, or why there is none.
    pub value: Fact<String>,
    /// Where it was read.
    pub from: Vec<String>,
}

/// An item of a list that is not as wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Offender {
    /// What it is: a path, an interrupt, a thread.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Where a cure is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Domain {
    /// On the running system, until it is rebooted.
    Runtime,
    /// On the kernel command line.
    Boot,
    /// In the kernel's configuration: another kernel, or a rebuilt one.
    Config,
    /// In the firmware's set-up.
    Firmware,
    /// In the application.
    Application,
    /// Nowhere here.
    None,
}

/// One way to cure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Remedy {
    /// What is changed by it.
    pub domain: Domain,
    /// A command, kernel parameters, lines of a configuration, or words.
    pub text: String,
}

impl Domain {
    /// What to do, in front of a cure.
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Boot => "boot with ",
            Self::Config => "build the kernel with ",
            Self::Firmware => "in the firmware: ",
            Self::Application => "in the application: ",
            Self::Runtime | Self::None => "",
        }
    }

    /// Its name in front of a cure.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runtime => "now",
            Self::Boot => "kernel command line",
            Self::Config => "kernel config",
            Self::Firmware => "firmware",
            Self::Application => "application",
            Self::None => "no cure here",
        }
    }
}

impl Finding {
    /// What is so: the problem where the rule fails, else what should be.
    pub fn headline(&self) -> &str {
        if self.outcome == Outcome::Failed { &self.problem } else { &self.title }
    }
}

impl Audit {
    /// Findings with this outcome, in their order.
    pub fn with(&self, outcome: Outcome) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.outcome == outcome)
    }
}

/// What the findings come to; `required` where a profile was asked for.
pub fn verdict(findings: &[Finding], required: bool) -> Verdict {
    let is = |outcome| {
        findings.iter().any(|finding| finding.severity == Severity::Error && finding.outcome == outcome)
    };
    let judged = findings.iter().any(|finding| matches!(finding.outcome, Outcome::Passed | Outcome::Failed));
    if is(Outcome::Failed) {
        Verdict::Fail
    } else if is(Outcome::Unreadable) || !judged {
        Verdict::Inconclusive
    } else if required {
        Verdict::Pass
    } else {
        Verdict::Measured
    }
}
