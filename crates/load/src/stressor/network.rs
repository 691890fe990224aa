//! TCP and UDP over 127.0.0.1, between threads of one worker: no other address is used and nothing leaves the machine.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread::{Builder, Scope};

use serde::{Deserialize, Serialize};
use units::Bytes;

use super::about::About;
use super::counters::Counter;
use super::worker::{BuiltIn, Worker};

/// Stack of a thread: each only copies.
const STACK: usize = 64 << 10;

/// A TCP stream and UDP datagrams within the worker, on 127.0.0.1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Bytes that each write to the stream offers.
    pub stream: Bytes,
    /// Bytes in a datagram.
    pub datagram: Bytes,
}

impl BuiltIn for Network {
    /// The two threads that receive count for themselves.
    fn about(&self) -> About {
        let Self { stream, datagram } = self;
        let does =
            format!("a TCP stream in writes of {stream} and UDP datagrams of {datagram} over 127.0.0.1");
        About { counters: 2, cpus: 4, threads: true, ..About::new("network", "bytes received", does) }
    }

    fn run(&self, worker: &mut Worker<'_>) -> String {
        let counters = match worker.counters.take() {
            Ok(counters) => counters,
            Err(why) => return why,
        };
        match sockets() {
            Ok(sockets) => carry(worker, counters, sockets, self.stream.0 as usize, self.datagram.0 as usize),
            Err(error) => format!("sockets on 127.0.0.1: {error}"),
        }
    }
}

struct Sockets {
    tcp: (TcpStream, TcpStream),
    udp: (UdpSocket, UdpSocket),
}

fn sockets() -> std::io::Result<Sockets> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = TcpListener::bind(any)?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (server, _) = listener.accept()?;
    let (sender, receiver) = (UdpSocket::bind(any)?, UdpSocket::bind(any)?);
    sender.connect(receiver.local_addr()?)?;
    Ok(Sockets { tcp: (client, server), udp: (sender, receiver) })
}

/// Both ways count what arrives. A thread that fails says why; the others go on.
fn carry(
    worker: &Worker<'_>,
    [from_udp, from_tcp]: [Counter<'_>; 2],
    sockets: Sockets,
    stream: usize,
    datagram: usize,
) -> String {
    let Sockets { tcp: (client, server), udp: (sender, receiver) } = sockets;
    let (mut client, mut server) = (client, server);
    let started = std::thread::scope(|scope| -> std::io::Result<()> {
        thread(scope, worker, datagram, move |data| receiver.recv(data), Some(from_udp))?;
        thread(scope, worker, stream, move |data| server.read(data), Some(from_tcp))?;
        thread(scope, worker, stream, move |data| client.write(data), None)?;
        // A full queue is no failure: datagrams are dropped then, as they are on a network.
        thread(scope, worker, datagram, move |data| Ok(sender.send(data).unwrap_or_default()), None)?;
        worker.started();
        Ok(())
    });
    started.map_or_else(
        |error| format!("starting a thread: {error}"),
        |()| "no thread of the network load is left".into(),
    )
}

/// A thread that does `step` for ever and counts the bytes on `counter`.
fn thread<'scope, 'a: 'scope>(
    scope: &'scope Scope<'scope, '_>,
    worker: &'scope Worker<'a>,
    length: usize,
    mut step: impl FnMut(&mut [u8]) -> std::io::Result<usize> + Send + 'scope,
    mut counter: Option<Counter<'scope>>,
) -> std::io::Result<()> {
    let run = move || {
        let mut data = vec![0_u8; length];
        loop {
            match step(&mut data) {
                Ok(length) => counter.iter_mut().for_each(|counter| counter.add(length as u64)),
                Err(error) => return worker.failed(&format!("traffic on 127.0.0.1: {error}")),
            };
        }
    };
    Builder::new().stack_size(STACK).spawn_scoped(scope, run).map(drop)
}
