//! What drivers of network interfaces say of themselves where no file does. A system call answers on the running system; a
//! snapshot has the answer under a path of its own, and a directory may have it there.

use record::Fact;
use sys::ethtool;
use sysroot::SysRoot;

/// Where answers stand in snapshots.
const PLACE: &str = "/worstcase/ethtool";

/// How long an interface gathers packets before it interrupts, as `ethtool -c` names it: `adaptive-rx on`, `rx-usecs 50`. Unreadable
/// (EOPNOTSUPP) where its driver has no such settings.
pub fn coalescing(root: &SysRoot, interface: &str) -> Fact<Coalescing> {
    let asked = || {
        ethtool::coalescing(interface).map(|answer| {
            format!(
                "adaptive-rx {}\nrx-usecs {}\n",
                if answer.adaptive_receive { "on" } else { "off" },
                answer.receive_microseconds
            )
        })
    };
    answer(root, &format!("{PLACE}/{interface}/coalesce"), asked).map(|text| Coalescing {
        adaptive: value(&text, "adaptive-rx") == Some("on"),
        microseconds: value(&text, "rx-usecs").and_then(|number| number.parse().ok()).unwrap_or_default(),
    })
}

/// How long received packets wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coalescing {
    /// Whether the driver chooses the time by the rate of packets.
    pub adaptive: bool,
    /// The longest wait, in microseconds.
    pub microseconds: u32,
}

/// Whether both ends of an interface's link let it sleep between packets (Energy-Efficient Ethernet). Unreadable (EOPNOTSUPP) where its
/// driver has no such settings.
pub fn sleeps_between_packets(root: &SysRoot, interface: &str) -> Fact<bool> {
    let asked = || {
        ethtool::energy_efficient(interface)
            .map(|answer| if answer.active { "active\n" } else { "not active\n" }.to_owned())
    };
    answer(root, &format!("{PLACE}/{interface}/eee"), asked).map(|text| text.trim() == "active")
}

fn answer(root: &SysRoot, path: &str, ask: impl FnOnce() -> sys::Result<String>) -> Fact<String> {
    let read = || match root.is_live() {
        true => {
            ask().map_or_else(|error| Fact::Unreadable(error.number()), |text| Fact::Value(text.into_bytes()))
        }
        false => root.beginning(path, 4096),
    };
    root.bytes_or(path, read).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}
