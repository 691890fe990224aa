//! The median of a handful of figures, with the interval that order statistics give it (David and Nagaraja, "Order
//! Statistics", 3rd edition, section 7.1): no shape is assumed.

/// How sure the interval is, at least.
const CONFIDENCE: f64 = 0.95;

/// A median.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Median {
    /// The figure of which half are not above; of an even number, the upper of the two in the middle.
    pub figure: u64,
    /// The interval that holds the true median at 95 % or more. None of fewer than six figures, which carry none.
    pub interval: Option<(u64, u64)>,
}

/// The median of `figures`; none of nothing.
pub fn median(figures: &[u64]) -> Option<Median> {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable();
    let figure = *sorted.get(sorted.len() / 2)?;
    let interval = beyond(sorted.len()).map(|beyond| (sorted[beyond], sorted[sorted.len() - 1 - beyond]));
    Some(Median { figure, interval })
}

/// How many figures may lie below the interval, and as many above: the most for which the binomial distribution leaves no
/// more than 5 % outside.
fn beyond(count: usize) -> Option<usize> {
    let mut outside = 0.0;
    let mut ways = 1.0;
    let mut most = None;
    for below in 0..count / 2 {
        outside += ways * 0.5_f64.powi(count.min(1000) as i32);
        if 2.0 * outside > 1.0 - CONFIDENCE {
            break;
        }
        most = Some(below);
        ways = ways * (count - below) as f64 / (below + 1) as f64;
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_table() {
        // Hollander, Wolfe and Chicken, table of the sign test: 6 figures give the extremes, 9 the second and the eighth.
        assert_eq!(beyond(5), None);
        assert_eq!(beyond(6), Some(0));
        assert_eq!(beyond(8), Some(0));
        assert_eq!(beyond(9), Some(1));
        assert_eq!(beyond(20), Some(5));
    }

    #[test]
    fn order_does_not_matter_and_nothing_has_no_median() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7]), Some(Median { figure: 7, interval: None }));
        let nine = [9, 1, 8, 2, 7, 3, 6, 4, 5];
        assert_eq!(median(&nine), Some(Median { figure: 5, interval: Some((2, 8)) }));
    }
}
