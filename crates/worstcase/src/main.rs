//! `worstcase`: all commands.
// Doc comments of arguments are help texts.
#![allow(rustdoc::invalid_html_tags)]

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = as_helper() {
        return code;
    }
    worstcase::commands::main()
}

/// The same binary is the probe's process, the loads' supervisor and what holds settings when its first argument says so.
/// In a guest of the lab it is process 1 as well.
fn as_helper() -> Option<ExitCode> {
    if lab::guest::is_process_one() {
        return Some(lab::guest::main());
    }
    runner::enter();
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next()?;
    if sys::privilege::comes_from_file() && first != record::Request::ARGUMENT {
        // What others of these do is for whoever has the privileges himself.
        return None;
    }
    match first.to_str()? {
        lab::guest::ARGUMENT => Some(lab::guest::command()),
        tune::holder::ARGUMENT => {
            let words: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
            Some(ExitCode::from(tune::holder::main(&words)))
        }
        first => worstcase::commands::answer(first, arguments.next()?.to_str()?),
    }
}
