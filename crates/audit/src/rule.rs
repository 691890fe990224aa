//! A rule as it stands in `rules/*.toml`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::condition::Condition;
use crate::profile::{Asker, Profile};
use crate::want::Want;

/// How bad it is that a rule fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Lengthens the worst case.
    Warning,
    /// The profile's promise cannot hold.
    Error,
}

impl Severity {
    /// Its name for people and other programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What stands behind a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Repeated without either.
    Folklore,
    /// The kernel's documentation or source says how it works.
    Mechanism,
    /// Somebody measured it: the rule's `figure`.
    Measured,
}

/// How much a cure is likely to cut the worst case: an order, not a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Gain {
    /// Rarely seen in the worst case.
    Small,
    /// Seen under some loads.
    Medium,
    /// Often decides the worst case.
    Large,
}

impl Gain {
    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }
}

/// One rule.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rule {
    /// Its stable name: `kc-preempt-rt`.
    pub id: String,
    /// The name of its file: `kernel-config`.
    #[serde(skip)]
    pub layer: String,
    /// What should be, in at most some sixty characters: `Transparent huge pages are off`.
    pub title: String,
    /// What is so where the rule fails, as short, without the value that was read: `kernel is not PREEMPT_RT`.
    pub problem: String,
    /// One line of mechanism.
    pub why: String,
    /// The name of the fact that is judged (`survey`).
    pub fact: String,
    /// Further facts to show beside it: what was requested, configured, what the kernel made of it.
    #[serde(default)]
    pub also: Vec<String>,
    /// Conditions, all of which must hold for the rule to be asked: `FACT WANT`, as in `architecture = x86_64`,
    /// `kernel >= 5.12`, `config:NO_HZ_FULL = y`, `guest = none`.
    #[serde(default)]
    pub applies: Vec<Condition>,
    /// Conditions none of which may be known to hold: a kernel parameter that overrides what is judged, a file that shows the
    /// effective value where the rule judges the configured one. What is not known does not hold, so that a
    /// configuration can be judged alone.
    #[serde(default)]
    pub unless: Vec<Condition>,
    /// What is wanted, by profile; `any` stands for those not named. A profile without a want does not ask. See
    /// [`crate::Profiles`] for whose want counts where several profiles fit.
    pub wanted: BTreeMap<Asker, Want>,
    /// What an absent fact is: `not-applicable` (default), `pass` or `fail`. Does not matter to wants that speak of
    /// absence themselves: `not`, `present`, `absent`.
    #[serde(default)]
    pub absent: Absent,
    /// How bad.
    pub severity: Severity,
    /// How bad for a profile that takes it harder or lighter.
    #[serde(default)]
    pub severity_for: BTreeMap<Profile, Severity>,
    /// What stands behind it.
    pub evidence: Grade,
    /// The figure, for a measured rule: what was measured, on what, by whom.
    pub figure: Option<String>,
    /// How much the cure on the running system is likely to gain; none where there is no such cure. The reason is the figure
    /// where it was measured, else the mechanism.
    pub gain: Option<Gain>,
    /// What that cure does, as an order in some forty characters, with CPUs in braces as in a cure: `move interrupts to
    /// CPUs {housekeeping}`. Goes with `gain`.
    pub change: Option<String>,
    /// What the cure costs, by kind: `power`, `throughput`, `memory`, `security`, `diagnosis`, `safety`, `comfort`.
    #[serde(default)]
    pub costs: BTreeMap<String, String>,
    /// Rules whose cures do not go together with this one's.
    #[serde(default)]
    pub conflicts: Vec<String>,
    /// Where authorities contradict each other: who says what, and what decides.
    pub contradiction: Option<String>,
    /// The cure by domain.
    #[serde(default)]
    pub cure: Cure,
    /// Which papers recommend this, by the names of docs/sources.md.
    #[serde(default)]
    pub papers: Vec<String>,
    /// Where the rule comes from: kernel document, commit, vendor's guide.
    pub source: Vec<String>,
}

/// Costs that nobody pays without having been asked: a machine that hangs, a protection that is gone, a change of the whole
/// machine for the sake of a few CPUs whose gain nobody has measured.
const RESERVED: [&str; 3] = ["safety", "security", "machine"];

impl Rule {
    /// What the cure costs, where it is chosen only for somebody who names the rule.
    pub fn reserved_cost(&self) -> Option<String> {
        let cost = RESERVED.iter().find_map(|kind| Some((kind, self.costs.get(*kind)?)));
        cost.map(|(kind, what)| format!("costs {kind} ({what})"))
    }
}

/// What an absent fact is for a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Absent {
    /// There is nothing to judge.
    #[default]
    NotApplicable,
    /// What is not there does no harm.
    Pass,
    /// It should be there.
    Fail,
}

/// How a rule that fails is made to pass. `{isolated}` and `{housekeeping}` stand for CPU lists,
/// `{isolated-mask}` and `{housekeeping-mask}` for masks.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cure {
    /// Files to write on the running system.
    #[serde(default)]
    pub runtime: Vec<Write>,
    /// What else to do on the running system.
    #[serde(default)]
    pub actions: Vec<Action>,
    /// A command for the running system, where none of these is the way, or another one there is.
    pub command: Option<String>,
    /// Words for the kernel command line.
    #[serde(default)]
    pub boot: Vec<String>,
    /// Lines for a kernel configuration: `CONFIG_X=y`, `# CONFIG_X is not set`.
    #[serde(default)]
    pub config: Vec<String>,
    /// What to set in the firmware, in words.
    pub firmware: Option<String>,
    /// What the application must do, in words.
    pub application: Option<String>,
    /// Why none of these can cure it, and what is left to do, in words: other hardware, another kernel.
    pub none: Option<String>,
}

impl Cure {
    /// Whether it says nothing at all.
    pub fn is_empty(&self) -> bool {
        self.runtime.is_empty()
            && self.actions.is_empty()
            && self.boot.is_empty()
            && self.config.is_empty()
            && [&self.command, &self.firmware, &self.application, &self.none]
                .iter()
                .all(|words| words.is_none())
    }
}

/// A file and what to write into it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Write {
    /// Its path; `*` and `{isolated}` as in a fact's name.
    pub path: String,
    /// As `echo` would write it; `{isolated}` and `{housekeeping}` stand for CPUs.
    pub value: String,
}
