//! What a change comes to on this machine: what would be written, what is as wanted already, what cannot be changed.

use record::Fact;
use serde::{Deserialize, Serialize};
use sysroot::SysRoot;

use super::{Form, Target, hazard};

/// One write that is planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Step {
    /// The rules that ask for it.
    pub rules: Vec<String>,
    /// What is written.
    pub target: Target,
    /// What it says now.
    pub old: String,
    /// What it is to say.
    pub new: String,
    /// The mechanism.
    pub why: String,
    /// What else happens, what it costs.
    pub effects: Vec<String>,
}

impl Step {
    pub(crate) fn new(target: Target, old: String, new: String) -> Self {
        let effects = target.kind().effect().map(str::to_owned).into_iter().collect();
        Self { rules: Vec::new(), target, old, new, why: String::new(), effects }
    }
}

/// Something that cannot be changed here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The rule that asks for it.
    pub rule: String,
    /// What it is about.
    pub what: String,
    /// Why not, and what could be done instead.
    pub why_not: String,
}

/// What a change comes to on this machine.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    pub steps: Vec<Step>,
    /// What is as wanted already, and what it is wanted to be.
    pub relied: Vec<(Target, String)>,
    pub refusals: Vec<Refusal>,
}

impl Expansion {
    pub fn refuse(&mut self, what: impl Into<String>, why_not: impl Into<String>) {
        self.refusals.push(Refusal { rule: String::new(), what: what.into(), why_not: why_not.into() });
    }

    /// Adds the change of `target` towards `wanted`, if it is not so already.
    pub fn change(&mut self, root: &SysRoot, target: Target, wanted: &str) {
        self.add(root, target, wanted, |form, now| form.change(now, wanted));
    }

    /// Adds the change of `target` to just `wanted`, if it is not so already: sets of CPUs are widened too, and stricter
    /// limits are loosened.
    pub fn set(&mut self, root: &SysRoot, target: Target, wanted: &str) {
        let exactly =
            |form: Form, now: &str| (!form.same(&form.value(now), wanted)).then(|| wanted.to_owned());
        self.add(root, target, wanted, exactly);
    }

    fn add(
        &mut self,
        root: &SysRoot,
        target: Target,
        wanted: &str,
        new: impl FnOnce(Form, &str) -> Option<String>,
    ) {
        let now = match target.kind().text(root) {
            Fact::Value(text) => text,
            Fact::Unreadable(errno) => {
                return self.refuse(target.to_string(), hazard::unreadable(&target.to_string(), errno));
            }
            Fact::Absent | Fact::Unsupported => return,
        };
        let form = target.kind().form(&now);
        let Some(new) = new(form, &now) else { return self.relied.push((target, wanted.to_owned())) };
        let old = form.value(&now);
        let one_way = target.kind().one_way(&old);
        match one_way {
            Some(why) => self.refuse(target.to_string(), why),
            None => self.steps.push(Step::new(target, old, new)),
        }
    }
}
