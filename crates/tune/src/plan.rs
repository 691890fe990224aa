//! What would be written where, and what cannot be changed and why not. Nothing is changed here.

use serde::{Deserialize, Serialize};
use sysroot::SysRoot;
use units::{CpuList, InOrder};

use crate::conflict::{Conflict, conflicts};
use crate::setting::{self, Target};
pub use crate::setting::{Change, Handlers, Refusal, Step, Threads};

/// What a rule asks for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The rule's id.
    pub rule: String,
    /// What is so, and should not be; of what is asked for by hand, what should be.
    pub title: String,
    /// The mechanism, in a line.
    pub why: String,
    /// What it costs.
    pub costs: Vec<String>,
    /// Why it is not done unless somebody asks for this rule by name; none for what anybody may do.
    pub reserved: Option<String>,
    /// Whether somebody asks for this rule by name.
    pub named: bool,
    /// What to change on the running system.
    pub changes: Vec<Change>,
    /// What to do instead where nothing can be changed on the running system; empty where nothing is to be said then.
    pub otherwise: String,
}

/// Something that is as wanted already, so that nothing is written; what is set apart rests on it all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relied {
    /// The rules that ask for it.
    pub rules: Vec<String>,
    /// What it is about.
    pub target: Target,
    /// What it is wanted to be.
    pub value: String,
}

/// The version of the form of [`Plan`] in JSON. Fields that may be absent are added without raising it.
pub const SCHEMA_VERSION: u32 = 2;

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What would be written, in this order.
    pub steps: Vec<Step>,
    /// What is as wanted already.
    #[serde(skip)]
    pub relied: Vec<Relied>,
    /// What cannot be changed.
    pub refusals: Vec<Refusal>,
    /// Who else changes the same things.
    pub conflicts: Vec<Conflict>,
}

/// How a refusal ends that is taken back where somebody asks for the rule by its name.
pub const BY_NAME: &str = "only if --only names the rule";

/// What the requests come to on the machine at `root`, whose CPUs for real time are `real_time`: those set apart, else all.
pub fn plan(root: &SysRoot, requests: &[Request], real_time: &CpuList) -> Plan {
    let mut plan = Plan { schema_version: SCHEMA_VERSION, ..Plan::default() };
    for request in requests {
        add(&mut plan, root, request, real_time);
    }
    plan.steps.order_by_key(|step| step.target.kind().phase());
    let Plan { steps, relied, .. } = &mut plan;
    relied.retain(|relied| steps.iter().all(|step| step.target != relied.target));
    relied.order_by_key(|relied| relied.target.kind().phase());
    setting::order_limits(&mut plan.steps);
    plan.conflicts = conflicts(root, &plan.steps);
    plan
}

fn add(plan: &mut Plan, root: &SysRoot, request: &Request, real_time: &CpuList) {
    if let Some(why) = request.reserved.as_ref().filter(|_| !request.named) {
        let why_not = format!("{why}: {BY_NAME}");
        return plan.refusals.push(Refusal {
            rule: request.rule.clone(),
            what: request.title.clone(),
            why_not,
        });
    }
    let before = plan.steps.len() + plan.refusals.len();
    let mut wanted_already = false;
    for change in &request.changes {
        let expansion = setting::expand(root, change, real_time);
        for step in expansion.steps {
            if let Some(why) = step.target.kind().heavy().filter(|_| !request.named) {
                let (rule, what) = (request.rule.clone(), step.target.to_string());
                plan.refusals.push(Refusal { rule, what, why_not: format!("{why}: {BY_NAME}") });
                continue;
            }
            wanted_already |= !merge(&mut plan.steps, &mut plan.refusals, step, request);
        }
        plan.relied.extend(expansion.relied.into_iter().map(|(target, value)| Relied {
            rules: vec![request.rule.clone()],
            target,
            value,
        }));
        let of_rule =
            expansion.refusals.into_iter().map(|refusal| Refusal { rule: request.rule.clone(), ..refusal });
        plan.refusals.extend(of_rule);
    }
    let nothing_done = plan.steps.len() + plan.refusals.len() == before && !wanted_already;
    if nothing_done && !request.otherwise.is_empty() {
        let (rule, what, why_not) = (request.rule.clone(), request.title.clone(), request.otherwise.clone());
        plan.refusals.push(Refusal { rule, what, why_not });
    }
}

/// Adds a step, or the rule to the step that does the same; false for the latter. Of two values for one object the
/// first one stays.
fn merge(steps: &mut Vec<Step>, refusals: &mut Vec<Refusal>, step: Step, request: &Request) -> bool {
    match steps.iter_mut().find(|other| other.target == step.target) {
        Some(same) if same.target.same(&same.new, &step.new) => same.rules.push(request.rule.clone()),
        Some(other) => {
            let why_not = format!(
                "{} has it written to {}, this one to {}",
                other.rules.join(", "),
                other.new,
                step.new
            );
            refusals.push(Refusal { rule: request.rule.clone(), what: step.target.to_string(), why_not });
        }
        None => {
            let effects = request.costs.iter().cloned().chain(step.effects).collect();
            let (rules, why) = (vec![request.rule.clone()], request.why.clone());
            steps.push(Step { rules, why, effects, ..step });
            return true;
        }
    }
    false
}
