//! How options are grouped in the help of measuring commands.

/// Groups of options in the help, in the order in which it shows them.
pub const MEASURED: &str = "What to measure";
pub const LOADED: &str = "Loads";
pub const METHOD: &str = "How to measure";
pub const REQUIREMENT: &str = "Requirement and safety";
pub const OUTPUT: &str = "Output";
