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
    /// GPIO lines that a process of the host has at this socket: vhost-user-gpio (VIRTIO 1.2, section 5.18). They belong to no
    /// guest alone, so that the lines of two guests can be joined.
    Gpio(PathBuf),
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

/// What the socket of a guest's lines is called in front.
const GPIO: &str = "gpio:";

impl Device {
    /// What the guest's machine has to be.
    pub(crate) fn board(&self) -> Board {
        match self {
            Self::EduUio | Self::Gpio(_) => Board::Usual,
            Self::EduVfio => Board::WithIommu,
            Self::Hpet => Board::WithTimers,
        }
    }

    /// QEMU's arguments; none for a part of the board.
    pub(crate) fn arguments(&self) -> Vec<String> {
        match self {
            Self::EduUio | Self::EduVfio => ["-device", "edu"].map(str::to_owned).into(),
            Self::Hpet => Vec::new(),
            Self::Gpio(socket) => {
                // A comma ends a value, two are one.
                let path = socket.to_string_lossy().replace(',', ",,");
                let lines = "vhost-user-gpio-pci,chardev=lines".to_owned();
                vec!["-chardev".into(), format!("socket,id=lines,path={path}"), "-device".into(), lines]
            }
        }
    }

    /// A socket of the host that must be there.
    pub(crate) fn socket(&self) -> Option<&Path> {
        match self {
            Self::Gpio(socket) => Some(socket),
            Self::EduUio | Self::EduVfio | Self::Hpet => None,
        }
    }

    /// The modules that the guest needs for it.
    pub(crate) fn modules(&self) -> &'static [&'static str] {
        match self {
            Self::EduUio => &["uio_pci_generic"],
            Self::EduVfio => &["vfio_iommu_type1", "vfio_pci"],
            Self::Hpet => &[],
            Self::Gpio(_) => &["gpio_virtio"],
        }
    }

    /// What gives it to its driver.
    pub(crate) fn binding(&self) -> Option<Binding> {
        let driver = match self {
            Self::EduUio => "uio_pci_generic",
            Self::EduVfio => "vfio-pci",
            Self::Hpet | Self::Gpio(_) => return None,
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
            _ => match text.strip_prefix(GPIO).filter(|socket| !socket.is_empty()) {
                Some(socket) => Ok(Self::Gpio(socket.into())),
                None => Err(Error::new(format!(
                    "there is no device `{text}` for guests: edu-uio, edu-vfio, hpet, gpio:SOCKET"
                ))),
            },
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EduUio => to.write_str("edu-uio"),
            Self::EduVfio => to.write_str("edu-vfio"),
            Self::Hpet => to.write_str("hpet"),
            Self::Gpio(socket) => write!(to, "{GPIO}{}", socket.display()),
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
        for text in ["edu-uio", "edu-vfio", "hpet", "gpio:/run/a,b"] {
            let device: Device = text.parse().unwrap();
            assert_eq!(device.to_string(), text);
            let json = serde_json::to_string(&device).unwrap();
            assert_eq!(serde_json::from_str::<Device>(&json).unwrap(), device);
        }
        for text in ["", "edu", "gpio", "gpio:"] {
            let error = text.parse::<Device>().unwrap_err();
            assert!(error.message.contains("gpio:SOCKET"), "{error}");
        }
    }
}
