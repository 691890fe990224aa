//! What a hypervisor took, by the clock of threads that does not count it.
//!
//! `sched_stat_runtime` says how much of the CPU a thread has had since it was last said. Between two of them the thread ran
//! all the time, or was switched out in between; what wall time has beyond the run time is what a hypervisor took (with
//! `CONFIG_PARAVIRT_TIME_ACCOUNTING`) and, with `CONFIG_IRQ_TIME_ACCOUNTING`, interrupts, which are taken out here. On
//! other kernels the difference is nothing, which proves nothing.

use units::Nanos;

use crate::event::{Event, Frame, Kind};
use crate::window::Window;

/// What was taken from threads on the window's CPU in steps that reach into `[due, woke]`; a lower bound.
pub fn stolen(window: &Window) -> Nanos {
    let events = window.of(window.cpu);
    let mut since: Option<(i32, Nanos)> = None;
    let (mut interrupts, mut depth, mut entered) = (0u64, 0u32, Nanos::ZERO);
    let mut sum = 0u64;
    for event in events {
        match &event.kind {
            Kind::Enter(Frame::Vector(_) | Frame::Handler(..)) => {
                if depth == 0 {
                    entered = event.at;
                }
                depth += 1;
            }
            Kind::Leave(Frame::Vector(_) | Frame::Handler(..)) => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    interrupts += event.at.0.saturating_sub(entered.0);
                }
            }
            Kind::Switch { next, .. } => {
                since = Some((next.tid, event.at));
                interrupts = 0;
            }
            Kind::Runtime { tid, length } => {
                let of_it = since.filter(|(running, _)| running == tid);
                if let Some((_, from)) = of_it.filter(|_| reaches_into(window, event)) {
                    let wall = event.at.0.saturating_sub(from.0);
                    sum += wall.saturating_sub(length.0).saturating_sub(interrupts);
                }
                since = Some((*tid, event.at));
                interrupts = 0;
            }
            Kind::Lost | Kind::Resumed => since = None,
            _ => {}
        }
    }
    Nanos(sum)
}

fn reaches_into(window: &Window, event: &Event) -> bool {
    event.at > window.due && event.at <= window.woke && event.cpu == window.cpu
}
