//! The side of latmon on a socket: serves responders, one at a time, with pulses that somebody else makes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use failure::Error;
use sys::signal::wait_readable;
use units::Nanos;

use super::{Bulk, PATIENCE, PORT, Request, Requests};

/// A responder that asks for nothing has the only place for so long.
const IDLE: Duration = Duration::from_secs(60);

/// A record is sent so often: latmus gives up after five seconds without one.
const RECORDS: Duration = Duration::from_secs(1);

/// What makes pulses, and measures the answers.
pub trait Pulses {
    /// From now on a pulse is due each `period`.
    ///
    /// # Errors
    /// The lines cannot be had.
    fn begin(&mut self, period: Nanos) -> failure::Result<()>;

    /// Waits until the next pulse is due, makes it and waits for the answer: how long that took, none where it did not come.
    ///
    /// # Errors
    /// The lines are gone.
    fn pulse(&mut self) -> failure::Result<Option<u64>>;

    /// No pulse is due any more.
    fn end(&mut self);
}

/// Where responders connect.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    /// Where it announces itself, and when it did.
    announces: Option<SocketAddr>,
    announced: Option<Instant>,
}

/// How long and how often a responder was served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Starts that it asked for.
    pub starts: u64,
    /// Pulses that were answered, warm-up included, and those that were not.
    pub answered: u64,
    /// See `answered`.
    pub missed: u64,
}

impl Server {
    /// Listens on `address`; announces itself by UDP broadcasts where `announces`.
    ///
    /// # Errors
    /// The address is not this machine's, or is taken.
    pub fn listen(address: SocketAddr, announces: bool) -> failure::Result<Self> {
        let listener = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = listener.map_err(|error| {
            Error::new(
                format!("listen on {address}: {error}"),
                "name an address of this machine (`ip address`) and a port that is free",
            )
        })?;
        let announces = announces.then_some((Ipv4Addr::BROADCAST, PORT).into());
        Ok(Self { listener, announces, announced: None })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn local(&self) -> failure::Result<SocketAddr> {
        self.listener.local_addr().map_err(|error| Error::new(format!("getsockname: {error}"), ""))
    }

    /// The next responder that connects until `patience` is over.
    ///
    /// # Errors
    /// The socket is of no use any more.
    pub fn accept(&mut self, patience: Duration) -> failure::Result<Option<(TcpStream, SocketAddr)>> {
        self.announce();
        if wait_readable(&[self.listener.as_fd()], patience)? != [true] {
            return Ok(None);
        }
        match self.listener.accept() {
            Ok(accepted) => Ok(Some(accepted)),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            // It left before it was served.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => Ok(None),
            Err(error) => Err(Error::new(format!("accept a responder: {error}"), "")),
        }
    }

    /// The own address as text, as latmon does while nobody is connected. Where it cannot be sent, responders need the address.
    fn announce(&mut self) {
        let Some(to) = self.announces else { return };
        if self.announced.is_some_and(|at| at.elapsed() < PATIENCE.duration()) {
            return;
        }
        self.announced = Some(Instant::now());
        let Ok(own) = self.listener.local_addr() else { return };
        let socket = std::net::UdpSocket::bind((own.ip(), 0));
        let _ = socket.and_then(|socket| {
            socket.set_broadcast(true)?;
            socket.send_to(own.ip().to_string().as_bytes(), to)
        });
    }
}

/// What runs for a responder.
struct Running {
    bulk: Bulk,
    /// How often a record is sent; the first of these times is the warm-up.
    rhythm: Duration,
    is_warm: bool,
    due: Instant,
}

/// Serves one responder until it leaves.
///
/// # Errors
/// It asked for what cannot be had, left in the middle of something, did not read, or asked for nothing; or the lines are gone.
pub fn serve(stream: TcpStream, pulses: &mut dyn Pulses, served: &mut Served) -> failure::Result<()> {
    serve_each(RECORDS, stream, pulses, served)
}

/// The same, with a record each `rhythm` after a warm-up as long.
pub(super) fn serve_each(
    rhythm: Duration,
    mut stream: TcpStream,
    pulses: &mut dyn Pulses,
    served: &mut Served,
) -> failure::Result<()> {
    let prepared = stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_nodelay(true))
        .and_then(|()| stream.set_write_timeout(Some(PATIENCE.duration())));
    prepared.map_err(|error| Error::new(format!("prepare the connection: {error}"), ""))?;
    let mut requests = Requests::default();
    let mut running: Option<Running> = None;
    let result = exchange(rhythm, &mut stream, &mut requests, &mut running, pulses, served);
    if running.is_some() {
        pulses.end();
    }
    result
}

fn exchange(
    rhythm: Duration,
    stream: &mut TcpStream,
    requests: &mut Requests,
    running: &mut Option<Running>,
    pulses: &mut dyn Pulses,
    served: &mut Served,
) -> failure::Result<()> {
    let mut idle = Instant::now();
    loop {
        let patience = match running {
            Some(run) => {
                step(stream, run, pulses, served)?;
                Duration::ZERO
            }
            None if idle.elapsed() > IDLE => {
                let message = format!("the responder asked for nothing in {} s", IDLE.as_secs());
                return Err(Error::new(message, "another one can connect now"));
            }
            None => Duration::from_millis(200),
        };
        if wait_readable(&[stream.as_fd()], patience)? != [true] {
            continue;
        }
        // One request at a time: a flood of them is served no faster than pulses are made.
        let mut bytes = [0; super::REQUEST];
        let got = stream.read(&mut bytes).map_err(|error| gone(&error))?;
        if got == 0 {
            return requests.end().map_err(|fault| refused(&fault));
        }
        let mut rest = &bytes[..got];
        while !rest.is_empty() {
            let (taken, request) = requests.take(rest).map_err(|fault| refused(&fault))?;
            rest = &rest[taken..];
            if let Some(request) = request {
                obey(request, rhythm, stream, running, pulses, served)?;
                idle = Instant::now();
            }
        }
    }
}

fn obey(
    request: Request,
    rhythm: Duration,
    stream: &mut TcpStream,
    running: &mut Option<Running>,
    pulses: &mut dyn Pulses,
    served: &mut Served,
) -> failure::Result<()> {
    let before = running.take();
    if before.is_some() {
        pulses.end();
    }
    match request {
        Request::Start { period, cells } => {
            pulses.begin(Nanos::from_micros(period.into()))?;
            served.starts += 1;
            let due = Instant::now() + rhythm;
            *running = Some(Running { bulk: Bulk::new(cells), rhythm, is_warm: false, due });
            Ok(())
        }
        // A stop without a start: latmon sends a trailer without a histogram.
        Request::Stop => {
            let mut bulk = before.map_or_else(|| Bulk::new(0), |run| run.bulk);
            stream.write_all(&bulk.trailer()).map_err(|error| does_not_read(&error))
        }
    }
}

/// One pulse, and a record where one is due.
fn step(
    stream: &mut TcpStream,
    run: &mut Running,
    pulses: &mut dyn Pulses,
    served: &mut Served,
) -> failure::Result<()> {
    let answer = pulses.pulse()?;
    served.answered += u64::from(answer.is_some());
    served.missed += u64::from(answer.is_none());
    let now = Instant::now();
    if !run.is_warm {
        // The pulse that ends the warm-up belongs to it, so that there is one at least.
        run.is_warm = now >= run.due;
        run.due = if run.is_warm { now + run.rhythm } else { run.due };
        return Ok(());
    }
    match answer {
        Some(latency) => run.bulk.answered(latency),
        None => run.bulk.missed(1),
    }
    if now >= run.due {
        run.due = now + run.rhythm;
        if let Some(sample) = run.bulk.record() {
            stream.write_all(&sample.bytes()).map_err(|error| does_not_read(&error))?;
        }
    }
    Ok(())
}

fn refused(fault: &super::Fault) -> Error {
    Error::new(format!("the responder asked for {fault}"), "is it latmus? other programs speak otherwise")
}

fn gone(error: &std::io::Error) -> Error {
    Error::new(format!("the responder left: {error}"), "")
}

fn does_not_read(error: &std::io::Error) -> Error {
    Error::new(format!("the responder does not take its records: {error}"), "another one can connect now")
}
