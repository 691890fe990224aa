//! Rules as data (`rules/*.toml`), and the engine that judges a machine's facts by them.
