//! The microscope: what a guest's CPU did in each instruction of a late wake-up.
//!
//! A guest in instruction time is the same each time. Run again with a plugin it leaves a [`Stream`], in which every block of
//! instructions around a late wake-up stands. [`account`] plays it back: stages, contexts, interrupts, preemption, callers.
//!
//! ```
//! use microscope::{Stream, Symbols, account, folded};
//!
//! /// Folded stacks, as flame graphs are made from, of what the plugin wrote and of the guest's /proc/kallsyms.
//! fn stacks(written: &[u8], kallsyms: &str) -> Result<String, Box<dyn std::error::Error>> {
//!     let (stream, symbols) = (Stream::parse(written)?, Symbols::parse(kallsyms)?);
//!     let accounts: Vec<_> = stream.windows.iter().map(|window| account(&stream, window, &symbols)).collect();
//!     Ok(folded(&accounts))
//! }
//!
//! assert!(stacks(b"not written by the plugin", "").is_err());
//! ```

mod account;
mod code;
mod comparison;
mod context;
mod export;
mod machine;
mod sections;
mod stacks;
mod stream;
mod symbols;
mod table;
mod tree;

pub use account::{Account, Cause, Piece, account};
pub use comparison::{Comparison, Contradiction, Named, SHORT, compare};
pub use context::Context;
pub use export::folded;
pub use machine::entries_on_arm64;
pub use plugin::sections::Off;
pub use sections::{Place, Section, merge, places, section};
pub use stream::{Block, Note, Record, Stream, StreamError, Window};
pub use symbols::{Symbols, SymbolsError};
pub use table::{Row, rows};
pub use tree::{Node, Tree};
