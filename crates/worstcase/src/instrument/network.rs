//! The options of `--probe network`, and of who answers it.

use std::net::{IpAddr, SocketAddr};

use clap::Args;
use failure::Error;
use record::InstrumentPlan;
use record::instrument::response::{Receive, ResponseSetup};
use units::Nanos;
use wire::Peer;

use super::{Common, Options};
use crate::lengths::between;

const NETWORK: &str = "Network (--probe network)";

/// A peer has this long at most: a thread that waits for an answer is not asked to stop.
const LONGEST_CYCLE: Nanos = Nanos::from_secs(1);

/// Bytes of a frame where nothing else is asked for: as small as Ethernet has them, with room for a header of a bus.
const SIZE: u32 = 64;

/// Whom frames are sent to, and how.
#[derive(Args, Clone, Debug)]
pub struct NetworkOptions {
    /// Who answers: ADDRESS or ADDRESS:PORT by UDP, a hardware address for raw frames (ff:ff:ff:ff:ff:ff: whoever does)
    #[arg(long, value_name = "PEER", help_heading = NETWORK)]
    peer: Option<String>,

    /// Interface to send by; raw frames need it
    #[arg(long, value_name = "NAME", help_heading = NETWORK)]
    interface: Option<String>,

    /// Frames of a cycle, sent one after the other; the response is that of the last answered [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64), help_heading = NETWORK)]
    frames: Option<u32>,

    /// Bytes of a frame, headers not counted [default: 64]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(40..=1452), help_heading = NETWORK)]
    size: Option<u32>,

    /// How long answers are waited for; later ones are missed [default: nine tenths of the interval]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = crate::lengths::length, help_heading = NETWORK)]
    patience: Option<Nanos>,

    /// How threads wait for answers: sleep, spin (they stay awake), busy-poll (the kernel asks the driver) [default: sleep]
    #[arg(long, value_name = "HOW", help_heading = NETWORK)]
    receive: Option<Receive>,

    /// Priority of the sockets, which VLAN devices and queues go by
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=15), help_heading = NETWORK)]
    socket_priority: Option<u32>,

    /// Let the card of --interface stamp frames too: what it, its queues and its interrupt take becomes parts of their own
    #[arg(long, requires = "interface", help_heading = NETWORK)]
    hardware_stamps: bool,

    /// Send raw frames as messages of PTP (EtherType 0x88f7): many cards stamp no others that they receive
    #[arg(long, requires = "interface", help_heading = NETWORK)]
    ptp_frames: bool,
}

impl Options for NetworkOptions {
    fn given(&self) -> Vec<(&'static str, bool)> {
        vec![
            ("--peer", self.peer.is_some()),
            ("--interface", self.interface.is_some()),
            ("--frames", self.frames.is_some()),
            ("--size", self.size.is_some()),
            ("--patience", self.patience.is_some()),
            ("--receive", self.receive.is_some()),
            ("--socket-priority", self.socket_priority.is_some()),
            ("--hardware-stamps", self.hardware_stamps),
            ("--ptp-frames", self.ptp_frames),
        ]
    }

    fn plan(&self, common: &Common) -> Result<InstrumentPlan, Error> {
        self.setup(common.intervals.single("network")?).map(InstrumentPlan::Response)
    }
}

impl NetworkOptions {
    /// What is asked of the instrument, in cycles of `interval`.
    fn setup(&self, interval: Nanos) -> Result<ResponseSetup, Error> {
        if interval > LONGEST_CYCLE {
            let message =
                format!("--interval {interval}: a cycle of the network lasts {LONGEST_CYCLE} at most");
            return Err(Error::new(message, "choose a shorter one"));
        }
        let patience = self.patience.unwrap_or(Nanos(interval.0 / 10 * 9));
        if patience > interval {
            let message = format!("--patience {patience} is longer than a cycle of {interval}");
            return Err(Error::new(message, "choose a longer cycle with --interval"));
        }
        let peer = self.peer()?;
        if self.ptp_frames && matches!(Peer::new(&peer, self.interface.as_deref()), Ok(Peer::Udp(..))) {
            let message = format!("--ptp-frames: {peer} is an address of UDP");
            return Err(Error::new(
                message,
                "name the peer by its hardware address: raw frames alone are sent as PTP",
            ));
        }
        Ok(ResponseSetup {
            interval,
            patience,
            peer,
            interface: self.interface.clone(),
            frames: self.frames.unwrap_or(1),
            size: self.size.unwrap_or(SIZE),
            socket_priority: self.socket_priority,
            receive: self.receive.unwrap_or_default(),
            hardware_stamps: self.hardware_stamps,
            ptp_frames: self.ptp_frames,
        })
    }

    /// The peer's address.
    fn peer(&self) -> Result<String, Error> {
        let Some(named) = &self.peer else {
            let hint =
                "start `worstcase echo --listen ADDRESS` on another host, and name it with --peer ADDRESS";
            return Err(Error::new("--probe network needs a peer that answers", hint));
        };
        let udp = address(named).map(|address| address.to_string());
        let raw = |_| Peer::new(named, self.interface.as_deref()).map(|_| named.clone());
        udp.or_else(raw).map_err(|problem| {
            let hint = "`ip address` and `ip link` show them on the other host; names are not looked up";
            Error::new(format!("--peer {named}: {problem}"), hint)
        })
    }
}

/// The address that `named` means: an IP address, with a port or without. Names are not looked up: a static program would
/// need the C library's modules for that.
pub fn address(named: &str) -> Result<SocketAddr, String> {
    let alone = named.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let alone = alone.map(|address| SocketAddr::from((address, wire::PORT)));
    alone
        .or_else(|_| named.parse())
        .map_err(|_| "no IP address, as in 10.0.0.2, 10.0.0.2:2307 or [fe80::1]:2307".into())
}

/// The address of this machine that `--listen NAMED` means, `parsed` by the port that is usual there. All interfaces only
/// where they were asked for: `does` is what the command would do on each.
pub fn own_address(
    named: &str,
    parsed: Result<SocketAddr, String>,
    does: &str,
    everywhere: bool,
) -> Result<SocketAddr, Error> {
    let address = parsed.map_err(|problem| {
        Error::new(format!("--listen {named}: {problem}"), "name an address of this machine: `ip address`")
    })?;
    if address.ip().is_unspecified() && !everywhere {
        let message = format!("--listen {named} would {does} on every interface");
        return Err(Error::new(message, "name one address, or add --everywhere"));
    }
    Ok(address)
}

/// A delay of answers.
pub fn delay(text: &str) -> Result<Nanos, String> {
    between(text, Nanos::ZERO, LONGEST_CYCLE, "0s to 1s")
}

#[cfg(test)]
mod tests {
    #[test]
    fn addresses_have_a_port_or_get_ours() {
        for (named, address) in [
            ("10.0.0.2", "10.0.0.2:2307"),
            ("10.0.0.2:7", "10.0.0.2:7"),
            ("::1", "[::1]:2307"),
            ("[::1]:9", "[::1]:9"),
        ] {
            assert_eq!(super::address(named).map(|found| found.to_string()), Ok(address.into()), "{named}");
        }
        for named in ["10.0.0.2:port", "localhost", "", "10.0.0"] {
            assert!(super::address(named).is_err(), "{named}");
        }
    }
}
