//! What a command fails with: see [`failure`].

pub use failure::{Error as CommandError, Result};
