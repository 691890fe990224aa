//! From values to places, and the round values worth a label.

use record::Unit;
use units::Nanos;

/// A round value and its label.
pub(crate) struct Tick {
    pub value: f64,
    pub label: String,
}

/// Logarithmic: equal ratios are equally far apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    pub from: f64,
    pub to: f64,
    pub start: f64,
    pub end: f64,
}

impl Log {
    /// `from` and `to` are raised to at least 1 and a factor of 2 apart.
    pub fn new((from, to): (f64, f64), (start, end): (f64, f64)) -> Self {
        let from = from.max(1.0);
        Self { from, to: to.max(from * 2.0), start, end }
    }

    /// The place of a value; values beyond the ends stand at the ends.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value.clamp(self.from, self.to) / self.from).ln() / (self.to / self.from).ln();
        self.start + (self.end - self.start) * share
    }

    /// Round latencies at least about `apart` from each other.
    pub fn latency_ticks(&self, apart: f64, unit: Unit) -> Vec<Tick> {
        self.round_values(apart).into_iter().map(|value| Tick { value, label: short(value, unit) }).collect()
    }

    /// Round values within the scale: 1, 2, 5 per decade where there is room, else powers of 10, 100, ...
    pub fn round_values(&self, apart: f64) -> Vec<f64> {
        let decades = (self.to / self.from).log10();
        let decade = (self.end - self.start).abs() / decades;
        let factors: &[f64] = if decade >= 3.4 * apart { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let every = (apart / decade).ceil().max(1.0) as i32;
        let (first, last) = (self.from.log10().floor() as i32, self.to.log10().ceil() as i32);
        (first..=last)
            .filter(|exponent| exponent.rem_euclid(every) == 0)
            .flat_map(|exponent| factors.iter().map(move |factor| factor * 10_f64.powi(exponent)))
            .filter(|value| *value >= self.from * 0.999 && *value <= self.to * 1.001)
            .collect()
    }
}

/// Equal differences are equally far apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linear {
    pub to: f64,
    pub start: f64,
    pub end: f64,
}

/// Steps between labels of a time axis, in seconds.
const TIME_STEPS: [f64; 20] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0,
    7_200.0, 10_800.0, 21_600.0, 43_200.0,
];

impl Linear {
    /// From 0 to `to`.
    pub fn new(to: f64, (start, end): (f64, f64)) -> Self {
        Self { to: if to > 0.0 { to } else { 1.0 }, start, end }
    }

    /// The place of a value; values beyond the ends stand at the ends.
    pub fn at(&self, value: f64) -> f64 {
        self.start + (self.end - self.start) * (value / self.to).clamp(0.0, 1.0)
    }

    /// Round times (in seconds) at least about `apart` from each other.
    pub fn time_ticks(&self, apart: f64) -> Vec<Tick> {
        let least = self.to * apart / (self.end - self.start).abs();
        let step = TIME_STEPS.into_iter().find(|step| *step >= least);
        let step = step.unwrap_or_else(|| (least / 86_400.0).ceil() * 86_400.0);
        let count = (self.to / step).floor() as u32;
        (0..=count)
            .map(|n| f64::from(n) * step)
            .map(|value| Tick { value, label: Nanos((value * 1e9) as u64).rounded() })
            .collect()
    }
}

/// A latency with its unit: `500 ns`, `20 µs`, `1.5 ms`, `2 s`; `1.5 k instructions`.
pub(crate) fn latency(nanos: f64, unit: Unit) -> String {
    match unit {
        Unit::Microseconds => short(nanos, unit),
        Unit::Instructions => format!("{}\u{a0}{}", short(nanos, unit), unit.name()),
    }
}

/// The same for an axis: `1.5 ms`, and instructions as `1.5 M`.
fn short(nanos: f64, unit: Unit) -> String {
    let names = match unit {
        Unit::Microseconds => ["\u{a0}ns", "\u{a0}µs", "\u{a0}ms", "\u{a0}s"],
        Unit::Instructions => ["", "\u{a0}k", "\u{a0}M", "\u{a0}G"],
    };
    let (value, name) = match nanos {
        n if n < 999.5 => (n, names[0]),
        n if n < 999_500.0 => (n / 1e3, names[1]),
        n if n < 999_500_000.0 => (n / 1e6, names[2]),
        n => (n / 1e9, names[3]),
    };
    let digits = if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") };
    format!("{}{name}", digits.strip_suffix(".0").unwrap_or(&digits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Random;

    #[test]
    fn latencies_are_named_in_the_unit_that_reads_best() {
        let time = |nanos| latency(nanos, Unit::Microseconds);
        assert_eq!(time(500.0), "500\u{a0}ns");
        assert_eq!(time(2_000.0), "2\u{a0}µs");
        assert_eq!(time(1_540_000.0), "1.5\u{a0}ms");
        assert_eq!(time(999_900.0), "1\u{a0}ms");
        assert_eq!(latency(500.0, Unit::Instructions), "500\u{a0}instructions");
        assert_eq!(latency(1_540_000.0, Unit::Instructions), "1.5\u{a0}M\u{a0}instructions");
        assert_eq!(short(20_000.0, Unit::Instructions), "20\u{a0}k");
    }

    #[test]
    fn ticks_keep_their_distance_and_stay_within_whatever_the_range() {
        let mut random: Random = units::Seed(3).stream("ticks");
        for _ in 0..500 {
            let from = 1.0 + random.below(1 << 20) as f64;
            let scale = Log::new((from, from * (1.5 + random.below(1 << 30) as f64)), (0.0, 400.0));
            let places: Vec<f64> = scale
                .latency_ticks(50.0, Unit::Microseconds)
                .iter()
                .map(|tick| scale.at(tick.value))
                .collect();
            assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 40.0), "{scale:?} {places:?}");
            assert!(places.iter().all(|place| (0.0..=400.0).contains(place)));
        }
    }

    #[test]
    fn a_time_axis_of_any_length_has_a_handful_of_labels() {
        for seconds in [0.4, 1.0, 61.0, 7_300.0, 86_400.0, 40.0 * 86_400.0] {
            let count = Linear::new(seconds, (0.0, 800.0)).time_ticks(64.0).len();
            assert!((2..=14).contains(&count), "{seconds}: {count}");
        }
    }
}
