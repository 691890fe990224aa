//! The program in bad company: killed, interrupted, without rights, without disk, without readers. And its promises on
//! figures, from outside: what is asked for is measured, and every output tells the same.
//!
//! Tests run one after the other: each measures on all CPUs.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod figures;
mod formats;
mod interrupted;
mod killed;
mod lost;
mod refused;
