//! The types that `record.json` is made of. Times are nanoseconds; shares are per mille; CPU sets are kernel lists.

mod evidence;
mod explanation;
mod fact;
mod grid;
pub mod instrument;
mod lab;
mod limits;
mod load;
mod machine;
mod maxima;
mod overview;
mod plan;
mod request;
mod run;
mod scenario;
mod tick;
mod warning;
mod watch;

pub use evidence::*;
pub use explanation::*;
pub use fact::Fact;
pub use grid::*;
pub use instrument::{InstrumentPlan, Own, Setup, Words};
pub use lab::*;
pub use limits::*;
pub use load::*;
pub use machine::*;
pub use maxima::*;
pub use overview::*;
pub use plan::*;
pub use request::{CommandLoad, Out, Request, message};
pub use run::*;
pub use scenario::*;
pub use tick::TickPhases;
pub use warning::*;
pub use watch::*;
