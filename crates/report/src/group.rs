//! Scenarios that belong into one column: the same load, period and C-state policy, whatever the repetition.

use record::{CStates, Record, RunPlan, Scenario, ScenarioEnd, Series, Setup, WarningId};
use units::{CpuId, InOrder, Nanos};

use crate::figures::Figures;

/// What tells one column from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub load: String,
    pub interval: Option<Nanos>,
    /// What the instrument does, where it has no period to be known by.
    pub variant: Option<String>,
    pub cstates: CStates,
}

/// Which parts of a key, besides the load, must stand in the head because they differ from column to column.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadParts {
    interval: bool,
    variant: bool,
    cstates: bool,
    /// Nothing was to be loaded: whatever else runs on the machine runs beside it.
    unloaded: bool,
}

/// One column: a load at a period under a C-state policy, repetitions together.
pub(crate) struct Group<'a> {
    pub key: Key,
    pub scenarios: Vec<&'a Scenario>,
    parts: HeadParts,
    limit: Option<Nanos>,
}

/// The columns of a record, in the order of the plan: that in which they were measured is random where there are several passes.
pub(crate) fn groups(record: &Record) -> Vec<Group<'_>> {
    let plan = &record.header.plan;
    let parts = HeadParts {
        interval: plan.timer().is_some_and(|timer| timer.intervals.len() > 1),
        variant: plan.instrument.setups(plan, 1).iter().filter_map(variant).count() > 1,
        cstates: plan.cstates.len() > 1,
        unloaded: record.is_unloaded(),
    };
    let mut groups: Vec<Group<'_>> = Vec::new();
    for scenario in &record.scenarios {
        let head = &scenario.head;
        let key = Key {
            load: head.planned.load.clone(),
            interval: head.planned.setup.interval(),
            variant: variant(&head.planned.setup),
            cstates: head.planned.cstates,
        };
        match groups.iter_mut().find(|group| group.key == key) {
            Some(group) => group.scenarios.push(scenario),
            None => groups.push(Group { key, scenarios: vec![scenario], parts, limit: plan.limit }),
        }
    }
    in_order(groups, plan)
}

/// In the order in which one pass of the plan has them.
fn in_order<'a>(groups: Vec<Group<'a>>, plan: &RunPlan) -> Vec<Group<'a>> {
    let setups: Vec<_> = plan.instrument.setups(plan, 1).iter().map(|s| (s.interval(), variant(s))).collect();
    let place = |key: &Key| {
        let setup = (key.interval, key.variant.clone());
        let places = [
            setups.iter().position(|one| *one == setup),
            plan.loads.iter().position(|load| *load == key.load),
            plan.cstates.iter().position(|policy| *policy == key.cstates),
        ];
        places.map(|place| place.unwrap_or(usize::MAX))
    };
    let mut placed: Vec<_> = groups.into_iter().map(|group| (place(&group.key), group)).collect();
    placed.order_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, group)| group).collect()
}

/// What tells a set-up without a period from others.
pub(crate) fn variant(setup: &Setup) -> Option<String> {
    setup.interval().is_none().then(|| setup.to_string())
}

impl HeadParts {
    /// What distinguishes `keys` that stand side by side.
    pub fn of(keys: &[Key]) -> Self {
        let differ = |same: fn(&Key, &Key) -> bool| keys.iter().any(|key| !same(key, &keys[0]));
        Self {
            interval: differ(|one, other| one.interval == other.interval),
            variant: differ(|one, other| one.variant == other.variant),
            cstates: differ(|one, other| one.cstates == other.cstates),
            unloaded: keys.iter().all(|key| key.load == record::IDLE),
        }
    }
}

impl Key {
    /// The column's head: the load, and what else tells it from other columns.
    pub fn head(&self, parts: HeadParts) -> Vec<String> {
        let mut head = vec![if parts.unloaded { record::NO_LOAD.into() } else { self.load.clone() }];
        if parts.interval {
            head.extend(self.interval.map(|interval| interval.to_string()));
        }
        if parts.variant {
            head.extend(self.variant.clone());
        }
        if parts.cstates {
            head.push(self.cstates.to_string());
        }
        head
    }
}

impl Group<'_> {
    /// The column's head in lines.
    pub fn head(&self) -> Vec<String> {
        self.key.head(self.parts)
    }

    /// The head in one line: `hdd 1ms as-is`.
    pub fn name(&self) -> String {
        self.head().join(" ")
    }

    /// What the reader must know of this column before believing it: it ended early, its load did nothing.
    pub fn marks(&self) -> Vec<String> {
        let mut marks: Vec<String> = Vec::new();
        for (scenario, word) in self.scenarios.iter().flat_map(|s| words(s).into_iter().map(move |w| (s, w)))
        {
            let mark = match self.scenarios.len() {
                1 => word.to_owned(),
                _ => format!("{word} #{}", scenario.head.planned.repeat),
            };
            marks.push(mark);
        }
        marks
    }

    /// Every series of every repetition.
    pub fn series(&self) -> impl Iterator<Item = &Series> {
        self.scenarios.iter().flat_map(|scenario| &scenario.series)
    }

    /// The figures of all CPUs and repetitions together.
    pub fn figures(&self) -> Figures {
        Figures::of(self.series(), self.limit)
    }

    /// The figures of one CPU; `None` is the threads that are not pinned.
    pub fn figures_of(&self, cpu: Option<CpuId>) -> Figures {
        Figures::of(self.series().filter(|series| series.cpu == cpu), self.limit)
    }
}

/// The CPUs that any scenario measured, ascending; `None`, first, stands for threads that are not pinned.
pub(crate) fn cpus(record: &Record) -> Vec<Option<CpuId>> {
    let mut cpus: Vec<_> = record.scenarios.iter().flat_map(|s| &s.series).map(|series| series.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// `CPU 3`, or that the thread had none of its own.
pub(crate) fn cpu_name(cpu: Option<CpuId>) -> String {
    cpu.map_or_else(|| "not pinned".into(), |cpu| format!("CPU {cpu}"))
}

fn words(scenario: &Scenario) -> Vec<&'static str> {
    let mut words: Vec<_> = end_word(&scenario.end).into_iter().collect();
    if did_no_work(scenario) {
        words.push("no work");
    }
    words
}

/// How a scenario ended, if not as planned.
pub(crate) fn end_word(end: &ScenarioEnd) -> Option<&'static str> {
    match end {
        ScenarioEnd::Complete => None,
        ScenarioEnd::Interrupted => Some("interrupted"),
        ScenarioEnd::StopAt => Some("stopped"),
        ScenarioEnd::TooHot => Some("too hot"),
        ScenarioEnd::FailSafe => Some("fail-safe"),
        ScenarioEnd::Failed(_) => Some("failed"),
        ScenarioEnd::CutOff => Some("cut off"),
    }
}

/// Whether a stressor of the load is known to have done nothing.
pub(crate) fn did_no_work(scenario: &Scenario) -> bool {
    scenario.load.stressors.iter().any(record::StressorEvidence::did_nothing)
        || scenario.warnings.iter().any(|warning| warning.id == WarningId::LoadIdle)
}

/// Up to when the histograms of a scenario go that was cut off between two saves of them; none where they hold
/// everything. Taken from the timeline, which was saved every second.
pub(crate) fn histograms_end(scenario: &Scenario) -> Option<Nanos> {
    let mut end = None;
    for series in &scenario.series {
        let held = series.observed.cell_count();
        if held < series.observed.summary().count {
            let mut seen = 0;
            let whole = series.timeline.blocks.iter().take_while(|block| {
                seen += block.observed.count;
                seen <= held
            });
            let until = series.timeline.step.saturating_mul(whole.count() as u64);
            end = Some(end.map_or(until, |end: Nanos| end.min(until)));
        }
    }
    end
}
