//! Signals.

use super::{ALONE, Operation};
use crate::work::{At, Kit, Result, Work};

pub const OPERATIONS: &[Operation] = &[Operation {
    name: "signal-self",
    title: "signal to self",
    unit: "1 signal sent and handled",
    bytes: 0,
    places: ALONE,
    source: "lmbench lat_sig catch",
    stands_for: "timers and notifications that come as signals",
    begin: to_self,
}];

fn to_self(_: &Kit) -> Result<Box<dyn Work>> {
    sys::signal::make_sleeps_interruptible().at("handle a signal")?;
    let own = sys::schedule::thread_id();
    Ok(Box::new(move || {
        sys::signal::wake_thread(own);
        Ok(())
    }))
}
