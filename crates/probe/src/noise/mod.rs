//! Noise: how long is the CPU taken from a thread that spins? The loop is [`engine::run`].

pub mod engine;
mod job;

use sys::clock::Clock;
use sys::shared::Word;

use crate::board::Recorder;
use crate::job::Ready;
use crate::timer::source::Nanosleep;
use crate::used::{Used, used_by};
use engine::Task;
pub use job::NoiseJob;

/// A thread of the noise probe.
struct Thread<'a> {
    job: &'a NoiseJob,
    stop_at: u64,
}

impl Ready for Thread<'_> {
    fn measure(self: Box<Self>, start: u64, board: &[Word], recorder: &mut Recorder<'_>, _: &[Word]) -> Used {
        let Self { job, stop_at } = *self;
        let window = job.setup.window.0.max(1);
        let mut task = Task {
            origin: start,
            window,
            spin: job.setup.spin.0.min(window),
            threshold: job.setup.threshold.0.max(1),
            windows: job.warm_up,
            stop_at,
        };
        let mut source = Nanosleep(Clock::Monotonic);
        task.origin = engine::warm_up(&mut source, &task, board, recorder);
        task.windows = job.windows.unwrap_or(u64::MAX);
        recorder.started(&record::Grid::fixed(task.origin, 1));
        recorder.watch_preemptions();
        used_by(|| engine::run(&mut source, &task, board, recorder))
    }
}
