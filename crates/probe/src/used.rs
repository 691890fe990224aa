//! What a measuring thread used in its run phase.

use units::Nanos;

/// What the calling thread used in its run phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub usage: sys::usage::Usage,
    pub cpu_time: Nanos,
}

/// What `run_phase` uses.
pub(crate) fn used_by(run_phase: impl FnOnce()) -> Used {
    let (usage, cpu_time) = (sys::usage::thread(), sys::clock::thread_cpu_time());
    run_phase();
    Used {
        usage: sys::usage::thread() - usage,
        cpu_time: Nanos(sys::clock::thread_cpu_time().saturating_sub(cpu_time)),
    }
}
