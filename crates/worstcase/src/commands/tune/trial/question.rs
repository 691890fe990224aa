//! What is asked, as it stands in `trial.json`: enough to go on with it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lab::kept::Resumable;
use lab::ladder::state::KernelTold;
use record::time::UtcTime;
use record::{LabTime, Unit, Wake};
use serde::{Deserialize, Serialize};
use trial::{Arm, Design};
use units::{Bytes, CpuList, Nanos, Seed};

use super::setting::Setting;
use crate::error::Result;

/// An experiment and where it is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Question {
    /// The form's version.
    pub schema_version: u32,
    /// The program's version.
    pub tool: String,
    /// When it was begun.
    pub started: UtcTime,
    /// Whether the smallest set is searched.
    pub search: bool,
    /// What is tried.
    pub design: Design,
    /// What each block is measured under.
    pub conditions: Conditions,
    /// By what.
    pub place: Place,
}

/// What each block is measured under.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Conditions {
    /// The load, as the record calls it.
    pub load: String,
    /// The command that it is, if it is not of the catalogue.
    pub load_command: Option<String>,
    /// How long a block is, in nanoseconds.
    pub duration: Nanos,
    /// How long the load runs before that, the settings written already.
    pub warm_up: Nanos,
    /// The period of the activations.
    pub interval: Nanos,
    /// What wakes the measuring threads.
    pub wake: Wake,
    /// CPUs that are measured; none for all.
    pub cpus: Option<CpuList>,
    /// Profiles of rules, as they were given.
    pub profile: Vec<String>,
    /// CPUs for real time alone.
    pub isolate: Option<CpuList>,
}

/// By what blocks are measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// By this machine, which ran this kernel.
    Here {
        /// `uname -r`.
        release: String,
    },
    /// By guests, one a block.
    Guests(Box<Guests>),
}

/// What guests are made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Guests {
    /// The kernel's name in the cache, or its image's path.
    pub kernel: String,
    /// What it was then.
    pub told: KernelTold,
    /// What their clocks count.
    pub time: LabTime,
    /// Boot words of all of them.
    pub words: Vec<String>,
    /// CPUs.
    pub processors: u32,
    /// Memory.
    pub memory: Bytes,
    /// A disk for loads that write.
    pub disk: Option<Bytes>,
    /// Programs of this machine that they have.
    pub programs: Vec<PathBuf>,
}

impl Question {
    /// About `design`, begun now.
    pub fn new(search: bool, design: Design, conditions: Conditions, place: Place) -> Self {
        let (tool, started) = (env!("CARGO_PKG_VERSION").to_owned(), UtcTime(sys::clock::unix_seconds()));
        Self { schema_version: Self::VERSION, tool, started, search, design, conditions, place }
    }

    /// The settings.
    pub fn settings(&self) -> Result<Vec<Setting>> {
        self.design.settings.iter().map(|text| Setting::parse(text)).collect()
    }

    /// What figures count.
    pub fn unit(&self) -> Unit {
        match &self.place {
            Place::Here { .. } => Unit::Microseconds,
            Place::Guests(guests) => guests.time.unit(),
        }
    }

    /// The words behind `worstcase tune block` that measure one block in `arm` and leave its record in `out`.
    pub fn command(&self, arm: &Arm, seed: Seed, out: &Path) -> Result<Vec<OsString>> {
        let Conditions { load, duration, warm_up, interval, wake, cpus, profile, isolate, .. } =
            &self.conditions;
        let mut words = Vec::new();
        words.extend((*arm == Arm::Control).then(|| "--rewrite".to_owned()));
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        profile.iter().for_each(|profile| option("--profile", profile.clone()));
        isolate.iter().for_each(|cpus| option("--isolate", cpus.to_string()));
        words.extend(self.written(arm, |setting| !setting.is_boot_word())?);
        words.extend(["--", "bench"].map(str::to_owned));
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        option("--loads", load.clone());
        self.conditions.load_command.iter().for_each(|command| option("--load-command", command.clone()));
        option("--duration", duration.to_string());
        option("--warm-up", warm_up.to_string());
        option("--interval", interval.to_string());
        option("--wake", wake.to_string());
        option("--seed", seed.to_string());
        cpus.iter().for_each(|cpus| option("--cpus", cpus.to_string()));
        let words = words.into_iter().map(OsString::from);
        Ok(words.chain(["--out".into(), out.into()]).collect())
    }

    /// The boot words that tell `arm` from others. The control arm has one that nobody reads.
    pub fn boot_words(&self, arm: &Arm) -> Result<Vec<String>> {
        const INERT: &str = "worstcase.control=1";
        let words = self.written(arm, Setting::is_boot_word)?;
        Ok(match arm {
            Arm::Control if !words.is_empty() => vec![INERT.to_owned()],
            Arm::Control => Vec::new(),
            Arm::With(_) => words,
        })
    }

    /// The settings of a sort that `arm` writes.
    fn written(&self, arm: &Arm, sort: impl Fn(&Setting) -> bool) -> Result<Vec<String>> {
        let settings = self.settings()?.into_iter().enumerate();
        let is_written = |place| *arm == Arm::Control || arm.has(place);
        let chosen = settings.filter(|(place, setting)| is_written(*place) && sort(setting));
        Ok(chosen.map(|(_, setting)| setting.to_string()).collect())
    }
}

impl Resumable for Question {
    const FILE: &'static str = "trial.json";
    const VERSION: u32 = 1;
    const WHAT: &'static str = "trial";
    const COMMAND: &'static str = "`worstcase tune trial` or `worstcase tune search`";

    fn check(&self) -> std::result::Result<(), lab::Error> {
        self.design.check().map_err(|error| lab::Error::new(error.message).hint(error.hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trial::Kind;

    fn question() -> Question {
        let settings =
            ["threadirqs", "/proc/sys/vm/swappiness=10", "preempt=full"].map(str::to_owned).to_vec();
        let design = Design {
            settings,
            blocks: 5,
            seed: Seed(7),
            smallest_effect: 0.2,
            measure: Kind::Quantile,
            threshold: None,
        };
        let conditions = Conditions {
            load: "cpu".into(),
            load_command: None,
            duration: Nanos::from_secs(1),
            warm_up: Nanos::from_millis(200),
            interval: Nanos::from_millis(1),
            wake: Wake::Timerfd,
            cpus: None,
            profile: vec!["rt".into()],
            isolate: Some("1".parse().unwrap()),
        };
        Question::new(false, design, conditions, Place::Here { release: "6.1".into() })
    }

    fn command(arm: &Arm) -> String {
        let words = question().command(arm, Seed(9), Path::new("there")).unwrap();
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_arm_writes_what_is_its_own() {
        let bench = "-- bench --loads cpu --duration 1s --warm-up 200ms --interval 1ms --wake timerfd --seed 9 --out there";
        let head = "--profile rt --isolate 1";
        assert_eq!(command(&Arm::off()), format!("{head} {bench}"));
        assert_eq!(command(&Arm::all(3)), format!("{head} /proc/sys/vm/swappiness=10 {bench}"));
        assert_eq!(command(&Arm::Control), format!("--rewrite {head} /proc/sys/vm/swappiness=10 {bench}"));
        let words = |arm: &Arm| question().boot_words(arm).unwrap();
        assert_eq!(words(&Arm::all(3)), ["threadirqs", "preempt=full"]);
        assert_eq!(words(&Arm::only(2)), ["preempt=full"]);
        assert_eq!(words(&Arm::Control), ["worstcase.control=1"]);
        assert!(words(&Arm::off()).is_empty());
    }

    #[test]
    fn it_is_read_back_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        question().save(directory.path()).unwrap();
        assert_eq!(Question::load(directory.path()).unwrap(), question());
    }
}
