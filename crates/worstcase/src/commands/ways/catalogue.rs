//! Which ways there are, and which of them this machine has.

use std::path::Path;

use record::instrument::call::{CallPlan, ChosenCall};
use record::instrument::timer::TimerPlan;
use record::ways::{Task, Way};
use record::{InstrumentPlan, Machine, Wake};
use serde::Deserialize;
use units::{CpuList, Nanos, Policy};

use failure::{Error, Result};

/// A way, as `ways.toml` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    pub name: String,
    title: String,
    needs: String,
    gains: String,
    costs: String,
    /// How it is measured; none where this program cannot.
    pub measured: Option<Measured>,
    /// What shows that a machine has it, of one that not every machine has.
    file: Option<Sign>,
    /// The hypervisor that it is measured under.
    pub below: Option<Below>,
}

/// A hypervisor that a machine has below it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Below {
    /// As `virtualization` of a record has it.
    hypervisor: String,
    /// What is said where it is not there.
    absent: String,
}

impl Below {
    fn is_below(&self, machine: &Machine) -> bool {
        machine.virtualization.value() == Some(&self.hypervisor)
    }

    /// What has to be known of a way that is measured on a machine on which every way is so.
    pub fn note(machine: &Machine) -> String {
        let named = machine.xen.value().cloned();
        let under = named.unwrap_or_else(|| "Xen (which says nothing of itself)".to_owned());
        format!(
            "every row is under {under}: this one is `fifo` once more; the same kernel without it is another boot"
        )
    }
}

/// A file that shows something.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sign {
    path: String,
    /// What is said where it is not there.
    absent: String,
}

/// How a way is measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    #[serde(deserialize_with = "policy")]
    pub policy: Policy,
    /// What wakes it for an activation.
    pub wake: Wake,
    /// The call that hands it a message; none where no call does.
    message: Option<String>,
    /// And the one that hands it through three stages.
    stages: Option<String>,
    /// Whether it is to have its CPU for itself.
    pub partition: Partition,
}

/// Whether a way is to run in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Partition {
    No,
    /// Without one it is measured beside everything else.
    Wanted,
    /// Without one it would be another way.
    Needed,
}

fn policy<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Policy, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

#[derive(Deserialize)]
struct File {
    way: Vec<Known>,
}

/// All, in their order.
pub fn all() -> Result<Vec<Known>> {
    let file: File = record::json::read(include_bytes!(concat!(env!("OUT_DIR"), "/ways.json")))
        .map_err(|error| Error::new(format!("the ways shipped with this program: {error}"), ""))?;
    Ok(file.way)
}

/// Those that are named, or all.
pub fn chosen(names: &[String]) -> Result<Vec<Known>> {
    let all = all()?;
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|one| one.name == **name)) {
        let known: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        return Err(Error::new(
            format!("there is no way `{unknown}`"),
            format!("there are {}", known.join(", ")),
        ));
    }
    Ok(all.into_iter().filter(|one| names.is_empty() || names.contains(&one.name)).collect())
}

impl Known {
    /// Its row, without figures.
    pub fn way(&self) -> Way {
        let Self { name, title, needs, gains, costs, .. } = self.clone();
        Way { name, title, needs, gains, costs, ..Way::default() }
    }
}

impl Measured {
    /// What measures the task; none where nothing does. `senders`: CPUs from which messages come.
    pub fn instrument(&self, task: Task, interval: Nanos, senders: CpuList) -> Option<InstrumentPlan> {
        let call = match task {
            Task::Activation => return Some(InstrumentPlan::Timer(TimerPlan::every(interval, self.wake))),
            Task::Message => self.message.clone()?,
            Task::Stages => self.stages.clone()?,
        };
        let calls = vec![ChosenCall { call, across: true }];
        let plan = CallPlan {
            calls,
            all: false,
            interval,
            burst: Nanos::ZERO,
            partners: senders,
            left_out: Vec::new(),
        };
        Some(InstrumentPlan::Call(plan))
    }

    /// CPUs that nothing else has while it runs.
    pub fn cpus_taken(&self, is_partitioned: bool) -> u32 {
        u32::from(self.wake.keeps_the_cpu() || (self.partition != Partition::No && is_partitioned))
    }
}

/// Why a way is not measured here, as far as that is known before it is tried.
pub fn why_not(known: &Known, machine: &Machine, is_partitioned: bool) -> Option<String> {
    if !is_partitioned && known.measured.as_ref().is_some_and(|one| one.partition == Partition::Needed) {
        return Some("there is no partition: worstcase partition create makes one".to_owned());
    }
    if let Some(sign) = known.file.as_ref().filter(|sign| !Path::new(&sign.path).exists()) {
        return Some(sign.absent.clone());
    }
    if let Some(below) = known.below.as_ref().filter(|below| !below.is_below(machine)) {
        return Some(below.absent.clone());
    }
    match &known.measured {
        None => Some(of_preemption(machine)),
        Some(measured) => probe::event_core::hindrance(measured.wake).map(str::to_owned),
    }
}

/// A kernel is PREEMPT_RT or not: then its row is all the others, or none.
fn of_preemption(machine: &Machine) -> String {
    let release = &machine.kernel.release;
    match machine.kernel.preemption.value().map(String::as_str) {
        Some("PREEMPT_RT") => "this kernel is PREEMPT_RT: the other rows are of it".to_owned(),
        Some(_) => format!(
            "Linux {release} is not PREEMPT_RT: boot one that is, and run this again; worstcase lab ladder stock \
             compares kernels in guests"
        ),
        None => "whether this kernel is PREEMPT_RT could not be read".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_measured_or_has_a_reason() {
        let machine = Machine::default();
        for known in all().unwrap() {
            let reason = why_not(&known, &machine, true);
            let is_there = known.file.as_ref().is_none_or(|sign| Path::new(&sign.path).exists())
                && known.below.is_none();
            let is_possible = is_there
                && known
                    .measured
                    .as_ref()
                    .is_some_and(|one| probe::event_core::hindrance(one.wake).is_none());
            assert_eq!(is_possible, reason.is_none(), "{}: {reason:?}", known.name);
        }
    }

    #[test]
    fn a_way_under_a_hypervisor_is_measured_where_that_is() {
        let [xen] = chosen(&["xen".to_owned()]).unwrap().try_into().unwrap();
        let under = |name: &str| {
            let machine = Machine { virtualization: record::Fact::Value(name.into()), ..Machine::default() };
            why_not(&xen, &machine, false)
        };
        assert_eq!(under("xen"), None);
        assert!(under("kvm").unwrap().contains("--under xen-"), "the lab has it");
        let said = "Xen 4.17.7, PV, the first domain";
        let machine = Machine { xen: record::Fact::Value(said.into()), ..Machine::default() };
        assert!(Below::note(&machine).starts_with(&format!("every row is under {said}: ")));
    }

    #[test]
    fn a_way_that_does_not_exist_is_an_error_with_those_that_do() {
        let error = chosen(&["fito".to_owned()]).unwrap_err();
        assert!(error.message.contains("fito") && error.hint.contains("fifo"), "{error:?}");
        let names: Vec<String> =
            chosen(&["fifo".to_owned()]).unwrap().into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["fifo"]);
    }
}
