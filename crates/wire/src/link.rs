//! A thread's way to its peer.

use failure::Error;
use sys::Errno;
use sys::net::{Interface, Mac, Received, Socket, Source, Stamp, Stamps, wait};

use crate::frame::{Frame, GREETING, Kind};
use crate::{Carrier, LONGEST, Peer};

/// How frames are sent and awaited.
#[derive(Clone, Copy, Debug)]
pub struct LinkOptions {
    /// Bytes of a frame, without headers.
    pub size: usize,
    /// The priority of its socket, which VLAN devices and queues go by.
    pub priority: Option<u32>,
    /// For how many microseconds a wait asks the driver before it sleeps.
    pub busy_poll: Option<u32>,
    /// Whether the network card stamps frames too.
    pub by_card: bool,
    /// What raw frames are sent as.
    pub carrier: Carrier,
    /// What tells its run from others.
    pub run: u64,
    /// What tells it from the run's other threads.
    pub thread: u32,
}

/// An answer, or what came in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To the frame of that number.
    To {
        /// The frame's number, from 0.
        number: u64,
        /// When the answer came.
        received: Stamp,
        /// How long the peer had the frame, in nanoseconds; none where it does not say.
        residence: Option<u64>,
    },
    /// Something that is no answer to this thread.
    Foreign,
}

/// The way to a peer, and back. Frames are sent by one socket and come back by another: what the kernel notes of frames
/// that were sent wakes nobody who waits for answers.
#[derive(Debug)]
pub struct Link {
    sends: Socket,
    receives: Socket,
    peer: Peer,
    options: LinkOptions,
    frame: Vec<u8>,
    /// Bytes before the frame proper.
    header: usize,
    buffer: Vec<u8>,
    /// The number of the frame whose time of sending is noted as the socket's first.
    noted_from: u64,
    /// Frames sent.
    sent: u64,
}

impl Link {
    /// Opens the way to `peer` and looks whether it answers.
    ///
    /// # Errors
    /// A socket that the kernel refuses, or a peer that does not answer within a second.
    pub fn open(peer: &Peer, options: LinkOptions) -> failure::Result<Self> {
        let (sends, receives, head) = match peer {
            Peer::Udp(..) => udp(peer)?,
            Peer::Raw(interface, mac) => raw(interface, *mac, options.carrier)?,
        };
        let sockets = [&sends, &receives];
        for socket in sockets {
            options.priority.map_or(Ok(()), |priority| socket.priority(priority)).map_err(|error| {
                Error::from(error)
                    .with_hint("priorities above 6 need CAP_NET_ADMIN: run as root, or choose a lower one")
            })?;
        }
        options.busy_poll.map_or(Ok(()), |micros| receives.busy_poll(micros)).map_err(|error| {
            Error::from(error)
                .with_hint("busy polling needs CAP_NET_ADMIN: run as root, or use --receive spin")
        })?;
        receives.stamp(Stamps::Received, options.by_card)?;
        let size = options.size.clamp(crate::frame::SHORTEST, LONGEST);
        let mut frame = head.clone();
        frame.resize(head.len() + size, 0);
        let mut link = Self {
            sends,
            receives,
            peer: peer.clone(),
            options,
            header: head.len(),
            frame,
            buffer: vec![0; Carrier::Ptp.head() + LONGEST + 64],
            noted_from: 0,
            sent: 0,
        };
        link.greet()?;
        // From here on the kernel numbers what it notes from 0, as this link numbers frames.
        link.number_anew()?;
        Ok(link)
    }

    fn number_anew(&self) -> sys::Result<()> {
        self.sends.stamp(Stamps::Sent, self.options.by_card)
    }

    fn greet(&mut self) -> failure::Result<()> {
        const TRIES: u32 = 4;
        const PATIENCE: u64 = 250_000_000;
        let mut refused = false;
        for _ in 0..TRIES {
            self.write(GREETING);
            self.send_frame().map_err(|errno| self.unanswered(Some(errno)))?;
            let until = sys::clock::Clock::Monotonic.now() + PATIENCE;
            loop {
                match self.receive() {
                    Ok(Some(Answer::To { number: GREETING, .. })) => return Ok(()),
                    Ok(Some(_)) => {}
                    Ok(None) => {
                        let left = until.saturating_sub(sys::clock::Clock::Monotonic.now());
                        if left == 0 {
                            break;
                        }
                        let _ = wait(&self.receives, left);
                    }
                    Err(errno) => {
                        refused |= errno == Errno::CONNREFUSED;
                        sys::clock::Clock::Monotonic.sleep_until(until).unwrap_or_default();
                        break;
                    }
                }
            }
        }
        Err(self.unanswered(refused.then_some(Errno::CONNREFUSED)))
    }

    fn unanswered(&self, errno: Option<Errno>) -> Error {
        let (whom, listen) = match &self.peer {
            Peer::Udp(address, _) => (address.to_string(), format!("--listen {address}")),
            Peer::Raw(interface, _) => {
                let frames = if self.options.carrier == Carrier::Ptp { " --ptp-frames" } else { "" };
                (format!("raw frames on {interface}"), format!("--interface NAME{frames}"))
            }
        };
        let why = errno.map_or("within a second".into(), |errno| {
            sys::Error::new("send", errno).to_string().trim_start_matches("send: ").to_owned()
        });
        Error::new(
            format!("no answer from {whom}: {why}"),
            format!("start `worstcase echo {listen}` there, and look for firewalls between"),
        )
    }

    fn write(&mut self, number: u64) {
        let LinkOptions { run, thread, .. } = self.options;
        let frame = Frame { kind: Kind::Request, run, thread, number, residence: None };
        frame.write(&mut self.frame[self.header..]);
        self.options.carrier.number(&mut self.frame[..self.header], number);
    }

    #[inline]
    fn send_frame(&self) -> Result<(), Errno> {
        match &self.peer {
            Peer::Udp(address, _) => self.sends.send_to(&self.frame, *address),
            Peer::Raw(..) => self.sends.send(&self.frame),
        }
    }

    /// Sends the next frame; its number, from 0. One system call, no allocation.
    ///
    /// # Errors
    /// The kernel's: the frame does not count as sent.
    #[inline]
    pub fn send(&mut self) -> Result<u64, Errno> {
        let number = self.sent;
        self.write(number);
        if let Err(errno) = self.send_frame() {
            // Whether the kernel has given a number to a frame that it did not send depends on its version.
            let _ = self.number_anew();
            self.noted_from = number;
            return Err(errno);
        }
        self.sent += 1;
        Ok(number)
    }

    /// The next answer that is there. One system call an answer, no allocation.
    ///
    /// # Errors
    /// The kernel's: `ECONNREFUSED` where nobody listens at the peer.
    #[inline]
    pub fn receive(&mut self) -> Result<Option<Answer>, Errno> {
        loop {
            let Some(received) = self.receives.receive(&mut self.buffer)? else { return Ok(None) };
            if let Some(answer) = self.read(&received) {
                return Ok(Some(answer));
            }
        }
    }

    /// None for a frame that was sent to another thread of this run: raw frames come to all.
    fn read(&self, received: &Received) -> Option<Answer> {
        let bytes = self.buffer.get(self.header..received.length.min(self.buffer.len())).unwrap_or_default();
        let from_peer = match (&self.peer, received.from) {
            (Peer::Udp(..), _) => true,
            (Peer::Raw(_, mac), Source::Hardware(from)) => mac.is_none_or(|mac| mac == from),
            (Peer::Raw(..), _) => false,
        };
        let Some(frame) = Frame::read(bytes).filter(|frame| from_peer && frame.run == self.options.run)
        else {
            return Some(Answer::Foreign);
        };
        let Frame { thread, number, residence, .. } = frame;
        (thread == self.options.thread).then_some(Answer::To { number, received: received.stamp, residence })
    }

    /// Sleeps until there may be an answer, for `nanos` at most; one system call.
    ///
    /// # Errors
    /// `EINTR` where a signal came.
    #[inline]
    pub fn wait(&self, nanos: u64) -> Result<bool, Errno> {
        wait(&self.receives, nanos)
    }

    /// The next note of when a frame was sent: its number, and a time. Those of driver and card come one after the other, the
    /// card's perhaps after the answer. One system call a note, no allocation.
    #[inline]
    pub fn noted(&mut self) -> Option<(u64, Stamp)> {
        let (which, stamp) = self.sends.sent().ok().flatten()?;
        // The kernel's number has 32 bits; notes are read long before it comes round.
        let latest = self.sent.saturating_sub(self.noted_from);
        let back = (latest as u32).wrapping_sub(which);
        Some((self.sent.checked_sub(back.into())?, stamp))
    }
}

/// The socket that receives is connected and gets what the peer sends; the one that sends shares its port.
fn udp(peer: &Peer) -> failure::Result<(Socket, Socket, Vec<u8>)> {
    let Peer::Udp(address, interface) = peer else { return Err(Error::new("no address of UDP", "")) };
    let unreachable = |error: sys::Error| {
        Error::from(error).with_hint("is there a route to that address? see `ip route get`")
    };
    let (sends, receives) = (Socket::udp(address.is_ipv6())?, Socket::udp(address.is_ipv6())?);
    for socket in [&sends, &receives] {
        socket.share()?;
        interface.as_deref().map_or(Ok(()), |interface| socket.only_by(interface)).map_err(of_interface)?;
    }
    receives.connect(*address).map_err(unreachable)?;
    sends.bind(receives.local()?)?;
    Ok((sends, receives, Vec::new()))
}

fn raw(interface: &str, mac: Option<Mac>, carrier: Carrier) -> failure::Result<(Socket, Socket, Vec<u8>)> {
    let found = Interface::named(interface).map_err(of_interface)?;
    let sends = Socket::packet(carrier.ether_type(), found.index, false).map_err(of_packets)?;
    let receives = Socket::packet(carrier.ether_type(), found.index, true).map_err(of_packets)?;
    let mut head = mac.unwrap_or([0xff; 6]).to_vec();
    head.extend(found.mac);
    head.extend(carrier.ether_type().to_be_bytes());
    head.extend(carrier.message());
    Ok((sends, receives, head))
}

pub(crate) fn of_interface(error: sys::Error) -> Error {
    Error::from(error).with_hint("see `ip link` for the interfaces that there are")
}

pub(crate) fn of_packets(error: sys::Error) -> Error {
    let hint = match error.errno {
        Errno::PERM => {
            "raw frames need CAP_NET_RAW: run as root, or measure by UDP, which needs no privilege"
        }
        _ => "does the kernel have packet sockets (CONFIG_PACKET)?",
    };
    Error::from(error).with_hint(hint)
}
