//! What a comparison could have found: the effect that it finds with a given probability, and how many more draws a
//! smaller one takes.
//!
//! Both come from the width of the interval that was seen. A fresh experiment of the same size estimates the effect with
//! an error of its own and has an interval whose width scatters; the width that was seen scatters as well. With `t` the
//! quantile of Student's distribution for the interval's confidence, `s` the standard error and `v` degrees of freedom, an
//! effect `x` (logarithm, in units of `s`) is found if `x - t` exceeds a normal error of variance
//! `1 + t^2 / (2 v) + x^2 / (2 v)`: the estimate, the fresh width, the width that was seen. That is an approximation for
//! errors that are roughly normal on the logarithmic scale; simulations in `tests/` compare it with what is found.
//!
//! "Excludes" is the same question the other way round: the probability that an interval excludes an effect of that size
//! where there is none.

/// The share of fresh experiments in which [`Power::detectable`] promises to find its effect.
pub const POWER: f64 = 0.8;

/// How well an experiment can tell effects apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// Half of the interval's width, as a logarithm.
    half: f64,
    /// How sure it is.
    confidence: f64,
    /// Degrees of freedom of that width.
    freedom: f64,
}

impl Power {
    /// Of an interval whose ends are `half` (a logarithm) from its middle at `confidence`, seen with `freedom` degrees of
    /// freedom.
    pub(crate) fn of(half: f64, confidence: f64, freedom: usize) -> Self {
        Self { half, confidence, freedom: freedom.max(1) as f64 }
    }

    /// Of two comparisons of the same form that have an arm in common: the mean of their variances.
    #[must_use]
    pub fn pooled(self, other: Self) -> Self {
        let half = f64::midpoint(self.half * self.half, other.half * other.half).sqrt();
        Self { half, freedom: 1.5 * self.freedom, ..self }
    }

    /// The ratio, at least one, that a fresh experiment of the same size finds with the probability `share`.
    pub fn detectable(self, share: f64) -> f64 {
        let Self { half, confidence, freedom } = self;
        let (quantile, wanted) = (student(confidence, freedom), normal_quantile(share));
        let mut effect = quantile;
        for _ in 0..100 {
            let spread = (1.0 + (quantile * quantile + effect * effect) / (2.0 * freedom)).sqrt();
            effect = f64::midpoint(effect, quantile + wanted * spread);
        }
        (effect * half / quantile).exp()
    }

    /// The probability with which a fresh experiment of `times` as many draws, judged at `confidence`, finds an effect of
    /// `ratio`; and with which it excludes that effect where there is none.
    pub fn chance(self, ratio: f64, times: f64, confidence: f64) -> f64 {
        let Self { half, confidence: seen, freedom } = self;
        let error = half / student(seen, freedom) / times.sqrt();
        if error <= 0.0 {
            return 1.0;
        }
        let (fresh, effect) = (student(confidence, freedom * times), ratio.ln().abs() / error);
        let spread = 1.0 + fresh * fresh / (2.0 * freedom * times) + effect * effect / (2.0 * freedom);
        normal((effect - fresh) / spread.sqrt())
    }
}

/// How many standard errors an interval of that confidence reaches to each side: Student's quantile by the first terms of
/// its expansion (Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.5).
fn student(confidence: f64, freedom: f64) -> f64 {
    let z = normal_quantile(f64::midpoint(1.0, confidence));
    let (square, cube) = (z * z, z * z * z);
    let second = (5.0 * cube * square + 16.0 * cube + 3.0 * z) / 96.0;
    z + (cube + z) / (4.0 * freedom) + second / (freedom * freedom)
}

/// The share of the standard normal distribution below `x`, by its power series at zero.
fn normal(x: f64) -> f64 {
    if x.abs() > 8.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum, mut n) = (x, x, 1.0);
    while f64::abs(term) > 1e-16 {
        n += 2.0;
        term *= x * x / n;
        sum += term;
    }
    0.5 + sum * (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

/// The value below which that share of the standard normal distribution lies, by halving; shares from 0.5 on.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (0.0, 8.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if normal(middle) < share { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantiles_are_those_of_printed_tables() {
        for (share, quantile) in [(0.5, 0.0), (0.8, 0.8416), (0.9, 1.2816), (0.975, 1.9600), (0.999, 3.0902)]
        {
            assert!((normal_quantile(share) - quantile).abs() < 5e-5, "{share}");
            assert!(
                (normal(quantile) - share).abs() < 5e-5 && (normal(-quantile) - 1.0 + share).abs() < 5e-5
            );
        }
    }

    #[test]
    fn students_quantiles_are_those_of_printed_tables() {
        for (freedom, quantile) in [(5.0, 2.571), (10.0, 2.228), (30.0, 2.042)] {
            assert!((student(0.95, freedom) - quantile).abs() < 0.03, "{freedom}");
        }
    }

    #[test]
    fn an_effect_that_is_found_with_some_probability_has_that_probability() {
        let power = Power::of(0.2, 0.96, 7);
        for share in [0.5, 0.8, 0.9] {
            let ratio = power.detectable(share);
            // Shorter as well as longer.
            for ratio in [ratio, 1.0 / ratio] {
                let chance = power.chance(ratio, 1.0, 0.96);
                assert!((chance - share).abs() < 1e-6, "{ratio} is found in {chance} instead of {share}");
            }
        }
        assert!(power.chance(1.2, 4.0, 0.96) > power.chance(1.2, 1.0, 0.96));
        assert!(power.chance(1.2, 4.0, 0.99) < power.chance(1.2, 4.0, 0.96));
    }

    #[test]
    fn without_spread_every_effect_is_found() {
        let power = Power::of(0.0, 0.96, 7);
        assert_eq!((power.detectable(0.8), power.chance(1.01, 1.0, 0.96)), (1.0, 1.0));
    }
}
