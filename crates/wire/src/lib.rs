//! What goes over wires: frames that a peer answers ([`frame`]), who answers them ([`echo`]), a thread's way to that
//! peer with the kernel's time stamps ([`Link`]), what latmus and latmon say to each other ([`latmon`]), and pulses on a
//! wire whose answers are timed ([`pulse`]).
//!
//! ```
//! use wire::frame::{Frame, Kind, SHORTEST};
//!
//! let request = Frame { kind: Kind::Request, run: 7, thread: 0, number: 42, residence: None };
//! let mut bytes = [0; SHORTEST];
//! request.write(&mut bytes);
//! assert_eq!(Frame::read(&bytes), Some(request));
//! assert_eq!(Frame::read(b"somebody else's"), None);
//! ```

mod carrier;
pub mod echo;
pub mod frame;
pub mod latmon;
mod link;
mod peer;
pub mod pulse;

pub use carrier::Carrier;
pub use link::{Answer, Link, LinkOptions};
pub use peer::Peer;

/// The UDP port that a peer answers on where none is named.
pub const PORT: u16 = 2307;

/// The EtherType of raw frames: the first of the two that IEEE 802 keeps for local experiments.
pub const ETHER_TYPE: u16 = 0x88b5;

/// The most bytes of a frame, without the Ethernet header: what goes over Ethernet in one piece, in UDP over IPv6.
pub const LONGEST: usize = 1_452;

/// Destination, source and type before a raw frame.
const ETHERNET: usize = 14;
