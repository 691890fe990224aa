//! `worstcase lab kernels` against made-up tools and trees: apt, dpkg-deb and a source that builds at once. What real
//! ones answer is in `serial_on_host/kernels.rs`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod added;
mod built;
mod fetched;
mod house;
