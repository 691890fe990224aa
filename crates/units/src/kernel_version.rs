//! Versions of the kernel, compared by their numbers.

use std::fmt;
use std::str::FromStr;

/// A kernel's version: `6.12`, `6.1.0-56-rt-amd64`, `5.10.0-rc3`. What follows the third number is left out: it is
/// the distribution's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVersion {
    /// The first number.
    pub major: u16,
    /// The second.
    pub minor: u16,
    /// The third; 0 where there is none.
    pub patch: u16,
}

impl KernelVersion {
    /// The version `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor, patch: 0 }
    }
}

/// A text that does not begin with `NUMBER.NUMBER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAVersion(pub String);

impl fmt::Display for NotAVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no kernel version: two or three numbers with dots, as in 6.12", self.0)
    }
}

impl std::error::Error for NotAVersion {}

impl FromStr for KernelVersion {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let mut numbers = text.trim().splitn(3, '.').map(leading_number);
        match (numbers.next().flatten(), numbers.next().flatten(), numbers.next()) {
            (Some(major), Some(minor), patch) => {
                Ok(Self { major, minor, patch: patch.flatten().unwrap_or_default() })
            }
            _ => Err(NotAVersion(text.to_owned())),
        }
    }
}

fn leading_number(text: &str) -> Option<u16> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { major, minor, patch } = self;
        if *patch == 0 { write!(f, "{major}.{minor}") } else { write!(f, "{major}.{minor}.{patch}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn releases_of_distributions_are_read_and_compared_by_number() {
        let version = |text: &str| text.parse::<KernelVersion>().unwrap();
        assert_eq!(version("6.1.0-56-rt-amd64"), KernelVersion::new(6, 1));
        assert_eq!(version("6.12"), KernelVersion::new(6, 12));
        assert_eq!(version("3.12.19-rt30").patch, 19);
        assert_eq!(version("6.18-rc3"), KernelVersion::new(6, 18));
        assert!(version("6.9.3") < version("6.12"));
        assert!("six".parse::<KernelVersion>().is_err());
        assert!("6".parse::<KernelVersion>().is_err());
        assert!("99999.1".parse::<KernelVersion>().is_err());
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(major in 0_u16..99, minor: u16, patch: u16) {
            let version = KernelVersion { major, minor, patch };
            prop_assert_eq!(version.to_string().parse(), Ok(version));
        }

        #[test]
        fn any_text_is_answered_without_a_panic(text in ".{0,20}") {
            let _ = text.parse::<KernelVersion>();
        }
    }
}
