//! The network card that stamps frames beside the kernel.

use failure::Error;
use record::instrument::response::ResponseSetup;
use sys::Errno;
use sys::net::card::{self, Abilities, CardClock, Reception};

use crate::keeper::Keeper;

/// Has the card stamp frames for as long as this process measures, where nobody has had it stamp any yet: what another program
/// wants of it stays as it is.
pub(super) fn hold(setup: &ResponseSetup) -> Result<Option<Keeper>, Error> {
    let Some(interface) = setup.interface.clone().filter(|_| setup.hardware_stamps) else { return Ok(None) };
    let able = abilities(&interface)?;
    // What cannot be read could not be put back. A program that has its privileges from its file changes nothing.
    let off = card::stamping(&interface).ok().filter(|now| now.is_off());
    let Some(off) = off.filter(|_| !sys::privilege::comes_from_file()) else { return Ok(None) };
    let received = match able.received {
        Reception::Ptp if !setup.ptp_frames => Reception::None,
        received => received,
    };
    let change = || card::set_stamping(&interface, able.stamping(received));
    let put_back = |ours| {
        if card::stamping(&interface) == Ok(ours) {
            let _ = card::set_stamping(&interface, off);
        }
    };
    Keeper::start("SIOCSHWTSTAMP", change, put_back).map(Some).map_err(not_set)
}

/// The clock by which the card stamps.
pub(super) fn clock(setup: &ResponseSetup) -> Result<Option<CardClock>, Error> {
    let Some(interface) = setup.interface.as_deref().filter(|_| setup.hardware_stamps) else {
        return Ok(None);
    };
    let Some(number) = abilities(interface)?.clock else { return Ok(None) };
    let clock = CardClock::open(number);
    clock.map(Some).map_err(|error| {
        Error::from(error).with_hint("run as root: the card's clock is root's on most systems")
    })
}

fn abilities(interface: &str) -> Result<Abilities, Error> {
    let hint = "`ethtool -T` shows what its driver stamps; without --hardware-stamps the kernel's own stamps are used";
    let able = card::abilities(interface).map_err(|error| Error::from(error).with_hint(hint))?;
    if able.any() {
        Ok(able)
    } else {
        Err(Error::new(format!("{interface} has no hardware time stamps"), hint))
    }
}

fn not_set(error: sys::Error) -> Error {
    let hint = match error.errno {
        Errno::PERM => {
            "run as root (CAP_NET_ADMIN), or switch its stamps on before: hwstamp_ctl -i NAME -t 1 -r 1"
        }
        _ => {
            "the card refuses what its driver offers; without --hardware-stamps the kernel's own stamps are used"
        }
    };
    Error::from(error).with_hint(hint)
}
