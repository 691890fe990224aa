//! What raw frames are sent as.

use crate::{ETHER_TYPE, ETHERNET};

/// What raw frames are sent as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// Frames of an EtherType for experiments.
    #[default]
    Plain,
    /// Sync messages of the Precision Time Protocol (IEEE 1588-2008, clause 13 and annex F): many cards stamp no other
    /// frames that they receive. Their domain, 255, is reserved: no clock obeys them.
    Ptp,
}

/// The EtherType of PTP.
const PTP_TYPE: u16 = 0x88f7;

/// The length of a Sync message: a header of 34 bytes, and a time.
const SYNC: usize = 44;

/// Where its number stands, by which some cards tell a stamp's frame.
const SEQUENCE: usize = 30;

/// Nobody's domain.
const DOMAIN: u8 = 255;

impl Carrier {
    /// The EtherType of its frames.
    pub fn ether_type(self) -> u16 {
        match self {
            Self::Plain => ETHER_TYPE,
            Self::Ptp => PTP_TYPE,
        }
    }

    /// Bytes before the frame proper, Ethernet's header included.
    pub(crate) fn head(self) -> usize {
        match self {
            Self::Plain => ETHERNET,
            Self::Ptp => ETHERNET + SYNC,
        }
    }

    /// What stands between Ethernet's header and the frame proper.
    pub(crate) fn message(self) -> Vec<u8> {
        if self == Self::Plain {
            return Vec::new();
        }
        let mut sync = vec![0; SYNC];
        // Version 2, the message's length, the domain.
        sync[1] = 2;
        sync[3] = SYNC as u8;
        sync[4] = DOMAIN;
        // No interval to the next one is known.
        sync[33] = 0x7f;
        sync
    }

    /// Numbers a frame whose bytes begin with Ethernet's header.
    #[inline]
    pub(crate) fn number(self, bytes: &mut [u8], number: u64) {
        if self == Self::Ptp {
            let place = ETHERNET + SEQUENCE;
            if let Some(place) = bytes.get_mut(place..place + 2) {
                place.copy_from_slice(&(number as u16).to_be_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_ptp_is_these_bytes() {
        let mut bytes = [&[0xee; ETHERNET][..], &Carrier::Ptp.message()].concat();
        Carrier::Ptp.number(&mut bytes, 0x1_0203);
        let mut expected = vec![0xee; ETHERNET];
        expected.extend([0, 2, 0, 44, 255, 0, 0, 0]);
        expected.extend([0; 22]);
        expected.extend([2, 3, 0, 0x7f]);
        expected.extend([0; 10]);
        assert_eq!(bytes, expected);
        assert_eq!((bytes.len(), Carrier::Ptp.ether_type()), (Carrier::Ptp.head(), 0x88f7));
        assert_eq!((Carrier::Plain.message().len(), Carrier::Plain.head()), (0, ETHERNET));
    }
}
