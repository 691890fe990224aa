//! Variables of UEFI firmware as the kernel shows them: four bytes of attributes, then the value; a text is UTF-16 up to a
//! zero. (Kernel, Documentation/filesystems/efivarfs.rst.)

const ATTRIBUTES: usize = 4;

/// The value of one that is a text.
pub fn text(bytes: &[u8]) -> String {
    let units = bytes.get(ATTRIBUTES..).unwrap_or_default().chunks_exact(2);
    let units = units.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).take_while(|unit| *unit != 0);
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// The same variable with another text.
pub fn with_text(bytes: &[u8], change: impl FnOnce(&str) -> String) -> Vec<u8> {
    let attributes = bytes.iter().take(ATTRIBUTES).copied();
    let text = change(&text(bytes));
    attributes.chain(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_utf_16_behind_attributes() {
        let bytes = with_text(&[7, 0, 0, 0, b'x'], |_| "a*.conf".to_owned());
        assert_eq!(bytes[..8], [7, 0, 0, 0, b'a', 0, b'*', 0]);
        assert_eq!(text(&bytes), "a*.conf");
        assert_eq!(text(&[bytes.as_slice(), b"behind the zero"].concat()), "a*.conf");
        assert_eq!(text(&[6, 0]), "", "cut off");
        assert_eq!(text(&[6, 0, 0, 0, b'a', 0, b'b']), "a");
        assert_eq!(text(&[6, 0, 0, 0, 0, 0xd8, b'a', 0]), "\u{fffd}a", "half of a pair");
    }
}
