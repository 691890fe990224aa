//! `worstcase echo`: the peer that `--probe network` measures.

use std::process::ExitCode;

use clap::Args;
use sys::schedule::{self, Scheduling};
use sys::signal::{Signal, Signals};
use units::{CpuList, Nanos, Policy, Priority};
use wire::Carrier;
use wire::echo::{Echo as Answering, Manner};

use crate::instrument::network;
use crate::output;
use failure::{Error, Result};

/// Answer the frames of `measure --probe network`, until Ctrl-C
///
/// Runs one thread, as SCHED_FIFO where that is permitted. Each answer carries how long the frame was here.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Echo {
    /// Address to answer UDP on: ADDRESS or ADDRESS:PORT [default port: 2307]
    #[arg(long, value_name = "ADDRESS", required_unless_present = "interface", conflicts_with = "interface")]
    listen: Option<String>,

    /// Interface to answer raw frames on, in place of UDP (EtherType 0x88b5)
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,

    /// Answer raw frames that are messages of PTP (EtherType 0x88f7), as `--probe network --ptp-frames` sends them
    #[arg(long, requires = "interface", conflicts_with = "listen")]
    ptp_frames: bool,

    /// Permit --listen 0.0.0.0 and [::], which answer on every interface
    #[arg(long)]
    everywhere: bool,

    /// Real-time priority, 1 to 99 [default: 98]
    #[arg(short = 'p', long, value_name = "N")]
    priority: Option<Priority>,

    /// CPUs to run on [default: all that this process may use]
    #[arg(short = 'a', long, value_name = "LIST")]
    cpus: Option<CpuList>,

    /// Delay each answer by this time, spinning: a known delay that a measurement must find
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = network::delay, hide_default_value = true)]
    delay: Nanos,

    /// Leave each N-th frame unanswered: a known loss that a measurement must count
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    drop_each: Option<u64>,
}

const EXAMPLES: &str = "\
Examples:
  worstcase echo --listen 10.0.0.2                     answer UDP
  worstcase echo --interface eth0                      answer raw frames
  worstcase measure --probe network --peer 10.0.0.2    on the other host";

impl Echo {
    /// Answers until it is ended.
    pub fn run(self) -> Result<ExitCode> {
        self.check(sys::privilege::comes_from_file())?;
        let manner = Manner { delay: self.delay, drop_each: self.drop_each };
        let (echo, place) = self.open(manner)?;
        // Before the thread is one for real time, which what it starts would be too.
        end_with(Signals::take()?)?;
        self.prepare()?;
        output::final_data(&format!("answering on {place}\n"))?;
        echo.serve()?;
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses what would keep a CPU from everything else, `for_all` where the program's file gave it its privileges.
    fn check(&self, for_all: bool) -> Result<()> {
        let highest = self.priority.is_some_and(|priority| u8::from(priority) > 98);
        let what = match (self.delay > Nanos::ZERO, highest) {
            (true, _) => "--delay spins",
            (_, true) => "--priority 99 is above the kernel's own threads",
            _ => return Ok(()),
        };
        if !for_all {
            return Ok(());
        }
        let message = format!("{what}: not for a program that has its privileges from file capabilities");
        Err(Error::new(message, "run it as root, or a copy without file capabilities: setcap -r"))
    }

    fn open(&self, manner: Manner) -> Result<(Answering, String)> {
        if let Some(interface) = &self.interface {
            let (carrier, what) = match self.ptp_frames {
                true => (Carrier::Ptp, "messages of PTP"),
                false => (Carrier::Plain, "raw frames"),
            };
            return Ok((Answering::raw(interface, carrier, manner)?, format!("{interface}, {what}")));
        }
        let named = self.listen.as_deref().unwrap_or_default();
        let address = network::own_address(named, network::address(named), "answer", self.everywhere)?;
        let echo = Answering::udp(address, manner)?;
        let place = echo.local()?.to_string();
        Ok((echo, place))
    }

    /// As the measuring threads are. An ordinary thread answers too, later: it is said.
    fn prepare(&self) -> Result<()> {
        if let Some(cpus) = &self.cpus {
            schedule::set_affinity(0, cpus).map_err(|error| {
                Error::new(error.to_string(), "the CPU is offline or belongs to another cgroup's cpuset")
            })?;
        }
        let highest = Priority::try_from(98).ok();
        let scheduling = Scheduling::new(Policy::Fifo, self.priority.or(highest));
        if let Err(error) = schedule::set(scheduling).and_then(|()| sys::memory::lock_all()) {
            output::words(&format!("answers as an ordinary thread: {error}"));
        }
        Ok(())
    }
}

/// Ends the process when a signal comes, from a thread of its own: the one that answers looks at frames alone. To be ended is
/// its normal end.
fn end_with(signals: Signals) -> Result<()> {
    let wait = move || {
        while !ends(signals.wait()) {}
        std::process::exit(0);
    };
    let started = std::thread::Builder::new().name("signals".into()).spawn(wait);
    started.map(drop).map_err(|error| Error::new(format!("start a thread: {error}"), ""))
}

/// Whether a signal asks it to end. There is no snapshot to be shown.
fn ends(signal: Option<Signal>) -> bool {
    signal.is_some_and(|signal| signal != Signal::User1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_answers_until_it_is_ended_ends_with_ctrl_c_and_no_snapshot_ends_it() {
        let signals = [Signal::Interrupt, Signal::Terminate, Signal::HangUp, Signal::User1];
        assert_eq!(signals.map(|signal| ends(Some(signal))), [true, true, true, false]);
        assert!(!ends(None), "a wait that was cut short");
    }
}
