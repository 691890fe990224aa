//! The side of latmus on a socket: asks a monitor for pulses, and reads what it measured.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use failure::Error;
use sys::signal::wait_readable;

use super::{Fault, PATIENCE, PORT, Replies, Reply, Request, Totals};

/// The most records of a second: a monitor sends one.
const MOST_RECORDS: u32 = 2_000;

/// How long one broadcast is waited for: monitors send one each five seconds.
const BROADCAST: Duration = Duration::from_secs(12);

/// A monitor that listens.
#[derive(Debug)]
pub struct Session {
    stream: TcpStream,
    monitor: SocketAddr,
    /// How long anything is waited for.
    pub(super) patience: Duration,
}

/// What became of a session. What had come before something went wrong is kept.
#[derive(Debug)]
pub struct Followed {
    /// All that the monitor reported.
    pub totals: Totals,
    /// What went wrong, if anything did.
    pub problem: Option<Error>,
}

/// Waits for the broadcast of a monitor (Zephyr's latmon since 2024) on `port`; its address. What it says of itself is not
/// believed: its sender is meant, as latmus does.
///
/// # Errors
/// None came, or the port is taken.
pub fn discover(port: u16) -> failure::Result<SocketAddr> {
    let socket = sys::net::Socket::udp(false)?;
    socket.share()?;
    socket.bind((Ipv4Addr::UNSPECIFIED, port).into()).map_err(|error| {
        Error::from(error).with_hint("another program waits for monitors too: name the monitor's address")
    })?;
    let until = Instant::now() + BROADCAST;
    let mut buffer = [0; 64];
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        let _ = sys::net::wait(&socket, left.as_nanos() as u64);
        let Ok(Some(received)) = socket.receive(&mut buffer) else { continue };
        if let sys::net::Source::Internet(from) = received.from {
            return Ok(SocketAddr::new(from.ip(), PORT));
        }
    }
    let hint =
        "is it on this network, and does its firmware broadcast? name its address, which its console shows";
    Err(Error::new(format!("no monitor was heard in {} s on UDP port {port}", BROADCAST.as_secs()), hint))
}

/// The address that `named` means: an IP address, with a port or without.
///
/// # Errors
/// It is no IP address.
pub fn address(named: &str) -> Result<SocketAddr, String> {
    let alone = named.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let alone = alone.map(|address| SocketAddr::new(address, PORT));
    alone.or_else(|_| named.parse()).map_err(|_| "no IP address, as in 10.0.0.3 or 10.0.0.3:2306".into())
}

impl Session {
    /// Connects with the monitor.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn connect(monitor: SocketAddr) -> failure::Result<Self> {
        let stream = TcpStream::connect_timeout(&monitor, PATIENCE.duration()).map_err(|error| {
            Error::new(
                format!("connect to the monitor at {monitor}: {error}"),
                "is it switched on, and does no other responder use it? it serves one at a time",
            )
        })?;
        let prepared = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE.duration())))
            .and_then(|()| stream.set_read_timeout(Some(PATIENCE.duration())));
        prepared.map_err(|error| Error::new(format!("prepare the connection to {monitor}: {error}"), ""))?;
        Ok(Self { stream, monitor, patience: PATIENCE.duration() })
    }

    /// Asks for a pulse each `period` us, and for a histogram of `cells`; then reads what comes until `stopped` says so, and
    /// has the monitor stop. It ends within ten seconds after that, whatever the monitor does.
    pub fn follow(mut self, period: u32, cells: u32, stopped: &dyn Fn() -> bool) -> Followed {
        let mut totals = Totals::default();
        let problem = self.exchange(period, cells, stopped, &mut totals).err();
        Followed { totals, problem }
    }

    fn exchange(
        &mut self,
        period: u32,
        cells: u32,
        stopped: &dyn Fn() -> bool,
        totals: &mut Totals,
    ) -> failure::Result<()> {
        const LOOK: Duration = Duration::from_millis(50);
        let mut replies = Replies::new(cells).map_err(|fault| self.at_fault(&fault))?;
        self.send(Request::Start { period, cells })?;
        let mut heard = Instant::now();
        let mut until: Option<Instant> = None;
        let mut second = (Instant::now(), 0);
        let mut buffer = [0; 4096];
        while !replies.is_complete() {
            if until.is_none() && stopped() {
                self.send(Request::Stop)?;
                until = Some(Instant::now() + self.patience);
            }
            if heard.elapsed() > self.patience || until.is_some_and(|until| Instant::now() > until) {
                return Err(self.is_silent(&replies));
            }
            if wait_readable(&[self.stream.as_fd()], LOOK)? != [true] {
                continue;
            }
            let got = self.stream.read(&mut buffer).map_err(|error| self.lost(&error))?;
            if got == 0 {
                return Err(replies.end().err().map_or_else(
                    || self.lost(&std::io::ErrorKind::UnexpectedEof.into()),
                    |fault| self.at_fault(&fault),
                ));
            }
            heard = Instant::now();
            let said = replies.take(&buffer[..got]).map_err(|fault| self.at_fault(&fault))?;
            self.count(&said, &mut second)?;
            let ended = said.iter().any(|reply| matches!(reply, Reply::Stopped(_)));
            said.into_iter().for_each(|reply| totals.add(reply));
            if ended && until.is_none() {
                return Err(self.gave_up());
            }
        }
        Ok(())
    }

    fn send(&mut self, request: Request) -> failure::Result<()> {
        self.stream.write_all(&request.bytes()).map_err(|error| self.lost(&error))
    }

    /// A monitor that sends more than a monitor can have measured is none.
    fn count(&self, replies: &[Reply], second: &mut (Instant, u32)) -> failure::Result<()> {
        if second.0.elapsed() >= Duration::from_secs(1) {
            *second = (Instant::now(), 0);
        }
        second.1 = second.1.saturating_add(replies.len() as u32);
        if second.1 <= MOST_RECORDS {
            return Ok(());
        }
        let message =
            format!("the monitor at {} sends more than {MOST_RECORDS} records a second", self.monitor);
        Err(Error::new(message, "what listens there is no latmon"))
    }

    fn is_silent(&self, replies: &Replies) -> Error {
        let missing = replies.end().err().map_or_else(String::new, |fault| format!(": {fault}"));
        Error::new(
            format!(
                "the monitor at {} has said nothing for {} s{missing}",
                self.monitor,
                self.patience.as_secs_f32()
            ),
            "are the wires connected, and its period one that it can keep? it reports each second",
        )
    }

    fn lost(&self, error: &std::io::Error) -> Error {
        let hint = "look at the monitor's console; it may have been reset";
        Error::new(format!("the connection to the monitor at {} failed: {error}", self.monitor), hint)
    }

    fn at_fault(&self, fault: &Fault) -> Error {
        Error::new(format!("the monitor at {} sent {fault}", self.monitor), "measure again")
    }

    fn gave_up(&self) -> Error {
        Error::new(
            format!("the monitor at {} stopped by itself", self.monitor),
            "Zephyr's latmon does so when half of its pulses had no answer: check the wires and the edge of --pulse",
        )
    }
}
