//! Whether a fitted distribution describes what it was fitted to.

/// A fit whose statistic (Anderson and Darling's, all three parameters estimated from 100 to 199 figures) is above this
/// is refused. Of figures that do come from such a distribution 4 % are: 6 % at shape -0.4, 2 to 4 % at shapes from 0 to
/// 0.4. Found by simulation (`what_comes_from_the_distribution_is_refused_as_a_misfit_in_4_percent`).
pub const MOST_ANDERSON_DARLING: f64 = 0.65;

/// A block maximum and where the fitted distribution has the figure of that rank, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantilePoint {
    /// What the distribution says.
    pub expected: f64,
    /// What was measured.
    pub observed: f64,
}

/// Anderson and Darling's statistic of ascending figures ("A test of goodness of fit", Journal of the American
/// Statistical Association 49, 1954): heavier on the tails than others.
pub(super) fn anderson_darling(sorted: &[f64], probability: impl Fn(f64) -> f64) -> f64 {
    let count = sorted.len() as f64;
    let shares: Vec<f64> = sorted.iter().map(|x| probability(*x).clamp(1e-300, 1.0 - 1e-16)).collect();
    let weighted = shares
        .iter()
        .zip(shares.iter().rev())
        .zip(0..)
        .map(|((low, high), place)| (2.0 * f64::from(place) + 1.0) * (low.ln() + (-high).ln_1p()));
    -count - weighted.sum::<f64>() / count
}

/// Each figure with its place in the distribution, at shares (i - 0.5) / n.
pub(super) fn quantile_points(sorted: &[f64], quantile: impl Fn(f64) -> f64) -> Vec<QuantilePoint> {
    let share = |place: usize| (place as f64 + 0.5) / sorted.len() as f64;
    let point = |(place, &observed)| QuantilePoint { expected: quantile(share(place)), observed };
    sorted.iter().enumerate().map(point).collect()
}

/// How probable the highest figure, or one as high, is under the fitted distribution. Few figures from another cause
/// stand apart from all others, and the statistic above hardly sees them.
pub(super) fn highest(sorted: &[f64], probability: impl Fn(f64) -> f64) -> f64 {
    let most = sorted.last().map_or(1.0, |&most| probability(most));
    1.0 - most.powf(sorted.len() as f64)
}

/// Whether ascending figures fall into two groups: their density, smoothed on a scale of ratios (Silverman, "Density
/// Estimation for Statistics and Data Analysis", section 3.4.2), has two peaks with less than half of the lower one
/// between them, and at least a fiftieth of the figures on either side.
pub(super) fn in_two_groups(sorted: &[f64]) -> bool {
    const POINTS: usize = 200;
    const LEAST_SHARE: f64 = 0.02;
    let logs: Vec<f64> = sorted.iter().map(|x| x.max(1.0).ln()).collect();
    let (count, at) = (logs.len() as f64, |share: usize| logs[(logs.len() - 1) * share / 100]);
    let mean = logs.iter().sum::<f64>() / count;
    let deviation = (logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count).sqrt();
    let quartiles = (at(75) - at(25)) / 1.34;
    let spread = if quartiles > 0.0 { deviation.min(quartiles) } else { deviation };
    let width = 0.9 * spread * count.powf(-0.2);
    if width <= 0.0 {
        return false;
    }
    let density = |x: f64| logs.iter().map(|log| (-((x - log) / width).powi(2) / 2.0).exp()).sum::<f64>();
    let place = |point: usize| at(0) + (at(100) - at(0)) * point as f64 / (POINTS - 1) as f64;
    let curve: Vec<f64> = (0..POINTS).map(|point| density(place(point))).collect();
    let peak = |curve: &[f64]| curve.iter().copied().fold(0.0, f64::max);
    (1..POINTS - 1).any(|valley| {
        let below = logs.partition_point(|log| *log < place(valley)) as f64 / count;
        let lower = peak(&curve[..valley]).min(peak(&curve[valley + 1..]));
        (LEAST_SHARE..=1.0 - LEAST_SHARE).contains(&below) && curve[valley] < lower / 2.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistic_of_a_perfect_fit_is_small_and_of_a_wrong_one_large() {
        let even: Vec<f64> = (0..100).map(|n| (f64::from(n) + 0.5) / 100.0).collect();
        assert!(anderson_darling(&even, |x| x) < 0.05);
        assert!(anderson_darling(&even, |x| x * x) > 10.0);
        assert!((highest(&even, |x| x) - (1.0 - 0.995_f64.powi(100))).abs() < 1e-12);
        // By hand for two figures: -2 - (ln 0.25 + ln(1 - 0.75) + 3 (ln 0.75 + ln(1 - 0.25))) / 2.
        let two = -2.0 - (0.25_f64.ln() * 2.0 + 3.0 * 2.0 * 0.75_f64.ln()) / 2.0;
        assert!((anderson_darling(&[0.25, 0.75], |x| x) - two).abs() < 1e-12);
    }

    #[test]
    fn two_groups_are_distinguished_from_one() {
        let one: Vec<f64> = (1..=100).map(|n| 1e5 - 2e4 * (-(f64::from(n) / 101.0).ln()).ln()).collect();
        assert!(!in_two_groups(&one));
        let far: Vec<f64> =
            (0..80).map(|n| 1e4 + 10.0 * f64::from(n)).chain((0..20).map(|n| 1e6 + f64::from(n))).collect();
        assert!(in_two_groups(&far));
        assert!(!in_two_groups(&[5.0; 100]));
    }
}
