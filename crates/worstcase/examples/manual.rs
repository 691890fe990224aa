//! Writes what a package has beside the programs, below a directory: manual pages, completions of the shells, the systemd units
//! of `worstcase tune persist`.
//!
//! `cargo run --package worstcase --example manual DIRECTORY`

use std::path::Path;
use std::{env, fs, io};

use clap_complete::Shell;
use tune::persist::{Contents, Init};
use worstcase::commands::{self, agent};

/// Where a package puts the program.
const PROGRAM: &str = "/usr/bin/worstcase";
/// Where the units' links and names come from: the place of an administrator's units, which wins over a package's.
const UNITS: &str = "/etc/systemd/system/";

fn main() -> io::Result<()> {
    let usage = || io::Error::other("usage: manual DIRECTORY");
    let target = env::args_os().nth(1).ok_or_else(usage)?;
    let [pages, completions, units] =
        ["man", "completions", "units"].map(|name| Path::new(&target).join(name));
    for place in [&pages, &completions, &units] {
        fs::create_dir_all(place)?;
    }
    for program in [commands::all(), agent::all()] {
        // Without the commit: the page is that of a version.
        let program = program.version(env!("CARGO_PKG_VERSION"));
        let name = program.get_name().to_owned();
        clap_mangen::generate_to(program.clone().disable_help_subcommand(true), &pages)?;
        for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
            clap_complete::generate_to(shell, &mut program.clone(), &name, &completions)?;
        }
    }
    for file in Init::Systemd.files(PROGRAM, commands::CHOICE) {
        if let (Some(name), Contents::Bytes(text)) = (file.path.strip_prefix(UNITS), &file.contents) {
            fs::write(units.join(name), text)?;
        }
    }
    Ok(())
}
