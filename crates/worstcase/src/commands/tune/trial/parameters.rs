//! What the guests' kernel made of the parameters that are tried, and what guests cannot show of a setting.

use std::fs;
use std::path::{Path, PathBuf};

use experiment::{Answer, Effect};
use machine::unseen;
use record::{KernelParameter, LabTime, ParameterAnswer, store};

use super::question::{Place, Question};
use crate::error::Result;

/// What the kernel made of each setting of `question` that is a parameter, from the records below `directory`: one of each
/// arm.
///
/// # Errors
/// Where a record cannot be read.
pub fn of(question: &Question, directory: &Path) -> Result<Vec<KernelParameter>> {
    let mut found: Vec<KernelParameter> = Vec::new();
    let mut arms = below(directory);
    arms.sort();
    for arm in arms {
        let mut seeds = below(&arm);
        seeds.retain(|seed| seed.extension().is_none() && seed.join(store::RECORD).is_file());
        seeds.sort();
        let Some(seed) = seeds.first() else { continue };
        let lab = store::load(seed)?.header.machine.lab;
        let parameters = lab.and_then(|lab| lab.parameters).unwrap_or_default();
        let is_tried = |parameter: &KernelParameter| question.design.settings.contains(&parameter.word);
        for parameter in parameters.into_iter().filter(is_tried) {
            if !found.iter().any(|known| known.word == parameter.word) {
                found.push(parameter);
            }
        }
    }
    Ok(found)
}

fn below(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// A setting that the kernel did not take has no effect, whatever the blocks say.
pub fn judge(answer: &mut Answer, parameters: &[KernelParameter]) {
    for tried in &mut answer.settings {
        let found = of_setting(parameters, &tried.setting).filter(|found| found.answer.is_without_effect());
        if let Some(found) = found {
            let why = format!("{}: {}", found.answer, found.evidence);
            (tried.verdict, tried.not_read) = (Effect::Undecided, Some(why));
        }
    }
}

/// What the kernel made of `setting`, if that is a parameter.
fn of_setting<'a>(parameters: &'a [KernelParameter], setting: &str) -> Option<&'a KernelParameter> {
    parameters.iter().find(|parameter| parameter.word == setting)
}

/// What has to be known before the answer on `setting` is believed, a sentence each: what the kernel made of it, and what
/// guests cannot show.
pub fn notes(question: &Question, setting: &str, parameters: &[KernelParameter]) -> Vec<String> {
    let Place::Guests(guests) = &question.place else { return Vec::new() };
    let read = of_setting(parameters, setting).filter(|found| found.answer != ParameterAnswer::Read);
    let read = read.map(|found| format!("{}: {}", found.answer, found.evidence));
    let acts = question.settings().unwrap_or_default();
    let acts =
        acts.into_iter().filter(|known| known.to_string() == setting).flat_map(|known| known.acts_on());
    let unseen = match guests.time {
        LabTime::Instructions => acts.into_iter().find_map(|acts| unseen::note(&acts)),
        LabTime::Wall => None,
    };
    let unseen = unseen.map(|note| format!("this guest cannot tell: {note}"));
    read.into_iter().chain(unseen).collect()
}
