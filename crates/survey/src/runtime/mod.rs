//! What rules ask of the running system beyond single files: interrupts, threads, idle states, isolation, services.
//! One file a topic; each lists the facts that it answers.
//!
//! Nothing is read that interrupts other CPUs or takes another process's memory lock.

use crate::survey::NamedFact;
mod auditd;
mod balloon;
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

/// The facts of all topics.
pub(super) const TABLES: [&[NamedFact]; 20] = [
    auditd::FACTS,
    balloon::FACTS,
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
