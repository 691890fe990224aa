//! What several rounds say together: the middle one, and how far they lie apart.

use std::fmt;

/// Median, least and greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
}

impl Spread {
    /// Of the rounds that gave a figure; none where none did.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let (least, greatest) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Self { median, least, greatest })
    }

    /// The ratios of figures taken in the same round.
    pub fn of_ratios(ours: &[Option<f64>], theirs: &[Option<f64>]) -> Option<Self> {
        let pairs = ours.iter().zip(theirs).filter_map(|(ours, theirs)| Some((*ours)? / (*theirs)?));
        Self::of(pairs.filter(|ratio| ratio.is_finite()))
    }

    /// How far above 1 a ratio of equals came in either direction.
    pub fn noise(&self) -> f64 {
        self.greatest.max(1.0 / self.least)
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, least, greatest } = self;
        f.pad(&format!("{median:.2} [{least:.2}..{greatest:.2}]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        let spread = Spread::of([4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((spread.least, spread.median, spread.greatest), (1.0, 2.5, 4.0));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn ratios_are_taken_within_a_round_and_rounds_without_a_figure_left_out() {
        let spread =
            Spread::of_ratios(&[Some(1.0), None, Some(9.0)], &[Some(2.0), Some(1.0), Some(3.0)]).unwrap();
        assert_eq!((spread.least, spread.greatest), (0.5, 3.0));
        assert_eq!(spread.noise(), 3.0);
        assert_eq!(spread.to_string(), "1.75 [0.50..3.00]");
    }
}
