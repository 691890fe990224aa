//! Tables, pages and comparisons, each in a module of its own.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod absurd;
mod comparison;
mod cost;
mod experiment;
mod explanation;
mod export;
#[path = "../../../audit/tests/integration/forms.rs"]
mod forms;
mod html;
#[path = "../../../../xtask/src/mend/in_tests.rs"]
mod mend;
mod numbers;
mod patterns;
mod response;
mod sample;
mod stolen;
mod terminal;
