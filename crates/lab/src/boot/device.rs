//! Devices that a guest has beside those that the lab needs.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::guest::plan::Binding;

/// A device of QEMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// `edu`, which raises an interrupt when it is asked to (docs/specs/edu.rst of QEMU), given to user space by the driver
    /// uio_pci_generic.
    EduUio,
    /// The same, by the driver vfio-pci: its guest has an IOMMU.
    EduVfio,
    /// The high precision event timer, of a board on which its interrupts are free.
    Hpet,
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

impl Device {
    /// What the guest's machine has to be.
    pub(crate) fn board(self) -> Board {
        match self {
            Self::EduUio => Board::Usual,
            Self::EduVfio => Board::WithIommu,
            Self::Hpet => Board::WithTimers,
        }
    }

    /// QEMU's `-device`; none for a part of the board.
    pub(crate) fn argument(self) -> Option<&'static str> {
        match self {
            Self::EduUio | Self::EduVfio => Some("edu"),
            Self::Hpet => None,
        }
    }

    /// The modules that the guest needs for it.
    pub(crate) fn modules(self) -> &'static [&'static str] {
        match self {
            Self::EduUio => &["uio_pci_generic"],
            Self::EduVfio => &["vfio_iommu_type1", "vfio_pci"],
            Self::Hpet => &[],
        }
    }

    /// What gives it to its driver.
    pub(crate) fn binding(self) -> Option<Binding> {
        let driver = match self {
            Self::EduUio => "uio_pci_generic",
            Self::EduVfio => "vfio-pci",
            Self::Hpet => return None,
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
            _ => Err(Error::new(format!("there is no device `{text}` for guests: edu-uio, edu-vfio, hpet"))),
        }
    }
}
