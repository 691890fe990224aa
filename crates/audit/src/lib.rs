//! Rules as data (`rules/*.toml`, one file a layer), and the engine that judges a machine's facts by them.
//!
//! A rule names a fact (`machine::survey`), says what is [wanted](Want) of it by [profile](Profiles), and how it is
//! cured. [`Rules::built_in`] are those in the binary.

pub mod checklist;
mod condition;
mod division;
pub mod fragment;
mod profile;
pub mod recipe;
mod rule;
mod rules;
mod want;

pub use condition::{Condition, ParseConditionError};
pub use division::Division;
pub use profile::{Asker, Profile, Profiles, UnknownProfile};
pub use rule::{Absent, Cure, Grade, Rule, Severity, Write};
pub use rules::{Rules, RulesError};
pub use want::{Comparison, Cpus, Limit, Mismatch, ParseWantError, Want};
