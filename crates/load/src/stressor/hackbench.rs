//! hackbench's crowds: in each group, senders that write to every receiver over socket pairs, all of them processes.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sys::process::{self, Ended, Pid};

use super::about::About;
use super::counters::Counter;
use super::worker::{BuiltIn, Worker};
use crate::pipe::pipe;

/// How long to wait after a round that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// How often it is looked whether the load's other workers are up.
const LOOK: Duration = Duration::from_millis(5);

/// Crowds of processes that send each other messages over socket pairs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hackbench {
    /// Groups at once.
    pub groups: u32,
    /// Senders and receivers in each; every sender writes to every receiver of its group.
    pub pairs: u32,
    /// Messages from each sender to each receiver in a round.
    pub loops: u32,
    /// Bytes in a message.
    pub message: u32,
}

impl Hackbench {
    fn receivers(&self) -> usize {
        self.groups as usize * self.pairs as usize
    }
}

impl BuiltIn for Hackbench {
    /// Every receiver counts for itself, and every process can keep a CPU busy.
    fn about(&self) -> About {
        let Self { groups, pairs, loops, message } = self;
        let does = format!(
            "{groups} groups of {pairs} senders and {pairs} receivers, {loops} messages of {message} bytes from each to \
             each over socket pairs, round after round"
        );
        About {
            counters: self.receivers(),
            cpus: 2 * self.receivers(),
            forks: true,
            ..About::new("hackbench", "messages", does)
        }
    }

    /// Round after round of all groups.
    fn run(&self, worker: &mut Worker<'_>) -> String {
        let mut counters = match worker.counters.take_all(self.receivers()) {
            Ok(counters) => counters,
            Err(why) => return why,
        };
        wait_for_others(worker);
        loop {
            let mut children = Vec::new();
            let result = start_round(self, &mut counters, &mut children)
                .and_then(|opener| open(worker, opener, children.len()))
                .and_then(|()| finish_round(children.len()));
            if let Err(text) = result {
                worker.failed(&text);
                // Whoever still waits for a message waits for ever.
                children.iter().for_each(|pid| drop(process::kill(*pid)));
                while process::wait_any().is_ok() {}
                std::thread::sleep(AFTER_FAILURE);
            }
        }
    }
}

/// On a machine of one CPU, hundreds of processes leave the load's other workers so little of it that they would take
/// minutes to get ready. A crowd that waits for them is the same load, sooner. Crowds do not wait for each other, and
/// the parent ends a load of which a worker never gets ready.
fn wait_for_others(worker: &Worker<'_>) {
    while worker.others_are_starting() {
        std::thread::sleep(LOOK);
    }
}

/// Forks everybody and gives back what opens the gate for all.
fn start_round(
    crowds: &Hackbench,
    counters: &mut [Counter<'_>],
    children: &mut Vec<Pid>,
) -> Result<OwnedFd, String> {
    let (gate, opener) = gate().map_err(|error| error.to_string())?;
    for group in counters.chunks_mut(crowds.pairs.max(1) as usize) {
        start_group(crowds, group, gate.as_fd(), children)?;
    }
    Ok(opener)
}

/// Opens the gate for all at once. That the work has begun is said before: after it, it may be long until this process
/// has the CPU again.
fn open(worker: &Worker<'_>, opener: OwnedFd, everybody: usize) -> Result<(), String> {
    worker.started();
    let written = std::fs::File::from(opener).write_all(&vec![0_u8; everybody]);
    written.map_err(|error| format!("opening the gate: {error}"))
}

/// A pipe whose reading end blocks.
fn gate() -> sys::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe()?;
    rustix::fs::fcntl_setfl(&read, rustix::fs::OFlags::empty())
        .map_err(|errno| sys::Error::new("fcntl", errno))?;
    Ok((read, write))
}

/// One group: a receiver for each of its counters, and as many senders.
fn start_group(
    crowds: &Hackbench,
    counters: &mut [Counter<'_>],
    gate: BorrowedFd<'_>,
    children: &mut Vec<Pid>,
) -> Result<(), String> {
    let pairs: Result<Vec<_>, _> = counters.iter().map(|_| UnixStream::pair()).collect();
    let pairs = pairs.map_err(|error| format!("socketpair: {error}"))?;
    let own = process::own_pid();
    for ((_, receiving), counter) in pairs.iter().zip(counters) {
        children.push(fork(own, gate, || receive(receiving, crowds, counter))?);
    }
    for _ in &pairs {
        children.push(fork(own, gate, || send(&pairs, crowds))?);
    }
    Ok(())
}

fn fork(
    parent: Pid,
    gate: BorrowedFd<'_>,
    work: impl FnOnce() -> std::io::Result<()>,
) -> Result<Pid, String> {
    let child = || {
        let ready = process::die_with(Some(parent)).is_ok() && rustix::io::read(gate, &mut [0_u8]).is_ok();
        u8::from(!ready || work().is_err())
    };
    process::fork(child).map_err(|error| format!("hackbench: {error}"))
}

fn send(pairs: &[(UnixStream, UnixStream)], crowds: &Hackbench) -> std::io::Result<()> {
    let message = vec![0_u8; crowds.message as usize];
    for _ in 0..crowds.loops {
        for (mut sending, _) in pairs.iter().map(|(sending, receiving)| (sending, receiving)) {
            sending.write_all(&message)?;
        }
    }
    Ok(())
}

fn receive(mut receiving: &UnixStream, crowds: &Hackbench, counter: &mut Counter<'_>) -> std::io::Result<()> {
    let mut message = vec![0_u8; crowds.message as usize];
    for _ in 0..u64::from(crowds.pairs) * u64::from(crowds.loops) {
        receiving.read_exact(&mut message)?;
        counter.add(1);
    }
    Ok(())
}

fn finish_round(children: usize) -> Result<(), String> {
    for _ in 0..children {
        match process::wait_any() {
            Ok(reaped) if reaped.ended == Ended::Exited(0) => {}
            Ok(reaped) => return Err(format!("a process of hackbench {}", reaped.ended)),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}
