//! Sums of figures that somebody else may have written.

/// A sum that ends at the largest number: a record that says absurd figures is shown, and stops nobody.
pub trait Total: Iterator<Item = u64> + Sized {
    /// As `sum`.
    fn total(self) -> u64 {
        self.fold(0, u64::saturating_add)
    }
}

impl<I: Iterator<Item = u64>> Total for I {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_figures_have_a_sum() {
        assert_eq!([1, 2, 3].into_iter().total(), 6);
        assert_eq!([u64::MAX, 1].into_iter().total(), u64::MAX);
    }
}
