//! Noise: how long is the CPU taken from a thread that spins? The loop is [`engine::run`].

pub mod engine;

use sys::clock::Clock;
use sys::shared::Word;

use crate::board::Recorder;
use crate::plan::NoiseJob;
use crate::timer::source::Nanosleep;
use crate::used::{Used, used_by};
use engine::Task;

/// Warms up and watches; the threads start together at `start`.
pub(crate) fn measure(
    job: &NoiseJob,
    start: u64,
    stop_at: u64,
    board: &[Word],
    recorder: &mut Recorder<'_>,
) -> Used {
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
