//! The microscope: what a guest's CPU did in each instruction of a late wake-up.
//!
//! A guest in instruction time is the same each time. Run again with a plugin it leaves a [`Stream`], in which every block of
//! instructions around a late wake-up stands. [`account`] plays it back: stages, contexts, interrupts, preemption, callers.

mod account;
mod code;
mod export;
mod stacks;
mod stream;
mod symbols;
mod table;
mod tree;

pub use account::{Account, Cause, Context, Piece, account};
pub use export::folded;
pub use stream::{Block, Note, Record, Stream, StreamError, Window};
pub use symbols::{Symbols, SymbolsError};
pub use table::{Row, rows};
pub use tree::{Node, Tree};
