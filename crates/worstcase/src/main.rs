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
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == operation::process::NOTHING.to_str().unwrap_or_default())
    {
        return Some(ExitCode::SUCCESS);
    }
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
        lab::guest::SYMBOLS => Some(lab::guest::write_symbols()),
        tune::holder::ARGUMENT => {
            let words: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
            Some(ExitCode::from(tune::holder::main(&words)))
        }
        operation::process::ARGUMENT => {
            let order = arguments.next()?;
            Some(ExitCode::from(operation::process::main(order.to_str()?)))
        }
        first => worstcase::commands::answer(first, arguments.next()?.to_str()?),
    }
}
