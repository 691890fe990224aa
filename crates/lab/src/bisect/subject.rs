//! What differs between the good and the bad set-up.

use std::fmt;

use experiment::Arm;
use serde::{Deserialize, Serialize};

use crate::kernels::{self, Asked, Base, Build, Needed, Source};
use crate::parameters::INERT;
use crate::{Error, parameters};

/// More changes than this at once would take days; and their numbers become a directory's name.
const MOST: usize = 100;

/// One change: what stands in the good set-up and what in the bad one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    good: Vec<String>,
    bad: Vec<String>,
}

/// What is varied, each with what stays the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// Parameters of one kernel.
    Words {
        /// Its name in the cache, or its image's path.
        kernel: String,
        /// The parameters of both set-ups, in an order that is that of either.
        line: Vec<Slot>,
        /// What makes the bad set-up of the good one.
        changes: Vec<Change>,
    },
    /// Kernels in their order: from one to the next is a change.
    Kernels {
        /// Their names in the cache, or their images' paths; the first is good, the last bad.
        names: Vec<String>,
        /// Their parameters.
        words: Vec<String>,
    },
    /// Symbols of a kernel that is built for each arm.
    Symbols {
        /// `debian-6.12`, or a tree.
        source: String,
        /// `tinyconfig`, `defconfig` or a configuration's file.
        base: String,
        /// Lines of the configuration of both set-ups.
        common: Vec<String>,
        /// Lines of one of them.
        changes: Vec<Change>,
        /// Kernel parameters.
        words: Vec<String>,
    },
}

/// A place on the command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// What stands there.
    word: String,
    /// Whose it is; none for both set-ups.
    of: Option<Part>,
}

/// A side of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Part {
    /// It stands there as long as this change is not made.
    Good(usize),
    /// It stands there once this change is made.
    Bad(usize),
}

impl Subject {
    /// Kernel parameters: `good` against `bad`. Their order is kept; a parameter that stands elsewhere is a change too.
    pub fn words(kernel: String, good: &[String], bad: &[String]) -> Self {
        let (line, changes) = merged(good, bad);
        Self::Words { kernel, line, changes }
    }

    /// Symbols: what `good` and `bad` make of the fragments that both have.
    ///
    /// # Errors
    /// Lines that are no settings.
    pub fn symbols(
        (source, base): (String, String),
        both: &[Asked],
        good: &Asked,
        bad: &Asked,
        words: Vec<String>,
    ) -> Result<Self, Error> {
        let lines = |last: &Asked| -> Result<Vec<String>, Error> {
            kernels::lines_of(&[both, std::slice::from_ref(last)].concat())
        };
        let (common, changes) = between(&lines(good)?, &lines(bad)?, kernels::symbol_of);
        Ok(Self::Symbols { source, base, common, changes, words })
    }

    /// How many changes there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Words { changes, .. } | Self::Symbols { changes, .. } => changes.len(),
            Self::Kernels { names, .. } => names.len().saturating_sub(1),
        }
    }

    /// The bad set-up: all changes made.
    pub fn bad(&self) -> Arm {
        Arm::all(self.count())
    }

    /// Whether a change can only be made after those before it.
    pub fn is_ordered(&self) -> bool {
        matches!(self, Self::Kernels { .. })
    }

    /// A change in words: `preempt=none`, `without nosmt`, `debian-6.1-amd64 -> debian-6.12-amd64`.
    pub fn change(&self, place: usize) -> String {
        match self {
            Self::Words { changes, .. } | Self::Symbols { changes, .. } => changes[place].to_string(),
            Self::Kernels { names, .. } => format!("{} -> {}", names[place], names[place + 1]),
        }
    }

    /// The kernel parameters of a change, of both set-ups; none where it is of another sort.
    pub fn parameters(&self, place: usize) -> Vec<&String> {
        match self {
            Self::Words { changes, .. } => changes[place].good.iter().chain(&changes[place].bad).collect(),
            _ => Vec::new(),
        }
    }

    /// Refuses what cannot be searched.
    ///
    /// # Errors
    /// No change, or too many.
    pub fn check(&self) -> Result<(), Error> {
        match self.count() {
            0 => {
                Err(Error::new("the good and the bad set-up do not differ")
                    .hint("give what is to be searched"))
            }
            1..=MOST => Ok(()),
            count => Err(Error::new(format!("{count} changes are too many: at most {MOST}"))
                .hint("search a part of them first")),
        }
    }

    /// The kernel parameters of an arm.
    pub fn parameters_of(&self, arm: &Arm) -> Vec<String> {
        let inert = (*arm == Arm::Control).then(|| INERT.to_owned());
        let words = match self {
            Self::Words { line, .. } => on(line, arm),
            Self::Kernels { words, .. } | Self::Symbols { words, .. } => words.clone(),
        };
        words.into_iter().chain(inert).collect()
    }

    /// The kernel of an arm.
    ///
    /// # Errors
    /// Where the base configuration cannot be read.
    pub fn kernel(&self, arm: &Arm) -> Result<Needed, Error> {
        Ok(match self {
            Self::Words { kernel, .. } => Needed::Named(kernel.clone()),
            // The changes that are made are the first ones.
            Self::Kernels { names, .. } => Needed::Named(names[arm.count()].clone()),
            Self::Symbols { source, base, common, changes, .. } => {
                let text = made(common, changes, arm).join("\n") + "\n";
                let fragment = Asked { name: "bisect".into(), text };
                Needed::Built(Box::new(Build {
                    name: format!("bisect-{:08x}", fragment.checksum()),
                    source: Source::named(source),
                    base: Base::named(base)?,
                    fragments: vec![fragment],
                    allow_dropped: false,
                }))
            }
        })
    }
}

/// What both have, and of each change what the arm has.
fn made(common: &[String], changes: &[Change], arm: &Arm) -> Vec<String> {
    let side = |(place, change)| -> &[String] {
        let change: &Change = change;
        if arm.has(place) { &change.bad } else { &change.good }
    };
    common.iter().chain(changes.iter().enumerate().flat_map(side)).cloned().collect()
}

/// What stands on an arm's command line.
fn on(line: &[Slot], arm: &Arm) -> Vec<String> {
    let stands = |slot: &&Slot| match slot.of {
        None => true,
        Some(Part::Good(change)) => !arm.has(change),
        Some(Part::Bad(change)) => arm.has(change),
    };
    line.iter().filter(stands).map(|slot| slot.word.clone()).collect()
}

/// Both command lines in one, and the changes from good to bad. What both have in the same order is common; of the rest,
/// parameters of one name are one change.
fn merged(good: &[String], bad: &[String]) -> (Vec<Slot>, Vec<Change>) {
    let mut line = Vec::new();
    let mut keys: Vec<String> = Vec::new();
    let mut changes: Vec<Change> = Vec::new();
    let mut change_of = |word: &String, is_bad: bool| {
        let key = parameters::key(word);
        let place = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
            keys.push(key);
            changes.push(Change { good: Vec::new(), bad: Vec::new() });
            keys.len() - 1
        });
        if is_bad { &mut changes[place].bad } else { &mut changes[place].good }.push(word.clone());
        if is_bad { Part::Bad(place) } else { Part::Good(place) }
    };
    let common = longest_common(good, bad);
    let (mut in_good, mut in_bad) = (0, 0);
    for (at_good, at_bad) in common.into_iter().chain([(good.len(), bad.len())]) {
        for word in &good[in_good..at_good] {
            line.push(Slot { of: Some(change_of(word, false)), word: word.clone() });
        }
        for word in &bad[in_bad..at_bad] {
            line.push(Slot { of: Some(change_of(word, true)), word: word.clone() });
        }
        line.extend(good.get(at_good).map(|word| Slot { word: word.clone(), of: None }));
        (in_good, in_bad) = (at_good + 1, at_bad + 1);
    }
    (line, changes)
}

/// The places of the longest sequence that both have.
fn longest_common(good: &[String], bad: &[String]) -> Vec<(usize, usize)> {
    // length[i][j]: of what good has from i on and bad from j on.
    let mut length = vec![vec![0_usize; bad.len() + 1]; good.len() + 1];
    for i in (0..good.len()).rev() {
        for j in (0..bad.len()).rev() {
            length[i][j] = match good[i] == bad[j] {
                true => length[i + 1][j + 1] + 1,
                false => length[i + 1][j].max(length[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut places) = (0, 0, Vec::new());
    while i < good.len() && j < bad.len() {
        match () {
            () if good[i] == bad[j] => {
                places.push((i, j));
                (i, j) = (i + 1, j + 1);
            }
            () if length[i + 1][j] >= length[i][j + 1] => i += 1,
            () => j += 1,
        }
    }
    places
}

/// What both have, and the changes from one to the other: those that say something else of one key are one change.
fn between(good: &[String], bad: &[String], key: impl Fn(&str) -> String) -> (Vec<String>, Vec<Change>) {
    let mut keys: Vec<String> = Vec::new();
    for entry in good.iter().chain(bad) {
        let key = key(entry);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let (mut common, mut changes) = (Vec::new(), Vec::new());
    for wanted in keys {
        let of = |side: &[String]| -> Vec<String> {
            side.iter().filter(|entry| key(entry) == wanted).cloned().collect()
        };
        match (of(good), of(bad)) {
            (good, bad) if good == bad => common.extend(good),
            (good, bad) => changes.push(Change { good, bad }),
        }
    }
    (common, changes)
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (good, bad) = (self.good.join(" "), self.bad.join(" "));
        match (self.good.is_empty(), self.bad.is_empty()) {
            (true, _) => f.pad(&bad),
            (_, true) => f.pad(&format!("without {good}")),
            _ if self.good == self.bad => f.pad(&format!("{good} at another place")),
            _ => f.pad(&format!("{good} -> {bad}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn names(subject: &Subject) -> Vec<String> {
        (0..subject.count()).map(|place| subject.change(place)).collect()
    }

    #[test]
    fn words_that_differ_are_changes_and_others_stay() {
        let good = words("quiet preempt=full nosmt skew-tick=1");
        let bad = words("quiet preempt=none skew_tick=0 threadirqs");
        let subject = Subject::words("k".into(), &good, &bad);
        assert_eq!(
            names(&subject),
            ["preempt=full -> preempt=none", "without nosmt", "skew-tick=1 -> skew_tick=0", "threadirqs"]
        );
        assert_eq!(subject.parameters_of(&Arm::off()), good);
        assert_eq!(subject.parameters_of(&subject.bad()), bad);
        assert_eq!(
            subject.parameters_of(&Arm::With([0, 3].into())),
            words("quiet nosmt skew-tick=1 preempt=none threadirqs")
        );
        assert_eq!(subject.parameters_of(&Arm::Control).pop().as_deref(), Some(INERT));
    }

    #[test]
    fn a_quoted_parameter_is_one_change() {
        let bad = crate::parameters::split("dyndbg=\"file drivers/tty/* +p\" quiet").unwrap();
        let subject = Subject::words("k".into(), &words("quiet"), &bad);
        assert_eq!(names(&subject), ["dyndbg=\"file drivers/tty/* +p\""]);
        assert_eq!(subject.parameters_of(&subject.bad()), bad);
        assert_eq!(subject.parameters_of(&Arm::off()), ["quiet"]);
    }

    #[test]
    fn another_order_is_a_change() {
        let (good, bad) =
            (words("console=ttyS0 console=tty0 quiet"), words("console=tty0 console=ttyS0 quiet"));
        let subject = Subject::words("k".into(), &good, &bad);
        assert_eq!(names(&subject), ["console=ttyS0 at another place"]);
        assert_eq!((subject.parameters_of(&Arm::off()), subject.parameters_of(&subject.bad())), (good, bad));
    }

    proptest! {
        #[test]
        fn both_command_lines_come_out_as_they_went_in(good in "([a-c](=[12])? ){0,8}", bad in "([a-c](=[12])? ){0,8}") {
            let (good, bad) = (words(&good), words(&bad));
            let subject = Subject::words("k".into(), &good, &bad);
            prop_assert_eq!(subject.parameters_of(&Arm::off()), good.clone());
            prop_assert_eq!(subject.parameters_of(&subject.bad()), bad.clone());
            prop_assert_eq!(subject.count() == 0, good == bad);
        }
    }

    #[test]
    fn equal_set_ups_are_refused() {
        let subject = Subject::words("k".into(), &words("a b"), &words("a b"));
        assert!(subject.check().unwrap_err().message.contains("do not differ"));
        let many: Vec<String> = (0..101).map(|number| format!("w{number}")).collect();
        assert!(Subject::words("k".into(), &[], &many).check().is_err());
    }

    #[test]
    fn kernels_are_steps_of_a_list() {
        let names_of = words("a b c");
        let subject = Subject::Kernels { names: names_of, words: words("quiet") };
        assert_eq!(names(&subject), ["a -> b", "b -> c"]);
        assert_eq!(subject.kernel(&Arm::Control).unwrap(), Needed::Named("a".into()));
        assert_eq!(subject.kernel(&Arm::With([0].into())).unwrap(), Needed::Named("b".into()));
    }

    #[test]
    fn symbols_are_built_with_what_the_arm_has_of_them() {
        let asked = |text: &str| Asked { name: "f".into(), text: text.into() };
        let subject = Subject::symbols(
            ("debian-6.12".into(), "tinyconfig".into()),
            &[asked("CONFIG_64BIT=y\nCONFIG_HZ_100=y\n")],
            &asked("CONFIG_PREEMPT=y\n"),
            &asked("# CONFIG_HZ_100 is not set\nCONFIG_HZ_1000=y\n"),
            Vec::new(),
        )
        .unwrap();
        assert_eq!(
            names(&subject),
            ["CONFIG_HZ_100=y -> # CONFIG_HZ_100 is not set", "without CONFIG_PREEMPT=y", "CONFIG_HZ_1000=y"]
        );
        let Needed::Built(build) = subject.kernel(&Arm::With([0, 2].into())).unwrap() else { panic!() };
        assert_eq!(
            build.fragments[0].text,
            "CONFIG_64BIT=y\n# CONFIG_HZ_100 is not set\nCONFIG_PREEMPT=y\nCONFIG_HZ_1000=y\n"
        );
        let Needed::Built(other) = subject.kernel(&Arm::off()).unwrap() else { panic!() };
        assert_ne!(build.name, other.name);
    }
}
