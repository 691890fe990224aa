//! The types that `record.json` is made of. Times are nanoseconds; shares are per mille; CPU sets are kernel lists.

mod evidence;
mod fact;
mod lab;
mod load;
mod machine;
mod plan;
mod run;
mod scenario;
mod warning;

pub use evidence::*;
pub use fact::Fact;
pub use lab::*;
pub use load::*;
pub use machine::*;
pub use plan::*;
pub use run::*;
pub use scenario::*;
pub use warning::*;
