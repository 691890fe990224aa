//! Answers on GPIO lines: how long from the kernel's stamp of an edge until its answer. The loop is [`engine::run`]; what it
//! waits on is [`engine::Pins`], what is counted [`tally::Tally`].

pub mod engine;
mod job;
pub mod tally;

use failure::Error;
use record::instrument::gpio::{GpioSetup, Pin};
use sys::clock::Clock;
use sys::gpio::{Chip, Edge, Event, Input, Output};
use sys::shared::Word;
use sys::{Errno, Error as Refused};

use crate::board::Recorder;
use crate::job::Ready;
use crate::used::{Used, used_by};
use engine::{Pins, Task};
pub use job::GpioJob;
use tally::Tally;

/// The name of the input's interrupt, and who has the lines.
pub const INPUT: &str = "worstcase-in";
/// How long edges are answered after the end, in nanoseconds: until the monitor has stopped. What it misses counts.
const LINGER: u64 = 500_000_000;

/// See [`INPUT`].
pub const OUTPUT: &str = "worstcase-out";

/// The responder's thread, prepared: it has the lines.
pub(crate) struct Thread<'a> {
    job: &'a GpioJob,
    stop_at: u64,
    pins: Lines,
}

/// Two lines of GPIO chips.
struct Lines {
    input: Input,
    output: Output,
}

impl<'a> Thread<'a> {
    fn prepare(job: &'a GpioJob, stop_at: u64) -> failure::Result<Self> {
        let GpioSetup { input, output, rises, .. } = &job.setup;
        let edge = Edge::rising(*rises);
        // High, as latmus has it between two answers.
        let output = take(output, |chip, line| chip.output(line, true, OUTPUT))?;
        let input = take(input, |chip, line| chip.input(line, edge, 0, INPUT))?;
        Ok(Self { job, stop_at, pins: Lines { input, output } })
    }
}

impl Ready for Thread<'_> {
    fn measure(
        self: Box<Self>,
        start: u64,
        board: &[Word],
        recorder: &mut Recorder<'_>,
        words: &[Word],
    ) -> Used {
        let Self { job, stop_at, mut pins } = *self;
        let mut task =
            Task { origin: start, until: job.span.warm_until(start), delay: job.setup.delay.0, stop_at };
        let mut tally = Tally::new(words);
        engine::warm_up(&mut pins, &task, board, recorder);
        task.origin = Clock::Monotonic.now().max(task.until);
        task.until = job.span.until(task.origin);
        recorder.started(&record::Grid::fixed(task.origin, 1));
        let used = used_by(|| engine::run(&mut pins, &task, board, recorder, &mut tally));
        if job.setup.monitor.is_some() {
            engine::linger(&mut pins, &task, LINGER);
        }
        used
    }
}

/// Takes a line; an error says who has it.
pub fn take<T>(pin: &Pin, take: impl FnOnce(&Chip, u32) -> sys::Result<T>) -> failure::Result<T> {
    let chip = Chip::open(&pin.chip).map_err(|error| of_chip(&error))?;
    take(&chip, pin.line).map_err(|error| of_line(&error, &chip, pin))
}

fn of_chip(error: &Refused) -> Error {
    let hint = match error.errno {
        Errno::NOENT => {
            "`ls /dev/gpiochip*` lists the chips; gpiodetect and gpioinfo (package gpiod) name their lines"
        }
        Errno::ACCESS | Errno::PERM => {
            "run it as root, or as a member of the group that owns the chip's file"
        }
        _ => "name a GPIO chip, as in /dev/gpiochip0",
    };
    Error::from(error.clone()).with_hint(hint)
}

fn of_line(error: &Refused, chip: &Chip, pin: &Pin) -> Error {
    let hint = match error.errno {
        Errno::BUSY => {
            let info = chip.line(pin.line).ok().filter(|info| !info.consumer.is_empty());
            let who = info.map_or_else(|| "something else".into(), |info| info.consumer);
            format!("{who} has the line: end it, or choose another line")
        }
        _ if pin.line >= chip.lines => {
            format!("{} has the lines 0 to {}", chip.label, chip.lines.saturating_sub(1))
        }
        Errno::NXIO | Errno::NOTTY | Errno::INVAL | Errno::OPNOTSUPP => {
            "the line can have no interrupt or cannot be driven: choose another".into()
        }
        _ => "choose another line: gpioinfo lists them".into(),
    };
    Error::from(error.clone()).with_hint(hint)
}

impl Pins for Lines {
    #[inline]
    fn edge(&mut self, until: u64) -> Result<Option<Event>, Errno> {
        if let Some(event) = self.input.read()? {
            return Ok(Some(event));
        }
        let left = until.saturating_sub(self.now());
        if left == 0 || !self.input.wait(left)? {
            return Ok(None);
        }
        self.input.read()
    }

    #[inline]
    fn now(&mut self) -> u64 {
        Clock::Monotonic.now()
    }

    #[inline]
    fn drive(&mut self, high: bool) -> Result<(), Errno> {
        self.output.set(high)
    }
}
