//! Responses: how long until a frame is answered, and where that time goes. The loop is [`engine::run`]; the way to the
//! peer is a [`line::Line`], what is counted a [`tally::Tally`].

mod card;
pub mod engine;
mod job;
pub mod line;
pub mod tally;

use failure::Error;
use record::Grid;
use record::instrument::response::Receive;
use sys::shared::Word;
use wire::{Carrier, Link, LinkOptions, Peer};

use crate::board::Recorder;
use crate::job::{Place, Ready};
use crate::used::{Used, used_by};
use engine::{Flight, Task};
pub use job::ResponseJob;
use line::Network;
use tally::Tally;

/// How long the kernel asks a driver for packets before a thread sleeps, in microseconds.
const BUSY_POLL: u32 = 200;

/// A thread of the response probe, prepared: its peer has answered.
pub(crate) struct Thread<'a> {
    job: &'a ResponseJob,
    place: Place,
    line: Network,
    flight: Flight,
}

impl<'a> Thread<'a> {
    fn prepare(job: &'a ResponseJob, place: Place) -> failure::Result<Self> {
        let setup = &job.setup;
        let peer = Peer::new(&setup.peer, setup.interface.as_deref());
        let peer = peer.map_err(|message| Error::new(message, "name another peer with --peer"))?;
        let options = LinkOptions {
            size: setup.size as usize,
            priority: setup.socket_priority,
            busy_poll: (setup.receive == Receive::BusyPoll).then_some(BUSY_POLL),
            by_card: setup.hardware_stamps,
            carrier: if setup.ptp_frames { Carrier::Ptp } else { Carrier::Plain },
            run: job.run,
            thread: place.index as u32,
        };
        let clock = card::clock(setup)?;
        let line = Network::new(Link::open(&peer, options)?, clock, setup.receive == Receive::Spin);
        Ok(Self { job, place, line, flight: Flight::new() })
    }
}

impl Ready for Thread<'_> {
    /// Warms up and measures; cycles of several threads are spread over the period.
    fn measure(
        self: Box<Self>,
        start: u64,
        board: &[Word],
        recorder: &mut Recorder<'_>,
        own: &[Word],
    ) -> Used {
        let Self { job, place: Place { index, threads, stop_at, .. }, mut line, mut flight } = *self;
        let mut tally = Tally::new(own);
        let interval = job.setup.interval.0.max(1);
        let phase = u128::from(interval) * index as u128 / threads.max(1) as u128;
        let mut task = Task {
            grid: Grid::fixed(start + interval + phase as u64, interval),
            cycles: job.warm_up,
            frames: job.setup.frames.clamp(1, engine::MOST_FRAMES),
            patience: job.setup.patience.0,
            stop_at,
        };
        let origin = engine::warm_up(&mut line, &task, &mut flight, board, recorder);
        task = Task { grid: Grid::fixed(origin, interval), cycles: job.cycles.unwrap_or(u64::MAX), ..task };
        recorder.started(&task.grid);
        used_by(|| engine::run(&mut line, &task, &mut flight, board, recorder, &mut tally))
    }
}
