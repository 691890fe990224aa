//! What the lab tells a run inside one of its guests.

use load::Limits;
use record::{Lab, Machine};
use sysroot::SysRoot;
use units::Bytes;

use failure::{Error, Result};

/// The guest that this program runs in, if the lab booted it.
pub fn guest() -> Result<Option<Lab>> {
    Lab::of_this_guest().map_err(undescribed)
}

/// The facts of this machine, with what the lab says of it if the lab booted it.
pub fn machine(root: &SysRoot) -> Result<Machine> {
    Ok(Machine { lab: guest()?, ..machine::machine(root) })
}

/// What loads may take: a guest's disk is small and holds nothing else.
pub fn limits(guest: Option<&Lab>) -> Limits {
    let limits = Limits::default();
    let disk_floor = if guest.is_some() { Bytes(0) } else { limits.disk_floor };
    Limits { disk_floor, ..limits }
}

fn undescribed(error: serde_json::Error) -> Error {
    let variable = Lab::VARIABLE;
    Error::new(
        format!("{variable} does not describe a guest of the lab: {error}"),
        format!("only the lab sets it, inside its guests: unset {variable}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::LabTime;

    fn described(value: &str) -> Result<Lab> {
        record::json::read(value.as_bytes()).map_err(undescribed)
    }

    #[test]
    fn a_guest_is_what_the_lab_says() {
        let lab = Lab {
            time: LabTime::Instructions,
            kernel: None,
            words: vec!["threadirqs".into()],
            emulator: "QEMU 7.2.17".into(),
            cpu_model: "max,-rdrand".into(),
            under: None,
            processors: 1,
            not_modelled: LabTime::Instructions.not_modelled(),
            images: None,
            parameters: Some(Vec::new()),
        };
        assert_eq!(described(&serde_json::to_string(&lab).unwrap()).unwrap(), lab);
    }

    #[test]
    fn anything_else_is_an_error_with_a_hint() {
        for value in ["", "1", "{}", r#"{"time":"minutes"}"#] {
            let error = described(value).unwrap_err();
            assert!(error.message.contains(Lab::VARIABLE) && error.hint.contains("unset"), "{error:?}");
        }
    }
}
