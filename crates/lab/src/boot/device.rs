//! Devices that a guest has beside those that the lab needs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::guest::plan::Binding;

/// A device of QEMU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Device {
    /// `edu`, which raises an interrupt when it is asked to (docs/specs/edu.rst of QEMU), given to user space by the driver
    /// uio_pci_generic.
    EduUio,
    /// The same, by the driver vfio-pci: its guest has an IOMMU.
    EduVfio,
    /// The high precision event timer, of a board on which its interrupts are free.
    Hpet,
    /// No device: `/dev/kvm`, by the virtualization that QEMU's CPU has.
    Kvm,
    /// GPIO lines that a process of the host has at this socket: vhost-user-gpio (VIRTIO 1.2, section 5.18). They belong to no
    /// guest alone, so that the lines of two guests can be joined.
    Gpio(PathBuf),
    /// A network card at one end of a cable: datagrams between two sockets of the host, each of which is another guest's own.
    Network {
        /// Its sort.
        card: Card,
        /// This guest's, which QEMU makes.
        own: PathBuf,
        /// The other's, which may come later: until then frames are lost.
        peer: PathBuf,
    },
}

/// A sort of network card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Card {
    /// virtio: it stamps no frames.
    Virtio,
    /// Intel's 82576 (QEMU 8.0), which stamps frames by a clock of its own: each that it sends, and messages of PTP that it
    /// receives.
    Igb,
}

impl Card {
    const ALL: [Self; 2] = [Self::Virtio, Self::Igb];

    /// What stands before the sockets.
    fn prefix(self) -> &'static str {
        match self {
            Self::Virtio => "network:",
            Self::Igb => "igb:",
        }
    }

    /// QEMU's name for it.
    fn model(self) -> &'static str {
        match self {
            Self::Virtio => "virtio-net-pci",
            Self::Igb => "igb",
        }
    }
}

/// What a device asks of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Board {
    /// Nothing.
    Usual,
    /// A high precision event timer with interrupts of its own.
    WithTimers,
    /// An IOMMU that keeps devices apart.
    WithIommu,
}

/// What stands before the socket of GPIO lines.
const GPIO: &str = "gpio:";

/// A path in a value of QEMU's: a comma ends it, two are one.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

/// Two cards with one address are one card for both guests: the address is made of the socket's path.
fn hardware_address(own: &Path) -> String {
    let mut crc = flate2::Crc::new();
    crc.update(own.as_os_str().as_encoded_bytes());
    let [_, bytes @ ..] = crc.sum().to_be_bytes();
    let [first, second, third] = bytes;
    // Locally administered; the first three are QEMU's.
    format!("52:54:00:{first:02x}:{second:02x}:{third:02x}")
}

impl Device {
    /// What the guest's machine has to be.
    pub(crate) fn board(&self) -> Board {
        match self {
            Self::EduUio | Self::Kvm | Self::Gpio(_) | Self::Network { .. } => Board::Usual,
            Self::EduVfio => Board::WithIommu,
            Self::Hpet => Board::WithTimers,
        }
    }

    /// QEMU's arguments; none for a part of the board.
    pub(crate) fn arguments(&self) -> Vec<String> {
        match self {
            Self::EduUio | Self::EduVfio => ["-device", "edu"].map(str::to_owned).into(),
            Self::Hpet | Self::Kvm => Vec::new(),
            Self::Gpio(socket) => {
                let lines = "vhost-user-gpio-pci,chardev=lines".to_owned();
                let path = escaped(socket);
                vec!["-chardev".into(), format!("socket,id=lines,path={path}"), "-device".into(), lines]
            }
            Self::Network { card, own, peer } => {
                let [local, remote] = [own, peer].map(|path| escaped(path));
                let cable = format!(
                    "dgram,id=cable,local.type=unix,local.path={local},remote.type=unix,remote.path={remote}"
                );
                let card = format!("{},netdev=cable,mac={}", card.model(), hardware_address(own));
                vec!["-netdev".into(), cable, "-device".into(), card]
            }
        }
    }

    /// The socket of a process that reads and writes what the guest has for the device, and must be there first.
    pub(crate) fn socket(&self) -> Option<&Path> {
        match self {
            Self::Gpio(socket) => Some(socket),
            Self::EduUio | Self::EduVfio | Self::Hpet | Self::Kvm | Self::Network { .. } => None,
        }
    }

    /// Whether what comes over it comes from outside, when it will.
    pub(crate) fn is_of_the_host(&self) -> bool {
        matches!(self, Self::Gpio(_) | Self::Network { .. })
    }

    /// The modules that the guest needs for it.
    pub(crate) fn modules(&self) -> &'static [&'static str] {
        match self {
            Self::EduUio => &["uio_pci_generic"],
            Self::EduVfio => &["vfio_iommu_type1", "vfio_pci"],
            Self::Hpet => &[],
            Self::Kvm => &["kvm_amd"],
            Self::Gpio(_) => &["virtio_pci", "gpio_virtio"],
            Self::Network { card: Card::Virtio, .. } => &["virtio_pci", "virtio_net"],
            Self::Network { card: Card::Igb, .. } => &["igb"],
        }
    }

    /// What gives it to its driver.
    pub(crate) fn binding(&self) -> Option<Binding> {
        let driver = match self {
            Self::EduUio => "uio_pci_generic",
            Self::EduVfio => "vfio-pci",
            Self::Hpet | Self::Kvm | Self::Gpio(_) | Self::Network { .. } => return None,
        };
        Some(Binding { driver: driver.into(), id: "1234 11e8".into() })
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "edu-uio" => Ok(Self::EduUio),
            "edu-vfio" => Ok(Self::EduVfio),
            "hpet" => Ok(Self::Hpet),
            "kvm" => Ok(Self::Kvm),
            _ => with_sockets(text).ok_or_else(|| {
                Error::new(format!(
                    "there is no device `{text}` for guests: edu-uio, edu-vfio, hpet, kvm, gpio:SOCKET, network:OWN:PEER, igb:OWN:PEER"
                ))
            }),
        }
    }
}

/// A device whose other end is on the host.
fn with_sockets(text: &str) -> Option<Device> {
    if let Some(socket) = text.strip_prefix(GPIO) {
        return (!socket.is_empty()).then(|| Device::Gpio(socket.into()));
    }
    let sockets = |card: Card| Some((card, text.strip_prefix(card.prefix())?));
    let (card, sockets) = Card::ALL.into_iter().find_map(sockets)?;
    let (own, peer) = sockets.split_once(':')?;
    let is_cable = !own.is_empty() && !peer.is_empty() && own != peer;
    is_cable.then(|| Device::Network { card, own: own.into(), peer: peer.into() })
}

impl fmt::Display for Device {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EduUio => to.write_str("edu-uio"),
            Self::EduVfio => to.write_str("edu-vfio"),
            Self::Hpet => to.write_str("hpet"),
            Self::Kvm => to.write_str("kvm"),
            Self::Gpio(socket) => write!(to, "{GPIO}{}", socket.display()),
            Self::Network { card, own, peer } => {
                write!(to, "{}{}:{}", card.prefix(), own.display(), peer.display())
            }
        }
    }
}

impl TryFrom<String> for Device {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_written_as_it_is_read() {
        for text in ["edu-uio", "edu-vfio", "hpet", "kvm", "gpio:/run/a,b", "network:a:b", "igb:a:b"] {
            let device: Device = text.parse().unwrap();
            assert_eq!(device.to_string(), text);
            let json = serde_json::to_string(&device).unwrap();
            assert_eq!(serde_json::from_str::<Device>(&json).unwrap(), device);
        }
        for text in
            ["", "edu", "gpio", "gpio:", "network:", "network:a", "network:a:", "network:a:a", "igb:a"]
        {
            let error = text.parse::<Device>().unwrap_err();
            assert!(error.message.contains("gpio:SOCKET"), "{error}");
        }
    }

    #[test]
    fn the_cards_of_two_guests_have_addresses_of_their_own() {
        let address = |own: &str| hardware_address(own.as_ref());
        assert_ne!(address("/tmp/a"), address("/tmp/b"));
        assert!(address("/tmp/a").starts_with("52:54:00:") && address("/tmp/a").len() == 17);
    }
}
