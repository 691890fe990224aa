//! Stable sorting in little code.

use std::cmp::Ordering;

/// Sorts what the program sorts now and then. The standard library's sorts are fast and take 3 to 4 KB of the program for
/// each type and order; these take some hundred bytes, and sort a list of places first.
pub trait InOrder<T> {
    /// As `sort_by`.
    fn order_by(&mut self, compare: impl Fn(&T, &T) -> Ordering);

    /// As `sort_by_key`.
    fn order_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        self.order_by(|a, b| key(a).cmp(&key(b)));
    }
}

impl<T> InOrder<T> for [T] {
    fn order_by(&mut self, compare: impl Fn(&T, &T) -> Ordering) {
        let mut places = places(self.len(), &|a, b| compare(&self[a], &self[b]));
        for index in 0..places.len() {
            // What belonged here may have been swapped away: to where the place says by now.
            let mut from = places[index];
            while from < index {
                from = places[from];
            }
            places[index] = from;
            self.swap(index, from);
        }
    }
}

/// Where each element comes from.
fn places(length: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..length).collect();
    places.sort_by(|&a, &b| compare(a, b));
    places
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_sorts_as_the_standard_library_does(mut items: Vec<(u8, u16)>) {
            let mut expected = items.clone();
            expected.sort_by_key(|&(key, _)| key);
            items.order_by_key(|&(key, _)| key);
            prop_assert_eq!(&items, &expected);
            expected.sort_by(|a, b| b.cmp(a));
            items.order_by(|a, b| b.cmp(a));
            prop_assert_eq!(items, expected);
        }
    }
}
