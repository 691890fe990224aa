//! What drivers of network interfaces say of themselves, by `SIOCETHTOOL` (include/uapi/linux/ethtool.h). What is asked here
//! needs no privilege (`__dev_ethtool`, net/ethtool/ioctl.c).

use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::Result;
use crate::error::{Named, check};
use crate::net::request_of;

const GET_COALESCE: u32 = 0x0e;
const GET_EEE: u32 = 0x44;

/// How long a device gathers packets before it interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coalescing {
    /// How long a received packet waits at most, in microseconds.
    pub receive_microseconds: u32,
    /// How long a sent packet's completion waits at most, in microseconds.
    pub transmit_microseconds: u32,
    /// Whether the driver chooses the time for received packets by their rate.
    pub adaptive_receive: bool,
    /// The same for packets that are sent.
    pub adaptive_transmit: bool,
}

/// The settings of `interface`. `EOPNOTSUPP` where its driver has none.
pub fn coalescing(interface: &str) -> Result<Coalescing> {
    let answer: [u32; 23] = ask(interface, GET_COALESCE, "ETHTOOL_GCOALESCE")?;
    Ok(Coalescing {
        receive_microseconds: answer[1],
        transmit_microseconds: answer[5],
        adaptive_receive: answer[10] != 0,
        adaptive_transmit: answer[11] != 0,
    })
}

/// Whether a link sleeps between packets (Energy-Efficient Ethernet, IEEE 802.3az).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnergyEfficient {
    /// Whether both ends agreed on it.
    pub active: bool,
    /// Whether this end offers it.
    pub enabled: bool,
}

/// The state of `interface`. `EOPNOTSUPP` where its driver has none.
pub fn energy_efficient(interface: &str) -> Result<EnergyEfficient> {
    let answer: [u32; 10] = ask(interface, GET_EEE, "ETHTOOL_GEEE")?;
    Ok(EnergyEfficient { active: answer[4] != 0, enabled: answer[5] != 0 })
}

/// Hands the kernel a command at the beginning of `N` words, which it fills.
pub(crate) fn ask<const N: usize>(interface: &str, command: u32, call: &'static str) -> Result<[u32; N]> {
    let mut words = [0_u32; N];
    words[0] = command;
    exchange(interface, libc::SIOCETHTOOL, words, call)
}

/// Hands the driver of `interface` the `N` words of the structure that `request` takes, and returns what they are then. A socket of
/// any family takes it (`sock_do_ioctl`, net/socket.c); units of ours leave AF_UNIX alone to their processes.
pub(crate) fn exchange<const N: usize>(
    interface: &str,
    request: libc::c_ulong,
    mut words: [u32; N],
    call: &'static str,
) -> Result<[u32; N]> {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let socket = socket.on("socket", "AF_UNIX")?;
    let mut of = request_of(interface, call)?;
    of.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: both outlive the call, and the structure that the request takes is exactly `N` words long.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), request as _, &mut of) };
    check(result, call, interface)?;
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Errno;

    #[test]
    fn what_has_no_driver_says_so() {
        for errno in [coalescing("lo").unwrap_err().errno, energy_efficient("lo").unwrap_err().errno] {
            assert_eq!(errno, Errno::OPNOTSUPP);
        }
        assert_eq!(coalescing("nosuchdevice0").unwrap_err().errno, Errno::NODEV);
        assert_eq!(coalescing("a-name-that-is-too-long").unwrap_err().errno, Errno::NODEV);
    }
}
