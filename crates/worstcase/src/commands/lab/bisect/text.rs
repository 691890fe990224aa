//! What a bisection is going to do, in words.

use lab::bisect::BisectPlan;

/// What is going to be measured.
pub fn plan(plan: &BisectPlan) -> String {
    let BisectPlan { load, duration, seeds, ratio, tail, subject, .. } = plan;
    let changes: String =
        (0..subject.count()).map(|place| format!("\n  {} {}", place + 1, subject.change(place))).collect();
    format!(
        "{tail} of {duration} under {load}, {seeds} guests an arm; a culprit makes it {ratio} times as long or longer;\n\
         what is found is judged by fresh guests\n\
         changes:{changes}"
    )
}
