//! Where the activations of a series lie against the kernel's tick.

use serde::{Deserialize, Serialize};
use units::Nanos;

use super::{ClockName, Fact, Grid, Header, Scenario, Series};

/// The phases of the tick's period that the activations of a series were due at. A phase is what `CLOCK_MONOTONIC` reads
/// modulo the tick's period: the tick itself is at phase 0 since Linux 6.4 (and in stable kernels that took over "tick:
/// Align tick period with the HZ tick"), at one that nobody says before, and `skew_tick=1` shifts it from CPU to CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TickPhases {
    /// The tick's period.
    pub tick: Nanos,
    /// The phase of the first activation, below the tick's period.
    pub first: Nanos,
    /// How far the phases lie apart to which activations come back that keep their phase: the greatest common divisor of
    /// period and tick.
    pub spacing: Nanos,
    /// Whether a sweep moves the activations on, past every phase in the end.
    pub swept: bool,
    /// In how many thousandths of the tick's period an activation was due.
    pub covered_permille: u32,
}

/// The thousandths of a tick's period.
const PARTS: usize = 1000;
/// The most activations that are looked at: a sweep has met every phase long before, and a damaged record ends here.
const MOST_LOOKS: u64 = 1 << 20;
/// So few phases leave gaps in which a delay could hide for ever: 40 us wide or more at a tick of 4 ms.
const FEW: u64 = 100;

impl TickPhases {
    /// Of the first `activations` of `grid`, on `CLOCK_MONOTONIC`. None without a tick or activations.
    pub fn of(grid: &Grid, activations: u64, tick: Nanos) -> Option<Self> {
        if tick == Nanos::ZERO || activations == 0 {
            return None;
        }
        let spacing = greatest_common_divisor(grid.interval, tick.0);
        let different = tick.0 / spacing;
        let mut seen = [false; PARTS];
        let (mut covered, mut looks) = (0, 0);
        for range in grid.even_ranges(0..activations) {
            let looked_at = (range.end - range.start).min(different).min(MOST_LOOKS - looks);
            for due in (range.start..range.start + looked_at).map(|activation| grid.due(activation)) {
                let part = u128::from(due % tick.0) * PARTS as u128 / u128::from(tick.0);
                covered += u32::from(!std::mem::replace(&mut seen[part as usize], true));
            }
            looks += looked_at;
            if looks == MOST_LOOKS || covered == PARTS as u32 {
                break;
            }
        }
        Some(Self {
            tick,
            first: Nanos(grid.due(0) % tick.0),
            spacing: Nanos(spacing),
            swept: grid.sweep.is_some(),
            covered_permille: covered,
        })
    }

    /// Whether an activation was due in every thousandth of the tick's period.
    pub fn is_whole(&self) -> bool {
        self.covered_permille == PARTS as u32
    }

    /// To how many phases the activations come back that keep their phase.
    fn phases(&self) -> u64 {
        self.tick.0 / self.spacing.0.max(1)
    }

    /// Whether the activations come back to so few phases for ever that delays can hide between them.
    pub fn is_stuck(&self) -> bool {
        !self.swept && self.phases() <= FEW
    }

    /// How much of the tick was met: `4 points of the 4ms tick`, `16.7 % of the 4ms tick`, `all of the 4ms tick`.
    pub fn share(&self) -> String {
        let share = match self.phases() {
            1 if self.is_stuck() => "one point".to_owned(),
            phases if self.is_stuck() => format!("{phases} points"),
            _ if self.is_whole() => "all".to_owned(),
            _ => format!("{}.{} %", self.covered_permille / 10, self.covered_permille % 10),
        };
        format!("{share} of the {} tick", self.tick)
    }
}

/// `all of the 4ms tick`, `4 points of the 4ms tick (213 us past multiples of 1ms)`.
impl std::fmt::Display for TickPhases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.share())?;
        let past = self.first.0 % self.spacing.0.max(1) / 1_000;
        match (self.is_stuck(), self.is_whole()) {
            (true, _) => write!(f, " ({past} us past multiples of {})", self.spacing),
            (false, true) => Ok(()),
            (false, false) => write!(f, " (from {past} us past multiples of {} on)", self.spacing),
        }
    }
}

impl Scenario {
    /// Enters for each series the phases of the tick that its activations were due at, once they are known.
    pub fn enter_tick_phases(&mut self, header: &Header) {
        let phases: Vec<_> = self
            .series
            .iter()
            .enumerate()
            .map(|(index, series)| self.phases_of(header, index, series))
            .collect();
        for (series, phases) in self.series.iter_mut().zip(phases) {
            if let Some(timer) = series.timer_mut() {
                timer.tick_phases = phases;
            }
        }
    }

    /// Unknown on a clock that can be set, which is not the tick's, and for a reservation, whose periods begin where the
    /// kernel wants; absent on a CPU whose tick stops while one thread runs.
    fn phases_of(&self, header: &Header, index: usize, series: &Series) -> Fact<TickPhases> {
        let (machine, plan) = (&header.machine, &header.plan);
        let tickless = machine.cpus.nohz_full.value();
        if series.cpu.zip(tickless).is_some_and(|(cpu, tickless)| tickless.contains(cpu)) {
            return Fact::Absent;
        }
        let Some(timer) = series.timer() else { return Fact::Unsupported };
        let known =
            timer.first_due > Nanos::ZERO && plan.clock() == ClockName::Monotonic && !plan.is_reservation();
        let grid = self.head.grid(index, 0).moved(0, timer.first_due.0);
        machine.timers.tick.clone().and_then(|tick| {
            let phases = TickPhases::of(&grid, timer.expected, tick).filter(|_| known);
            phases.map_or(Fact::Unsupported, Fact::Value)
        })
    }
}

fn greatest_common_divisor(left: u64, right: u64) -> u64 {
    if right == 0 { left } else { greatest_common_divisor(right, left % right) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Sweep;
    use proptest::prelude::*;
    use units::Seed;

    const TICK: Nanos = Nanos(4_000_000);

    fn fixed(origin: u64, interval: u64) -> TickPhases {
        TickPhases::of(&Grid::fixed(origin, interval), 60_000_000_000 / interval, TICK).unwrap()
    }

    fn swept(interval: u64, seconds: u64) -> TickPhases {
        let sweep = Some(Sweep::new(Nanos(interval), Seed(3), "test"));
        let grid = Grid { origin: 1_234_567, interval, sweep };
        TickPhases::of(&grid, seconds * 1_000_000_000 / interval, TICK).unwrap()
    }

    #[test]
    fn a_period_that_divides_the_tick_or_is_divided_by_it_meets_few_phases_for_ever() {
        for (interval, phases, words) in [
            (4_000_000, 1, "one point of the 4ms tick (213 us past multiples of 4ms)"),
            (8_000_000, 1, "one point of the 4ms tick (213 us past multiples of 4ms)"),
            (1_000_000, 4, "4 points of the 4ms tick (213 us past multiples of 1ms)"),
            (6_000_000, 2, "2 points of the 4ms tick (213 us past multiples of 2ms)"),
        ] {
            let met = fixed(40_213_000, interval);
            assert_eq!((met.phases(), met.covered_permille), (phases, phases as u32), "{interval}");
            assert!(met.is_stuck() && met.to_string() == words, "{met}");
        }
    }

    #[test]
    fn a_period_without_a_common_divisor_meets_every_phase_without_a_sweep() {
        let met = fixed(0, 999_983);
        assert!(met.is_whole() && !met.is_stuck(), "{met:?}");
        assert_eq!(met.to_string(), "all of the 4ms tick");
    }

    #[test]
    fn a_swept_minute_meets_all_of_the_tick_and_ten_seconds_a_part_of_it() {
        for interval in [250_000, 1_000_000, 4_000_000, 10_000_000] {
            assert!(swept(interval, 61).is_whole(), "{interval}: {:?}", swept(interval, 61));
            let short = swept(interval, 10);
            assert!((100..900).contains(&short.covered_permille), "{interval}: {short:?}");
            assert!(!short.is_stuck() && short.to_string().contains(" % of the 4ms tick (from "), "{short}");
        }
    }

    #[test]
    fn without_a_tick_or_activations_nothing_is_known() {
        assert_eq!(TickPhases::of(&Grid::fixed(5, 10), 0, TICK), None);
        assert_eq!(TickPhases::of(&Grid::fixed(5, 10), 100, Nanos::ZERO), None);
    }

    /// A scenario on a machine with a tick, whose first activation was due at `first_due`.
    fn entered(first_due: u64, change: impl FnOnce(&mut Header)) -> Fact<TickPhases> {
        let mut header = crate::verdict::tests::header();
        header.machine.timers.tick = Fact::Value(TICK);
        change(&mut header);
        let mut scenario = crate::verdict::tests::scenario(&[5_000, 6_000]);
        scenario.series[0].timer_mut().unwrap().first_due = Nanos(first_due);
        scenario.enter_tick_phases(&header);
        scenario.series[0].timer().unwrap().tick_phases.clone()
    }

    #[test]
    fn what_cannot_be_known_of_the_tick_is_unknown_and_never_whole() {
        let known = entered(8_000_500, |_| {});
        let spacing = Nanos::from_millis(1);
        let expected =
            TickPhases { tick: TICK, first: Nanos(500), spacing, swept: false, covered_permille: 2 };
        assert_eq!(known, Fact::Value(expected));
        let changes: [fn(&mut Header); 3] = [
            |header| header.machine.timers.tick = Fact::Unsupported,
            |header| header.plan.timer_mut().unwrap().clock = ClockName::Realtime,
            |header| header.plan.timer_mut().unwrap().wake = crate::Wake::Deadline,
        ];
        for change in changes {
            assert_eq!(entered(8_000_500, change), Fact::Unsupported);
        }
        assert_eq!(entered(0, |_| {}), Fact::Unsupported, "a record that does not say when it was due");
        let tickless =
            |header: &mut Header| header.machine.cpus.nohz_full = Fact::Value("0".parse().unwrap());
        assert_eq!(entered(8_000_500, tickless), Fact::Absent);
    }

    proptest! {
        #[test]
        fn any_numbers_are_answered_soon(
            origin: u64, interval: u64, sweep: Option<(u64, u64, u64)>, activations: u64, tick: u64,
        ) {
            let sweep = sweep.map(|(block, stretch, key)| Sweep { block, stretch, key });
            let grid = Grid { origin, interval: interval.max(1), sweep };
            let met = TickPhases::of(&grid, activations, Nanos(tick));
            prop_assert!(met.is_none_or(|met| met.covered_permille <= 1000 && met.first < met.tick));
        }
    }
}
