//! Facts of whole machines.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod machines;
#[path = "../../../../xtask/src/mend/in_tests.rs"]
mod mend;
