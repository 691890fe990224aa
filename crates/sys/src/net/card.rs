//! Network cards that stamp frames by a clock of their own: `SIOCSHWTSTAMP` and `ETHTOOL_GET_TS_INFO`
//! (Documentation/networking/timestamping.rst), and that clock (Documentation/driver-api/ptp.rst).

use std::fs::File;
use std::os::fd::AsFd;

use rustix::time::{DynamicClockId, clock_gettime_dynamic};

use crate::{Errno, Error, Result};

// linux/net_tstamp.h
const TX_HARDWARE: u32 = 1 << 0;
const RX_HARDWARE: u32 = 1 << 2;
const RAW_HARDWARE: u32 = 1 << 6;
const TX_ON: u32 = 1;
const FILTER_NONE: u32 = 0;
const FILTER_ALL: u32 = 1;
const FILTER_PTP_V2_L2: u32 = 9;
const FILTER_PTP_V2: u32 = 12;

/// What a card can stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Frames that it sends.
    pub sent: bool,
    /// Which of those that it receives.
    pub received: Reception,
    /// Its clock: the number of `/dev/ptp`.
    pub clock: Option<u32>,
    /// The filter for messages of PTP.
    ptp: u32,
}

impl Abilities {
    /// Whether it can stamp anything.
    pub fn any(&self) -> bool {
        self.clock.is_some() && (self.sent || self.received != Reception::None)
    }

    /// Has it stamp all that it sends, and such of what it receives.
    pub fn stamping(&self, received: Reception) -> Stamping {
        let received = match received {
            Reception::None => FILTER_NONE,
            Reception::Ptp => self.ptp,
            Reception::All => FILTER_ALL,
        };
        Stamping { flags: 0, sent: if self.sent { TX_ON } else { 0 }, received }
    }
}

/// Which received frames a card stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reception {
    /// None.
    None,
    /// Event messages of the Precision Time Protocol, version 2, that are frames of their own (IEEE 1588, annex on Ethernet).
    Ptp,
    /// All.
    All,
}

/// What a card is set to stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamping {
    flags: u32,
    sent: u32,
    received: u32,
}

impl Stamping {
    /// Whether it stamps nothing.
    pub fn is_off(self) -> bool {
        self.sent == 0 && self.received == FILTER_NONE
    }
}

/// What the card of `interface` can stamp. Needs no privilege.
///
/// # Errors
/// `ENODEV`; `EOPNOTSUPP` where its driver does not say.
pub fn abilities(interface: &str) -> Result<Abilities> {
    const GET_TS_INFO: u32 = 0x41;
    let answer: [u32; 11] = crate::ethtool::ask(interface, GET_TS_INFO, "ETHTOOL_GET_TS_INFO")?;
    Ok(from_words(answer))
}

/// `struct ethtool_ts_info`.
fn from_words(words: [u32; 11]) -> Abilities {
    let [_, stamps, clock, sent, _, _, _, received, ..] = words;
    let has = |flags: u32| stamps & flags == flags;
    let can = |filter: u32| received & (1 << filter) != 0;
    let ptp = [FILTER_PTP_V2, FILTER_PTP_V2_L2].into_iter().find(|&filter| can(filter));
    let received = match ptp {
        _ if !has(RX_HARDWARE | RAW_HARDWARE) => Reception::None,
        _ if can(FILTER_ALL) => Reception::All,
        Some(_) => Reception::Ptp,
        None => Reception::None,
    };
    // The number is signed there; -1 is none.
    let clock = Some(clock).filter(|&number| i32::try_from(number).is_ok());
    Abilities {
        sent: has(TX_HARDWARE | RAW_HARDWARE) && sent & (1 << TX_ON) != 0,
        received,
        clock,
        ptp: ptp.unwrap_or(FILTER_NONE),
    }
}

/// What the card of `interface` is set to stamp. Needs no privilege. `SIOCGHWTSTAMP`, Linux 3.14.
///
/// # Errors
/// `ENODEV`; `EOPNOTSUPP` where its driver does not say.
pub fn stamping(interface: &str) -> Result<Stamping> {
    const GET: libc::c_ulong = 0x89b1;
    ask(interface, GET, "SIOCGHWTSTAMP", Stamping { flags: 0, sent: 0, received: 0 })
}

/// Sets what the card of `interface` stamps, for all who use it, and returns what it stamps from now on: a driver may do more
/// than it was asked for. `SIOCSHWTSTAMP`, `CAP_NET_ADMIN`.
///
/// # Errors
/// `EPERM`; `ERANGE` for what the card cannot do.
pub fn set_stamping(interface: &str, stamping: Stamping) -> Result<Stamping> {
    const SET: libc::c_ulong = 0x89b0;
    ask(interface, SET, "SIOCSHWTSTAMP", stamping)
}

/// Hands over a `hwtstamp_config` and takes it back.
fn ask(interface: &str, request: libc::c_ulong, call: &'static str, stamping: Stamping) -> Result<Stamping> {
    let words = [stamping.flags, stamping.sent, stamping.received];
    let [flags, sent, received] = crate::ethtool::exchange(interface, request, words, call)?;
    Ok(Stamping { flags, sent, received })
}

/// The clock of a card, `/dev/ptpN`.
#[derive(Debug)]
pub struct CardClock(File);

impl CardClock {
    /// Opens clock `number`.
    ///
    /// # Errors
    /// Those of open(2): most systems leave it to root.
    pub fn open(number: u32) -> Result<Self> {
        let path = format!("/dev/ptp{number}");
        let file = File::open(&path).map_err(|error| Error {
            call: "open",
            errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
            on: path,
        })?;
        Ok(Self(file))
    }

    /// What it reads, in nanoseconds since its own beginning. A system call, which waits for the card's bus.
    ///
    /// # Errors
    /// `ENODEV` where the card is gone.
    #[inline]
    pub fn now(&self) -> std::result::Result<u64, Errno> {
        let time = clock_gettime_dynamic(DynamicClockId::Dynamic(self.0.as_fd()))?;
        let seconds = u64::try_from(time.tv_sec).map_err(|_| Errno::RANGE)?;
        Ok(seconds.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL_STAMPS: u32 = TX_HARDWARE | RX_HARDWARE | RAW_HARDWARE;

    #[test]
    fn a_card_says_what_it_can_stamp() {
        let of = |stamps, clock, sent, received| {
            from_words([0x41, stamps, clock, sent, 0, 0, 0, received, 0, 0, 0])
        };
        let can = |able: Abilities| (able.sent, able.received, able.clock, able.any());
        // As of igb (82576), whose filters are those of PTP, of a card that stamps all, of veth, and of one that stamps nothing.
        let igb = of(ALL_STAMPS, 0, 0b11, 0x1001);
        assert_eq!(can(igb), (true, Reception::Ptp, Some(0), true));
        assert_eq!(can(of(ALL_STAMPS, 3, 0b11, 0b11)), (true, Reception::All, Some(3), true));
        assert_eq!(can(of(1 << 1 | 1 << 3 | 1 << 4, u32::MAX, 0, 0)), (false, Reception::None, None, false));
        assert_eq!(can(of(ALL_STAMPS, 0, 1, 1)), (false, Reception::None, Some(0), false));
        let stamping =
            |received, filter| Stamping { flags: 0, sent: TX_ON, received: filter } == igb.stamping(received);
        assert!(stamping(Reception::Ptp, FILTER_PTP_V2) && stamping(Reception::All, FILTER_ALL));
        assert!(stamping(Reception::None, FILTER_NONE) && !igb.stamping(Reception::None).is_off());
        assert!(of(ALL_STAMPS, 0, 1, 1).stamping(Reception::None).is_off());
        let of_frames = of(ALL_STAMPS, 0, 0b11, 1 << FILTER_PTP_V2_L2);
        assert_eq!(of_frames.stamping(Reception::Ptp).received, FILTER_PTP_V2_L2);
    }

    #[test]
    fn an_interface_without_a_card_is_refused() {
        assert_eq!(abilities("lo").map(|able| (able.sent, able.clock)), Ok((false, None)));
        assert_eq!(stamping("lo").unwrap_err().errno, Errno::OPNOTSUPP);
        assert_eq!(abilities("nosuchdevice0").unwrap_err().errno, Errno::NODEV);
        assert_eq!(stamping("a-name-that-is-too-long").unwrap_err().errno, Errno::NODEV);
        assert!(CardClock::open(12_345).unwrap_err().to_string().contains("/dev/ptp12345"));
    }
}
