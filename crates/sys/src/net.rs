//! Sockets whose datagrams carry the kernel's time stamps: socket(7), packet(7), and `SO_TIMESTAMPING`
//! (Documentation/networking/timestamping.rst).

pub mod card;

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::error::{Named, check};
use crate::{Errno, Error, Result};

/// `SO_TIMESTAMPING_NEW` of all architectures that Rust's musl and gnu targets have (Linux 5.1): its times are 64 bits
/// wide everywhere. Control messages have the same number.
const TIMESTAMPING: libc::c_int = 65;
// linux/net_tstamp.h
const TX_HARDWARE: u32 = 1 << 0;
const RX_HARDWARE: u32 = 1 << 2;
const RAW_HARDWARE: u32 = 1 << 6;
const OPT_TX_SWHW: u32 = 1 << 14;
const TX_SOFTWARE: u32 = 1 << 1;
const RX_SOFTWARE: u32 = 1 << 3;
const SOFTWARE: u32 = 1 << 4;
const OPT_ID: u32 = 1 << 7;
const OPT_TSONLY: u32 = 1 << 11;
/// linux/errqueue.h: where an entry of the error queue comes from, and that it says when a frame was sent.
const ORIGIN_TIMESTAMPING: u8 = 4;
const STAMPED_WHEN_SENT: u32 = 0;
/// linux/if_packet.h: entries of a packet socket's error queue.
const PACKET_TX_TIMESTAMP: libc::c_int = 16;

/// Which of a socket's datagrams are stamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    /// Those that are received.
    Received,
    /// Those that are sent: see [`Socket::sent`].
    Sent,
}

/// When a datagram passed, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Between the kernel and the driver, on `CLOCK_REALTIME`.
    pub software: Option<u64>,
    /// Between the network card and the cable, on the card's own clock: see [`card`].
    pub hardware: Option<u64>,
}

impl Stamp {
    /// With what another one knows beside it: the kernel notes both times of a datagram that is sent one after the other.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { software: self.software.or(other.software), hardware: self.hardware.or(other.hardware) }
    }

    /// The first and the last of the three times of a `scm_timestamping64`.
    fn read(data: &[u8]) -> Self {
        Self { software: time(data, 0), hardware: time(data, 2) }
    }
}

/// A datagram that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its bytes, of those that there was room for.
    pub length: usize,
    /// When it came.
    pub stamp: Stamp,
    /// Who sent it.
    pub from: Source,
}

/// Who sent a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An address of the Internet protocols.
    Internet(SocketAddr),
    /// The hardware address of a raw frame.
    Hardware(Mac),
    /// Nothing that is known here.
    Unknown,
}

/// A hardware address.
pub type Mac = [u8; 6];

/// A network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The kernel's number for it.
    pub index: u32,
    /// Its hardware address.
    pub mac: Mac,
}

impl Interface {
    /// The interface of that name. netdevice(7).
    pub fn named(name: &str) -> Result<Self> {
        let socket = Socket::udp(false)?;
        let index = rustix::net::netdevice::name_to_index(&socket.0, name).on("SIOCGIFINDEX", name)?;
        let mut request = request_of(name, "SIOCGIFHWADDR")?;
        // SAFETY: the request outlives the call, which writes a sockaddr into it.
        let result = unsafe { libc::ioctl(socket.0.as_raw_fd(), libc::SIOCGIFHWADDR as _, &mut request) };
        check(result, "SIOCGIFHWADDR", name)?;
        // SAFETY: the call filled this member.
        let data = unsafe { request.ifr_ifru.ifru_hwaddr }.sa_data;
        let mut mac = [0; 6];
        mac.iter_mut().zip(data).for_each(|(to, from)| [*to] = from.to_ne_bytes());
        Ok(Self { index, mac })
    }
}

/// A request of `call` about an interface, netdevice(7).
///
/// # Errors
/// `ENODEV`: the name is longer than one of an interface can be.
pub(crate) fn request_of(interface: &str, call: &'static str) -> Result<libc::ifreq> {
    // SAFETY: zeros are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays 0.
    if interface.len() >= request.ifr_name.len() {
        return Err(Error { call, on: interface.to_owned(), errno: Errno::NODEV });
    }
    request.ifr_name.iter_mut().zip(interface.bytes()).for_each(|(to, from)| *to = from as _);
    Ok(request)
}

/// A socket of datagrams.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// Of UDP, not bound yet. For version 6 of the protocol where `six`.
    pub fn udp(six: bool) -> Result<Self> {
        let family = if six { AddressFamily::INET6 } else { AddressFamily::INET };
        let socket = rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
        socket.on("socket", "UDP").map(Self)
    }

    /// Lets others that do the same be bound to its address too: what comes is for one that is connected with the sender.
    /// `SO_REUSEADDR`, socket(7).
    pub fn share(&self) -> Result<()> {
        sockopt::set_socket_reuseaddr(&self.0, true).named("SO_REUSEADDR")
    }

    /// Of raw frames of one EtherType on one interface, headers included; `receives` none where it only sends.
    /// `CAP_NET_RAW`.
    pub fn packet(ether_type: u16, interface: u32, receives: bool) -> Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: integers only; the descriptor is ours.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        check(fd, "socket", "AF_PACKET")?;
        // SAFETY: as above.
        let socket = Self(unsafe { OwnedFd::from_raw_fd(fd) });
        let protocol = if receives { ether_type } else { 0 };
        // SAFETY: a zeroed sockaddr_ll is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as _;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = interface as _;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: a filled sockaddr_ll and its length.
        let result = unsafe { libc::bind(fd, (&raw const address).cast(), length) };
        check(result, "bind", "AF_PACKET")?;
        Ok(socket)
    }

    /// Binds it to a local address. bind(2).
    pub fn bind(&self, address: SocketAddr) -> Result<()> {
        rustix::net::bind(&self.0, &address).on("bind", address)
    }

    /// Talks with `peer` alone from now on. connect(2).
    pub fn connect(&self, peer: SocketAddr) -> Result<()> {
        rustix::net::connect(&self.0, &peer).on("connect", peer)
    }

    /// The address that it is bound to. getsockname(2).
    pub fn local(&self) -> Result<SocketAddr> {
        let address = rustix::net::getsockname(&self.0).named("getsockname")?;
        SocketAddr::try_from(address).map_err(|_| Error::new("getsockname", Errno::AFNOSUPPORT))
    }

    /// Has its datagrams stamped, `by_card` by a network card too that is set to. Where it was done before, the numbers of
    /// [`Socket::sent`] begin at 0 again.
    pub fn stamp(&self, stamps: Stamps, by_card: bool) -> Result<()> {
        let flags = match stamps {
            Stamps::Received => RX_SOFTWARE | SOFTWARE,
            Stamps::Sent => TX_SOFTWARE | SOFTWARE | OPT_ID | OPT_TSONLY,
        };
        let of_card = match stamps {
            _ if !by_card => 0,
            Stamps::Received => RX_HARDWARE | RAW_HARDWARE,
            Stamps::Sent => TX_HARDWARE | RAW_HARDWARE | OPT_TX_SWHW,
        };
        let flags = flags | of_card;
        self.set(libc::SOL_SOCKET, TIMESTAMPING, 0, "SO_TIMESTAMPING")?;
        self.set(libc::SOL_SOCKET, TIMESTAMPING, flags as libc::c_int, "SO_TIMESTAMPING")
    }

    /// Asks the driver for packets for up to so many microseconds before it sleeps. `SO_BUSY_POLL`, socket(7);
    /// `CAP_NET_ADMIN` to raise it.
    pub fn busy_poll(&self, micros: u32) -> Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_BUSY_POLL, micros as libc::c_int, "SO_BUSY_POLL")
    }

    /// The priority of what it sends, from 0. `SO_PRIORITY`, socket(7); above 6 `CAP_NET_ADMIN`.
    pub fn priority(&self, priority: u32) -> Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_PRIORITY, priority as libc::c_int, "SO_PRIORITY")
    }

    /// Sends and receives by this interface alone. `SO_BINDTODEVICE`, socket(7).
    pub fn only_by(&self, interface: &str) -> Result<()> {
        let length = interface.len() as libc::socklen_t;
        let name = interface.as_ptr().cast();
        // SAFETY: a name and its length, only read.
        let result = unsafe {
            libc::setsockopt(self.0.as_raw_fd(), libc::SOL_SOCKET, libc::SO_BINDTODEVICE, name, length)
        };
        check(result, "SO_BINDTODEVICE", interface).map(drop)
    }

    fn set(
        &self,
        level: libc::c_int,
        name: libc::c_int,
        value: libc::c_int,
        call: &'static str,
    ) -> Result<()> {
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: an int and its length, only read.
        let result =
            unsafe { libc::setsockopt(self.0.as_raw_fd(), level, name, (&raw const value).cast(), length) };
        check(result, call, value).map(drop)
    }

    /// Sends to the peer that it is connected with, or to the interface that it is bound to. send(2).
    #[inline]
    pub fn send(&self, bytes: &[u8]) -> std::result::Result<(), Errno> {
        rustix::net::send(&self.0, bytes, rustix::net::SendFlags::DONTWAIT).map(drop)
    }

    /// Sends to `address`. sendto(2).
    pub fn send_to(&self, bytes: &[u8], address: SocketAddr) -> std::result::Result<(), Errno> {
        rustix::net::sendto(&self.0, bytes, rustix::net::SendFlags::empty(), &address).map(drop)
    }

    /// The next datagram, if one is there. recvmsg(2); allocates nothing.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> std::result::Result<Option<Received>, Errno> {
        let mut control = Control([0; CONTROL]);
        // SAFETY: a zeroed sockaddr_storage is valid.
        let mut from: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let Some(message) = self.message(buffer, &mut control, &mut from, libc::MSG_DONTWAIT)? else {
            return Ok(None);
        };
        let mut stamp = Stamp::default();
        message.each(|level, kind, data| {
            if level == libc::SOL_SOCKET && kind == TIMESTAMPING {
                stamp = Stamp::read(data);
            }
        });
        Ok(Some(Received { length: message.length, stamp, from: source(&from) }))
    }

    /// The next note of when a datagram was sent, if one is there: which of those that were sent since [`Socket::stamp`], from
    /// 0 and modulo 2^32, and when. The times of driver and card come in a note each. recvmsg(2) of the error queue; allocates
    /// nothing.
    #[inline]
    pub fn sent(&self) -> std::result::Result<Option<(u32, Stamp)>, Errno> {
        let mut control = Control([0; CONTROL]);
        // SAFETY: as in `receive`.
        let mut from: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        loop {
            let flags = libc::MSG_DONTWAIT | libc::MSG_ERRQUEUE;
            let Some(message) = self.message(&mut [], &mut control, &mut from, flags)? else {
                return Ok(None);
            };
            let (mut stamp, mut number) = (None, None);
            message.each(|level, kind, data| match (level, kind) {
                (libc::SOL_SOCKET, TIMESTAMPING) => stamp = Some(Stamp::read(data)),
                (libc::SOL_IP, libc::IP_RECVERR)
                | (libc::SOL_IPV6, libc::IPV6_RECVERR)
                | (libc::SOL_PACKET, PACKET_TX_TIMESTAMP) => number = number_of(data),
                _ => {}
            });
            // What else an error queue has (an ICMP message) is no time of sending.
            if let (Some(number), Some(stamp)) = (number, stamp) {
                return Ok(Some((number, stamp)));
            }
        }
    }

    fn message(
        &self,
        buffer: &mut [u8],
        control: &mut Control,
        from: &mut libc::sockaddr_storage,
        flags: libc::c_int,
    ) -> std::result::Result<Option<Message>, Errno> {
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: a zeroed msghdr is valid.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_name = (&raw mut *from).cast();
        header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        header.msg_iov = &mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = CONTROL as _;
        // SAFETY: all that the header points to outlives the call and has the lengths that it says.
        let length = unsafe { libc::recvmsg(self.0.as_raw_fd(), &mut header, flags) };
        if length >= 0 {
            return Ok(Some(Message { header, length: length as usize }));
        }
        match Error::last("recvmsg", "").errno {
            Errno::AGAIN => Ok(None),
            errno => Err(errno),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sleeps until the socket has a datagram or an error, for `nanos` at most; whether it has. ppoll(2); allocates nothing.
#[inline]
pub fn wait(socket: &Socket, nanos: u64) -> std::result::Result<bool, Errno> {
    let time = Timespec { tv_sec: (nanos / 1_000_000_000) as _, tv_nsec: (nanos % 1_000_000_000) as _ };
    let mut fds = [PollFd::new(&socket.0, PollFlags::IN)];
    Ok(poll(&mut fds, Some(&time))? > 0)
}

const CONTROL: usize = 256;

#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// What recvmsg(2) filled in: its header points to memory of the caller.
struct Message {
    header: libc::msghdr,
    length: usize,
}

impl Message {
    /// Each control message: level, kind, data.
    fn each(&self, mut what: impl FnMut(libc::c_int, libc::c_int, &[u8])) {
        // SAFETY: the header is as the kernel left it, and the control buffer of the caller lives on. The macros stay
        // within msg_controllen, and the data is as long as cmsg_len says.
        unsafe {
            let mut at = libc::CMSG_FIRSTHDR(&self.header);
            while !at.is_null() {
                let data = libc::CMSG_DATA(at);
                let head = data.offset_from(at.cast::<u8>()) as usize;
                let length = ((*at).cmsg_len as usize).saturating_sub(head);
                what((*at).cmsg_level, (*at).cmsg_type, std::slice::from_raw_parts(data, length));
                at = libc::CMSG_NXTHDR(&self.header, at);
            }
        }
    }
}

/// One of the three times of a `scm_timestamping64`; none where it is not set.
fn time(data: &[u8], which: usize) -> Option<u64> {
    let data = data.get(which * 16..)?;
    let number = |place: usize| Some(i64::from_ne_bytes(data.get(place..place + 8)?.try_into().ok()?));
    let nanos = number(0)?.checked_mul(1_000_000_000)?.checked_add(number(8)?)?;
    u64::try_from(nanos).ok().filter(|&nanos| nanos > 0)
}

/// The number in a `sock_extended_err` that says when a datagram was sent: errno, origin and three more bytes, what was
/// stamped, the number.
fn number_of(data: &[u8]) -> Option<u32> {
    let word = |place: usize| Some(u32::from_ne_bytes(data.get(place..place + 4)?.try_into().ok()?));
    let is_stamp = *data.get(4)? == ORIGIN_TIMESTAMPING && word(8)? == STAMPED_WHEN_SENT;
    is_stamp.then(|| word(12)).flatten()
}

fn source(from: &libc::sockaddr_storage) -> Source {
    let from: *const libc::sockaddr_storage = from;
    // SAFETY: the storage is large enough for each of them, and the kernel filled in the one that its family names.
    unsafe {
        match i32::from((*from).ss_family) {
            libc::AF_INET => {
                let address = &*from.cast::<libc::sockaddr_in>();
                let octets = address.sin_addr.s_addr.to_ne_bytes();
                Source::Internet((octets, u16::from_be(address.sin_port)).into())
            }
            libc::AF_INET6 => {
                let address = &*from.cast::<libc::sockaddr_in6>();
                Source::Internet(
                    std::net::SocketAddrV6::new(
                        address.sin6_addr.s6_addr.into(),
                        u16::from_be(address.sin6_port),
                        0,
                        address.sin6_scope_id,
                    )
                    .into(),
                )
            }
            libc::AF_PACKET => {
                let address = &*from.cast::<libc::sockaddr_ll>();
                let mut mac = [0; 6];
                mac.copy_from_slice(&address.sll_addr[..6]);
                Source::Hardware(mac)
            }
            _ => Source::Unknown,
        }
    }
}

/// Switches the loopback device on, for which nobody is there in a guest without a system.
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN`.
pub fn switch_loopback_on() -> Result<()> {
    const UP: libc::c_short = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    let socket = Socket::udp(false)?;
    let mut request = request_of("lo", "SIOCSIFFLAGS")?;
    request.ifr_ifru.ifru_flags = UP;
    // SAFETY: the kernel reads the request, which is whole.
    let result = unsafe { libc::ioctl(socket.0.as_raw_fd(), libc::SIOCSIFFLAGS as _, &request) };
    check(result, "ioctl SIOCSIFFLAGS of", "lo").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    fn pair() -> (Socket, Socket) {
        let (one, other) = (Socket::udp(false).unwrap(), Socket::udp(false).unwrap());
        one.bind(([127, 0, 0, 1], 0).into()).unwrap();
        other.bind(([127, 0, 0, 1], 0).into()).unwrap();
        one.connect(other.local().unwrap()).unwrap();
        (one, other)
    }

    /// Sends until what comes is stamped: the kernel switches stamps on in a work item, after setsockopt has returned.
    fn send_until_stamped(one: &Socket, other: &Socket) {
        for _ in 0..1_000 {
            one.send(b"early").unwrap();
            assert!(wait(other, 1_000_000_000).unwrap());
            if other.receive(&mut [0; 8]).unwrap().unwrap().stamp.software.is_some() {
                return;
            }
            Clock::Monotonic.sleep_until(Clock::Monotonic.now() + 1_000_000).unwrap();
        }
        panic!("no datagram was stamped");
    }

    #[test]
    fn a_datagram_is_stamped_when_it_is_sent_and_when_it_is_received() {
        let (one, other) = pair();
        one.stamp(Stamps::Sent, false).unwrap();
        other.stamp(Stamps::Received, false).unwrap();
        let mut buffer = [0; 64];
        assert_eq!(other.receive(&mut buffer).unwrap(), None);
        send_until_stamped(&one, &other);
        while one.sent().unwrap().is_some() {}
        one.stamp(Stamps::Sent, false).unwrap();
        for number in 0..3 {
            let before = Clock::Realtime.now();
            one.send(b"there").unwrap();
            assert!(wait(&other, 1_000_000_000).unwrap());
            let received = other.receive(&mut buffer).unwrap().unwrap();
            let after = Clock::Realtime.now();
            assert_eq!((received.length, &buffer[..5]), (5, &b"there"[..]));
            assert_eq!(received.from, Source::Internet(one.local().unwrap()));
            let (which, sent) = one.sent().unwrap().unwrap();
            assert_eq!(which, number);
            let (sent, taken_in) = (sent.software.unwrap(), received.stamp.software.unwrap());
            assert!(before <= sent && sent <= taken_in && taken_in <= after);
        }
        assert_eq!(one.sent().unwrap(), None);
        one.stamp(Stamps::Sent, false).unwrap();
        one.send(b"again").unwrap();
        assert_eq!(one.sent().unwrap().unwrap().0, 0);
    }

    #[test]
    fn a_wait_without_a_datagram_ends_and_a_port_without_a_socket_is_an_error() {
        let (one, other) = pair();
        assert!(!wait(&other, 1_000_000).unwrap());
        drop(other);
        one.send(b"nobody").unwrap();
        assert!(wait(&one, 1_000_000_000).unwrap());
        assert_eq!(one.receive(&mut [0; 8]), Err(Errno::CONNREFUSED));
    }

    #[test]
    fn what_is_no_stamp_is_none() {
        assert_eq!(Stamp::read(&[0; 48]), Stamp::default());
        assert_eq!(Stamp::read(&[1; 15]), Stamp::default());
        assert_eq!(Stamp::read(&[0xff; 48]), Stamp::default());
        assert_eq!(number_of(&[0; 16]), None);
        assert_eq!(number_of(&[4; 12]), None);
    }

    #[test]
    fn a_stamp_of_the_card_is_the_third_time() {
        let data = [[1_i64, 7], [0, 0], [2, 9]].concat().into_iter().flat_map(i64::to_ne_bytes);
        let both = Stamp { software: Some(1_000_000_007), hardware: Some(2_000_000_009) };
        assert_eq!(Stamp::read(&data.collect::<Vec<u8>>()), both);
        let software = Stamp { hardware: None, ..both };
        assert_eq!(software.or(Stamp { software: None, ..both }), both);
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error_with_its_name() {
        let error = Interface::named("nothing0").unwrap_err();
        assert!(error.to_string().contains("nothing0"), "{error}");
        assert_eq!(Interface::named("lo").unwrap().mac, [0; 6]);
    }
}
