//! Runs measurements: a [`Request`] in, a [`Record`] out.
//!
//! ```no_run
//! # fn main() -> runner::Result<()> {
//! runner::enter(); // first of all: this program is started again as the probe and as the load
//! let request = runner::Request { loads: vec!["cpu".into()], samples: Some(10_000), ..Default::default() };
//! let record = runner::measure(request)?;
//! println!("{:?}: {:?}", record.judgement.verdict, record.scenarios[0].series[0].observed.summary().maximum());
//! # Ok(())
//! # }
//! ```
//!
//! [`Run::prepare`] makes a plan of a request ([`plan`]), divides the machine's CPUs into those measured, loaded and kept
//! for ourselves ([`division`]) and begins the record; [`Run::measure`] goes through the scenarios in their order. One is
//! measured in `scenario`: load up, probe prepared, warm-up, measurement, everything down again, evidence collected.
//! `recorder` takes figures from the probe's board meanwhile, an [`Observer`] sees them, `outputs` is all that is written.
//!
//! Probe and load are processes of their own. They are started from this very program, after it called [`enter`] first in
//! its `main`, or from a worstcase binary that [`Means`] names.

mod beside;
mod contexts;
pub mod division;
mod ending;
mod exposure;
pub mod guest;
mod observer;
mod outputs;
pub mod partition;
mod perf;
pub mod plan;
mod program;
mod recorder;
mod run;
mod samples_file;
mod scenario;
mod session;
mod traced;
mod tracer;
mod watch;

pub use contexts::{ContextSample, ContextTracer, MakeContextTracer};
pub use failure::{Error, Result};
pub use observer::{Live, LiveThread, Observer, Unobserved};
pub use outputs::Page;
pub use plan::Means;
pub use program::enter;
pub use record::{Record, Request};
pub use run::{Outcome, Run};
pub use session::tool;
pub use tracer::{MakeTracer, Tracer};

/// Measures, and gives back the record. Nothing is printed and nothing written but what the request asks for.
///
/// # Errors
/// What cannot be measured as asked, with a hint.
pub fn measure(request: Request) -> Result<Record> {
    Ok(Run::prepare(request, &Means::default())?.measure(&mut Unobserved)?.record)
}
