//! Rules as data (`rules/*.toml`, one file a layer), and the engine that judges a machine's facts by them.
//!
//! A want is a few words: `= y`, `not y` (differs or is absent), `one of never madvise`, `<= 10`, `>= 6.12`,
//! `present`, `absent`, `none` (an empty list or set), `all = performance` (each item of a list), `any = y`,
//! `within {housekeeping}`, `disjoint {isolated}`, `covers {isolated}` (sets of CPUs), `contains word`.

pub mod rule;

pub use rule::{Absent, Cure, Grade, Profile, Rule, Severity, Write};
