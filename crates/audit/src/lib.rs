//! Rules as data (`rules/*.toml`, one file a layer), and the engine that judges a machine's facts by them.
//!
//! A rule names a fact (`survey`), says what is [wanted](Want) of it by [profile](Profiles), and how it is
//! cured. [`Rules::built_in`] are those in the binary.
//!
//! ```
//! use audit::{Outcome, Request, Rules, audit};
//! use survey::Survey;
//! use sysroot::{SysRoot, Tree};
//!
//! let rules = Rules::built_in().unwrap();
//! let file = ("/proc/cmdline".to_owned(), b"quiet idle=poll".to_vec());
//! let survey = Survey::new(SysRoot::of(Tree::whole([file])), "".parse().unwrap());
//! let audit = audit(&survey, rules.all(), &Request::default());
//! assert!(audit.findings.iter().any(|finding| finding.outcome == Outcome::Failed));
//! ```

mod action;
pub mod against;
mod audit;
pub mod checklist;
mod choice;
mod condition;
mod division;
pub mod emit;
mod evidence;
pub mod export;
mod finding;
pub mod fragment;
pub mod isolation;
mod judge;
mod next_boot;
mod profile;
pub mod recipe;
mod remedy;
mod rule;
mod rules;
mod want;

pub use action::{Action, Threads};
pub use audit::{Request, audit};
pub use condition::{Condition, ParseConditionError};
pub use division::Division;
pub use finding::{
    Audit, Domain, Evidence, Finding, Offender, Outcome, Remedy, SCHEMA_VERSION, Subject, verdict,
};
pub use profile::{Asker, Profile, Profiles, UnknownProfile};
pub use rule::{Absent, Cure, Gain, Grade, Rule, Severity, Write};
pub use rules::{Layer, PAPERS, Rules, RulesError};
pub use want::{Comparison, Cpus, Limit, Mismatch, ParseWantError, Want};
