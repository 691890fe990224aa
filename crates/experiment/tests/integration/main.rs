//! Trials and searches on a made-up bench, each in a module of its own.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod scripted;
mod search;
mod trial;
