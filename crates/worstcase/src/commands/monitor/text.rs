//! What `worstcase monitor` prints of a record.

use histogram::Histogram;
use record::monitor::Monitoring;
use units::Nanos;

/// The record in words, and beside an earlier one where there is one.
pub fn of(record: &Monitoring, earlier: Option<&Monitoring>) -> String {
    let Monitoring { sent, answered, missed, skipped, again, late, astray, lost, .. } = record;
    let mut lines =
        vec![format!("pulses: {sent} sent = {answered} answered + {missed} missed; {skipped} not begun")];
    let edges = [
        (again, "answers came twice"),
        (late, "came when they were not waited for any more"),
        (astray, "were there before the pulse"),
        (lost, "edges were lost by the kernel"),
    ];
    let seen: Vec<String> = edges
        .iter()
        .filter(|(count, _)| **count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if !seen.is_empty() {
        lines.push(format!("edges: {}", seen.join(", ")));
    }
    let what = if record.loop_back { "its own line" } else { "response" };
    lines.push(format!("{what}, to the {} edge, us: {}", record.ack_edge, figures(&record.responses)));
    lines.push(format!("driving the line, us: {}", figures(&record.writes)));
    match (&record.calibration, record.loop_back) {
        (_, true) => lines.push("keep it with --out FILE, and name it with --calibration FILE".into()),
        (Some(calibration), _) => lines.push(of_calibration(record, calibration)),
        (None, _) => lines.push(
            "not calibrated: how much of this is the monitor's own shows a --loop-back run, both lines joined".into(),
        ),
    }
    lines.extend(earlier.map(|earlier| against(record, earlier)));
    if *answered == 0 {
        lines.push("no answer came: check wires, levels and the edge of --ack".into());
    }
    lines.join("\n") + "\n"
}

/// Least, quantiles and greatest, in microseconds.
fn figures(histogram: &Histogram) -> String {
    let us = |nanos: Option<Nanos>| {
        nanos.map_or_else(|| "-".into(), |nanos| format!("{:.1}", nanos.as_micros_f64()))
    };
    let summary = histogram.summary();
    format!(
        "min {}  avg {}  p99 {}  p99.9 {}  max {}",
        us(summary.minimum()),
        us(summary.average()),
        us(histogram.quantile(0.99)),
        us(histogram.quantile(0.999)),
        us(summary.maximum())
    )
}

fn of_calibration(record: &Monitoring, own: &Monitoring) -> String {
    let at_most = own.responses.summary().maximum().unwrap_or_default();
    let longer = record.responses.at_least(Nanos(at_most.0.saturating_add(1)));
    format!(
        "the monitor itself, its lines joined, us: {}\n  {longer} of {} answers are longer than anything that the monitor needed itself; nothing is subtracted",
        figures(&own.responses),
        record.answered
    )
}

fn against(record: &Monitoring, earlier: &Monitoring) -> String {
    if let Some(why) = record.differs(earlier) {
        return format!("not comparable with the earlier run: {why}");
    }
    let ratio = |share: f64| {
        let [now, before] = [record, earlier].map(|record| record.responses.quantile(share));
        match (now, before) {
            (Some(now), Some(before)) if before.0 > 0 => format!("{:.2}", now.0 as f64 / before.0 as f64),
            _ => "-".into(),
        }
    };
    format!(
        "against the earlier run ({}): median x {}, p99 x {}, p99.9 x {}; one run of each, so small differences are noise",
        figures(&earlier.responses),
        ratio(0.5),
        ratio(0.99),
        ratio(0.999)
    )
}
