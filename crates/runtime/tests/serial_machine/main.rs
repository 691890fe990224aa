//! The machine as a whole: its invariants and what breaks them, its bounds, and real threads.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod bounds;
mod helper;
mod invariants;
mod light_threads;
mod torture;

#[global_allocator]
static COUNTING: sys::allocation::Counting = sys::allocation::Counting;
