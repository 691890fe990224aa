//! `cargo xtask bench`: figures side by side. Nothing here passes or fails.

mod beside;
mod calls;
mod check;
mod contender;
mod corpus;
mod cost;
mod events;
mod explain;
mod figures;
mod lab;
mod noise;
mod peers;
mod record;
mod rows;
mod spread;
mod trace;
mod watch;

use anyhow::{Result, bail};

use crate::arguments::Arguments;

/// `bench peers`, `bench record`, `bench check`, `bench cost`, `bench calls`, `bench events`, `bench explain`, `bench lab`, `bench noise` or `bench trace`
pub fn run(mut arguments: Arguments) -> Result<bool> {
    match arguments.word().as_deref() {
        Some("calls") => calls::run(arguments)?,
        Some("check") => check::run(arguments)?,
        Some("cost") => cost::run(arguments)?,
        Some("explain") => explain::run(arguments)?,
        Some("events") => events::run(arguments)?,
        Some("lab") => lab::run(arguments)?,
        Some("noise") => noise::run(arguments)?,
        Some("peers") => peers::run(arguments)?,
        Some("record") => record::run(arguments)?,
        Some("trace") => trace::run(arguments)?,
        other => {
            bail!(
                "there is no benchmark `{}`: there are peers, noise, cost, calls, record, check, events, explain, lab and trace",
                other.unwrap_or_default()
            )
        }
    }
    Ok(true)
}
