//! Processes outside the session of whoever typed the command: one undoes when the time has run out, one keeps
//! /dev/cpu_dma_latency open.
//!
//! Each is the same binary, a transient unit where systemd runs, else a process in a session of its own. It announces
//! itself in the state directory by process id and start time. One that was killed is seen by every later command.

mod process;
mod start;

pub use process::main;
pub use start::{ARGUMENT, Kind, Role, end, has_systemd, is_alive, is_overdue, is_stopped, live, start};
