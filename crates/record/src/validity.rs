//! validity
