//! What a record looks like: tables for a terminal, a page for a browser, a comparison of several records.
//!
//! Pure functions of [`record::Record`] and [`audit::Audit`]: nothing here knows the kernel, the clock or the file system, and nothing
//! prints. [`table`] is what `bench` ends with, [`foot`] says how far the figures can be trusted, [`compare`] lays
//! records side by side, [`experiment`] trials, searches, bisections and ladders, [`findings`] is what `check` says, [`live`] is what `measure` shows while it runs, [`page`] is the page for a customer,
//! [`extreme`] an estimate of latencies that were not seen.
//!
//! Minimum, average and maximum are always those of the observed wake-ups, exact; percentiles are always taken from
//! the corrected histogram, in which a missed activation counts with the latency that it would have had.
//!
//! ```no_run
//! use std::path::Path;
//!
//! let record = record::store::load(Path::new("worstcase-20261122T234409Z-vm"))?;
//! print!("{}", report::export::markdown(&record));
//! std::fs::write("report.html", report::page::page(&[record])?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod against;
pub mod compare;
pub mod cost;
pub mod counters;
pub mod experiment;
pub mod explanation;
pub mod export;
pub mod extreme;
pub mod findings;
pub mod foot;
pub mod live;
pub mod microscope;
pub mod next;
mod overview;
pub mod page;
pub mod recipe;
mod rows;
pub mod sections;
pub mod table;
pub mod wake_path;
pub mod ways;
pub mod why;

mod differences;
mod figures;
mod grid;
mod group;
mod idle_cost;
mod instrument;
mod many;
mod patterns;
mod phases;
mod style;
mod svg;
mod tails;
pub mod text;
mod validity;
mod warnings;

pub use style::Style;
pub use text::paragraph;
