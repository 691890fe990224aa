//! Which changes it takes, found by bisection: `is_bad` says whether the good set-up with some changes made is bad.

use crate::Changes;

/// The least changes of `all` that are bad together, where all of them are. For one culprit among n that takes at most
/// 2 log2(n) questions, rounded up; for k that only act together some 2 k log2(n / k). This is QuickXplain (Junker,
/// "QuickXplain: Preferred Explanations and Relaxations for Over-Constrained Problems", AAAI 2004), which takes it that
/// more changes are never better; so what it finds is then tried without each of its changes.
pub(super) fn least<E>(
    all: &Changes,
    is_bad: &mut dyn FnMut(&Changes) -> Result<bool, E>,
) -> Result<Changes, E> {
    let all: Vec<usize> = all.iter().copied().collect();
    let mut found = divide(&Changes::new(), false, &all, is_bad)?;
    let mut dispensable = true;
    while dispensable && found.len() > 1 {
        dispensable = false;
        for change in found.clone() {
            let without: Changes = found.iter().copied().filter(|&other| other != change).collect();
            if is_bad(&without)? {
                (found, dispensable) = (without, true);
                break;
            }
        }
    }
    Ok(found)
}

/// The least of `among` that are bad together with `made`; `is_new` if `made` was not asked about yet.
fn divide<E>(
    made: &Changes,
    is_new: bool,
    among: &[usize],
    is_bad: &mut dyn FnMut(&Changes) -> Result<bool, E>,
) -> Result<Changes, E> {
    if among.is_empty() || (is_new && is_bad(made)?) {
        return Ok(Changes::new());
    }
    if among.len() == 1 {
        return Ok(among.iter().copied().collect());
    }
    let (first, second) = among.split_at(among.len() / 2);
    let with_first = made.iter().chain(first).copied().collect();
    let of_second = divide(&with_first, true, second, is_bad)?;
    let with_second = made.union(&of_second).copied().collect();
    let of_first = divide(&with_second, !of_second.is_empty(), first, is_bad)?;
    Ok(of_first.union(&of_second).copied().collect())
}

/// Where an ordered list turns from good to bad: the last place that is good and the first that is bad. The first place
/// is good and the one at `last` is bad. Where `is_bad` cannot judge a place its neighbours are asked; only such
/// places lie between the two in the end.
pub(super) fn turn<E>(
    last: usize,
    is_bad: &mut dyn FnMut(usize) -> Result<Option<bool>, E>,
) -> Result<(usize, usize), E> {
    let (mut low, mut high) = (0, last);
    let mut dumb = Changes::new();
    loop {
        let middle = usize::midpoint(low, high);
        let places = (low + 1..high).filter(|place| !dumb.contains(place));
        let Some(place) = places.min_by_key(|place| place.abs_diff(middle)) else {
            return Ok((low, high));
        };
        match is_bad(place)? {
            Some(true) => high = place,
            Some(false) => low = place,
            None => _ = dumb.insert(place),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    use super::*;
    use proptest::prelude::*;

    /// What is found, and with how many different questions.
    fn found(count: usize, guilty: &[Changes]) -> (Changes, usize) {
        let mut asked = BTreeSet::new();
        let mut is_bad = |made: &Changes| {
            asked.insert(made.clone());
            Ok::<_, Infallible>(guilty.iter().any(|group| group.is_subset(made)))
        };
        let found = least(&(0..count).collect(), &mut is_bad).unwrap();
        (found, asked.len())
    }

    #[test]
    fn one_among_ten_is_found_with_few_questions() {
        for culprit in 0..10 {
            let (least, asked) = found(10, &[[culprit].into()]);
            assert_eq!(least, [culprit].into());
            assert!(asked <= 8, "{culprit}: {asked}");
        }
    }

    #[test]
    fn what_can_be_spared_after_all_is_left_out() {
        // Bad with 0 and 3, or with 3 alone unless 1 is there: more is not always worse.
        let mut is_bad = |made: &Changes| {
            Ok::<_, Infallible>(made.contains(&3) && (made.contains(&0) || !made.contains(&1)))
        };
        assert_eq!(least(&(0..4).collect(), &mut is_bad).unwrap(), [3].into());
    }

    #[test]
    fn a_turn_is_found_past_places_that_say_nothing() {
        let turn_at = |dumb: &[usize]| {
            turn(9, &mut |place| Ok::<_, Infallible>((!dumb.contains(&place)).then_some(place >= 6))).unwrap()
        };
        assert_eq!(turn_at(&[]), (5, 6));
        assert_eq!(turn_at(&[4, 5]), (3, 6));
        assert_eq!(turn_at(&[1, 2, 3, 4, 5, 6, 7, 8]), (0, 9));
    }

    proptest! {
        #[test]
        fn a_group_that_acts_together_is_found_whole(count in 1_usize..40, places in proptest::collection::vec(any::<prop::sample::Index>(), 1..4)) {
            let group: Changes = places.iter().map(|place| place.index(count)).collect();
            let (least, asked) = found(count, std::slice::from_ref(&group));
            prop_assert_eq!(&least, &group);
            let most = 2.0 * group.len() as f64 * ((count as f64 / group.len() as f64).log2() + 2.0) + 1.0;
            prop_assert!(asked as f64 <= most, "{asked} questions for {group:?} among {count}");
        }

        #[test]
        fn of_several_culprits_one_whole_is_found(first: prop::sample::Index, second: prop::sample::Index) {
            let (first, second) = (Changes::from([first.index(20)]), Changes::from([second.index(20)]));
            let (least, _) = found(20, &[first.clone(), second.clone()]);
            prop_assert!(least == first || least == second);
        }
    }
}
