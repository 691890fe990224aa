//! Which phases of the kernel's tick a run met, in a few words.

use record::{Fact, Record, Series, TickPhases};

/// For the line of conditions: `phases: all of the 4ms tick`.
pub(crate) fn part(record: &Record) -> String {
    in_words(&different(record))
}

/// Whether some thread met a few phases only, or what it met is not known.
pub(crate) fn is_limited(record: &Record) -> bool {
    different(record).iter().any(|phases| match phases {
        Fact::Value(phases) => phases.is_stuck(),
        Fact::Absent => false,
        Fact::Unreadable(_) | Fact::Unsupported => true,
    })
}

/// What `different` threads met, in words.
fn in_words(different: &[&Fact<TickPhases>]) -> String {
    let known = different.iter().filter_map(|phases| phases.value());
    let least = known.min_by_key(|phases| phases.covered_permille);
    match (least, different) {
        (Some(phases), [_]) => format!("phases: {phases}"),
        (Some(least), _) if different.iter().any(|phases| phases.value().is_none()) => {
            format!("phases: {}, unknown of some threads", least.share())
        }
        (Some(least), _) if least.is_stuck() => format!("phases: {}, others on each thread", least.share()),
        (Some(least), _) => format!("phases: at least {} on each thread", least.share()),
        (None, _) => "phases of the tick unknown".into(),
    }
}

/// For a comparison: runs that met other phases of the tick met other disturbances.
pub(crate) fn of_all(record: &Record) -> String {
    const MOST: usize = 4;
    let different = different(record);
    let more = different.len().saturating_sub(MOST);
    let shown = different.iter().take(MOST).map(|phases| cell(phases));
    let texts: Vec<_> = shown.chain((more > 0).then(|| format!("and {more} more"))).collect();
    if texts.is_empty() { "unknown".into() } else { texts.join("; ") }
}

/// Of one thread.
pub(crate) fn cell(phases: &Fact<TickPhases>) -> String {
    match phases {
        Fact::Value(phases) => phases.to_string(),
        Fact::Absent => "no tick".into(),
        Fact::Unreadable(_) | Fact::Unsupported => "unknown".into(),
    }
}

/// What the threads met, each thing once. Drawn from one seed, a thread's phases are the same under every load.
fn different(record: &Record) -> Vec<&Fact<TickPhases>> {
    let mut different: Vec<&Fact<TickPhases>> = Vec::new();
    let series = record.scenarios.iter().flat_map(|scenario| &scenario.series);
    for timer in series.filter_map(Series::timer) {
        if !different.iter().any(|phases| cell(phases) == cell(&timer.tick_phases)) {
            different.push(&timer.tick_phases);
        }
    }
    different
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    /// Met by one thread: all at one phase of a swept period, or a share of it.
    fn met(first: u64, swept: bool, covered_permille: u32) -> Fact<TickPhases> {
        let (tick, spacing) = (Nanos::from_millis(4), Nanos::from_millis(1));
        Fact::Value(TickPhases { tick, first: Nanos(first), spacing, swept, covered_permille })
    }

    #[test]
    fn threads_that_met_the_same_are_reported_once_and_others_by_the_least_of_them() {
        let (here, there) = (met(213_000, false, 4), met(870_000, false, 4));
        let (some, more, all) = (met(5, true, 160), met(9, true, 170), met(9, true, 1000));
        for (facts, text) in [
            (vec![&all], "phases: all of the 4ms tick"),
            (vec![&here], "phases: 4 points of the 4ms tick (213 us past multiples of 1ms)"),
            (vec![&here, &there], "phases: 4 points of the 4ms tick, others on each thread"),
            (vec![&more, &some, &all], "phases: at least 16.0 % of the 4ms tick on each thread"),
            (vec![&all, &Fact::Absent], "phases: all of the 4ms tick, unknown of some threads"),
            (vec![&Fact::Absent, &Fact::Unsupported], "phases of the tick unknown"),
            (vec![], "phases of the tick unknown"),
        ] {
            assert_eq!(in_words(&facts), text);
        }
    }
}
