//! worstcase: finds, explains and cuts the worst-case latency of a Linux system.
//!
//! One file a command in [`commands`]; what a measuring command does is in [`run`].
// Doc comments of arguments are help texts, in which <TIME> stands for a value.
#![allow(rustdoc::invalid_html_tags)]

mod commands;
mod error;
mod options;
mod output;
mod presets;
mod run;

use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::Parser;

use crate::commands::Command;

/// Finds, explains and cuts the worst-case latency of a Linux system.
#[derive(Parser)]
#[command(
    name = "worstcase",
    version,
    about,
    disable_help_subcommand = true,
    after_help = "Exit codes: 0 pass, 1 fail, 2 error, 3 inconclusive, 130 interrupted before anything was measured.\n\
                  Start with: worstcase bench"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    if let Some(code) = as_helper() {
        return code;
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return output::usage(&error),
    };
    commands::tune::warn_of_leftovers(&arguments.command);
    match arguments.command.run() {
        Ok(code) => code,
        Err(error) => {
            output::error(&error);
            ExitCode::from(2)
        }
    }
}

/// The same binary is the probe's process, the loads' supervisor and what holds settings when its first argument says so.
/// In a guest of the lab it is process 1 as well.
fn as_helper() -> Option<ExitCode> {
    if lab::guest::is_process_one() {
        return Some(lab::guest::main());
    }
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next()?.to_str()? {
        probe::process::ARGUMENT => {
            let descriptor = arguments.next()?.to_str()?.parse().ok()?;
            let descriptor = sys::process::inherited(descriptor).ok()?;
            Some(ExitCode::from(probe::process::main(descriptor.as_fd()) as u8))
        }
        load::SUPERVISOR_ARGUMENT => Some(load::supervisor::main()),
        lab::guest::ARGUMENT => Some(lab::guest::command()),
        tune::holder::ARGUMENT => {
            let words: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
            Some(ExitCode::from(tune::holder::main(&words)))
        }
        _ => None,
    }
}
