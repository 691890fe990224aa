//! Functions of mathematics that the standard library lacks.

/// The probability that a standard normal figure lies at least as far from 0 as `z`: erfc(|z| / sqrt 2), by the
/// continued fraction of Lentz for large arguments and the series for small ones (Abramowitz and Stegun 7.1.6, 7.1.14).
pub(crate) fn two_sided(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    if x < 2.5 { 1.0 - error_series(x) } else { error_fraction(x) }
}

fn error_series(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= 2.0 * x * x / (2.0 * f64::from(n) + 1.0);
        sum += term;
    }
    2.0 / std::f64::consts::PI.sqrt() * (-x * x).exp() * sum
}

fn error_fraction(x: f64) -> f64 {
    let tail = (1..60).rev().fold(x, |below, n| x + f64::from(n) / 2.0 / below);
    (-x * x).exp() / std::f64::consts::PI.sqrt() / tail
}

/// ln of the gamma function for `x` above 0: Stirling's series after shifting the argument up (Abramowitz and Stegun
/// 6.1.41).
pub(crate) fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 12.0 {
        shift += x.ln();
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series = (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - shift
}

/// The regularised incomplete beta function, by its continued fraction (DLMF 8.17.22).
pub(crate) fn beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta(1.0 - x, b, a);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    front.exp() / a / beta_fraction(x, a, b)
}

/// The continued fraction 1 + d1 / (1 + d2 / (1 + ...)), by Lentz's method.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let term = |step: u32| {
        let m = f64::from(step / 2);
        match step % 2 {
            0 => m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            _ => -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        }
    };
    let (mut value, mut c, mut d) = (1.0, 1.0, 0.0);
    for step in 1..20_000 {
        let term = term(step);
        d = 1.0 / nonzero(1.0 + term * d, TINY);
        c = nonzero(1.0 + term / c, TINY);
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    value
}

fn nonzero(value: f64, tiny: f64) -> f64 {
    if value.abs() < tiny { tiny } else { value }
}

/// Where the rising function `of` reaches `wanted` between `low` and `high`.
pub(crate) fn solve(mut low: f64, mut high: f64, wanted: f64, of: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if of(middle) < wanted { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// How many standard errors reach so far that Student's distribution of `freedom` degrees has the probability `outside`
/// beyond them, on both sides together (Abramowitz and Stegun 26.7.1 in terms of the incomplete beta function).
pub(crate) fn student(outside: f64, freedom: f64) -> f64 {
    let share = solve(0.0, 1.0, outside, |share| beta(share, freedom / 2.0, 0.5));
    (freedom * (1.0 - share) / share.max(f64::MIN_POSITIVE)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn normal_probabilities_are_those_of_printed_tables() {
        for (z, p) in [(0.0, 1.0), (1.0, 0.317_310_508), (1.959_963_985, 0.05), (3.0, 0.002_699_796_1)] {
            assert!((two_sided(z) - p).abs() < 1e-8, "{z}");
        }
        assert!((two_sided(6.0) / 1.973_175_29e-9 - 1.0).abs() < 1e-6);
        let (below, above) = (two_sided(3.535_533), two_sided(3.535_535));
        assert!((below - above) / below < 1e-4, "no seam between series and fraction");
    }

    #[test]
    fn factorials_come_from_the_gamma_function() {
        let mut factorial = 1.0_f64;
        for n in 1..30 {
            factorial *= f64::from(n);
            assert!((ln_gamma(f64::from(n) + 1.0) - factorial.ln()).abs() < 1e-10, "{n}");
        }
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-10);
    }

    #[test]
    fn students_quantiles_are_exact_at_few_degrees_and_far_out() {
        let printed = [(0.05, 2.0, 4.302_653), (0.001, 2.0, 31.599_055), (0.001, 12.0, 4.317_791)];
        for (outside, freedom, quantile) in printed {
            assert!((student(outside, freedom) - quantile).abs() < 1e-4, "{outside} {freedom}");
        }
    }

    #[test]
    fn the_beta_function_holds_with_many_samples_too() {
        assert!((beta(0.5, 2.0, 3.0) - 0.6875).abs() < 1e-12);
        assert!((beta(0.5, 5e7, 5e7) - 0.5).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn the_beta_function_counts_binomial_outcomes(n in 1_u32..40, k in 1_u32..40, p in 0.01..0.99_f64) {
            prop_assume!(k <= n);
            // P(at least k of n) = I_p(k, n - k + 1).
            let choose = |k: u32| (0..k).fold(1.0, |product, i| product * f64::from(n - i) / f64::from(i + 1));
            let exact: f64 = (k..=n).map(|k| choose(k) * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32)).sum();
            prop_assert!((beta(p, f64::from(k), f64::from(n - k + 1)) - exact).abs() < 1e-9);
        }
    }
}
