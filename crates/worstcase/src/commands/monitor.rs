//! `worstcase monitor`: measures a responder on the other end of two wires.

mod text;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use record::monitor::{Edge, MONITOR_VERSION, Monitoring};
use sys::Errno;
use sys::gpio::Edge as LineEdge;
use sys::schedule::{self, Scheduling};
use sys::signal::{Signal, Signals};
use units::{CpuList, Nanos, Policy, Priority, Seed};
use wire::latmon::server::{Pulses, Served, Server, serve};
use wire::pulse::{self, Lines, Pace, Pulse};

use crate::instrument::gpio::Line;
use crate::instrument::network;
use crate::{options, output};
use failure::{Error, Result};

/// Measure how long another board takes to answer pulses on a wire
///
/// Drives a line, and times the edge of the answer on another by the kernel's stamp of it. The board on the other end runs
/// worstcase measure --probe gpio, latmus, or anything else that answers.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Monitor {
    /// Line that is driven: CHIP:LINE[,rising|falling], as in gpiochip0:24 [default: rising: high while a pulse is under way]
    #[arg(long, value_name = "PIN")]
    pulse: Line,

    /// Line of the answer, and which of its edges is measured [default: falling, as latmus and worstcase answer]
    #[arg(long, value_name = "PIN")]
    ack: Line,

    /// The two lines are joined: measure the monitor itself, for --calibration of later runs
    #[arg(long, conflicts_with_all = ["listen", "calibration"])]
    loop_back: bool,

    /// Serve responders that speak latmon's protocol (worstcase measure --probe gpio --monitor, latmus -z and -Z) on
    /// ADDRESS or ADDRESS:PORT, and pulse while they ask for it [default port: 2306]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,

    /// Permit --listen 0.0.0.0 and [::], which listen on every interface
    #[arg(long, requires = "listen")]
    everywhere: bool,

    /// Announce --listen by a broadcast each 5 s, for latmus and --monitor broadcast
    #[arg(long, requires = "listen")]
    announce: bool,

    /// From one pulse to the next; with --listen the responder decides
    #[arg(short, long, value_name = "TIME", default_value = "1ms", value_parser = options::interval)]
    interval: Nanos,

    /// Each pulse comes later by a random part of this [default: a tenth of the interval]
    #[arg(long, value_name = "TIME", value_parser = jitter)]
    jitter: Option<Nanos>,

    /// How long to measure; with --listen: to serve [default: 10s; until Ctrl-C with --listen]
    #[arg(short = 'D', long, value_name = "TIME", value_parser = options::duration)]
    duration: Option<Nanos>,

    /// Fail (exit code 1) if an answer is later than this, or missed
    #[arg(long, value_name = "TIME", value_parser = options::length)]
    limit: Option<Nanos>,

    /// Record of a --loop-back run, to be kept with this one and printed beside it; it is not subtracted
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,

    /// Record of an earlier run to compare with
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,

    /// File for the record
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Print the record
    #[arg(long)]
    json: bool,

    /// Real-time priority, 1 to 99 [default: 98]
    #[arg(short = 'p', long, value_name = "N")]
    priority: Option<Priority>,

    /// CPUs to run on [default: all that this process may use]
    #[arg(short = 'a', long, value_name = "LIST")]
    cpus: Option<CpuList>,

    /// Seed of the jitter [default: random, and recorded]
    #[arg(long, value_name = "N")]
    seed: Option<Seed>,
}

const EXAMPLES: &str = "\
Examples:
  worstcase monitor --pulse gpiochip0:24 --ack gpiochip0:23 --loop-back
      both lines joined by a wire: what the monitor itself takes; with --out own.json
      later runs show it beside theirs: --calibration own.json
  worstcase monitor --pulse gpiochip0:24 --ack gpiochip0:23 -D 10m
      a board answers, which runs worstcase measure --probe gpio
  worstcase monitor --pulse gpiochip0:24 --ack gpiochip0:23 --listen 10.0.0.3
      the responder asks for its run itself: latmus -z and -Z";

/// The warm-up, whose pulses are not counted.
const WARM_UP: Duration = Duration::from_secs(1);

/// The largest record that is read.
const LARGEST: u64 = 16 << 20;

impl Monitor {
    /// Measures until its time is over, or Ctrl-C.
    pub fn run(self) -> Result<ExitCode> {
        if let Some(file) = &self.out {
            output::check_file(file, &self.files_read())?;
        }
        let calibration = self.calibration.as_deref().map(read).transpose()?;
        let earlier = self.against.as_deref().map(read).transpose()?;
        if calibration.as_ref().is_some_and(|record| !record.loop_back) {
            return Err(Error::new(
                "--calibration: that is no record of a --loop-back run",
                "make one first",
            ));
        }
        let mut server = self.server()?;
        let mut taking = self.take()?;
        taking.record.calibration = calibration.map(Box::new);
        // Before it is measured, so that nothing is measured in vain.
        if let Some(why) = earlier.as_ref().and_then(|earlier| taking.record.differs(earlier)) {
            return Err(Error::new(format!("--against: not comparable: {why}"), "measure both alike"));
        }
        taking.signals = Some(Signals::take()?);
        taking.record.real_time = self.prepare()?;
        let measured = match &mut server {
            Some(server) => self.serve(server, &mut taking),
            None => taking.measure(self.duration.unwrap_or(Nanos::from_secs(10)).duration()),
        };
        let rested = taking.monitor.rest();
        if let Err(error) = measured {
            taking.record.problem = Some(error.to_string());
            self.conclude(&taking.record, earlier.as_ref())?;
            return Err(error);
        }
        rested.map_err(of_line)?;
        self.conclude(&taking.record, earlier.as_ref())
    }

    fn files_read(&self) -> Vec<&std::path::Path> {
        [&self.against, &self.calibration].into_iter().flatten().map(PathBuf::as_path).collect()
    }

    fn conclude(&self, record: &Monitoring, earlier: Option<&Monitoring>) -> Result<ExitCode> {
        let json = || serde_json::to_string_pretty(record).map(|json| json + "\n").unwrap_or_default();
        if let Some(path) = &self.out {
            output::named_file(path, json().as_bytes(), &self.files_read())?;
        }
        output::final_data(&if self.json { json() } else { text::of(record, earlier) })?;
        let is_over = |limit: Nanos| {
            record.missed > 0 || record.responses.summary().maximum().is_some_and(|most| most > limit)
        };
        Ok(match (self.limit, record.answered) {
            (_, 0) => ExitCode::from(3),
            (Some(limit), _) if is_over(limit) => ExitCode::from(1),
            _ => ExitCode::SUCCESS,
        })
    }

    fn server(&self) -> Result<Option<Server>> {
        let Some(named) = &self.listen else { return Ok(None) };
        let address = wire::latmon::session::address(named);
        let address = network::own_address(named, address, "listen", self.everywhere)?;
        Server::listen(address, self.announce).map(Some)
    }

    /// Takes the lines.
    fn take(&self) -> Result<Taking> {
        let pulse_rises = self.pulse.rises.unwrap_or(true);
        // The joined line shows the pulse's own edge.
        let ack_rises = if self.loop_back { pulse_rises } else { self.ack.rises.unwrap_or(false) };
        let name = |end: &'static str| move |what| format!("worstcase-{end}{what}");
        let pulse = probe::gpio::take(&self.pulse.pin, |chip, line| {
            chip.output(line, !pulse_rises, &name("pulse")(""))
        })?;
        let answer = probe::gpio::take(&self.ack.pin, |chip, line| {
            chip.input(line, LineEdge::rising(ack_rises), 64, &name("ack")(""))
        })?;
        let pace = pace(self.interval, self.jitter, ack_rises)?;
        let seed = self.seed.unwrap_or_else(runner::plan::drawn_seed);
        let lines = Lines { pulse, is_high: pulse_rises, answer };
        let monitor = pulse::Monitor::new(lines, pace, seed.stream("pulses"));
        let record = Monitoring {
            monitor_version: MONITOR_VERSION,
            tool: runner::tool(),
            started: record::time::UtcTime(sys::clock::unix_seconds()),
            pulse: self.pulse.pin.clone(),
            pulse_edge: Edge::rising(pulse_rises),
            ack: self.ack.pin.clone(),
            ack_edge: Edge::rising(ack_rises),
            loop_back: self.loop_back,
            period: pace.period,
            jitter: pace.jitter,
            patience: pace.patience,
            seed,
            responder: None,
            real_time: false,
            sent: 0,
            answered: 0,
            missed: 0,
            skipped: 0,
            again: 0,
            late: 0,
            astray: 0,
            lost: 0,
            responses: histogram::Histogram::default(),
            writes: histogram::Histogram::default(),
            calibration: None,
            problem: None,
        };
        Ok(Taking { monitor, record, signals: None, is_warm: false, jitter: self.jitter, is_over: false })
    }

    /// Serves responders one after the other.
    fn serve(&self, server: &mut Server, taking: &mut Taking) -> Result<()> {
        output::news(&format!("waiting for responders on {}", server.local()?));
        let until = self.duration.and_then(|duration| Instant::now().checked_add(duration.duration()));
        while !taking.is_asked_to_end() && until.is_none_or(|until| Instant::now() < until) {
            let Some((stream, responder)) = server.accept(Duration::from_millis(200))? else { continue };
            output::news(&format!("{responder} connected"));
            taking.record.responder = Some(responder.to_string());
            let mut served = Served::default();
            let ended = serve(stream, taking, &mut served);
            if taking.is_over {
                break;
            }
            if taking.record.problem.is_some() {
                return ended;
            }
            match ended {
                Ok(()) => output::news(&format!("{responder} left after {} answers", served.answered)),
                Err(error) => output::words(&format!("{responder}: {error}")),
            }
        }
        Ok(())
    }

    /// As the measuring threads are; whether that was permitted.
    fn prepare(&self) -> Result<bool> {
        if let Some(cpus) = &self.cpus {
            schedule::set_affinity(0, cpus).map_err(|error| {
                Error::new(error.to_string(), "the CPU is offline or belongs to another cgroup's cpuset")
            })?;
        }
        let highest = Priority::try_from(98).ok();
        let scheduling = Scheduling::new(Policy::Fifo, self.priority.or(highest));
        let set = schedule::set(scheduling).and_then(|()| sys::memory::lock_all());
        if let Err(error) = &set {
            output::words(&format!("drives the line as an ordinary thread: {error}"));
        }
        Ok(set.is_ok())
    }
}

/// Pulses that are under way, and what came of them.
struct Taking {
    monitor: pulse::Monitor<Lines>,
    record: Monitoring,
    signals: Option<Signals>,
    /// Whether pulses are counted.
    is_warm: bool,
    /// What was asked for.
    jitter: Option<Nanos>,
    /// Ctrl-C came while a responder was served.
    is_over: bool,
}

impl Taking {
    fn measure(&mut self, length: Duration) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < WARM_UP + length && !self.is_asked_to_end() {
            self.is_warm = begin.elapsed() >= WARM_UP;
            self.next()?;
        }
        Ok(())
    }

    fn is_asked_to_end(&self) -> bool {
        let next = || self.signals.as_ref().and_then(Signals::next);
        std::iter::from_fn(next).any(|signal| signal != Signal::User1)
    }

    /// One pulse, counted.
    fn next(&mut self) -> Result<Pulse> {
        let pulse = self.monitor.pulse().map_err(of_line)?;
        if self.is_warm {
            count(&mut self.record, &pulse);
        }
        Ok(pulse)
    }
}

fn count(record: &mut Monitoring, pulse: &Pulse) {
    record.sent += 1;
    match pulse.answer {
        Some(answer) => {
            record.answered += 1;
            record.responses.record(Nanos(answer));
        }
        None => record.missed += 1,
    }
    record.writes.record(Nanos(pulse.write));
    record.skipped += pulse.skipped;
    record.again += pulse.again;
    record.late += pulse.late;
    record.astray += pulse.astray;
    record.lost += pulse.lost;
}

impl Pulses for Taking {
    fn begin(&mut self, period: Nanos) -> Result<()> {
        let pace = pace(period, self.jitter, self.record.ack_edge == Edge::Rising)?;
        self.monitor.pace(pace);
        (self.record.period, self.record.jitter, self.record.patience) =
            (pace.period, pace.jitter, pace.patience);
        // Latmus leaves out a second of its own; here every pulse counts.
        self.is_warm = true;
        Ok(())
    }

    fn pulse(&mut self) -> Result<Option<u64>> {
        if self.is_asked_to_end() {
            self.is_over = true;
            return Err(Error::new("the monitor was asked to end", ""));
        }
        match self.next() {
            Ok(pulse) => Ok(pulse.answer),
            Err(error) => {
                self.record.problem = Some(error.to_string());
                Err(error)
            }
        }
    }

    fn end(&mut self) {
        if let Err(errno) = self.monitor.rest() {
            self.record.problem = Some(of_line(errno).to_string());
        }
    }
}

/// Pulses each `period`. An answer is waited for until nine tenths of what the jitter leaves are over, 1 s at most.
fn pace(period: Nanos, jitter: Option<Nanos>, rises: bool) -> Result<Pace> {
    let jitter = jitter.unwrap_or(Nanos(period.0 / 10));
    if jitter.0 > period.0 / 2 {
        let message = format!("--jitter {jitter} is more than half of a period of {period}");
        return Err(Error::new(message, "choose less"));
    }
    let patience = Nanos((period.0 - jitter.0) / 10 * 9).min(Nanos::from_secs(1));
    Ok(Pace { period, jitter, patience, rises })
}

fn of_line(errno: Errno) -> Error {
    Error::new(
        format!("drive or read a line: {}", units::errno_in_words(errno.raw_os_error())),
        "was the chip's driver unbound, or its device unplugged?",
    )
}

fn read(path: &std::path::Path) -> Result<Monitoring> {
    let json = files::read(path, LARGEST)?;
    record::json::read(&json).map_err(|error| {
        Error::new(format!("{}: {error}", path.display()), "name a file that worstcase monitor --out wrote")
    })
}

fn jitter(text: &str) -> std::result::Result<Nanos, String> {
    options::between(text, Nanos::ZERO, Nanos::from_millis(500), "0s to 500ms")
}
