//! worstcase: finds, explains and cuts the worst-case latency of a Linux system.
//!
//! One file a command in [`commands`]: arguments and text. What they do is in the crates below. Two programs are made of
//! it: `worstcase`, and `worstcase-agent` with the commands that measure and read.
//!
//! ```
//! let program = worstcase::commands::all(); // all arguments, for manual pages and completions
//! assert!(program.get_subcommands().any(|command| command.get_name() == "bench"));
//! ```
// Doc comments of arguments are help texts, in which <TIME> stands for a value.
#![allow(rustdoc::invalid_html_tags)]

pub mod commands;
mod headings;
mod instrument;
mod lengths;
mod options;
pub mod output;
mod presets;
mod progress;
