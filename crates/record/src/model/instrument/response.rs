//! Responses: the time from a frame that is sent to its answer, and the parts of it.
//!
//! A thread on each CPU sends frames to a peer in cycles, as the master of a field bus does, and waits until all of a
//! cycle are answered. The kernel's time stamps lay the time into parts.

mod doubts;

use failure::{Error, Result};
use histogram::{Histogram, Summary};
use serde::{Deserialize, Serialize};
use units::Nanos;

use super::{OwnPlan, OwnSeries, OwnSetup, Setup, Words};
use crate::model::{Fact, Grid, RunPlan, Scenario, WarmUp, Warning, plan::names};

/// What is asked of the response probe, the same in every scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResponseSetup {
    /// From the begin of one cycle to that of the next.
    pub interval: Nanos,
    /// How long answers are waited for, from the begin of a cycle.
    pub patience: Nanos,
    /// Who answers: `ADDRESS:PORT` for UDP, a hardware address for raw frames.
    pub peer: String,
    /// The interface that frames are sent by; none where the route decides.
    pub interface: Option<String>,
    /// Frames of a cycle.
    pub frames: u32,
    /// Bytes of a frame, without the headers of UDP, IP and Ethernet.
    pub size: u32,
    /// The priority of the sockets (`SO_PRIORITY`), which VLAN devices and queues go by; none for the kernel's own.
    pub socket_priority: Option<u32>,
    /// How answers are waited for.
    pub receive: Receive,
    /// Whether the interface's card stamps frames too.
    #[serde(default)]
    pub hardware_stamps: bool,
    /// Whether raw frames are sent as messages of the Precision Time Protocol.
    #[serde(default)]
    pub ptp_frames: bool,
}

impl ResponseSetup {
    /// The parts that its responses consist of, in the order of time.
    pub fn parts(&self) -> &'static [PartName] {
        if self.hardware_stamps { &PartName::WITH_HARDWARE } else { &PartName::OF_SOFTWARE }
    }
}

/// How answers are waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Receive {
    /// Asleep: ppoll(2).
    #[default]
    Sleep,
    /// Awake: the thread asks again and again.
    Spin,
    /// The kernel asks the driver before the thread sleeps: `SO_BUSY_POLL`.
    BusyPoll,
}

names! {
    Receive { Sleep => "sleep", Spin => "spin", BusyPoll => "busy-poll" }
}

/// A part of a response. Together they are the whole of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PartName {
    /// From the begin of the cycle until the driver has the frame: system call, protocols, queue.
    Send,
    /// From the driver to the cable: the card's queues. Of cards that stamp what they send.
    Transmit,
    /// On the way there and back: both hosts' hardware, the cable, the peer's driver and what sends there. With the time at
    /// the peer, where that does not say how long it had the frame. Between two stamps of the card where there are such.
    Wire,
    /// At the peer, from when its kernel took the frame in until its thread answered.
    Peer,
    /// From the cable to the kernel: the card's queues, its interrupt, the softirq. Of cards that stamp what they receive.
    Deliver,
    /// From when the own kernel took the answer in until the thread has it: softirq, protocols, wake-up.
    Receive,
}

impl PartName {
    /// What the kernel's own stamps tell apart.
    pub const OF_SOFTWARE: [Self; 4] = [Self::Send, Self::Wire, Self::Peer, Self::Receive];
    /// What those of a card tell apart with them: all.
    pub const WITH_HARDWARE: [Self; 6] =
        [Self::Send, Self::Transmit, Self::Wire, Self::Peer, Self::Deliver, Self::Receive];
}

names! {
    PartName {
        Send => "send", Transmit => "transmit", Wire => "wire", Peer => "peer", Deliver => "deliver", Receive => "receive"
    }
}

/// What a part took, over all responses that were split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Part {
    /// Which.
    pub name: PartName,
    /// How long it took; empty where nothing is known of it.
    pub took: Histogram,
}

/// What the response probe adds to a series. Its values are the times until the last answer of each cycle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResponseSeries {
    /// What the monotonic clock read when the first cycle was due. 0 where it is not known.
    pub first_due: Nanos,
    /// Cycles that were due. Equal to measured + missed, or something was lost.
    pub expected: u64,
    /// Cycles that were not answered in time, as long as they were waited for, and those that were not begun, as late as
    /// the thread was when it found them over.
    pub missed: Histogram,
    /// Of the missed ones, those that were not begun: the thread had no CPU.
    pub skipped: u64,
    /// Cycles of the warm-up, not in the histograms.
    pub warm_up: WarmUp,
    /// What became of the frames.
    pub frames: Frames,
    /// Responses that were split into parts, and their sum, which the sums of the parts add up to.
    pub split: Summary,
    /// The parts, in the order of time.
    pub parts: Vec<Part>,
    /// Why responses were not split.
    pub unsplit: Unsplit,
    /// The parts of the worst responses, in their order; of each part none where nothing is known of it.
    #[serde(default)]
    pub worst_parts: Vec<Fact<Vec<Option<Nanos>>>>,
    /// How long readings of the card's clock took, two a cycle: what its stamps are uncertain by. Empty where there are none.
    #[serde(default)]
    pub card_readings: Summary,
}

/// What became of frames. Every one that was sent was answered or lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frames {
    /// Frames sent.
    pub sent: u64,
    /// Those that were answered, in time or late.
    pub answered: u64,
    /// Of the answered ones, those whose cycle was over.
    pub late: u64,
    /// Those that were never answered.
    pub lost: u64,
    /// Answers to frames that had been answered.
    pub duplicated: u64,
    /// Answers that came after one to a later frame.
    pub reordered: u64,
    /// Frames that were no answers to this thread, or to frames of long ago.
    pub foreign: u64,
    /// Frames that the kernel did not send.
    pub not_sent: u64,
    /// How often the peer's host said that nobody listens there.
    pub refused: u64,
    /// Cycles at the end of the run, without a break, of which no frame was answered.
    pub silent_cycles: u64,
}

/// Responses that were not split into parts, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unsplit {
    /// `CLOCK_REALTIME`, the clock of the time stamps, was set meanwhile.
    pub clock_set: u64,
    /// The kernel did not stamp the frame when it was sent: the driver has no such stamps.
    pub not_stamped_sent: u64,
    /// The kernel did not stamp the answer.
    pub not_stamped_received: u64,
    /// The stamps lie outside the response.
    pub contradictory: u64,
}

impl Unsplit {
    /// All of them.
    pub fn count(&self) -> u64 {
        self.clock_set + self.not_stamped_sent + self.not_stamped_received + self.contradictory
    }
}

impl OwnPlan for ResponseSetup {
    /// A response is the time from the begin of a cycle until its last answer.
    fn words(&self) -> &'static Words {
        &Words {
            value: "response",
            greatest: "the longest response observed",
            values: "responses",
            count: "cycles",
        }
    }

    /// As asked for, each time.
    fn setups(&self, _: &RunPlan, _: u32) -> Vec<Setup> {
        vec![Setup::Response(self.clone())]
    }

    fn check(&self, plan: &RunPlan) -> Result<()> {
        let Self { interval, patience, .. } = self;
        if let Some(duration) = plan.duration.filter(|duration| duration < interval) {
            let message = format!("a duration of {duration} holds no whole cycle of {interval}");
            return Err(Error::new(message, "measure for longer, or at a shorter interval"));
        }
        if let Some(limit) = plan.limit.filter(|limit| limit > patience) {
            let message = format!("--limit {limit} is longer than an answer is waited for, {patience}");
            return Err(Error::new(message, "wait for longer (--patience) in a longer cycle (--interval)"));
        }
        Ok(())
    }

    fn not_claimed(&self) -> Option<&'static str> {
        Some("a bound, other peers and networks, loads that were not run, or traffic of others")
    }
}

impl std::fmt::Display for ResponseSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "frames to {} every {}", self.peer, self.interval)
    }
}

impl OwnSetup for ResponseSetup {
    /// When cycles are due.
    fn grid(&self, _: usize, origin: u64) -> Grid {
        Grid::fixed(origin, self.interval.0.max(1))
    }

    fn interval(&self) -> Option<Nanos> {
        Some(self.interval)
    }

    fn warnings(&self, scenario: &Scenario) -> Vec<Warning> {
        doubts::of_scenario(self, scenario)
    }
}

impl OwnSeries for ResponseSeries {
    fn account(&self) -> Option<(u64, &Histogram)> {
        Some((self.expected, &self.missed))
    }

    fn account_mut(&mut self) -> Option<(&mut u64, &mut Histogram)> {
        Some((&mut self.expected, &mut self.missed))
    }

    fn fails_by_missing(&self) -> bool {
        true
    }

    fn not_come(&self, number: u64, at_least: &str) -> String {
        format!("had not come back from cycle {number} when the run was given up: at least {at_least}")
    }

    fn parts_of_worst(&self, place: usize) -> Option<&[Option<Nanos>]> {
        Some(self.worst_parts.get(place)?.value()?.as_slice())
    }

    fn censored(&mut self, place: Option<usize>, _: bool) {
        // Of an answer that has not come nothing is known.
        if let Some(place) = place {
            self.worst_parts.insert(place.min(self.worst_parts.len()), Fact::Absent);
        }
    }
}

impl ResponseSeries {
    /// Whether its responses consist of what a card's stamps tell apart too, whatever the card did stamp.
    pub fn is_stamped_by_card(&self) -> bool {
        self.parts.iter().any(|part| part.name == PartName::Transmit)
    }

    /// What a part took; none where nothing is known of it.
    pub fn part(&self, name: PartName) -> Option<&Histogram> {
        let part = self.parts.iter().find(|part| part.name == name)?;
        (part.took.summary().count > 0).then_some(&part.took)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A cycle of 1 ms with one frame.
    pub fn setup() -> ResponseSetup {
        ResponseSetup {
            interval: Nanos::from_millis(1),
            patience: Nanos::from_micros(900),
            peer: "10.0.0.2:2307".into(),
            interface: None,
            frames: 1,
            size: 64,
            socket_priority: None,
            receive: Receive::Sleep,
            hardware_stamps: false,
            ptp_frames: false,
        }
    }
}
