//! Who answers.

use std::net::SocketAddr;

use sys::net::Mac;

/// A peer on the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Answers UDP; by this interface alone, where one is named.
    Udp(SocketAddr, Option<String>),
    /// Answers raw frames on this interface; none: whoever answers a broadcast.
    Raw(String, Option<Mac>),
}

impl Peer {
    /// The peer at `address`: `ADDRESS:PORT`, or a hardware address and the name of an interface.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(address: &str, interface: Option<&str>) -> Result<Self, String> {
        match (mac(address), interface) {
            (Some(_), None) => Err("raw frames need the interface that they are sent by".into()),
            (Some([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), Some(interface)) => {
                Ok(Self::Raw(interface.into(), None))
            }
            (Some(mac), Some(_)) if mac[0] & 1 == 1 => {
                Err("it is the address of a group, and nobody answers from it".into())
            }
            (Some(mac), Some(interface)) => Ok(Self::Raw(interface.into(), Some(mac))),
            (None, interface) => {
                let address = address.parse().map_err(|_| {
                    format!(
                        "`{address}` is neither an IP address nor a hardware address as in 02:00:00:00:00:01"
                    )
                })?;
                Ok(Self::Udp(address, interface.map(str::to_owned)))
            }
        }
    }
}

/// `02:00:00:00:00:01`.
fn mac(text: &str) -> Option<Mac> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let part = parts.next().filter(|part| part.len() == 2)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_kinds_are_known_apart() {
        let raw = |mac| Ok(Peer::Raw("eth0".into(), mac));
        assert_eq!(Peer::new("02:00:00:00:00:fe", Some("eth0")), raw(Some([2, 0, 0, 0, 0, 0xfe])));
        assert_eq!(Peer::new("ff:ff:ff:ff:ff:ff", Some("eth0")), raw(None));
        let udp = Peer::new("10.0.0.2:2307", None);
        assert_eq!(udp, Ok(Peer::Udp(([10, 0, 0, 2], 2307).into(), None)));
        assert!(matches!(Peer::new("[::1]:7", Some("lo")), Ok(Peer::Udp(_, Some(_)))));
        for (address, interface) in [
            ("02:00:00:00:00:01", None),
            ("03:00:00:00:00:01", Some("eth0")),
            ("02:00:00:00:00", Some("eth0")),
            ("02:00:00:00:00:01:02", Some("eth0")),
            ("10.0.0.2", None),
            ("", None),
        ] {
            assert!(Peer::new(address, interface).is_err(), "{address}");
        }
    }
}
