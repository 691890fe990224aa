//! `worstcase-agent`: the commands that measure and read, small enough for any board.

use std::process::ExitCode;

fn main() -> ExitCode {
    runner::enter();
    worstcase::commands::agent::main()
}
