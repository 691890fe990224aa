//! Which records may be compared: Enea's opening demand is that figures are only worth something beside figures from
//! comparable set-ups.

use std::collections::{BTreeMap, BTreeSet};

use record::{Digest, Header, Lab, LabImages, LabTime, Record, RunPlan, Scenario, Tuned};
use units::InOrder;

use crate::group::end_word;
use crate::instrument;
use crate::text::{clip_inside, harmless, joined};

/// Something in which two runs differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What: `period`, `priority`, `kernel`.
    pub what: String,
    /// Whether the figures may still be compared.
    pub weight: Weight,
    /// What the first run had.
    pub left: String,
    /// What the second run had.
    pub right: String,
}

/// What a difference does to a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Every run draws it anew.
    Draw,
    /// It is what a comparison may be about: another kernel, another machine.
    Note,
    /// Figures of the two runs may not be compared.
    Forbids,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} / {}", self.what, self.left, self.right)
    }
}

/// Everything in which two runs differ that bears on their figures; what forbids a comparison comes first.
pub fn differences(left: &Record, right: &Record) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (weight, what, show) in ASPECTS {
        push(&mut differences, *weight, (*what).into(), show(left), show(right));
    }
    instrument_differences(left, right, &mut differences);
    load_differences(left, right, &mut differences);
    tuned_differences(&left.header, &right.header, &mut differences);
    if left.header.plan.partition != right.header.plan.partition {
        differences
            .iter_mut()
            .filter(|one| follows_from_a_partition(one))
            .for_each(|one| one.weight = Weight::Note);
    }
    differences.order_by_key(|difference| std::cmp::Reverse(difference.weight));
    differences
}

/// A partition keeps the loads off its CPUs: that is what it is for, and what a comparison with it is about.
fn follows_from_a_partition(difference: &Difference) -> bool {
    let is_alike = || stressors(&difference.left).eq(stressors(&difference.right));
    is_of_loads(difference) && (difference.what == LOAD_CPUS || is_alike())
}

/// Whether it says where loads ran, or what they were made of.
pub(crate) fn is_of_loads(difference: &Difference) -> bool {
    difference.what == LOAD_CPUS || difference.what.starts_with(OF_LOAD)
}

/// What stands before the name of a load of which something differs.
const OF_LOAD: &str = "load ";

/// What a composition consists of, without the numbers of workers.
fn stressors(composition: &str) -> impl Iterator<Item = &str> {
    composition.split(", ").map(|part| part.split_once(" x ").map_or(part, |(_, stressor)| stressor))
}

/// What the instrument was asked for. Of different instruments nothing more is said than that they are.
fn instrument_differences(left: &Record, right: &Record, differences: &mut Vec<Difference>) {
    let aspects = |record: &Record| {
        let plan = &record.header.plan;
        (instrument::of(plan).aspects)(plan)
    };
    for ((what, left), (other, right)) in aspects(left).into_iter().zip(aspects(right)) {
        if what == other {
            push(differences, Weight::Forbids, what.into(), left, right);
        }
    }
}

fn push(differences: &mut Vec<Difference>, weight: Weight, what: String, left: String, right: String) {
    if left != right {
        differences.push(Difference { what, weight, left, right });
    }
}

/// The CPUs on which loads run.
const LOAD_CPUS: &str = "CPUs of the loads";

/// What is said of the tick's phases.
pub(crate) const PHASES: &str = "phases met";

type Aspect = (Weight, &'static str, fn(&Record) -> String);

/// What is compared, and what it weighs.
const ASPECTS: &[Aspect] = &[
    (Weight::Forbids, "what the clock counts", clock),
    (Weight::Forbids, "instrument", |r| r.header.plan.instrument.name().to_owned()),
    (Weight::Forbids, "loads", |r| sorted(&r.header.plan.loads)),
    (Weight::Forbids, "length of a scenario", |r| length(&r.header.plan)),
    (Weight::Forbids, "repetitions", |r| r.header.plan.repeat.to_string()),
    (Weight::Forbids, "policy", |r| optional(r.header.plan.policy)),
    (Weight::Forbids, "priority", |r| optional(r.header.plan.priority.map(units::Priority::get))),
    (Weight::Forbids, "C-state policy", |r| joined(&r.header.plan.cstates)),
    (Weight::Forbids, "warm-up", |r| r.header.plan.warm_up.to_string()),
    (Weight::Forbids, "CPUs measured", |r| r.header.plan.cpus.to_string()),
    (Weight::Forbids, LOAD_CPUS, |r| r.header.plan.load_cpus.to_string()),
    (Weight::Forbids, "ended early", ended_early),
    (Weight::Note, "perf counters", |r| if r.header.plan.perf { "read".into() } else { "not read".into() }),
    (Weight::Draw, PHASES, crate::phases::of_all),
    (Weight::Note, "partition", |r| {
        r.header.plan.partition.as_ref().map_or("none".into(), |one| one.group.clone())
    }),
    (Weight::Note, "kernel", |r| r.header.machine.kernel.release.clone()),
    (Weight::Note, "kernel build", |r| r.header.machine.kernel.version.clone()),
    (Weight::Note, "kernel command line", |r| r.header.machine.kernel.command_line.to_string()),
    (Weight::Note, "preemption", |r| r.header.machine.kernel.preemption.to_string()),
    (Weight::Note, "machine", |r| r.header.machine.host.clone()),
    (Weight::Note, "CPU model", |r| r.header.machine.cpu_model.to_string()),
    (Weight::Note, "virtualization", |r| r.header.machine.virtualization.to_string()),
    (Weight::Note, "hypervisor", hypervisor),
    (Weight::Note, "emulator", |r| of_lab(r, |lab| lab.emulator.clone())),
    (Weight::Note, "emulated CPU", |r| of_lab(r, |lab| lab.cpu_model.clone())),
    (Weight::Note, "kernel's image", |r| of_images(r, |images| &images.kernel)),
    (Weight::Note, "guest's worstcase", |r| of_images(r, |images| &images.binary)),
    (Weight::Note, "guest's root", |r| of_images(r, |images| &images.initramfs)),
    (Weight::Note, "clock source", |r| r.header.machine.clock_source.to_string()),
    (Weight::Note, "frequency governor", governors),
    (Weight::Note, "limit", |r| optional(r.header.plan.limit)),
    (Weight::Draw, "seed", |r| optional(r.header.plan.seed)),
    (Weight::Note, "worstcase version", |r| r.header.tool.version.clone()),
];

/// Time of a machine; or of a guest of the lab, whose latencies are another thing altogether.
fn clock(record: &Record) -> String {
    match record.header.machine.lab.as_ref().map(|lab| lab.time) {
        None => "time".into(),
        Some(LabTime::Instructions) => "instructions of a guest".into(),
        Some(LabTime::Wall) => "an emulator's time".into(),
    }
}

/// Which Xen is below; in a guest of the lab with its command line.
fn hypervisor(record: &Record) -> String {
    let machine = &record.header.machine;
    let under = machine.lab.as_ref().and_then(|lab| lab.under.as_ref());
    let of_lab = under.map(|under| format!("{under} (image {})", under.image.short()));
    of_lab.or_else(|| machine.xen.value().cloned()).unwrap_or_else(|| "none".into())
}

fn of_lab(record: &Record, what: fn(&Lab) -> String) -> String {
    record.header.machine.lab.as_ref().map_or_else(|| "none".into(), what)
}

/// The first digits of a hash of what a guest was made of.
fn of_images(record: &Record, which: fn(&LabImages) -> &Digest) -> String {
    let images = record.header.machine.lab.as_ref().map(|lab| lab.images.as_ref());
    match images {
        None => "none".into(),
        Some(None) => "unknown".into(),
        Some(Some(images)) => which(images).short().to_owned(),
    }
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "none".into(), |value| value.to_string())
}

/// The order of loads does not matter to their figures.
fn sorted(loads: &[String]) -> String {
    let mut loads = loads.to_vec();
    loads.sort_unstable();
    loads.join(", ")
}

/// What ends a scenario.
pub(crate) fn length(plan: &RunPlan) -> String {
    match (plan.duration, plan.samples) {
        (_, Some(samples)) => format!("{samples} activations per CPU"),
        (Some(duration), None) => duration.to_string(),
        (None, None) => "until stopped".into(),
    }
}

fn ended_early(record: &Record) -> String {
    let early = |scenario: &Scenario| {
        Some(format!(
            "{} {} after {}",
            scenario.head.planned.load,
            end_word(&scenario.end)?,
            scenario.length.rounded()
        ))
    };
    let all: Vec<_> = record.scenarios.iter().filter_map(early).collect();
    if all.is_empty() { "no".into() } else { all.join(", ") }
}

fn governors(record: &Record) -> String {
    let mut names: Vec<_> = record.header.machine.governors.iter().map(|g| g.name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// Loads of one name that were not the same: other stressors, workers, programs or file systems.
fn load_differences(left: &Record, right: &Record, differences: &mut Vec<Difference>) {
    let right = compositions(right);
    for (load, composition) in compositions(left) {
        if let Some(other) = right.get(&load) {
            push(differences, Weight::Forbids, format!("{OF_LOAD}{load}"), composition, other.clone());
        }
    }
}

/// What `tune` held in one of the runs only, or otherwise, rule by rule.
fn tuned_differences(left: &Header, right: &Header, differences: &mut Vec<Difference>) {
    let (Some(of_left), Some(of_right)) = (&left.tuned, &right.tuned) else {
        let count = |header: &Header| header.tuned.as_ref().map(|all| format!("{} rules", all.len()));
        let words = [left, right].map(|header| count(header).unwrap_or_else(|| "unknown".into()));
        let [left, right] = words;
        return push(differences, Weight::Note, "applied by tune".into(), left, right);
    };
    let rules: BTreeSet<&str> = of_left.iter().chain(of_right).map(|one| one.rule.as_str()).collect();
    for rule in rules {
        let [left, right] = [of_left, of_right].map(|all| {
            let one = all.iter().find(|one| one.rule == rule);
            one.map_or_else(|| "not applied".to_owned(), tuned)
        });
        push(differences, Weight::Note, format!("tune {rule}"), left, right);
    }
}

/// Values of a rule that are shown, and how long each may be: a mask of many CPUs is no reading matter.
const MOST_VALUES: usize = 2;
const MOST_OF_VALUE: usize = 24;

/// `never`, or `0 in 430 settings`; of several values the first ones: `10 settings (there, 0, ..)`.
fn tuned(one: &Tuned) -> String {
    let shown = one.values.iter().take(MOST_VALUES).map(|value| short(value));
    let more = (one.values.len() > MOST_VALUES).then(|| "..".to_owned());
    let values = shown.chain(more).collect::<Vec<_>>().join(", ");
    match (one.settings, one.values.len()) {
        (2.., 2..) => format!("{} settings ({values})", one.settings),
        (2.., _) => format!("{values} in {} settings", one.settings),
        _ => values,
    }
}

/// A value in one short word or two: a mask without its leading zeros, anything long cut in the middle, nothing as such.
fn short(value: &str) -> String {
    let words = harmless(value).split_whitespace().collect::<Vec<_>>().join(" ");
    let groups: Vec<&str> = words.split(',').collect();
    let is_group = |group: &&str| group.len() == 8 && group.bytes().all(|digit| digit.is_ascii_hexdigit());
    let rest = groups.iter().skip(1);
    let is_mask = groups.iter().all(|group| group.bytes().all(|digit| digit.is_ascii_hexdigit()))
        && (groups.len() > 1 && rest.clone().all(is_group) || is_group(&groups[0]));
    let words = match is_mask {
        true => words.trim_start_matches(['0', ',']).to_owned(),
        false => words,
    };
    match words.as_str() {
        "" if is_mask => "0".to_owned(),
        "" => "nothing".to_owned(),
        words => clip_inside(words, MOST_OF_VALUE),
    }
}

/// What each load was made of, by name. A run that was cut off does not know; it has said so already.
fn compositions(record: &Record) -> BTreeMap<String, String> {
    let known = record.scenarios.iter().filter(|scenario| !scenario.load.stressors.is_empty());
    known.map(|scenario| (scenario.head.planned.load.clone(), composition(scenario))).collect()
}

fn composition(scenario: &Scenario) -> String {
    let stressor = |stressor: &record::StressorEvidence| {
        let kind = if stressor.built_in { "built in" } else { "external" };
        format!("{} x {} ({kind})", stressor.workers, stressor.name)
    };
    let mut parts: Vec<_> = scenario.load.stressors.iter().map(stressor).collect();
    parts.extend(
        scenario.load.directory.as_ref().map(|directory| format!("files on {}", directory.file_system)),
    );
    parts.join(", ")
}
