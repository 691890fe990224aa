//! `cargo xtask bench`: figures side by side. Nothing here passes or fails.

mod check;
mod contender;
mod figures;
mod lab;
mod peers;
mod record;
mod rows;
mod spread;
mod watch;

use anyhow::{Result, bail};

use crate::arguments::Arguments;

/// `bench peers`, `bench record`, `bench check` or `bench lab`
pub fn run(mut arguments: Arguments) -> Result<bool> {
    match arguments.word().as_deref() {
        Some("check") => check::run(arguments)?,
        Some("lab") => lab::run(arguments)?,
        Some("peers") => peers::run(arguments)?,
        Some("record") => record::run(arguments)?,
        other => {
            bail!(
                "there is no benchmark `{}`: there are peers, record, check and lab",
                other.unwrap_or_default()
            )
        }
    }
    Ok(true)
}
