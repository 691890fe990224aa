//! What records hold and claim, each in a module of its own.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod claims;
mod families;
mod judgement;
#[path = "../../../../xtask/src/mend/in_tests.rs"]
mod mend;
mod schema;
mod validator;
