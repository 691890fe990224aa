//! Which phases of the kernel's tick a run met, in a few words.

use record::{Fact, Record, TickPhases};

/// For the line of conditions: `phases: all of the 4ms tick`.
pub(crate) fn part(record: &Record) -> String {
    let different = different(record);
    let known = different.iter().filter_map(|phases| phases.value());
    let least = known.min_by_key(|phases| phases.covered_permille);
    match (least, different.as_slice()) {
        (Some(phases), [_]) => format!("phases: {phases}"),
        (Some(least), all) if all.iter().all(|phases| phases.value().is_some()) => {
            let others = if least.is_stuck() { "others on each thread" } else { "at least, on each thread" };
            format!("phases: {} ({others})", least.share())
        }
        (Some(least), _) => format!("phases: {} at least, unknown of some threads", least.share()),
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
    for series in record.scenarios.iter().flat_map(|scenario| &scenario.series) {
        if !different.iter().any(|phases| cell(phases) == cell(&series.tick_phases)) {
            different.push(&series.tick_phases);
        }
    }
    different
}
