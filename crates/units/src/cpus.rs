//! CPU numbers and the kernel's list form of sets of them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The most CPUs that any list may name; no Linux configuration has more (`NR_CPUS`).
pub const MAX_CPUS: u32 = 8192;

/// A CPU's number, as in `/sys/devices/system/cpu/cpuN`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CpuId(pub u32);

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of CPUs in the kernel's list form, `0-3,7`, strides included: `0-31:2/8` is 0, 1, 8, 9, 16, 17, 24, 25
/// (Documentation/admin-guide/kernel-parameters.rst, "cpu lists").
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuList(BTreeSet<CpuId>);

impl CpuList {
    /// No CPU.
    pub const fn new() -> Self {
        Self(BTreeSet::new())
    }

    /// Whether no CPU is in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many CPUs are in it.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether `cpu` is in it.
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.0.contains(&cpu)
    }

    /// The lowest CPU.
    pub fn first(&self) -> Option<CpuId> {
        self.0.first().copied()
    }

    /// In ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = CpuId> + '_ {
        self.0.iter().copied()
    }

    /// CPUs in either.
    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).copied().collect())
    }

    /// CPUs in both.
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// CPUs in this one and not in `other`.
    pub fn difference(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    /// As a sentence has it: `CPU 3`, `CPUs 2-3`, `no CPU`.
    pub fn named(&self) -> String {
        match self.len() {
            0 => "no CPU".to_owned(),
            1 => format!("CPU {self}"),
            _ => format!("CPUs {self}"),
        }
    }

    /// The set in hexadecimal, groups of 32 CPUs with commas between them, as the kernel prints and takes masks
    /// (lib/bitmap-str.c).
    pub fn to_mask(&self) -> String {
        let highest = self.iter().next_back().map_or(0, |cpu| cpu.0);
        let mut groups = vec![0_u32; highest as usize / 32 + 1];
        for CpuId(cpu) in self.iter() {
            groups[cpu as usize / 32] |= 1 << (cpu % 32);
        }
        let mut texts = groups.iter().rev();
        let first = texts.next().map(|group| format!("{group:x}"));
        first.into_iter().chain(texts.map(|group| format!("{group:08x}"))).collect::<Vec<_>>().join(",")
    }

    /// Reads a mask as the kernel prints it, `00000000,0000000f`: the highest group first. None for another text, and
    /// for CPUs that no kernel has nothing.
    pub fn from_mask(text: &str) -> Option<Self> {
        let groups: Vec<u32> =
            text.trim().split(',').map(|group| group_of_mask(group.trim())).collect::<Option<_>>()?;
        let bits = groups.iter().rev().flat_map(|group| (0..u32::BITS).map(move |bit| group >> bit & 1 == 1));
        let set = (0..MAX_CPUS).zip(bits).filter(|(_, is_set)| *is_set).map(|(cpu, _)| cpu);
        Some(set.collect())
    }

    /// Adds `cpu`.
    pub fn insert(&mut self, cpu: CpuId) {
        self.0.insert(cpu);
    }
}

fn group_of_mask(digits: &str) -> Option<u32> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

impl FromIterator<CpuId> for CpuList {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        cpus.into_iter().map(CpuId).collect()
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for CpuId(cpu) in self.iter() {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == cpu => *last = cpu,
                _ => runs.push((cpu, cpu)),
            }
        }
        let texts: Vec<String> = runs
            .into_iter()
            .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
            .collect();
        f.pad(&texts.join(","))
    }
}

/// Why a text is not a CPU list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseCpuListError {
    /// Not numbers, ranges and strides.
    #[error("`{0}` is not a CPU list: write numbers and ranges, as in 0-3,7")]
    Malformed(String),
    /// A range that runs backwards.
    #[error("`{0}` runs backwards: write the lower CPU first")]
    Backwards(String),
    /// A number that no kernel has.
    #[error("`{0}` names a CPU above {max}, more than any kernel has", max = MAX_CPUS - 1)]
    TooHigh(String),
}

impl FromStr for CpuList {
    type Err = ParseCpuListError;

    /// The empty text is the empty list: the kernel prints it so.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let mut cpus = BTreeSet::new();
        if text.is_empty() {
            return Ok(Self(cpus));
        }
        for part in text.split(',') {
            let part = part.trim();
            let range = Range::parse(part)?;
            for first in (range.first..=range.last).step_by(range.group as usize) {
                let last = (first + range.used - 1).min(range.last);
                cpus.extend((first..=last).map(CpuId));
            }
        }
        Ok(Self(cpus))
    }
}

/// One part of a list: `first-last:used/group`.
struct Range {
    first: u32,
    last: u32,
    used: u32,
    group: u32,
}

impl Range {
    fn parse(part: &str) -> Result<Self, ParseCpuListError> {
        let malformed = || ParseCpuListError::Malformed(part.to_owned());
        let number = |text: &str| -> Result<u32, ParseCpuListError> {
            if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(malformed());
            }
            match text.parse::<u32>() {
                Ok(number) if number < MAX_CPUS => Ok(number),
                _ => Err(ParseCpuListError::TooHigh(part.to_owned())),
            }
        };
        let (range, stride) = match part.split_once(':') {
            Some((range, stride)) => (range, Some(stride)),
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None if stride.is_some() => return Err(malformed()),
            None => (number(range)?, number(range)?),
        };
        if last < first {
            return Err(ParseCpuListError::Backwards(part.to_owned()));
        }
        let (used, group) = match stride {
            Some(stride) => {
                let (used, group) = stride.split_once('/').ok_or_else(malformed)?;
                (number(used)?, number(group)?)
            }
            None => (1, 1),
        };
        if used == 0 || used > group {
            return Err(malformed());
        }
        Ok(Self { first, last, used, group })
    }
}

impl Serialize for CpuList {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuList {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for CpuList {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CpuList".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "CPUs in the kernel's list form, as in 0-3,7" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, cpus: &[u32]) {
        let list: CpuList = text.parse().unwrap();
        assert_eq!(list.iter().map(|cpu| cpu.0).collect::<Vec<_>>(), cpus, "{text}");
    }

    #[test]
    fn kernel_lists_parse() {
        check("", &[]);
        check("0\n", &[0]);
        check("0-3,7", &[0, 1, 2, 3, 7]);
        check("7,0-1,1", &[0, 1, 7]);
        check("0-31:2/8", &[0, 1, 8, 9, 16, 17, 24, 25]);
        check("1-5:1/2", &[1, 3, 5]);
    }

    #[test]
    fn impossible_lists_are_refused() {
        use ParseCpuListError::*;
        let error = |text: &str| text.parse::<CpuList>().unwrap_err();
        for text in ["a", "0-", "-1", "0--1", "1,,2", "0-3:", "0-3:0/2", "0-3:3/2", "3:1/2", "+1", "0x1"] {
            assert!(matches!(error(text), Malformed(_)), "{text}");
        }
        assert!(matches!(error("3-1"), Backwards(_)));
        assert!(matches!(error("0-4000000000"), TooHigh(_)));
        assert!(matches!(error("99999999999999999999"), TooHigh(_)));
    }

    #[test]
    fn sets_combine() {
        let (a, b): (CpuList, CpuList) = ("0-3".parse().unwrap(), "2-5".parse().unwrap());
        assert_eq!(a.union(&b).to_string(), "0-5");
        assert_eq!(a.intersection(&b).to_string(), "2-3");
        assert_eq!(a.difference(&b).to_string(), "0-1");
    }

    #[test]
    fn masks_are_as_the_kernel_prints_them() {
        let mask = |list: &str| list.parse::<CpuList>().unwrap().to_mask();
        assert_eq!(mask(""), "0");
        assert_eq!(mask("0-3"), "f");
        assert_eq!(mask("2-3"), "c");
        assert_eq!(mask("32"), "1,00000000");
        assert_eq!(mask("0,35,64"), "1,00000008,00000001");
        let read = |text: &str| CpuList::from_mask(text).map(|cpus| cpus.to_string());
        assert_eq!(read("00000000,0000000f\n").as_deref(), Some("0-3"));
        for text in ["", "g", "f,", "0x3", "100000000"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_mask_reads_as_what_it_was_printed_from(cpus in proptest::collection::btree_set(0..MAX_CPUS, 0..40)) {
            let list: CpuList = cpus.into_iter().collect();
            prop_assert_eq!(CpuList::from_mask(&list.to_mask()), Some(list));
        }

        #[test]
        fn what_is_printed_parses_to_the_same(cpus in proptest::collection::btree_set(0..MAX_CPUS, 0..40)) {
            let list: CpuList = cpus.into_iter().collect();
            prop_assert_eq!(list.to_string().parse::<CpuList>().unwrap(), list);
        }

        #[test]
        fn any_text_is_answered_without_a_panic(text in "[0-9,:/ -]{0,30}") {
            let _ = text.parse::<CpuList>();
        }
    }
}
