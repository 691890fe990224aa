//! A run in one line, for logs and chat rooms.

use record::Record;
use record::verdict::Verdict;
use units::Total;

/// `FAIL: 787.0 us on CPU 1 under io is above the limit of 500us; 12000 samples in all`.
pub fn line(record: &Record) -> String {
    let unit = record.header.machine.unit();
    let words = record.header.plan.instrument.words();
    let verdict = record.judgement.verdict.to_string().to_uppercase();
    let samples: u64 = record
        .scenarios
        .iter()
        .flat_map(|scenario| &scenario.series)
        .map(|series| series.observed.summary().count)
        .total();
    let worst = record.worst().map_or_else(
        || "nothing was measured".into(),
        |(latency, scenario, series)| {
            let planned = &scenario.head.planned;
            let variant = crate::group::variant(&planned.setup).filter(|_| record.scenarios.len() > 1);
            let variant = variant.map_or_else(String::new, |variant| format!(" ({variant})"));
            let bound = if series.is_bound(latency) { "at least " } else { "" };
            format!(
                "{} {bound}{} under {}{variant} on {}, of {samples} {}",
                words.greatest,
                unit.with_name(latency),
                record.load_name(&planned.load),
                crate::group::cpu_name(series.cpu),
                words.count
            )
        },
    );
    let reasons = record.judgement.reasons.join("; ");
    // The reasons of a failure have the worst value and its place.
    let text = match record.judgement.verdict {
        Verdict::Fail => format!("{verdict}: {reasons}; {samples} {} in all", words.count),
        _ => format!("{verdict}: {worst} ({reasons})"),
    };
    printable::line(&text).into_owned() + "\n"
}
