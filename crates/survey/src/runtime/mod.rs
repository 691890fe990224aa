//! What rules ask of the running system beyond single files: interrupts, threads, idle states, isolation, services.
//! One file a topic; each lists the facts that it answers.
//!
//! Nothing is read that interrupts other CPUs or takes another process's memory lock.

mod frequency;
mod holders;
mod idle;
mod interrupts;
mod isolation;
mod kernel_threads;
mod log;
mod memory;
mod network;
mod priorities;
mod process;
pub(super) mod services;
mod starvation;
mod steal;
#[cfg(test)]
mod tests;
mod tracing;
mod virtual_cpus;
mod watchdogs;

use record::Fact;
use units::CpuList;

use super::facts::NamedFact;
use super::{Item, Reading, Survey, Value};
use machine::facts::processors;

/// The facts of all topics.
pub(super) const TABLES: [&[NamedFact]; 18] = [
    frequency::FACTS,
    holders::FACTS,
    idle::FACTS,
    interrupts::FACTS,
    isolation::FACTS,
    kernel_threads::FACTS,
    log::FACTS,
    memory::FACTS,
    network::FACTS,
    priorities::FACTS,
    process::FACTS,
    process::OWN_FACTS,
    services::FACTS,
    starvation::FACTS,
    steal::FACTS,
    tracing::FACTS,
    virtual_cpus::FACTS,
    watchdogs::FACTS,
];

/// The CPUs on which real-time threads run: those set apart, else all.
fn real_time_cpus(survey: &Survey) -> CpuList {
    if survey.isolated.is_empty() { processors::online(&survey.root) } else { survey.isolated.clone() }
}

/// The CPUs that do everything else; empty where none are set apart.
fn housekeeping(survey: &Survey) -> CpuList {
    match survey.isolated.is_empty() {
        true => CpuList::new(),
        false => processors::online(&survey.root).difference(&survey.isolated),
    }
}

/// A fact read from one place.
fn reading(value: Fact<Value>, from: &str) -> Reading {
    Reading { value, from: vec![from.to_owned()] }
}

/// A list read from one place.
fn list(items: Vec<Item>, from: &str) -> Reading {
    reading(Fact::Value(Value::List(items)), from)
}

/// What nobody can answer here: there is no process asked about, no CPU set apart, no such feature.
fn unsupported(from: &str) -> Reading {
    reading(Fact::Unsupported, from)
}

fn item(name: impl Into<String>, value: impl std::fmt::Display) -> Item {
    Item { name: name.into(), value: value.to_string() }
}
