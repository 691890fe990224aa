//! Comparisons of several runs, each sort in a module of its own.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod comparison;
mod paired;
