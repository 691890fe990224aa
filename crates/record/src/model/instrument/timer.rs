//! The timer: how late a thread wakes up that sleeps until a point in time.

use failure::{Error, Result};
use histogram::Histogram;
use serde::{Deserialize, Serialize};
use units::{Nanos, Seed};

use super::{OwnPlan, OwnSeries, OwnSetup, Setup, Words};
use crate::model::{
    ClockName, Fact, Grid, LONGEST_SCENARIO, Phase, RunPlan, Scenario, Series, Sweep, TickPhases, Wake,
    WarmUp, Warning, WarningId,
};

/// What is asked of the timer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimerPlan {
    /// The periods, each measured under each load.
    pub intervals: Vec<Nanos>,
    /// How threads are woken.
    pub wake: Wake,
    /// Run time per period of a `SCHED_DEADLINE` reservation.
    pub runtime: Option<Nanos>,
    /// The clock that activations are due on.
    pub clock: ClockName,
    /// Phase between CPUs.
    pub phase: Phase,
    /// Whether the kernel measures beside, in its interrupt and in a thread of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contexts: bool,
}

/// What the timer does in one scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimerSetup {
    /// The period.
    pub interval: Nanos,
    /// The phase of each series within the period.
    pub phases: Vec<Nanos>,
    /// How each series' activations move against the tick; empty where they keep their phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweeps: Vec<Sweep>,
    /// Whether the kernel measures beside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contexts: bool,
    /// Whether the threads are EVL's, out of band.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_band: bool,
}

/// What the timer adds to a series: every activation that was due is accounted for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimerSeries {
    /// What the clock read when the first activation was due, in nanoseconds: to lay the series beside a trace. 0 where
    /// it is not known.
    #[serde(default)]
    pub first_due: Nanos,
    /// The phases of the kernel's tick that its activations were due at; unknown in records of older programs, on a clock
    /// that can be set and for reservations, absent on CPUs without a tick of their own (`nohz_full`).
    #[serde(default)]
    pub tick_phases: Fact<TickPhases>,
    /// Activations that were due: as planned, or until the instant at which the run was stopped. Equal to measured +
    /// missed, or something was lost.
    pub expected: u64,
    /// Wake-ups that came when their next activation was already due (latency of a period or more).
    pub late: u64,
    /// Latencies that the missed activations would have had.
    pub missed: Histogram,
    /// Wake-ups of the warm-up, not in the histograms.
    pub warm_up: WarmUp,
    /// How often a thread of EVL fell back in band while it measured; none for other threads, and where the thread did not
    /// come to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_band_switches: Option<u64>,
    /// What the kernel measured beside, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contexts: Option<ContextFigures>,
    /// What latencies consisted of, where activations are a guest's; none where the thread did not come to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestFigures>,
}

/// A part of the latency of an activation in a guest. Together they are the whole of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PartOfGuest {
    /// From when it was due until the host's thread ran.
    Host,
    /// Until the guest's first instruction: the interrupt is raised, KVM enters the guest.
    Entry,
    /// Until the first instruction of its handler: it lets interrupts come, exits for that, and has this one injected.
    Interrupt,
    /// Until it goes on after its handler.
    Thread,
}

impl PartOfGuest {
    /// All, in the order of time.
    pub const ALL: [Self; 4] = [Self::Host, Self::Entry, Self::Interrupt, Self::Thread];
}

/// What a part took, over all activations that were laid out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestPart {
    /// Which.
    pub name: PartOfGuest,
    /// How long it took.
    pub took: Histogram,
}

/// Exits from a guest by KVM's own counters: their names, and how many there were. `exits` are all.
pub type Exits = Vec<(String, u64)>;

/// What latencies of activations in a guest under KVM consisted of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestFigures {
    /// The parts, in the order of time.
    pub parts: Vec<GuestPart>,
    /// From when the guest went on until the host's thread did: after the latency, and no part of it.
    pub back: Histogram,
    /// Exits while it measured; absent where KVM does not count them (before Linux 5.14).
    pub exits: Fact<Exits>,
    /// Of each of the series' worst values, in their order; absent where it was not kept.
    pub worst: Vec<Fact<GuestSample>>,
    /// Activations whose stamps lay outside of what the host's clock allows: they count with the time of the way back, and in no
    /// part.
    pub unsplit: u64,
}

/// What one activation consisted of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestSample {
    /// Its parts, in the order of time.
    pub parts: Vec<Option<Nanos>>,
    /// Its exits.
    pub exits: Fact<Exits>,
    /// The exit to the measuring program that kept the guest waiting longest; none where it exited only to say that it was done.
    pub held: Option<HeldExit>,
}

/// An exit to the measuring program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldExit {
    /// What it was for: `port 0x11`, `a signal`.
    pub by: String,
    /// How long the guest waited for it.
    pub took: Nanos,
}

impl GuestFigures {
    /// What a part took; none where nothing is known of it.
    pub fn part(&self, name: PartOfGuest) -> Option<&Histogram> {
        let part = self.parts.iter().find(|part| part.name == name)?;
        (part.took.summary().count > 0).then_some(&part.took)
    }

    /// The exits of the worst value at `place` beyond those that each activation has: kinds by KVM's names, and what is of none
    /// of them by [`GuestFigures::OF_NO_KIND`]. None where they are not known.
    pub fn unusual_exits(&self, place: usize) -> Option<Exits> {
        let own = self.worst.get(place)?.value()?.exits.value()?;
        let all = self.exits.value()?;
        let activations = self.part(PartOfGuest::Host)?.summary().count.max(1);
        let of = |exits: &Exits, kind: &str| {
            exits.iter().find(|(name, _)| name == kind).map_or(0, |(_, count)| *count)
        };
        // Rounded: once in most of them is what each has.
        let beyond =
            |kind: &str| of(own, kind).saturating_sub((of(all, kind) + activations / 2) / activations);
        let kinds = own.iter().map(|(name, _)| name).filter(|name| *name != Self::ALL_EXITS);
        let mut unusual: Exits =
            kinds.map(|name| (name.clone(), beyond(name))).filter(|one| one.1 > 0).collect();
        let named: u64 = unusual.iter().map(|(_, count)| *count).sum();
        let rest = beyond(Self::ALL_EXITS).saturating_sub(named);
        unusual.extend((rest > 0).then(|| (Self::OF_NO_KIND.to_owned(), rest)));
        Some(unusual)
    }

    /// KVM's name for the sum of all kinds.
    const ALL_EXITS: &str = "exits";
    /// Exits that KVM has no counter for: instructions that it emulates, as CPUID, registers, faults.
    pub const OF_NO_KIND: &str = "exits of no kind that KVM counts";
}

/// What timerlat measured on the CPU of a series meanwhile: how late a timer of the same period was noticed in the kernel
/// (Documentation/trace/timerlat-tracer.rst). Its phase is its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextFigures {
    /// When the timer's interrupt looked at the clock.
    pub interrupt: Histogram,
    /// When the thread of the kernel that it wakes did: SCHED_FIFO 95 unless somebody changed that.
    pub thread: Histogram,
    /// Why samples are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl ContextFigures {
    /// Whether it measured in far fewer periods than our threads had: it sets its timer for the next one when its thread has had the
    /// last, and leaves out those that pass meanwhile.
    fn skipped(&self, expected: u64) -> Option<String> {
        let count = self.thread.summary().count;
        (count.saturating_mul(10) < expected.saturating_mul(9)).then(|| {
            format!("it measured {count} of {expected} periods: those for which its thread comes too late are in no figure")
        })
    }
}

impl TimerPlan {
    /// As `bench` measures where nothing else is asked for: activations sweep past every phase of the tick, but those of a
    /// reservation, whose periods lie where the kernel wants them.
    pub fn every(interval: Nanos, wake: Wake) -> Self {
        let phase = if wake == Wake::Deadline { Phase::Random } else { Phase::Sweep };
        Self { intervals: vec![interval], wake, phase, ..Self::default() }
    }

    /// Where in the period each thread's activations lie. Drawn phases are the same under every load of a pass, so that
    /// the load is what differs.
    fn phases(&self, plan: &RunPlan, interval: Nanos, repeat: u32) -> Vec<Nanos> {
        let threads = plan.cpus.len() as u64;
        let seed = plan.seed.unwrap_or(Seed(0));
        let mut drawn = seed.stream(&format!("phase, every {interval}, repeat {repeat}"));
        let phase = |thread: u64| match self.phase {
            Phase::Aligned => 0,
            Phase::Staggered => {
                (u128::from(interval.0) * u128::from(thread) / u128::from(threads.max(1))) as u64
            }
            Phase::Random | Phase::Sweep => drawn.below(interval.0.max(1)),
        };
        (0..threads).map(phase).map(Nanos).collect()
    }

    /// How each thread's activations move against the tick: the same under every load of a pass, as their phases are.
    /// Empty where they keep their phase.
    fn sweeps(&self, plan: &RunPlan, interval: Nanos, repeat: u32) -> Vec<Sweep> {
        let seed = plan.seed.unwrap_or(Seed(0));
        let of = |thread: usize| {
            Sweep::new(interval, seed, &format!("sweep, every {interval}, repeat {repeat}, thread {thread}"))
        };
        let threads = if self.phase == Phase::Sweep { plan.cpus.len() } else { 0 };
        (0..threads).map(of).collect()
    }

    /// Refuses what timerlat cannot do.
    fn check_contexts(&self, plan: &RunPlan) -> Result<()> {
        const PERIODS: std::ops::RangeInclusive<Nanos> = Nanos(100_000)..=Nanos(1_000_000_000);
        if let Some(other) = self.intervals.iter().find(|interval| !PERIODS.contains(interval)) {
            let message = format!("timerlat, which --contexts asks for, has no period of {other}");
            return Err(Error::new(message, "it takes periods from 100 us to 1 s"));
        }
        if plan.keeps_the_cpu() {
            let message = "a thread that keeps its CPU while it waits leaves none to timerlat's";
            return Err(Error::new(message, "leave --contexts out"));
        }
        Ok(())
    }

    /// Whether threads run as `SCHED_DEADLINE` reservations.
    pub fn is_reservation(&self) -> bool {
        self.wake == Wake::Deadline
    }
}

impl OwnPlan for TimerPlan {
    /// A latency is the time from when an activation was due until its wake-up.
    fn words(&self) -> &'static Words {
        &Words {
            value: "latency",
            greatest: "the highest latency observed",
            values: "latencies",
            count: "samples",
        }
    }

    /// One a period.
    fn setups(&self, plan: &RunPlan, repeat: u32) -> Vec<Setup> {
        let of = |&interval: &Nanos| TimerSetup {
            interval,
            phases: self.phases(plan, interval, repeat),
            sweeps: self.sweeps(plan, interval, repeat),
            contexts: self.contexts,
            out_of_band: self.wake == Wake::Evl,
        };
        self.intervals.iter().map(of).map(Setup::Timer).collect()
    }

    fn check(&self, plan: &RunPlan) -> Result<()> {
        let longest = self.intervals.iter().max().copied().unwrap_or_default();
        if let Some(duration) = plan.duration.filter(|duration| *duration < longest) {
            let message = format!("a duration of {duration} holds no whole interval of {longest}");
            return Err(Error::new(message, "measure for longer, or at a shorter interval"));
        }
        if let Some(samples) =
            plan.samples.filter(|&samples| longest.saturating_mul(samples) > LONGEST_SCENARIO)
        {
            let message =
                format!("{samples} activations every {longest} take longer than {LONGEST_SCENARIO}");
            return Err(Error::new(message, "ask for fewer with --samples"));
        }
        if self.contexts {
            self.check_contexts(plan)?;
        }
        if self.clock != ClockName::Monotonic {
            let message = match self.wake {
                Wake::Evl => format!("threads of EVL sleep on the monotonic clock, not on {}", self.clock),
                Wake::Kvm => format!(
                    "the guest's stamps are laid beside the monotonic clock, not beside {}",
                    self.clock
                ),
                _ => String::new(),
            };
            if !message.is_empty() {
                return Err(Error::new(message, "leave --clock out"));
            }
        }
        let is_too_long = |runtime: Nanos| self.intervals.iter().any(|interval| runtime > *interval);
        if self.runtime.is_some_and(is_too_long) {
            return Err(Error::new("--runtime is longer than the interval", "a fifth of it is the default"));
        }
        Ok(())
    }

    fn not_claimed(&self) -> Option<&'static str> {
        None
    }
}

impl std::fmt::Display for TimerSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "every {}", self.interval)
    }
}

impl OwnSetup for TimerSetup {
    fn grid(&self, series: usize, origin: u64) -> Grid {
        Grid { origin, interval: self.interval.0.max(1), sweep: self.sweeps.get(series).copied() }
    }

    fn interval(&self) -> Option<Nanos> {
        Some(self.interval)
    }

    fn warnings(&self, scenario: &Scenario) -> Vec<Warning> {
        let beside = self.contexts.then(|| contexts_unknown(scenario)).flatten();
        let left = self.out_of_band.then(|| in_band(scenario)).flatten();
        beside.into_iter().chain(left).chain(parts_unknown(scenario)).collect()
    }
}

/// What is missing of timerlat's figures.
fn contexts_unknown(scenario: &Scenario) -> Option<Warning> {
    let contexts = |series: &Series| match &series.timer()?.contexts {
        Some(contexts) => contexts.problem.clone().or_else(|| contexts.skipped(series.expected())),
        None => Some("the run ended before its figures were kept".to_owned()),
    };
    let problem = scenario.series.iter().find_map(contexts)?;
    let cure = "its figures are of a part of the time, or missing; those of worstcase's own threads stand";
    Some(Warning::note(WarningId::ContextsUnknown, format!("timerlat: {problem}"), cure))
}

/// Activations in a guest whose stamps could not be laid beside the host's clock.
fn parts_unknown(scenario: &Scenario) -> Option<Warning> {
    let mut guests =
        scenario.series.iter().filter_map(|series| Some((series, series.timer()?.guest.as_ref()?)));
    let (series, guest) = guests.find(|(_, guest)| guest.unsplit > 0)?;
    let place = series.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
    let all = series.observed.summary().count;
    let problem = format!(
        "{} of {all} activations in the guest{place} have no parts: its time-stamp counter was not the host's",
        guest.unsplit
    );
    let cure = "they count with the way back from the guest; parts need a time-stamp counter that the kernel calls stable";
    Some(Warning::note(WarningId::PartsUnknown, problem, cure))
}

/// Threads of EVL that were in Linux's hands for a while, or may have been.
fn in_band(scenario: &Scenario) -> Option<Warning> {
    let place = |series: &Series| series.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
    let left = |series: &Series| match series.timer()?.in_band_switches {
        Some(0) => None,
        Some(switches) => Some(format!("the thread{} fell back in band {switches} times", place(series))),
        None => Some(format!("how often the thread{} fell back in band is not known", place(series))),
    };
    let problem = scenario.series.iter().find_map(left)?;
    let cure = "let nothing signal, trace or debug the threads while they measure, and leave --explain out, which marks late wake-ups \
                by a system call";
    Some(Warning::inconclusive(WarningId::InBandSwitches, problem, cure))
}

impl OwnSeries for TimerSeries {
    fn account(&self) -> Option<(u64, &Histogram)> {
        Some((self.expected, &self.missed))
    }

    fn account_mut(&mut self) -> Option<(&mut u64, &mut Histogram)> {
        Some((&mut self.expected, &mut self.missed))
    }

    fn not_come(&self, number: u64, at_least: &str) -> String {
        format!("had not woken for activation {number} when the run was given up: at least {at_least} late")
    }

    fn parts_of_worst(&self, place: usize) -> Option<&[Option<Nanos>]> {
        Some(self.guest.as_ref()?.worst.get(place)?.value()?.parts.as_slice())
    }

    fn censored(&mut self, place: Option<usize>, wait: bool) {
        self.late += u64::from(wait);
        // Of an activation that has not come nothing is known.
        if let Some((guest, place)) = self.guest.as_mut().zip(place) {
            guest.worst.insert(place.min(guest.worst.len()), Fact::Absent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(phase: Phase, repeat: u32) -> Vec<u64> {
        let timer = TimerPlan { phase, ..TimerPlan::default() };
        let plan = RunPlan { cpus: "0-3".parse().unwrap(), seed: Some(Seed(9)), ..RunPlan::default() };
        timer.phases(&plan, Nanos::from_millis(1), repeat).iter().map(|phase| phase.0).collect()
    }

    #[test]
    fn what_timerlat_cannot_do_is_refused() {
        let check = |interval, wake| {
            let timer = TimerPlan { contexts: true, ..TimerPlan::every(interval, wake) };
            let instrument = super::super::InstrumentPlan::Timer(timer.clone());
            timer.check(&RunPlan { instrument, ..RunPlan::default() }).map_err(|error| error.message)
        };
        assert_eq!(check(Nanos(100_000), Wake::default()), Ok(()));
        assert!(check(Nanos(99_000), Wake::default()).unwrap_err().contains("no period of 99us"));
        assert!(check(Nanos::from_secs(2), Wake::default()).is_err());
        assert!(check(Nanos::from_millis(1), Wake::RuntimeSpin).is_err());
    }

    #[test]
    fn figures_of_the_kernel_that_are_missing_are_said_to_be() {
        let setup = TimerSetup { contexts: true, ..TimerSetup::default() };
        let said = |setup: &TimerSetup, contexts| {
            let own = TimerSeries { contexts, expected: 10, ..TimerSeries::default() }.into();
            let mut scenario = crate::verdict::tests::scenario(&[5_000]);
            scenario.series = vec![Series { own, ..Series::default() }];
            let warnings = setup.warnings(&scenario);
            warnings.into_iter().map(|warning| warning.evidence).collect::<Vec<_>>()
        };
        let of = |count| {
            let mut thread = Histogram::default();
            (0..count).for_each(|_| thread.record(Nanos(5_000)));
            ContextFigures { thread, ..ContextFigures::default() }
        };
        let lost = ContextFigures { problem: Some("3 events were lost".into()), ..of(9) };
        assert_eq!(said(&setup, Some(of(9))), [""; 0]);
        assert!(said(&setup, Some(of(8)))[0].contains("8 of 10 periods"));
        assert_eq!(said(&setup, Some(lost)), ["timerlat: 3 events were lost"]);
        assert_eq!(said(&setup, None).len(), 1);
        assert_eq!(said(&TimerSetup::default(), None), [""; 0], "nobody asked for them");
    }

    #[test]
    fn activations_without_parts_are_a_note() {
        let said = |unsplit| {
            let guest = Some(GuestFigures { unsplit, ..GuestFigures::default() });
            let own = TimerSeries { guest, expected: 10, ..TimerSeries::default() }.into();
            let mut scenario = crate::verdict::tests::scenario(&[5_000]);
            scenario.series = vec![Series { own, ..Series::default() }];
            TimerSetup::default()
                .warnings(&scenario)
                .into_iter()
                .map(|warning| warning.id)
                .collect::<Vec<_>>()
        };
        assert_eq!(said(0), []);
        assert_eq!(said(3), [WarningId::PartsUnknown]);
    }

    #[test]
    fn exits_that_each_activation_has_are_not_unusual() {
        let exits = |of: &[(&str, u64)]| {
            Fact::Value(of.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect())
        };
        let mut took = Histogram::default();
        (0..100).for_each(|_| took.record(Nanos(5)));
        let sample = |of| Fact::Value(GuestSample { exits: exits(of), ..GuestSample::default() });
        let figures = GuestFigures {
            parts: vec![GuestPart { name: PartOfGuest::Host, took }],
            exits: exits(&[("exits", 212), ("io_exits", 100), ("irq_window_exits", 100), ("irq_exits", 9)]),
            worst: vec![
                sample(&[("exits", 5), ("io_exits", 1), ("irq_window_exits", 1), ("irq_exits", 2)]),
                sample(&[("exits", 2), ("io_exits", 1), ("irq_window_exits", 1)]),
                Fact::Absent,
            ],
            ..GuestFigures::default()
        };
        let of_no_kind = GuestFigures::OF_NO_KIND.to_owned();
        assert_eq!(figures.unusual_exits(0), Some(vec![("irq_exits".to_owned(), 2), (of_no_kind, 1)]));
        assert_eq!(figures.unusual_exits(1), Some(Vec::new()));
        assert_eq!(figures.unusual_exits(2), None);
    }

    #[test]
    fn phases_are_as_asked_for_and_drawn_ones_differ_from_pass_to_pass() {
        assert_eq!(phases(Phase::Aligned, 1), [0; 4]);
        assert_eq!(phases(Phase::Staggered, 1), [0, 250_000, 500_000, 750_000]);
        assert_eq!(phases(Phase::Random, 1), phases(Phase::Sweep, 1));
        assert_ne!(phases(Phase::Random, 1), phases(Phase::Random, 2));
        assert!(phases(Phase::Random, 1).iter().all(|&phase| phase < 1_000_000));
    }
}
