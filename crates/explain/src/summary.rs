//! Causes over all hits of a run.

use record::{Certainty, Class, Hit};
use units::{InOrder, Nanos};

/// A cause over several late wake-ups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CauseTotal {
    /// The sort.
    pub class: Class,
    /// Who, without ids of threads: the same program that was started twice is one.
    pub culprit: String,
    /// In how many late wake-ups it had a part.
    pub hits: usize,
    /// Its parts together.
    pub time: Nanos,
    /// Its largest part.
    pub worst: Nanos,
    /// The least sure of its parts.
    pub certainty: Certainty,
}

/// What hits come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Causes, the one with the most time first. Their times sum to `time`.
    pub causes: Vec<CauseTotal>,
    /// All latencies together.
    pub time: Nanos,
    /// How many wake-ups.
    pub hits: usize,
}

/// Adds up the causes of late wake-ups.
pub fn totals<'a>(hits: impl IntoIterator<Item = &'a Hit>) -> Totals {
    let mut totals = Totals::default();
    for hit in hits {
        totals.hits += 1;
        totals.time += hit.latency;
        // What each cause took of this wake-up: threads of one name are one cause.
        let mut met: Vec<(usize, Nanos)> = Vec::new();
        for cause in &hit.causes {
            let culprit = without_ids(&cause.culprit);
            let place =
                totals.causes.iter().position(|one| (one.class, &one.culprit) == (cause.class, &culprit));
            let place = place.unwrap_or_else(|| {
                totals.causes.push(CauseTotal {
                    class: cause.class,
                    culprit,
                    hits: 0,
                    time: Nanos::ZERO,
                    worst: Nanos::ZERO,
                    certainty: Certainty::Sure,
                });
                totals.causes.len() - 1
            });
            let one = &mut totals.causes[place];
            one.time += cause.length;
            one.certainty = one.certainty.min(cause.certainty);
            match met.iter_mut().find(|(known, _)| *known == place) {
                Some((_, length)) => *length += cause.length,
                None => met.push((place, cause.length)),
            }
        }
        for (place, length) in met {
            let one = &mut totals.causes[place];
            one.hits += 1;
            one.worst = one.worst.max(length);
        }
    }
    totals.causes.order_by_key(|cause| std::cmp::Reverse(cause.time));
    totals
}

/// `clear_huge_page in stress [4711]` without the number.
fn without_ids(culprit: &str) -> String {
    let mut text = String::new();
    let mut rest = culprit;
    while let Some((before, after)) = rest.split_once(" [") {
        text += before;
        match after.split_once(']') {
            Some((number, behind)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest = behind,
            _ => {
                text += " [";
                rest = after;
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Cause;

    #[test]
    fn causes_of_one_name_are_added_up_whatever_the_number_of_the_thread() {
        let cause = |culprit: &str, length| Cause {
            class: Class::Rival,
            culprit: culprit.into(),
            length: Nanos(length),
            certainty: Certainty::Sure,
            witness: String::new(),
        };
        let hit = |causes: Vec<Cause>| Hit {
            cpu: units::CpuId(0),
            tid: 9,
            activation: 1,
            due: Nanos(5),
            latency: causes.iter().fold(Nanos::ZERO, |sum, cause| sum + cause.length),
            pieces: Vec::new(),
            causes,
            waking_stack: Vec::new(),
            switch_stack: Vec::new(),
            events: Vec::new(),
            left_out: 0,
        };
        let hits = [hit(vec![cause("hog [7]", 5), cause("x [y] [8]", 1)]), hit(vec![cause("hog [9]", 7)])];
        let totals = totals(&hits);
        assert_eq!((totals.time, totals.hits), (Nanos(13), 2));
        let one = &totals.causes[0];
        assert_eq!((one.culprit.as_str(), one.hits, one.time, one.worst), ("hog", 2, Nanos(12), Nanos(7)));
        assert_eq!(totals.causes[1].culprit, "x [y]");
        // Two threads of one name in one wake-up: one hit, and the worst is what both took of it.
        let both = super::totals(&[hit(vec![cause("hog [7]", 5), cause("hog [8]", 4)])]);
        assert_eq!((both.causes[0].hits, both.causes[0].time, both.causes[0].worst), (1, Nanos(9), Nanos(9)));
    }
}
