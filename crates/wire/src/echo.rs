//! Who answers frames: each with one as long, and with how long it was here.

use std::net::SocketAddr;

use failure::Error;
use sys::Errno;
use sys::clock::Clock;
use sys::net::{Interface, Mac, Socket, Source, Stamps, wait};
use units::Nanos;

use crate::frame::{Frame, Kind};
use crate::link::{of_interface, of_packets};
use crate::{Carrier, LONGEST};

/// What is done to frames beside answering them: a truth that a measurement can be tried against.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// How long a frame is kept; the thread spins meanwhile.
    pub delay: Nanos,
    /// Each n-th frame of a run and thread is not answered.
    pub drop_each: Option<u64>,
}

/// A socket whose frames are answered.
#[derive(Debug)]
pub struct Echo {
    socket: Socket,
    /// The interface's own address and what frames are sent as, for raw ones.
    raw: Option<(Mac, Carrier)>,
    manner: Manner,
}

/// What to do where an address was refused.
fn unbound(errno: Errno) -> &'static str {
    match errno {
        Errno::ACCESS => {
            "ports below 1024 (net.ipv4.ip_unprivileged_port_start) need root or CAP_NET_BIND_SERVICE: choose a higher one"
        }
        _ => "name an address of this machine (`ip address`) and a port that is free",
    }
}

impl Echo {
    /// Answers UDP on `address`.
    ///
    /// # Errors
    /// An address that is not this machine's, or that is taken.
    pub fn udp(address: SocketAddr, manner: Manner) -> failure::Result<Self> {
        let socket = Socket::udp(address.is_ipv6())?;
        socket.bind(address).map_err(|error| {
            let hint = unbound(error.errno);
            Error::from(error).with_hint(hint)
        })?;
        socket.stamp(Stamps::Received, false)?;
        Ok(Self { socket, raw: None, manner })
    }

    /// Answers raw frames on `interface` that are sent as `carrier`.
    ///
    /// # Errors
    /// There is no such interface, or `CAP_NET_RAW` is missing.
    pub fn raw(interface: &str, carrier: Carrier, manner: Manner) -> failure::Result<Self> {
        let found = Interface::named(interface).map_err(of_interface)?;
        let socket = Socket::packet(carrier.ether_type(), found.index, true).map_err(of_packets)?;
        socket.stamp(Stamps::Received, false)?;
        Ok(Self { socket, raw: Some((found.mac, carrier)), manner })
    }

    /// The address that it answers UDP on.
    ///
    /// # Errors
    /// It answers raw frames.
    pub fn local(&self) -> failure::Result<SocketAddr> {
        Ok(self.socket.local()?)
    }

    /// Answers until the process is ended.
    ///
    /// # Errors
    /// The socket is of use no more: its interface is gone.
    pub fn serve(&self) -> failure::Result<()> {
        let mut buffer = vec![0; Carrier::Ptp.head() + LONGEST];
        loop {
            match self.socket.receive(&mut buffer) {
                Ok(Some(received)) => {
                    let length = received.length.min(buffer.len());
                    self.answer(&mut buffer[..length], received.stamp.software, received.from);
                }
                Ok(None) => {
                    let _ = wait(&self.socket, 1_000_000_000);
                }
                // Of an earlier answer: whoever had asked is gone.
                Err(Errno::CONNREFUSED | Errno::INTR | Errno::HOSTUNREACH | Errno::NETUNREACH) => {}
                Err(errno) => return Err(sys::Error::new("recvmsg", errno).into()),
            }
        }
    }

    /// Requests alone: two that echo do not answer each other for ever. A frame without the kernel's stamp, or with one of
    /// later than now, was here for a time that nobody knows, and its answer says so.
    fn answer(&self, bytes: &mut [u8], received_at: Option<u64>, from: Source) {
        let header = self.raw.map_or(0, |(_, carrier)| carrier.head());
        let Some(frame) = bytes.get(header..).and_then(Frame::read) else { return };
        if frame.kind != Kind::Request || self.is_dropped(&frame) {
            return;
        }
        let until = Clock::Monotonic.now().saturating_add(self.manner.delay.0);
        while self.manner.delay > Nanos::ZERO && Clock::Monotonic.now() < until {}
        let residence = received_at.and_then(|received_at| Clock::Realtime.now().checked_sub(received_at));
        Frame { kind: Kind::Answer, residence, ..frame }.write(&mut bytes[header..]);
        // An answer that cannot be sent is a frame that was lost: whoever asked counts it.
        let _ = match (from, self.raw) {
            (Source::Internet(address), None) => self.socket.send_to(bytes, address),
            (Source::Hardware(asked), Some((own, _))) if asked[0] & 1 == 0 => {
                bytes[..6].copy_from_slice(&asked);
                bytes[6..12].copy_from_slice(&own);
                self.socket.send(bytes)
            }
            _ => Ok(()),
        };
    }

    fn is_dropped(&self, frame: &Frame) -> bool {
        let each = self.manner.drop_each.filter(|_| frame.number != crate::frame::GREETING);
        each.is_some_and(|each| (frame.number + 1) % each.max(1) == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;
    use crate::frame::SHORTEST;

    #[test]
    fn a_port_that_is_not_for_everybody_is_named_as_one() {
        assert!(unbound(Errno::ACCESS).starts_with("ports below 1024"), "{}", unbound(Errno::ACCESS));
        assert!(unbound(Errno::ADDRINUSE).contains("a port that is free"));
    }

    #[test]
    fn an_answer_is_not_answered() {
        let echo = Echo::udp(([127, 0, 0, 1], 0).into(), Manner::default()).unwrap();
        let address = echo.local().unwrap();
        // It serves until the process ends.
        std::thread::spawn(move || echo.serve());
        let asking = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        asking.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        for (kind, number) in [(Kind::Answer, 7), (Kind::Request, 8)] {
            let mut bytes = [0; SHORTEST];
            Frame { kind, run: 1, thread: 2, number, residence: None }.write(&mut bytes);
            asking.send_to(&bytes, address).unwrap();
        }
        let mut bytes = [0; SHORTEST];
        assert_eq!(asking.recv(&mut bytes).unwrap(), SHORTEST);
        let first = Frame::read(&bytes).unwrap();
        assert_eq!((first.kind, first.number), (Kind::Answer, 8), "the answer with number 7 was answered");
    }
}
