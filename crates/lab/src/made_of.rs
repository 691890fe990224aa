//! What guests are made of, as far as it decides what they measure: figures of guests that differ in it must not stand
//! side by side as if they did not.

use record::{Digest, LabImages};
use serde::{Deserialize, Serialize};

use crate::Error;

/// The emulator and the files of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MadeOf {
    /// The emulator with its version: `QEMU 7.2.22`.
    pub emulator: String,
    /// Hashes of the files.
    pub images: LabImages,
}

impl MadeOf {
    /// What differs between guests that were made of this and guests made of `now`.
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        let mut all = Vec::new();
        if self.emulator != now.emulator {
            let message = format!("the emulator was {} and is {}", self.emulator, now.emulator);
            all.push(Difference { message, cure: "PATH chooses the QEMU" });
        }
        let mut file = |what: &str, cure, then: &Digest, now: &Digest| {
            let is_other = then != now;
            if is_other {
                let message = format!("{what} had SHA-256 {} and has {}", then.short(), now.short());
                all.push(Difference { message, cure });
            }
            is_other
        };
        let (then, now) = (&self.images, &now.images);
        let image = file("the kernel's image", "boot the image of then", &then.kernel, &now.kernel);
        let worstcase = "--guest-binary names the worstcase of then";
        let binary = file("the guest's worstcase", worstcase, &then.binary, &now.binary);
        // The root holds the worstcase, and the kernel is unpacked from its image: the cause says it alone.
        if !image && !binary {
            let what = "the guest's root (programs of --with, libraries, modules, disk)";
            let cure =
                "put back the programs of --with, their libraries and the kernel's modules as they were";
            file(what, cure, &then.initramfs, &now.initramfs);
        }
        if !image {
            let cure = "unpack the kernel with the host's programs of then";
            file("the kernel as the host unpacks it", cure, &then.booted, &now.booted);
        }
        all
    }

    /// Refuses guests that are made of something else than those that `what` (a ladder, a bisection) was begun with.
    ///
    /// # Errors
    /// What differs, and what to do.
    pub fn check(&self, now: &Self, what: &str) -> Result<(), Error> {
        let differences = self.differences(now);
        if differences.is_empty() {
            return Ok(());
        }
        let (message, cures) = Difference::joined(&differences);
        Err(Error::new(format!("this {what} was begun with other guests: {message}"))
            .hint(format!("their results do not compare: {cures}; or begin anew in another directory")))
    }
}

/// Something that guests are made of, and that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What it was and what it is.
    pub message: String,
    /// How it becomes again what it was.
    pub cure: &'static str,
}

impl Difference {
    /// All messages, and all cures.
    pub fn joined(all: &[Self]) -> (String, String) {
        let messages: Vec<&str> = all.iter().map(|one| one.message.as_str()).collect();
        let cures: Vec<&str> = all.iter().map(|one| one.cure).collect();
        (messages.join("; "), cures.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_of(emulator: &str, [kernel, booted, binary, initramfs]: [&str; 4]) -> MadeOf {
        let digest = |text: &str| Digest(text.repeat(20));
        let images = LabImages {
            kernel: digest(kernel),
            booted: digest(booted),
            binary: digest(binary),
            initramfs: digest(initramfs),
        };
        MadeOf { emulator: emulator.into(), images }
    }

    #[test]
    fn each_difference_is_named_by_its_cause() {
        let begun = made_of("QEMU 7.2.22", ["a", "b", "c", "d"]);
        assert!(begun.check(&begun.clone(), "ladder").is_ok());
        let error = begun.check(&made_of("QEMU 10.0.2", ["a", "b", "c", "d"]), "ladder").unwrap_err();
        assert!(error.message.ends_with("the emulator was QEMU 7.2.22 and is QEMU 10.0.2"), "{error}");
        assert!(error.hint.unwrap().contains("begin anew"));
        let all = |now: [&str; 4]| Difference::joined(&begun.differences(&made_of("QEMU 7.2.22", now)));
        let only = |now: [&str; 4]| all(now).0;
        assert_eq!(
            only(["a", "b", "e", "f"]),
            "the guest's worstcase had SHA-256 cccccccccccc and has eeeeeeeeeeee"
        );
        assert_eq!(
            only(["e", "f", "c", "g"]),
            "the kernel's image had SHA-256 aaaaaaaaaaaa and has eeeeeeeeeeee"
        );
        assert!(only(["a", "b", "c", "e"]).starts_with("the guest's root"));
        assert!(only(["a", "e", "c", "d"]).starts_with("the kernel as the host unpacks it"));
        assert!(all(["a", "b", "e", "f"]).1.starts_with("--guest-binary"));
        assert!(all(["a", "b", "c", "e"]).1.starts_with("put back the programs of --with"));
    }
}
