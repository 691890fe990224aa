//! Beside the responder on GPIO lines: the thread of its interrupt is raised, and its monitor followed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use control::{Kernel, Live};
use failure::{Error, Result};
use machine::{interrupts, tasks};
use record::instrument::gpio::{GpioSetup, InterruptThread, MonitorSetup, Monitored};
use record::{Fact, Own, Series, Setup};
use sysroot::SysRoot;
use units::{Nanos, Policy};
use wire::latmon::session::{self, Followed, Session};
use wire::latmon::{MOST_CELLS, PORT};

use super::Beside;

/// What goes with the responder while it answers.
struct Responder {
    interrupt: Fact<InterruptThread>,
    follower: Option<Follower>,
    monitored: Option<Monitored>,
}

/// A thread that follows the monitor.
struct Follower {
    monitor: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Followed>,
}

/// Nothing for other instruments. An error where the monitor cannot be reached.
pub fn begin(root: &SysRoot, setup: &Setup, length: Option<Nanos>) -> Result<Option<Box<dyn Beside>>> {
    let Setup::Gpio(setup) = setup else { return Ok(None) };
    let interrupt = raised(root, setup);
    let follower = setup.monitor.as_ref().map(|monitor| Follower::start(monitor, length)).transpose()?;
    Ok(Some(Box::new(Responder { interrupt, follower, monitored: None })))
}

impl Beside for Responder {
    /// The monitor stops while the responder still answers: it misses nothing.
    fn stop(&mut self) {
        self.monitored = self.follower.take().map(Follower::end);
    }

    fn enter(&mut self, series: &mut [Series]) {
        for series in series {
            if let Own::Gpio(gpio) = &mut series.own {
                (gpio.interrupt, gpio.monitor) = (self.interrupt.clone(), self.monitored.take());
            }
        }
    }
}

/// The thread of the line's own interrupt, raised where that is asked for. The kernel makes the thread when the line is taken and ends it
/// with the line, so that nothing is to be put back; threads of other interrupts are left alone.
fn raised(root: &SysRoot, setup: &GpioSetup) -> Fact<InterruptThread> {
    let own = |interrupt: &interrupts::Interrupt| interrupt.handlers().any(|name| name == probe::gpio::INPUT);
    let Some(interrupt) = interrupts::all(root).into_iter().find(own) else { return Fact::Absent };
    let beginning = format!("irq/{}-", interrupt.number);
    let threads =
        || tasks::all(root).into_iter().filter(|task| task.kernel && task.name.starts_with(&beginning));
    if let Some(priority) = setup.irq_priority {
        for task in threads() {
            let set = Live::default().set_scheduling(task.tid, Policy::Fifo, u8::from(priority).into());
            if let Err(errno) = set {
                return Fact::Unreadable(errno.raw_os_error());
            }
        }
    }
    let thread = threads().next();
    thread.map_or(Fact::Absent, |task| {
        Fact::Value(InterruptThread { interrupt: interrupt.number, name: task.name, priority: task.priority })
    })
}

impl Follower {
    fn start(setup: &MonitorSetup, length: Option<Nanos>) -> Result<Self> {
        let monitor = match setup.address.as_str() {
            "broadcast" => session::discover(PORT)?,
            named => session::address(named)
                .map_err(|problem| Error::new(format!("--monitor {named}: {problem}"), ""))?,
        };
        let session = Session::connect(monitor)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let period = u32::try_from(setup.period.0 / 1_000).unwrap_or(u32::MAX);
        let until = length.and_then(|length| Instant::now().checked_add(length.duration()));
        let is_over =
            move || stopped.load(Ordering::Relaxed) || until.is_some_and(|until| Instant::now() >= until);
        let follow = move || session.follow(period, MOST_CELLS, &is_over);
        let thread = std::thread::Builder::new().name("monitor".into()).spawn(follow);
        let thread = thread.map_err(|error| Error::new(format!("follow the monitor: {error}"), ""))?;
        Ok(Self { monitor, stop, thread })
    }

    fn end(self) -> Monitored {
        self.stop.store(true, Ordering::Relaxed);
        let address = self.monitor.to_string();
        let Ok(Followed { totals, problem }) = self.thread.join() else {
            let problem = Some("the thread that followed the monitor died".into());
            return Monitored { address, problem, ..Monitored::default() };
        };
        let nanos = |nanos: i64| Nanos(u64::try_from(nanos).unwrap_or_default());
        Monitored {
            address,
            samples: totals.samples,
            min: totals.min.map(|min| nanos(min.into())),
            average: totals.average().map(nanos),
            max: totals.max.map(|max| nanos(max.into())),
            overruns: totals.overruns,
            surplus: totals.surplus(),
            histogram: totals.histogram,
            problem: problem.map(|problem| problem.to_string()),
        }
    }
}
