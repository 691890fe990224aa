//! Which of Debian's kernels is wanted, and by which names it goes.

use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::kernels::Architecture;

/// Debian's builds of one source for one architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// The ordinary one.
    Plain,
    /// PREEMPT_RT.
    Rt,
    /// For virtual machines of cloud providers: few drivers.
    Cloud,
}

impl Flavour {
    /// What stands for it in names: nothing for the ordinary one.
    fn part(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Rt => "rt-",
            Self::Cloud => "cloud-",
        }
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Rt => "rt",
            Self::Cloud => "cloud",
        })
    }
}

impl FromStr for Flavour {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        [Self::Plain, Self::Rt, Self::Cloud]
            .into_iter()
            .find(|flavour| flavour.to_string() == name)
            .ok_or_else(|| {
                Error::new(format!("Debian has no flavour {name}")).hint("there are plain, rt and cloud")
            })
    }
}

/// One of Debian's kernels. As text it is its name in the cache: `debian-6.1-rt-amd64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// `6.1` for the newest one of 6.1, `6.1.0-56` for that one; none for the distribution's own.
    pub version: Option<String>,
    /// Which build.
    pub flavour: Flavour,
    /// For which machine.
    pub architecture: Architecture,
}

impl Wanted {
    /// Its name in the cache, where `version` is what it goes by.
    pub fn name(&self, version: &str) -> String {
        format!("debian-{version}-{}", self.tail())
    }

    /// The arguments of `worstcase lab kernels fetch` that fetch it.
    pub fn arguments(&self) -> String {
        let version = self.version.iter().map(|version| format!(" --version {version}")).collect::<String>();
        format!("debian{version} --flavour {} --arch {}", self.flavour, self.architecture)
    }

    /// `rt-amd64`: how the names of packages and of releases end.
    fn tail(&self) -> String {
        format!("{}{}", self.flavour.part(), self.architecture)
    }

    /// The packages that can bring it, the best one first: an image or a meta package of that version, signed or not,
    /// then the meta package of whatever version.
    pub(super) fn packages(&self) -> Vec<String> {
        let tail = self.tail();
        let own = self.version.iter().flat_map(|version| {
            let name = format!("linux-image-{version}-{tail}");
            [name.clone(), format!("{name}-unsigned")]
        });
        own.chain([format!("linux-image-{tail}")]).collect()
    }

    /// Whether a release, `6.1.0-56-rt-amd64`, is of the version that is wanted.
    pub(super) fn is_of(&self, release: &str) -> bool {
        let Some(version) = &self.version else { return true };
        let rest = release.strip_prefix(version.as_str());
        rest.is_some_and(|rest| rest.starts_with(['.', '-', '+']))
    }

    /// The version in a package's name, if the package is of this flavour and architecture.
    pub(super) fn version_in(&self, package: &str) -> Option<String> {
        let version = package.strip_prefix("linux-image-")?.strip_suffix(&self.tail())?.strip_suffix('-')?;
        let plain = version.split('-').all(|part| part.starts_with(|first: char| first.is_ascii_digit()));
        plain.then(|| version.to_owned())
    }
}

impl FromStr for Wanted {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let parts = || {
            let (rest, architecture) = name.strip_prefix("debian-")?.rsplit_once('-')?;
            let architecture = architecture.parse().ok()?;
            let (version, flavour) = match rest.rsplit_once('-') {
                Some((version, "rt")) => (version, Flavour::Rt),
                Some((version, "cloud")) => (version, Flavour::Cloud),
                _ => (rest, Flavour::Plain),
            };
            let begins = version.starts_with(|first: char| first.is_ascii_digit());
            begins.then(|| Self { version: Some(version.to_owned()), flavour, architecture })
        };
        parts().ok_or_else(|| {
            Error::new(format!("{name} is no name of one of Debian's kernels"))
                .hint("as in debian-6.1-rt-amd64")
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_those_of_the_packages() {
        let wanted: Wanted = "debian-6.12-rt-amd64".parse().unwrap();
        assert_eq!(
            wanted.packages(),
            ["linux-image-6.12-rt-amd64", "linux-image-6.12-rt-amd64-unsigned", "linux-image-rt-amd64"]
        );
        assert_eq!(wanted.arguments(), "debian --version 6.12 --flavour rt --arch amd64");
        assert!(wanted.is_of("6.12.117+deb12-rt-amd64") && !wanted.is_of("6.1.0-56-rt-amd64"));
        let plain: Wanted = "debian-6.1-amd64".parse().unwrap();
        assert!(plain.is_of("6.1.0-56-amd64") && !plain.is_of("6.12.117+deb12-amd64"));
        let exact: Wanted = "debian-6.1.0-56-cloud-arm64".parse().unwrap();
        assert_eq!(exact.packages()[0], "linux-image-6.1.0-56-cloud-arm64");
        assert_eq!(plain.version_in("linux-image-6.1.0-56-amd64").as_deref(), Some("6.1.0-56"));
        for other in ["linux-image-amd64", "linux-image-6.1.0-56-rt-amd64", "linux-image-6.1.0-56-amd64-dbg"]
        {
            assert_eq!(plain.version_in(other), None, "{other}");
        }
        for name in ["debian", "debian-6.1", "debian-rt-amd64", "mine-6.1-amd64", "debian-6.1-rt-riscv64"] {
            assert!(name.parse::<Wanted>().is_err(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_name_means_what_was_named(version in "[1-9][.][0-9]{1,2}([.]0-[0-9]{2})?", flavour in 0..3_usize, arm: bool) {
            let wanted = Wanted {
                version: Some(version.clone()),
                flavour: [Flavour::Plain, Flavour::Rt, Flavour::Cloud][flavour],
                architecture: if arm { Architecture::Arm64 } else { Architecture::Amd64 },
            };
            prop_assert_eq!(wanted.name(&version).parse::<Wanted>().unwrap(), wanted);
        }
    }
}
