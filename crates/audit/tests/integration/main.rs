//! Rules, judgements and what becomes of them, each in a module of its own.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod asked;
mod cases;
mod catalogue;
mod classes;
mod corpus;
mod debian;
mod emit;
mod export;
mod forms;
mod grammar;
mod judging;
mod machines;
#[path = "../../../../xtask/src/mend/in_tests.rs"]
mod mend;
mod papers;
mod recipes;
mod rules;
mod schema;
mod sentences;
mod support;
#[path = "../../../record/tests/integration/validator/mod.rs"]
mod validator;
