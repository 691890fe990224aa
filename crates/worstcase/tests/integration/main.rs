//! The program from outside, without guests, root or measured time: each part in a module of its own.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod cli;
mod explain;
mod kernels;
#[path = "../../../../xtask/src/mend/in_tests.rs"]
mod mend;
mod partial;
mod persist_service;
mod promises;
mod schemas;
#[path = "../../../record/tests/integration/validator/mod.rs"]
mod validator;
