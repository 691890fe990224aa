//! How the Mann-Whitney statistic is spread where two arms do not differ: exact, by counting orders.

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
