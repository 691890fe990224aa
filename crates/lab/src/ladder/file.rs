//! A ladder as a person writes it: TOML.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use experiment::ladder::Published;
use record::LabTime;
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::kernels::{Asked, Base, Build, Source};
use crate::text;
use crate::{Error, limits, parameters};

/// The ladders that are built into this program, with the fragments that their kernels are built from.
const SHIPPED: [(&str, &str); 5] = [
    ("stock", include_str!("../../../../ladders/stock.toml")),
    ("p2041", include_str!("../../../../ladders/p2041.toml")),
    ("throughput", include_str!("../../../../ladders/throughput.toml")),
    ("prices", include_str!("../../../../ladders/prices.toml")),
    ("debugging", include_str!("../../../../ladders/debugging.toml")),
];
const FRAGMENTS: [(&str, &str); 8] = [
    ("fragments/base.cfg", include_str!("../../../../ladders/fragments/base.cfg")),
    ("fragments/release.cfg", include_str!("../../../../ladders/fragments/release.cfg")),
    ("fragments/demo-debug.cfg", include_str!("../../../../ladders/fragments/demo-debug.cfg")),
    ("fragments/00051-latency.cfg", include_str!("../../../../ladders/fragments/00051-latency.cfg")),
    ("fragments/preempt-rt.cfg", include_str!("../../../../ladders/fragments/preempt-rt.cfg")),
    ("fragments/context-tracking.cfg", include_str!("../../../../ladders/fragments/context-tracking.cfg")),
    ("fragments/lockdep.cfg", include_str!("../../../../ladders/fragments/lockdep.cfg")),
    ("fragments/kasan.cfg", include_str!("../../../../ladders/fragments/kasan.cfg")),
];

/// More seeds or rungs than this is a slip of the pen.
const MOST: usize = 1_000;
/// A name becomes a directory.
const LONGEST_NAME: usize = 40;
/// No ladder is longer, in bytes.
const LONGEST: u64 = 1 << 20;

/// What is run on what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LadderFile {
    /// The name that its results go by.
    pub name: String,
    /// What it is, in a few words.
    pub title: String,
    /// Where it comes from: a seed, a customer's request.
    pub source: Option<String>,
    /// In what it differs from that, a sentence each, shown beside the results.
    #[serde(default)]
    pub differs: Vec<String>,
    /// The loads, each measured in every guest; none where only costs are asked for.
    #[serde(default)]
    pub loads: Vec<String>,
    /// How long each load is measured.
    #[serde(with = "text", default = "duration")]
    pub duration: Nanos,
    /// How long each load runs before that.
    #[serde(with = "text", default = "warm_up")]
    pub warm_up: Nanos,
    /// How many guests each rung has: with the seeds 1, 2, 3, ...
    pub seeds: u32,
    /// What the guests' clock counts.
    #[serde(default = "instructions")]
    pub time: LabTime,
    /// The guests' CPUs; 1 in instruction time.
    #[serde(default = "one")]
    pub processors: u32,
    /// The emulated CPU, as QEMU's `-cpu` names it; none for the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// The guests' memory.
    #[serde(default = "memory")]
    pub memory: Bytes,
    /// The size of the disk that loads write to.
    #[serde(default)]
    pub disk: Option<Bytes>,
    /// Whether guests of their own measure what operations take on each rung.
    #[serde(default)]
    pub cost: bool,
    /// Whether each guest's command line has one more parameter, which nobody reads and whose length is drawn. What any parameter does
    /// to a guest, by being there, then differs from seed to seed and is in the intervals.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draw_parameter: bool,
    /// The steps, each compared with the one before.
    #[serde(rename = "rung")]
    pub rungs: Vec<Rung>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rung {
    /// The name that its results go by.
    pub name: String,
    /// What it is, in a few words.
    pub title: String,
    /// The kernel's name in the cache. It is fetched if it is not there and is one of Debian's (`debian-6.1-rt-amd64`).
    pub kernel: String,
    /// The earlier rung that it is compared with. Where no rung names one, each is compared with the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// Kernel parameters, one each: blanks stand in quotes.
    #[serde(default)]
    pub words: Vec<String>,
    /// Settings of sysctl(8), which the kernel makes before process 1 begins (the kernel parameter `sysctl.`, Linux 5.8).
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// How the kernel is built, if it is.
    pub build: Option<Building>,
    /// Figures that the source gives, to be shown beside the rung's own.
    pub published: Option<Published>,
}

/// How a kernel is built.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Building {
    /// `debian-6.12`, or a tree.
    pub source: String,
    /// `tinyconfig`, `defconfig`, or a configuration's file.
    #[serde(default = "tiny")]
    pub base: String,
    /// Fragments, the last one that names a symbol wins. Files, seen from the ladder's own directory.
    pub fragments: Vec<PathBuf>,
}

fn duration() -> Nanos {
    Nanos::from_secs(1)
}

fn warm_up() -> Nanos {
    Nanos::from_millis(200)
}

fn instructions() -> LabTime {
    LabTime::Instructions
}

fn one() -> u32 {
    1
}

fn memory() -> Bytes {
    Bytes::from_mebibytes(512)
}

fn tiny() -> String {
    "tinyconfig".into()
}

/// Where a ladder's fragments are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Home {
    /// Below this directory.
    Directory(PathBuf),
    /// In this program.
    Shipped,
}

impl LadderFile {
    /// The ladder in the file `name`, or the shipped one of that name where there is no such file.
    ///
    /// # Errors
    /// Where the file cannot be read, is not TOML, or says what makes no sense.
    pub fn named(name: &Path) -> Result<(Self, Home), Error> {
        let shipped = SHIPPED.iter().find(|(shipped, _)| name.as_os_str() == *shipped);
        if let Some((_, text)) = shipped.filter(|_| !name.is_file()) {
            return Ok((Self::parse(text)?, Home::Shipped));
        }
        let text = files::read_text(name, LONGEST).map_err(|files::Error { source: error, .. }| {
            let names = SHIPPED.map(|(name, _)| name).join(", ");
            Error::new(format!("read {}: {error}", name.display()))
                .hint(format!("give a ladder's file, or the name of a shipped one: {names}"))
        })?;
        let ladder = Self::parse(&text)
            .map_err(|error| Error { message: format!("{}: {}", name.display(), error.message), ..error })?;
        let home = name.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok((ladder, Home::Directory(home.to_path_buf())))
    }

    /// Reads `text` and checks that it makes sense.
    ///
    /// # Errors
    /// The place and the reason.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refuse = |reason: String| {
            Error::new(reason)
                .hint("ladders/stock.toml in the source is an example; its fields are all there are")
        };
        let table: toml::Table =
            toml::from_str(text).map_err(|error| refuse(error.to_string().trim_end().to_owned()))?;
        // By way of JSON, which it is read from elsewhere: a second reader of all its types is 50 KB.
        let json = serde_json::to_vec(&table);
        let ladder: Self = json
            .and_then(|json| record::json::read(&json))
            .map_err(|error| refuse(placed(text, &error.to_string())))?;
        ladder.check()?;
        Ok(ladder)
    }

    /// Refuses what cannot be run.
    ///
    /// # Errors
    /// The first thing that makes no sense.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |reason: String| {
            Err(Error::new(format!("the ladder {}: {reason}", self.name))
                .hint("ladders/stock.toml in the source is an example"))
        };
        check_name(&self.name)?;
        limits::check_size(self.processors, self.memory, self.disk)?;
        self.cpu_model.as_deref().map_or(Ok(()), |model| limits::cpu_model(model).map(drop))?;
        for (place, rung) in self.rungs.iter().enumerate() {
            if let (Some(base), None) = (&rung.against, self.base(place)) {
                return refuse(format!("rung {}: no rung {base} stands above it", rung.name));
            }
            check_name(&rung.name)?;
            for word in rung.all_words() {
                if let Err(error) = parameters::one(&word) {
                    return refuse(format!("rung {}: {}", rung.name, error.message));
                }
            }
            if let Some((name, _)) = rung.settings.iter().find(|(name, value)| !is_setting(name, value)) {
                return refuse(format!("rung {}: `{name}` has no value, or is no name", rung.name));
            }
        }
        let names: BTreeSet<&str> = self.rungs.iter().map(|rung| rung.name.as_str()).collect();
        let loads: BTreeSet<&str> = self.loads.iter().map(String::as_str).collect();
        match () {
            () if self.rungs.is_empty() => refuse("it has no rung".into()),
            () if self.rungs.len() > MOST => refuse(format!("more than {MOST} rungs")),
            () if names.len() < self.rungs.len() => refuse("two rungs have one name".into()),
            () if self.loads.is_empty() && !self.cost => refuse("it has no load, and no costs".into()),
            () if loads.len() < self.loads.len() => refuse("a load stands there twice".into()),
            () if self.seeds == 0 || self.seeds as usize > MOST => refuse(format!("seeds: 1 to {MOST}")),
            () if self.duration < Nanos::from_millis(10) => refuse("a load takes at least 10ms".into()),
            () if self.duration.max(self.warm_up) > Nanos::from_secs(86_400) => {
                refuse("a load takes at most 1d".into())
            }
            () if self.time == LabTime::Instructions && self.processors != 1 => {
                refuse("in instruction time a guest has one CPU".into())
            }
            () => Ok(()),
        }
    }
}

impl LadderFile {
    /// For each rung the one that it is compared with, where the file says so.
    pub fn bases(&self) -> Vec<Option<usize>> {
        (0..self.rungs.len()).map(|place| self.base(place)).collect()
    }

    fn base(&self, place: usize) -> Option<usize> {
        let (before, rung) = (self.rungs.get(..place)?, self.rungs.get(place)?);
        before.iter().position(|other| Some(&other.name) == rung.against.as_ref())
    }
}

impl Rung {
    /// All its kernel parameters.
    pub fn all_words(&self) -> Vec<String> {
        let setting =
            |(name, value): (&String, &String)| parameters::with_value(&format!("sysctl.{name}"), value);
        let settings = self.settings.iter().map(setting);
        self.words.iter().cloned().chain(settings).collect()
    }

    /// What its kernel is built from, with the fragments read.
    ///
    /// # Errors
    /// Where a file cannot be read.
    pub fn to_build(&self, home: &Home) -> Result<Option<Build>, Error> {
        let Some(building) = &self.build else { return Ok(None) };
        let fragments = building.fragments.iter().map(|path| home.fragment(path));
        Ok(Some(Build {
            name: self.kernel.clone(),
            source: Source::named(&building.source),
            base: Base::named(&building.base)?,
            fragments: fragments.collect::<Result<_, _>>()?,
            allow_dropped: false,
        }))
    }
}

impl Home {
    fn fragment(&self, path: &Path) -> Result<Asked, Error> {
        match self {
            Self::Directory(directory) => Asked::read(&directory.join(path)),
            Self::Shipped => {
                let shipped = FRAGMENTS.iter().find(|(name, _)| path.as_os_str() == *name);
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                shipped
                    .map(|(_, text)| Asked { name, text: (*text).to_owned() })
                    .ok_or_else(|| Error::new(format!("{} is not shipped", path.display())))
            }
        }
    }
}

fn is_setting(name: &str, value: &str) -> bool {
    let blank = |text: &str| text.is_empty() || text.contains(char::is_whitespace);
    !blank(name) && !value.trim().is_empty()
}

fn check_name(name: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts && name.len() <= LONGEST_NAME && name.chars().all(plain) {
        return Ok(());
    }
    Err(Error::new(format!("`{name}` is no name for a ladder or a rung"))
        .hint(format!("it becomes a directory: a-z, 0-9, - . _, at most {LONGEST_NAME}")))
}

/// An error of the JSON that was made of `text`, with the line of `text` that it names a field of.
fn placed(text: &str, error: &str) -> String {
    let error = error.split(" at line ").next().unwrap_or(error);
    let begins = |name: &str| text.lines().position(|line| line.trim_start().starts_with(name));
    match error.split('`').nth(1).and_then(begins) {
        Some(index) => format!("line {}: {error}", index + 1),
        None => error.to_owned(),
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
