//! What guests are made of, as far as it decides what they measure: figures of guests that differ in it must not stand
//! side by side as if they did not.

use record::LabImages;
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
    /// What differs between guests that were made of this and guests made of `now`, a sentence each.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let mut all = Vec::new();
        if self.emulator != now.emulator {
            all.push(format!("the emulator was {} and is {}", self.emulator, now.emulator));
        }
        let files = [
            ("the kernel's image", &self.images.kernel, &now.images.kernel),
            ("the guest's worstcase", &self.images.binary, &now.images.binary),
            (
                "the guest's root (programs, libraries, modules, disk)",
                &self.images.initramfs,
                &now.images.initramfs,
            ),
            ("the kernel as the host unpacks it", &self.images.booted, &now.images.booted),
        ];
        for (what, then, now) in files {
            if then != now {
                all.push(format!("{what} had SHA-256 {} and has {}", then.short(), now.short()));
            }
        }
        // The root holds the worstcase, and the kernel is unpacked from its image: the cause says it alone.
        let has_cause = |cause: &str| all.iter().any(|one: &String| one.starts_with(cause));
        let (binary, image) = (has_cause("the guest's worstcase"), has_cause("the kernel's image"));
        all.retain(|one| !(one.starts_with("the guest's root") && (binary || image)));
        all.retain(|one| !(one.starts_with("the kernel as") && image));
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
        Err(Error::new(format!("this {what} was begun with other guests: {}", differences.join("; "))).hint(
            "their results do not compare: use what it was begun with (--guest-binary names \
             another worstcase, PATH another QEMU), or begin anew in another directory",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Digest;

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
        let only = |now: [&str; 4]| begun.differences(&made_of("QEMU 7.2.22", now)).join("; ");
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
    }
}
