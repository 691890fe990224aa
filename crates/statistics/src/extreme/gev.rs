//! The generalised extreme value distribution, fitted by maximum likelihood, with intervals by profile likelihood
//! (Coles, "An Introduction to Statistical Modeling of Extreme Values", sections 3.3 and 2.6.6).

use super::optimise::minimise;

/// Half the 98 % quantile of chi-squared with one degree of freedom: how far the log-likelihood may fall. The intervals
/// are called 95 % ones: of 100 to 199 figures, and with those fits taken out that are refused, half the 95 % quantile
/// missed 7 to 8 % of the levels of exponential and Gaussian latencies.
const FALL: f64 = 5.411_894_4 / 2.0;
/// Shapes beyond these are not looked at: below, the likelihood has no maximum.
const SHAPES: (f64, f64) = (-0.95, 2.0);

/// A generalised extreme value distribution. Shape 0 is Gumbel's, above it tails are heavy, below it they end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gev {
    /// Where it lies, in nanoseconds.
    pub location: f64,
    /// How wide it is, in nanoseconds; above 0.
    pub scale: f64,
    /// How heavy its upper tail is.
    pub shape: f64,
}

impl Gev {
    /// The probability that a figure is at most `x`.
    pub fn probability(&self, x: f64) -> f64 {
        (-self.rate(x)).exp()
    }

    /// The figure that `share` do not exceed.
    pub fn quantile(&self, share: f64) -> f64 {
        self.location + self.scale * unit_quantile(self.shape, -share.ln())
    }

    /// `(1 + shape z)^(-1 / shape)`, `exp(-z)` for shape 0: infinite below the support, 0 above it.
    fn rate(&self, x: f64) -> f64 {
        let z = (x - self.location) / self.scale;
        if self.shape.abs() < 1e-9 {
            return (-z).exp();
        }
        let base = (self.shape * z).max(-1.0);
        (-base.ln_1p() / self.shape).exp()
    }

    /// Minus the log-likelihood of the figures.
    fn cost(&self, figures: &[f64]) -> f64 {
        if self.scale <= 0.0 || !(SHAPES.0..=SHAPES.1).contains(&self.shape) {
            return f64::INFINITY;
        }
        let sum: f64 = figures
            .iter()
            .map(|x| {
                let rate = self.rate(*x);
                if rate > 0.0 && rate.is_finite() {
                    rate - (1.0 + self.shape) * rate.ln()
                } else {
                    f64::INFINITY
                }
            })
            .sum();
        sum + figures.len() as f64 * self.scale.ln()
    }
}

/// `(rate^-shape - 1) / shape`, `-ln rate` for shape 0.
fn unit_quantile(shape: f64, rate: f64) -> f64 {
    if shape.abs() < 1e-9 { -rate.ln() } else { (-shape * rate.ln()).exp_m1() / shape }
}

/// Figures moved and stretched so that numbers are about 1, and how to get back.
struct Standard {
    figures: Vec<f64>,
    middle: f64,
    unit: f64,
}

impl Standard {
    /// Of ascending figures.
    fn of(sorted: &[f64]) -> Self {
        let at = |share: usize| sorted[(sorted.len() - 1) * share / 100];
        let unit = (at(75) - at(25)).max((at(100) - at(0)) / 1e3).max(f64::MIN_POSITIVE);
        let middle = at(50);
        Self { figures: sorted.iter().map(|x| (x - middle) / unit).collect(), middle, unit }
    }

    fn back(&self, standard: f64) -> f64 {
        self.middle + standard * self.unit
    }

    fn forth(&self, figure: f64) -> f64 {
        (figure - self.middle) / self.unit
    }
}

/// The most likely distribution of ascending figures. None where the likelihood has no maximum within [`SHAPES`].
pub(super) fn fit(sorted: &[f64]) -> Option<Gev> {
    let standard = Standard::of(sorted);
    let cost = |&[location, scale, shape]: &[f64; 3]| {
        Gev { location, scale: scale.exp(), shape }.cost(&standard.figures)
    };
    // Gumbel's quartiles are 1.57 scales apart, its median lies 0.37 above the location.
    let starts = [0.1, -0.2, 0.4].map(|shape| [-0.23, -0.45, shape]);
    let found = starts.map(|start| minimise(start, [0.2, 0.2, 0.1], cost));
    let ([location, scale, shape], value) = found.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let inside = value.is_finite() && shape > SHAPES.0 + 0.01 && shape < SHAPES.1 - 0.01;
    inside.then(|| Gev { location: standard.back(location), scale: scale.exp() * standard.unit, shape })
}

/// The shapes that the figures allow at 95 %.
pub(super) fn shape_interval(sorted: &[f64], fit: &Gev) -> (f64, f64) {
    let standard = Standard::of(sorted);
    let best = [standard.forth(fit.location), (fit.scale / standard.unit).ln()];
    let cost = |shape: f64| {
        let of = |&[location, scale]: &[f64; 2]| {
            Gev { location, scale: scale.exp(), shape }.cost(&standard.figures)
        };
        minimise(best, [0.1, 0.1], of).1
    };
    let most = cost(fit.shape) + FALL;
    let end = |step: f64| edge(fit.shape, step, most, |shape| cost(shape.clamp(SHAPES.0, SHAPES.1)));
    (end(-0.05).unwrap_or(SHAPES.0), end(0.05).unwrap_or(SHAPES.1))
}

/// The figure that is exceeded once in `blocks` on average, and its 95 % interval.
pub(super) fn return_level(sorted: &[f64], fit: &Gev, blocks: f64) -> (f64, (f64, Option<f64>)) {
    let standard = Standard::of(sorted);
    let rate = -(-1.0 / blocks).ln_1p();
    let level = standard.forth(fit.location + fit.scale * unit_quantile(fit.shape, rate));
    // From the fitted distribution, and from Gumbel's, both stretched until they have that level: moved there, neither might
    // hold all figures, and from where the likelihood is nothing no search finds its way.
    let location = standard.forth(fit.location);
    let starts = [fit.shape, 0.0].map(|shape| (location, shape));
    let cost = |level: f64| {
        let of = |&[scale, shape]: &[f64; 2]| {
            let scale = scale.exp();
            Gev { location: level - scale * unit_quantile(shape, rate), scale, shape }.cost(&standard.figures)
        };
        let from = |(location, shape): (f64, f64)| {
            let scale = ((level - location) / unit_quantile(shape, rate)).max(1e-6);
            minimise([scale.ln(), shape], [0.1, 0.05], of).1
        };
        starts.map(from).into_iter().fold(f64::INFINITY, f64::min)
    };
    let most = cost(level) + FALL;
    let low = edge(level, -0.1, most, cost).map_or(level, |low| low);
    let high = edge(level, 0.1, most, cost);
    (standard.back(level), (standard.back(low), high.map(|high| standard.back(high))))
}

/// Where the cost, least at `from`, rises above `most`, in steps that grow. None where it does not within reason.
fn edge(from: f64, mut step: f64, most: f64, cost: impl Fn(f64) -> f64) -> Option<f64> {
    let (mut inside, mut outside) = (from, from + step);
    for _ in 0..40 {
        if cost(outside) > most {
            for _ in 0..12 {
                let middle = f64::midpoint(inside, outside);
                if cost(middle) > most { outside = middle } else { inside = middle }
            }
            return Some(f64::midpoint(inside, outside));
        }
        step *= 1.4;
        (inside, outside) = (outside, outside + step);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The quantiles that a sample of `count` would have were there no chance.
    fn ideal(gev: &Gev, count: usize) -> Vec<f64> {
        (0..count).map(|n| gev.quantile((n as f64 + 0.5) / count as f64)).collect()
    }

    #[test]
    fn gumbels_probabilities_are_known() {
        let gumbel = Gev { location: 2.0, scale: 3.0, shape: 0.0 };
        assert!((gumbel.probability(2.0) - (-1.0_f64).exp()).abs() < 1e-12);
        assert!((gumbel.quantile(0.5) - (2.0 - 3.0 * 2.0_f64.ln().ln())).abs() < 1e-12);
        let heavy = Gev { shape: 0.5, ..gumbel };
        assert!((heavy.probability(2.0 + 6.0) - (-0.25_f64).exp()).abs() < 1e-12, "(1 + 0.5 * 2)^-2");
        assert_eq!(heavy.probability(-5.0), 0.0);
        assert_eq!(Gev { shape: -0.5, ..gumbel }.probability(9.0), 1.0);
    }

    #[test]
    fn an_interval_of_a_level_reaches_as_far_as_the_likelihood_allows() {
        // Where the tail is heavy, levels that the figures allow lie several times as high as the likeliest one.
        let heavy = Gev { location: 0.0, scale: 1.0, shape: 0.4 };
        let figures = ideal(&heavy, 140);
        let fit = fit(&figures).unwrap();
        let (level, (low, high)) = return_level(&figures, &fit, 1_400.0);
        assert!(low < 0.6 * level && high.unwrap() > 2.0 * level, "{low} {level} {high:?}");
    }

    #[test]
    fn an_interval_of_the_shape_has_the_width_that_theory_gives() {
        // Prescott and Walden (Biometrika 67, 1980): the shape's standard deviation is 0.082 at shape 0 and n = 100,
        // where all three parameters are estimated.
        let figures = ideal(&Gev { location: 0.0, scale: 1.0, shape: 0.0 }, 100);
        let (low, high) = shape_interval(&figures, &fit(&figures).unwrap());
        assert!((0.2..0.4).contains(&(high - low)), "{low} {high}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn a_fit_finds_the_distribution_that_figures_come_from(
            location in 1e3..1e7_f64, width in 0.01..1.0_f64, shape in -0.3..0.45_f64
        ) {
            let truth = Gev { location, scale: width * location, shape };
            let figures = ideal(&truth, 400);
            let found = fit(&figures).unwrap();
            prop_assert!((found.shape - shape).abs() < 0.05, "{found:?}");
            prop_assert!((found.location - location).abs() < 0.05 * truth.scale, "{found:?}");
            let (level, (low, high)) = return_level(&figures, &found, 1_000.0);
            prop_assert!(low < level && high.is_none_or(|high| high > level));
            prop_assert!((level / truth.quantile(0.999) - 1.0).abs() < 0.15, "{level}");
        }

        #[test]
        fn quantiles_and_probabilities_are_inverse(shape in -0.9..1.0_f64, share in 0.001..0.999_f64) {
            let gev = Gev { location: 5e4, scale: 1e4, shape };
            prop_assert!((gev.probability(gev.quantile(share)) - share).abs() < 1e-9);
        }
    }
}
