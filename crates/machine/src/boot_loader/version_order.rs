//! The order of versions and of names that hold them (uapi-group.org, version format specification), by which systemd-boot
//! sorts its entries.

use std::cmp::Ordering;

/// Whether `a` is older than `b`. `6.10` is newer than `6.9`; `6.1~rc1` is older than
/// `6.1`, which is older than `6.1-rt` and `6.1.1`; what is no letter
/// or digit of ASCII and none of `~-^.` does not count.
pub(super) fn version_order(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        (a, b) = (what_counts(a), what_counts(b));
        let order = step(&mut a, &mut b);
        if order != Ordering::Equal || (a.is_empty() && b.is_empty()) {
            return order;
        }
    }
}

fn what_counts(text: &str) -> &str {
    text.trim_start_matches(|c: char| !(c.is_ascii_alphanumeric() || "~-^.".contains(c)))
}

/// Compares what both begin with, and goes on behind it.
fn step(a: &mut &str, b: &mut &str) -> Ordering {
    if let Some(order) = by_sign(a, b, '~') {
        return order;
    }
    if a.is_empty() || b.is_empty() {
        return b.is_empty().cmp(&a.is_empty());
    }
    if let Some(order) = ['-', '^', '.'].into_iter().find_map(|sign| by_sign(a, b, sign)) {
        return order;
    }
    let is_digit = |c: char| c.is_ascii_digit();
    if a.starts_with(is_digit) || b.starts_with(is_digit) {
        let (one, other) = (head(a, is_digit), head(b, is_digit));
        let (one, other) = (one.trim_start_matches('0'), other.trim_start_matches('0'));
        return one.len().cmp(&other.len()).then(one.cmp(other));
    }
    let is_letter = |c: char| c.is_ascii_alphabetic();
    head(a, is_letter).cmp(head(b, is_letter))
}

/// The text that begins with the sign is older if the other does not; behind the sign if both do.
fn by_sign(a: &mut &str, b: &mut &str, sign: char) -> Option<Ordering> {
    match (a.strip_prefix(sign), b.strip_prefix(sign)) {
        (None, None) => None,
        (Some(_), None) => Some(Ordering::Less),
        (None, Some(_)) => Some(Ordering::Greater),
        (Some(one), Some(other)) => {
            (*a, *b) = (one, other);
            Some(Ordering::Equal)
        }
    }
}

/// Takes off what a text begins with.
fn head<'a>(text: &mut &'a str, belongs: impl Fn(char) -> bool) -> &'a str {
    let whole = *text;
    *text = whole.trim_start_matches(belongs);
    &whole[..whole.len() - text.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn examples_of_the_specification_are_in_its_order() {
        let ordered = [
            "122.1",
            "123~rc1-1",
            "123",
            "123-a",
            "123-a.1",
            "123-1",
            "123-1.1",
            "123^post1",
            "123.a-1",
            "123.1-1",
            "123a-1",
            "124-1",
        ];
        for (place, one) in ordered.iter().enumerate() {
            for (other_place, other) in ordered.iter().enumerate() {
                assert_eq!(version_order(one, other), place.cmp(&other_place), "{one} and {other}");
            }
        }
        for (one, other) in [("a_1", "a1"), ("007", "7"), ("1ä", "1"), ("", "")] {
            assert_eq!(version_order(one, other), Ordering::Equal, "{one} and {other}");
        }
    }

    proptest! {
        #[test]
        fn it_is_an_order(a in "[ab01~^._ -]{0,8}", b in "[ab01~^._ -]{0,8}", c in "[ab01~^._ -]{0,8}") {
            prop_assert_eq!(version_order(&a, &b), version_order(&b, &a).reverse());
            prop_assert_eq!(version_order(&a, &a), Ordering::Equal);
            if version_order(&a, &b) == version_order(&b, &c) {
                prop_assert_eq!(version_order(&a, &c), version_order(&a, &b));
            }
        }
    }
}
