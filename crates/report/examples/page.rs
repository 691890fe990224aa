//! Prints the page of a record, or of one that is made up: `cargo run -p report --example page -- record.json`.
//!
//! `--made-up small|fail|cut-off|wide|long|compare` makes one up instead; `--table` prints the table instead.

#[path = "../tests/integration/sample/mod.rs"]
mod sample;

use std::error::Error;
use std::io::Write;

use record::Record;
use sample::Spec;
use units::Nanos;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let table = arguments.iter().any(|argument| argument == "--table");
    let mut rest = arguments.iter().filter(|argument| *argument != "--table");
    let records = match rest.next().map(String::as_str) {
        Some("--made-up") => made_up(rest.next().map_or("small", String::as_str))?,
        Some(first) => {
            std::iter::once(first).chain(rest.map(String::as_str)).map(load).collect::<Result<_, _>>()?
        }
        None => return Err("name a record.json, or --made-up small".into()),
    };
    let style = report::Style { unicode: true, ..report::Style::default() };
    let text = match records.as_slice() {
        _ if !table => report::page::page(&records)?,
        [only] => report::table::bench(only, false, report::foot::Notes::All, &style),
        several => report::compare::compare(several, &[], &style),
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn load(path: &str) -> Result<Record, Box<dyn Error>> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}

fn made_up(kind: &str) -> Result<Vec<Record>, Box<dyn Error>> {
    let small = Spec::default();
    let limit = Some(Nanos::from_micros(100));
    let stall = Some(Nanos::from_millis(30));
    Ok(match kind {
        "small" => vec![small.record()],
        "fail" => vec![Spec { limit, stall, cpus: 4, duration: Nanos::from_secs(60), ..small }.record()],
        "cut-off" => vec![Spec { limit, cut_off: true, ..small }.record()],
        "wide" => vec![Spec { limit, cpus: 16, ..small }.record()],
        "long" => vec![Spec::long_and_wide().record()],
        "compare" => four_kernels(&small),
        _ => return Err(format!("`{kind}` is none of small, fail, cut-off, wide, long, compare").into()),
    })
}

/// As Enea lays them beside each other.
fn four_kernels(small: &Spec) -> Vec<Record> {
    let kernels =
        [("6.18.0-debug", 12_000), ("6.18.0-release", 4_400), ("6.18.0-tuned", 3_300), ("6.18.0-rt3", 2_900)];
    let run = |(seed, (release, median)): (u64, (&str, u64))| {
        let mut record = Spec { median, seed, ..small.clone() }.record();
        record.header.machine.kernel.release = release.into();
        record
    };
    (1..).zip(kernels).map(run).collect()
}
