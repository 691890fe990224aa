//! Sockets: pairs within the machine, and the network stack over the loopback device.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto};

use super::{ALONE, BOTH, Operation, SOURCE_LMBENCH, SOURCE_NETPERF};
use crate::work::{At, Kit, Result, Unable, Work};

const BLOCK: usize = 16 << 10;
const DATAGRAM: usize = 1 << 10;
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub const OPERATIONS: &[Operation] = &[
    Operation {
        name: "unix-ping-pong",
        title: "unix stream RR 1 B",
        unit: "1 byte there and back",
        bytes: 0,
        places: BOTH,
        source: SOURCE_LMBENCH,
        stands_for: "services of the same machine: D-Bus, X11, Wayland, databases",
        begin: unix_ping_pong,
    },
    Operation {
        name: "udp-ping-pong",
        title: "UDP loopback RR 1 B",
        unit: "1 byte there and back",
        bytes: 0,
        places: BOTH,
        source: "netperf UDP_RR, sockperf ping-pong",
        stands_for: "requests by datagrams",
        begin: udp_ping_pong,
    },
    Operation {
        name: "tcp-ping-pong",
        title: "TCP loopback RR 1 B",
        unit: "1 byte there and back",
        bytes: 0,
        places: BOTH,
        source: "netperf TCP_RR",
        stands_for: "requests to a server",
        begin: tcp_ping_pong,
    },
    Operation {
        name: "icmp-echo",
        title: "ICMP echo on loopback",
        unit: "1 echo request answered by the kernel",
        bytes: 0,
        places: ALONE,
        source: "ping -f",
        stands_for: "the way in and out of the network stack, without a partner",
        begin: icmp_echo,
    },
    Operation {
        name: "tcp-stream",
        title: "TCP loopback stream 16 KB",
        unit: "1 write of 16 KiB that another thread reads",
        bytes: BLOCK as u64,
        places: BOTH,
        source: "netperf TCP_STREAM, iperf3",
        stands_for: "bulk transfer",
        begin: tcp_stream,
    },
    Operation {
        name: "udp-stream",
        title: "UDP loopback stream 1 KB",
        unit: "1 datagram of 1 KiB sent; a receiver reads what it can",
        bytes: DATAGRAM as u64,
        places: BOTH,
        source: SOURCE_NETPERF,
        stands_for: "streams of measurements, audio, video",
        begin: udp_stream,
    },
];

fn echo(mut stream: impl Read + Write) {
    let mut byte = [0];
    while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
}

fn ask(mut stream: impl Read + Write + 'static) -> Box<dyn Work> {
    Box::new(move || {
        stream.write_all(&[1]).at("send")?;
        stream.read_exact(&mut [0]).at("receive")
    })
}

fn unix_ping_pong(kit: &Kit) -> Result<Box<dyn Work>> {
    let (here, there) = UnixStream::pair().at("make a pair of sockets")?;
    kit.partner(move || echo(there))?;
    Ok(ask(here))
}

fn udp_pair() -> Result<(UdpSocket, UdpSocket)> {
    let socket = || UdpSocket::bind(LOOPBACK).at("bind to 127.0.0.1");
    let (here, there) = (socket()?, socket()?);
    for (from, to) in [(&here, &there), (&there, &here)] {
        from.connect(to.local_addr().at("find the port")?).at("connect to 127.0.0.1")?;
    }
    Ok((here, there))
}

fn udp_ping_pong(kit: &Kit) -> Result<Box<dyn Work>> {
    let (here, there) = udp_pair()?;
    kit.partner(move || while there.recv(&mut [0]).is_ok() && there.send(&[1]).is_ok() {})?;
    Ok(Box::new(move || {
        here.send(&[1]).at("send to 127.0.0.1")?;
        here.recv(&mut [0]).at("receive from 127.0.0.1").map(drop)
    }))
}

fn tcp_pair() -> Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(LOOPBACK).at("bind to 127.0.0.1")?;
    let address = listener.local_addr().at("find the port")?;
    let here = TcpStream::connect(address).at("connect to 127.0.0.1")?;
    let (there, from) = listener.accept().at("accept on 127.0.0.1")?;
    if here.local_addr().ok() != Some(from) {
        return Err(Unable("accept on 127.0.0.1: somebody else connected".into()));
    }
    Ok((here, there))
}

fn tcp_ping_pong(kit: &Kit) -> Result<Box<dyn Work>> {
    let (here, there) = tcp_pair()?;
    for stream in [&here, &there] {
        stream.set_nodelay(true).at("set TCP_NODELAY")?;
    }
    kit.partner(move || echo(there))?;
    Ok(ask(here))
}

/// As bulk transfers are sent: small rests may wait for more, so that a block is no wake-up of the reader.
fn tcp_stream(kit: &Kit) -> Result<Box<dyn Work>> {
    let (mut here, mut there) = tcp_pair()?;
    kit.partner(move || {
        let mut block = vec![0; BLOCK];
        while there.read(&mut block).is_ok_and(|read| read > 0) {}
    })?;
    let block = vec![1; BLOCK];
    Ok(Box::new(move || here.write_all(&block).at("send to 127.0.0.1")))
}

fn udp_stream(kit: &Kit) -> Result<Box<dyn Work>> {
    let (here, there) = udp_pair()?;
    kit.partner(move || {
        let mut datagram = [0; DATAGRAM];
        while there.recv(&mut datagram).is_ok() {}
    })?;
    Ok(Box::new(move || here.send(&[1; DATAGRAM]).at("send to 127.0.0.1").map(drop)))
}

/// By a socket for pings, or a raw one where only the privileged may ping. The kernel answers itself.
fn icmp_echo(_: &Kit) -> Result<Box<dyn Work>> {
    let socket =
        |kind| rustix::net::socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, Some(ipproto::ICMP));
    let (socket, is_raw) = match socket(SocketType::DGRAM) {
        Ok(socket) => (socket, false),
        Err(_) => (socket(SocketType::RAW).at("make a socket for ICMP")?, true),
    };
    rustix::net::connect(&socket, &LOOPBACK).at("connect to 127.0.0.1")?;
    // Echo request, checksum as the kernel's own sockets fill it in: 8 in the first byte, all else zero but this.
    let request = [8, 0, 0xf7, 0xff, 0, 0, 0, 0];
    let mut answer = [0; 64];
    Ok(Box::new(move || {
        rustix::net::send(&socket, &request, SendFlags::empty()).at("send to 127.0.0.1")?;
        // A raw socket sees the request too: it is the first of two.
        for _ in 0..if is_raw { 2 } else { 1 } {
            rustix::net::recv(&socket, &mut answer, RecvFlags::empty()).at("receive from 127.0.0.1")?;
        }
        Ok(())
    }))
}
