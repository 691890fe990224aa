//! The whole of an audit: profiles chosen, rules asked, findings in order.

use record::Fact;
use survey::{Survey, Value};
use units::CpuList;

use crate::choice::choose;
use crate::division::Division;
use crate::finding::{Audit, SCHEMA_VERSION, Subject, verdict};
use crate::judge::{Judge, sort};
use crate::profile::Profile;
use crate::rule::Rule;

/// What the user asks for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Profiles in the place of those that the machine suggests.
    pub profiles: Vec<Profile>,
    /// Ids of the rules to ask; none for all.
    pub rules: Vec<String>,
}

/// Asks `rules` about the machine of `survey`.
pub fn audit(survey: &Survey, rules: &[Rule], request: &Request) -> Audit {
    let online = match survey.read("cpus.online").value {
        Fact::Value(Value::Cpus(cpus)) => cpus,
        _ => CpuList::new(),
    };
    let division = Division::new(survey.isolated().clone(), &online);
    let (profiles, reasons) = choose(survey, &division, &request.profiles);
    let judge = Judge { survey, profiles: &profiles, division: &division };
    let asked = rules.iter().filter(|rule| request.rules.is_empty() || request.rules.contains(&rule.id));
    let mut findings: Vec<_> = asked.map(|rule| judge.judge(rule)).collect();
    sort(&mut findings);
    Audit {
        schema_version: SCHEMA_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        subject: subject(survey),
        verdict: verdict(&findings, !request.profiles.is_empty()),
        division,
        profiles,
        reasons,
        findings,
    }
}

fn subject(survey: &Survey) -> Subject {
    let text = |name: &str| survey.read(name).value.map(|value| value.to_string());
    Subject {
        kernel: text("kernel.release"),
        architecture: text("architecture"),
        preemption: text("preemption"),
        guest: text("guest"),
        container: text("container"),
        model: text("model"),
        online: text("cpus.online"),
    }
}
