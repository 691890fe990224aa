//! Test Anything Protocol (testanything.org), version 13, which every harness knows: a test point a load and CPU, and one
//! for the run.

use record::Record;

use super::{About, Outcome, cases};

/// The run's test points. What nothing can be said of is not ok.
pub fn tap(record: &Record) -> String {
    let cases = cases(record);
    let mut text = format!("TAP version 13\n1..{}\n", cases.len());
    for (place, case) in cases.iter().enumerate() {
        let (ok, directive, why) = match &case.outcome {
            Outcome::Passed => ("ok", String::new(), None),
            Outcome::Skipped(why) => ("ok", format!(" # SKIP {}", printable::tap(why)), Some(why)),
            Outcome::Failed(why) | Outcome::Unknown(why) => ("not ok", String::new(), Some(why)),
        };
        text += &format!("{ok} {} - {}{directive}\n", place + 1, printable::tap(&case.name));
        let (figures, why) = match &case.about {
            About::Row(row) => (Some(serde_json::to_string(row).unwrap_or_default()), why),
            About::Run(verdict) => (None, Some(verdict)),
        };
        text += "  ---\n";
        text.extend(figures.map(|figures| format!("  figures: {}\n", printable::json(&figures))));
        text.extend(why.map(|why| format!("  message: {}\n", message(why))));
        text += "  ...\n";
    }
    text
}

fn message(why: &str) -> String {
    printable::json(&serde_json::Value::from(why).to_string())
}
