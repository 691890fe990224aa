//! What one run says: a positive figure, known as well as the histogram's cells are narrow.

/// A figure of one run. It lies between `lowest` and `highest`, which are equal where it is exact. Figures are compared
/// by their ratios, so nothing is below one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    lowest: f64,
    highest: f64,
}

impl Value {
    /// A figure that is known exactly.
    pub fn exact(figure: u64) -> Self {
        Self::between(figure, figure)
    }

    /// A figure that lies in a cell.
    pub fn between(lowest: u64, highest: u64) -> Self {
        let lowest = lowest.max(1) as f64;
        Self { lowest, highest: lowest.max(highest as f64) }
    }

    /// The geometric mean: what several figures of one run (its loads, its blocks) say together, none of them outvoting
    /// the others by its size. None of nothing.
    pub fn mean(values: &[Self]) -> Option<Self> {
        let mean = |of: fn(&Self) -> f64| {
            let sum: f64 = values.iter().map(|value| of(value).ln()).sum();
            (sum / values.len() as f64).exp()
        };
        let mean = || Self { lowest: mean(|value| value.lowest), highest: mean(|value| value.highest) };
        (!values.is_empty()).then(mean)
    }

    /// The figure itself: the upper end, so never too good.
    pub fn figure(self) -> f64 {
        self.highest
    }

    /// Logarithm of the least that the figure may be.
    pub(crate) fn low(self) -> f64 {
        self.lowest.ln()
    }

    /// Logarithm of the most that the figure may be.
    pub(crate) fn high(self) -> f64 {
        self.highest.ln()
    }

    /// Logarithm of the figure at the middle of its cell.
    pub(crate) fn middle(self) -> f64 {
        f64::midpoint(self.low(), self.high())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_below_one_and_no_value_is_upside_down() {
        assert_eq!(Value::exact(0), Value::exact(1));
        assert_eq!(Value::between(5, 3), Value::exact(5));
    }

    #[test]
    fn a_mean_lies_between_its_values_and_keeps_their_ratios() {
        assert_eq!(Value::mean(&[]), None);
        let mean = Value::mean(&[Value::exact(10), Value::exact(1_000)]).unwrap();
        assert!((mean.figure() - 100.0).abs() < 1e-9);
        let doubled = Value::mean(&[Value::exact(20), Value::exact(2_000)]).unwrap();
        assert!((doubled.figure() / mean.figure() - 2.0).abs() < 1e-9);
    }
}
