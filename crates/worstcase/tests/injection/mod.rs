//! Delays of a known sort on a CPU, made again and again while something is measured there.
#![allow(dead_code)] // each executable makes some of them

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
use sys::clock::Clock;
use sys::injection::Waiting;
use sys::schedule::{self, Scheduling};
use units::{CpuId, CpuList};

pub const MS: u64 = 1_000_000;

/// A delay.
pub type Delay<'a> = Box<dyn FnMut() + Send + 'a>;

/// Whether what is done goes on.
pub type Stop = AtomicBool;

/// Ends what is done, whatever ends the test: its scope waits for it.
pub struct Ends<'a>(pub &'a Stop);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// When a delay was made, on `CLOCK_MONOTONIC`, in nanoseconds.
pub type When = std::ops::Range<u64>;

/// Starts a thread that makes delays, with so long a pause between them. What it cannot do is in its result: who waits for
/// it skips the test.
pub fn again_and_again<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    stop: &'scope Stop,
    (name, cpu, fifo): (&'static str, CpuId, Option<&'static str>),
    pause: u64,
    make: impl FnOnce() -> Result<Delay<'scope>, String> + Send + 'scope,
) -> std::thread::ScopedJoinHandle<'scope, Result<Vec<When>, String>> {
    let words = |error: sys::Error| error.to_string();
    let body = move || {
        let mut delay = make()?;
        schedule::set_affinity(0, &CpuList::from_iter([cpu])).map_err(words)?;
        if let Some(priority) = fifo {
            schedule::set(Scheduling::Fifo(priority.parse().unwrap())).map_err(words)?;
        }
        let mut made = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let _ = Clock::Monotonic.sleep_until(Clock::Monotonic.now() + pause);
            let begin = Clock::Monotonic.now();
            delay();
            made.push(begin..Clock::Monotonic.now());
        }
        Ok(made)
    };
    std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, body).unwrap()
}

/// Computes for so long, in user space.
pub fn computing(length: u64, stop: &Stop) -> Delay<'_> {
    Box::new(move || {
        let end = Clock::Monotonic.now() + length;
        while Clock::Monotonic.now() < end && !stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    })
}

/// Has the kernel wait on a CPU: on the own one with preemption off, on another one in an interrupt that is sent there.
pub fn waiting_on(cpu: CpuId, length: u64) -> Result<Delay<'static>, String> {
    let waiting = Waiting::load().map_err(|error| error.to_string())?;
    waiting.run_on(cpu.0, 1_000).map_err(|error| error.to_string())?;
    Ok(Box::new(move || {
        let _ = waiting.run_on(cpu.0, length);
    }))
}

/// Sends one datagram that the kernel gives to so many sockets, in one softirq.
pub fn one_datagram_for(sockets: usize) -> Result<Delay<'static>, String> {
    const PORT: u16 = 45_454;
    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
    raise_open_files(sockets as u64 + 100)?;
    let receiver = || -> Result<UdpSocket, std::io::Error> {
        let new = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
        sockopt::set_socket_reuseaddr(&new, true)?;
        bind(&new, &SocketAddrV4::new(GROUP, PORT))?;
        let new = UdpSocket::from(new);
        new.join_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST)?;
        Ok(new)
    };
    let receivers: Result<Vec<UdpSocket>, _> = (0..sockets).map(|_| receiver()).collect();
    let receivers = receivers.map_err(|error| error.to_string())?;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    sockopt::set_ip_multicast_if(&sender, &Ipv4Addr::LOCALHOST).map_err(|error| error.to_string())?;
    sender.send_to(b"x", (GROUP, PORT)).map_err(|error| error.to_string())?;
    Ok(Box::new(move || {
        let _ = sender.send_to(b"x", (GROUP, PORT));
        // What nobody reads fills the sockets up, which then drop it sooner.
        for receiver in &receivers {
            let _ = rustix::net::recv(receiver, &mut [0_u8; 8], rustix::net::RecvFlags::DONTWAIT);
        }
    }))
}

fn raise_open_files(wanted: u64) -> Result<(), String> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    if now.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let maximum = now.maximum.map(|maximum| maximum.max(wanted));
    let limit = Rlimit { current: Some(wanted), maximum };
    setrlimit(Resource::Nofile, limit).map_err(|errno| format!("RLIMIT_NOFILE: {errno}"))
}
