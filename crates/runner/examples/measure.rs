//! Measures 2000 wake-ups under a load of all CPUs, from a program of its own.

#![allow(clippy::print_stdout, missing_docs)]

use runner::{Request, Result};
use units::Nanos;

pub fn main() -> Result<()> {
    runner::enter(); // first of all: this program is started again as the probe and as the load
    let request = Request { loads: vec!["cpu".into()], samples: Some(2000), ..Request::default() };
    let record = runner::measure(request)?;
    for series in record.scenarios.iter().flat_map(|scenario| &scenario.series) {
        let worst = series.observed.summary().maximum().map(Nanos::rounded);
        println!("CPU {:?}: {} wake-ups, worst {:?}", series.cpu, series.observed.summary().count, worst);
    }
    Ok(())
}
