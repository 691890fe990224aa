//! How the statistics of Mann and Whitney and of Wilcoxon's signed ranks are spread where two arms do not differ: exact, by
//! counting orders and signs.

/// The probability that U is `0, 1, ... most` where samples of `m` and `n` come from one distribution without ties.
///
/// U counts the pairs in which the second sample's figure is the smaller one. Its distribution follows from the
/// recurrence of Mann and Whitney ("On a test of whether one of two random variables is stochastically larger than the
/// other", Annals of Mathematical Statistics 18, 1947): the greatest of all figures belongs to one sample or the other.
pub(crate) fn distribution(m: usize, n: usize, most: usize) -> Vec<f64> {
    // `rows[b]` is the distribution for `a` figures of the first sample and `b` of the second.
    let certain = || std::iter::once(1.0).chain(std::iter::repeat_n(0.0, most)).collect::<Vec<f64>>();
    let mut rows: Vec<Vec<f64>> = (0..=n).map(|_| certain()).collect();
    for a in 1..=m {
        for b in 1..=n {
            let first = a as f64 / (a + b) as f64;
            let greatest_is_first = |u: usize| if u < b { 0.0 } else { rows[b][u - b] };
            let mixed = (0..=most).map(|u| first * greatest_is_first(u) + (1.0 - first) * rows[b - 1][u]);
            let mixed = mixed.collect();
            rows[b] = mixed;
        }
    }
    rows.pop().unwrap_or_default()
}

/// How many of the `m * n` ordered differences may be cut off at each end so that what is left covers the true shift
/// with at least `confidence`, and the confidence that this has. None where even all of them do not reach that.
pub(crate) fn cut(m: usize, n: usize, confidence: f64) -> Option<(usize, f64)> {
    let tail = (1.0 - confidence) / 2.0;
    let mut outside = 0.0;
    let mut kept = None;
    for (below, probability) in distribution(m, n, m * n / 2).into_iter().enumerate() {
        outside += probability;
        if outside > tail {
            break;
        }
        kept = Some((below, 1.0 - 2.0 * outside));
    }
    kept
}

/// The rank of each figure, from 1; equal figures share the mean of theirs.
pub(crate) fn mid_ranks(figures: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..figures.len()).collect();
    order.sort_by(|&a, &b| figures[a].total_cmp(&figures[b]));
    let mut ranks = vec![0.0; figures.len()];
    let mut below = 0;
    for equal in order.chunk_by(|&a, &b| figures[a] == figures[b]) {
        let rank = below as f64 + (equal.len() as f64 + 1.0) / 2.0;
        equal.iter().for_each(|&place| ranks[place] = rank);
        below += equal.len();
    }
    ranks
}

/// How the sum of the ranks of positive differences is spread where each sign is as likely as the other, without ties.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SignedRanks {
    /// The probability of at most 0, 1, ... up to the middle of the distribution, which is symmetrical.
    at_most: Vec<f64>,
}

impl SignedRanks {
    /// For so many differences: the rank `n` is in the sum or it is not.
    pub fn of(differences: usize) -> Self {
        let most = differences * (differences + 1) / 4;
        let mut sums = vec![0.0; most + 1];
        sums[0] = 1.0;
        for rank in 1..=differences {
            for sum in (0..=most).rev() {
                let without: f64 = sums[sum];
                let with = if sum < rank { 0.0 } else { sums[sum - rank] };
                sums[sum] = f64::midpoint(without, with);
            }
        }
        let mut total = 0.0;
        let add = |probability| {
            total += probability;
            total
        };
        Self { at_most: sums.into_iter().map(add).collect() }
    }

    /// The probability of a sum of at most that; 1 above the middle.
    pub fn at_most(&self, sum: usize) -> f64 {
        self.at_most.get(sum).copied().unwrap_or(1.0)
    }

    /// How many of the ordered means of two differences may be cut off at each end: see [`cut`].
    pub fn cut(&self, confidence: f64) -> Option<(usize, f64)> {
        // 1 - 0.95 is a little more than 0.05: what is as probable as that must not fall to rounding.
        let tail = (1.0 - confidence) / 2.0 + 1e-12;
        let below = self.at_most.partition_point(|&probability| probability <= tail).checked_sub(1)?;
        Some((below, 1.0 - 2.0 * self.at_most[below]))
    }
}

/// How much figures are like the ones before them: the rank correlation of lag 1, from -1 to 1; 0 where all are equal.
pub(crate) fn likeness(figures: &[f64]) -> f64 {
    let (ranks, count) = (mid_ranks(figures), figures.len() as f64);
    let middle = (count + 1.0) / 2.0;
    let spread: f64 = ranks.iter().map(|rank| (rank - middle).powi(2)).sum();
    let together: f64 = ranks.windows(2).map(|pair| (pair[0] - middle) * (pair[1] - middle)).sum();
    if spread == 0.0 { 0.0 } else { together / spread }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_figures_share_a_rank() {
        assert_eq!(mid_ranks(&[5.0, 1.0, 5.0, 9.0, 5.0]), [3.0, 1.0, 3.0, 5.0, 3.0]);
    }

    /// All orders of `m` and `n` figures, counted one by one.
    fn counted(m: usize, n: usize) -> Vec<f64> {
        let mut counts = vec![0.0; m * n + 1];
        for order in 0_u32..1 << (m + n) {
            if order.count_ones() as usize == m {
                let of_first = (0..m + n).filter(|place| order >> place & 1 == 1);
                let smaller = |place: usize| (0..place).filter(|other| order >> other & 1 == 0).count();
                counts[of_first.map(smaller).sum::<usize>()] += 1.0;
            }
        }
        let all: f64 = counts.iter().sum();
        counts.iter().map(|count| count / all).collect()
    }

    #[test]
    fn the_distribution_is_the_one_that_counting_gives() {
        for (m, n) in [(1, 1), (2, 3), (5, 5), (4, 7), (7, 4)] {
            for (reckoned, counted) in distribution(m, n, m * n).into_iter().zip(counted(m, n)) {
                assert!((reckoned - counted).abs() < 1e-12, "{m} {n}");
            }
        }
    }

    #[test]
    fn cuts_agree_with_printed_tables() {
        // Mann and Whitney's table: 5 and 5 reject at U <= 2 (two-sided 5 %), 10 and 10 at U <= 23.
        let (below, confidence) = cut(5, 5, 0.95).unwrap();
        assert_eq!(below, 2);
        assert!((confidence - (1.0 - 8.0 / 252.0)).abs() < 1e-12);
        assert_eq!(cut(10, 10, 0.95).unwrap().0, 23);
        assert_eq!(cut(3, 3, 0.95), None);
    }

    #[test]
    fn signed_ranks_are_spread_as_counting_all_signs_says() {
        for differences in 1..=9_usize {
            let sums = (0_u32..1 << differences)
                .map(|signs| (1..=differences).filter(|rank| signs >> (rank - 1) & 1 == 1).sum::<usize>());
            let sums: Vec<usize> = sums.collect();
            let ranks = SignedRanks::of(differences);
            for most in 0..=differences * (differences + 1) / 4 {
                let counted = sums.iter().filter(|&&sum| sum <= most).count() as f64 / sums.len() as f64;
                assert!((ranks.at_most(most) - counted).abs() < 1e-12, "{differences} {most}");
            }
        }
    }

    #[test]
    fn signed_ranks_agree_with_printed_tables() {
        // Wilcoxon's table, two-sided 5 %: 6 differences reject at 0, 8 at 3, 10 at 8, 20 at 52.
        let cut = |differences| SignedRanks::of(differences).cut(0.95).map(|(below, _)| below);
        assert_eq!([5, 6, 8, 10, 20].map(cut), [None, Some(0), Some(3), Some(8), Some(52)]);
        assert_eq!(SignedRanks::of(6).cut(0.95).unwrap().1, 1.0 - 2.0 / 64.0);
    }
}
