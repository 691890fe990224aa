//! What the guests' kernel made of the parameters that are tried, and what guests cannot show of a setting.

use experiment::Parameters;
use machine::unseen;
use record::{KernelParameter, LabTime, ParameterAnswer};

use super::plan::{Place, TrialPlan};

/// What the kernel made of each setting that is a parameter.
pub fn tried(plan: &TrialPlan, parameters: &Parameters) -> Vec<KernelParameter> {
    let settings = plan.design.settings.iter();
    settings.filter_map(|setting| experiment::parameter(parameters, setting)).cloned().collect()
}

/// What has to be known before the answer on `setting` is believed, a sentence each: what the kernel made of it, and what
/// guests cannot show.
pub fn notes(plan: &TrialPlan, setting: &str, parameters: &[KernelParameter]) -> Vec<String> {
    let Place::Guests(guests) = &plan.place else { return Vec::new() };
    let read = parameters
        .iter()
        .filter(|found| found.word == setting)
        .find(|found| found.answer != ParameterAnswer::Read);
    let read = read.map(|found| format!("{}: {}", found.answer, found.evidence));
    let acts = plan.settings().unwrap_or_default();
    let acts =
        acts.into_iter().filter(|known| known.to_string() == setting).flat_map(|known| known.acts_on());
    let unseen = match guests.time {
        LabTime::Instructions => acts.into_iter().find_map(|acts| unseen::note(&acts)),
        LabTime::Wall => None,
    };
    let unseen = unseen.map(|note| format!("this guest cannot tell: {note}"));
    read.into_iter().chain(unseen).collect()
}
