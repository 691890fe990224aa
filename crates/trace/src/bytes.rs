//! Numbers in either order of bytes, out of slices that may be too short.

/// How the machine that was traced lays out a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The least significant byte first.
    Little,
    /// The most significant byte first.
    Big,
}

impl Order {
    /// That of this machine.
    pub const fn native() -> Self {
        if cfg!(target_endian = "big") { Self::Big } else { Self::Little }
    }

    /// The number that `bytes` hold; none unless they are 1, 2, 4 or 8.
    pub fn number(self, bytes: &[u8]) -> Option<u64> {
        Some(match bytes.len() {
            1 => bytes[0].into(),
            2 => self.u16(bytes, 0)?.into(),
            4 => self.u32(bytes, 0)?.into(),
            8 => self.u64(bytes, 0)?,
            _ => return None,
        })
    }

    pub(crate) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = array(bytes, at)?;
        Some(match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        })
    }

    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = array(bytes, at)?;
        Some(match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        })
    }

    pub(crate) fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes = array(bytes, at)?;
        Some(match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        })
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// A number of `size` bytes as a signed one.
pub(crate) fn signed(number: u64, size: usize) -> i64 {
    let unused = 64 - 8 * size.clamp(1, 8);
    i64::from_ne_bytes((number << unused).to_ne_bytes()) >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_both_orders_and_short_slices_have_none() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(Order::Little.u16(&bytes, 7), Some(0x0908));
        assert_eq!(Order::Big.u32(&bytes, 5), Some(0x0607_0809));
        assert_eq!(Order::Big.number(&bytes[..8]), Some(0x0102_0304_0506_0708));
        assert_eq!((Order::Little.number(&bytes[..3]), Order::Little.u64(&bytes, 2)), (None, None));
        assert_eq!(Order::Little.u16(&bytes, usize::MAX), None);
    }

    #[test]
    fn the_sign_is_that_of_the_size() {
        assert_eq!((signed(0xff, 1), signed(0xff, 2), signed(u64::MAX, 8)), (-1, 255, -1));
        assert_eq!(signed(0xffff_fff6, 4), -10);
    }
}
