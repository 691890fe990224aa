//! Words of one kernel command line that do not go together.

use units::{CpuList, KernelVersion};

use super::{Fault, cpu_list};
use crate::command_line::{CommandLine, Word};

/// A word, by its place on the line, that does nothing or something else beside another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Its place among [`CommandLine::words`].
    pub place: usize,
    /// What is wrong.
    pub fault: Fault,
}

/// What does not go together on the line.
pub fn together(line: &CommandLine, version: Option<KernelVersion>) -> Vec<Misfit> {
    let line = Line { line, version };
    [
        line.absent_cpus(),
        line.without_tick(),
        line.two_lists(),
        line.interrupts(),
        line.pages(),
        line.one_cpu(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

struct Line<'a> {
    line: &'a CommandLine,
    version: Option<KernelVersion>,
}

impl Line<'_> {
    /// The last word of a name with its place.
    fn last(&self, name: &str) -> Option<(usize, &Word)> {
        let words = self.line.words.iter().enumerate();
        words.rev().find(|(_, word)| crate::parameters::same(&word.name, name))
    }

    fn cpus(&self, name: &str) -> Option<(usize, CpuList)> {
        let (place, word) = self.last(name)?;
        Some((place, cpu_list(behind_flags(word.text()), None, self.version).ok()?))
    }

    fn number(&self, name: &str) -> Option<u32> {
        self.last(name)?.1.text().parse().ok()
    }

    fn isolcpus_flags(&self) -> Option<Vec<&str>> {
        let (_, word) = self.last("isolcpus")?;
        let flags = word.text().strip_suffix(behind_flags(word.text()))?;
        Some(flags.split(',').filter(|flag| !flag.is_empty()).collect())
    }

    /// CPUs that nr_cpus= or maxcpus= leaves out.
    fn absent_cpus(&self) -> Vec<Misfit> {
        let limits = ["nr_cpus", "maxcpus"].into_iter().filter_map(|name| Some((name, self.number(name)?)));
        let Some((name, count)) = limits.min_by_key(|(_, count)| *count) else { return Vec::new() };
        let lists = ["isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity"].into_iter();
        let beyond = lists.filter_map(|list| {
            let (place, cpus) = self.cpus(list)?;
            let has_last = self.last(list)?.1.text().contains(['N', 'l']);
            let last = cpus.iter().next_back()?.0;
            (last >= count.max(1) && !has_last)
                .then(|| misfit(place, format!("names CPU {last}, but {name}={count} starts only {count}")))
        });
        beyond.collect()
    }

    /// nohz=off takes nohz_full= with it (tick_nohz_full_setup, tick_nohz_init).
    fn without_tick(&self) -> Vec<Misfit> {
        let is_off = |name: &str| {
            self.last(name).is_some_and(|(_, word)| matches!(word.text(), "off" | "0" | "n" | "no"))
        };
        let wants = |name: &str| {
            self.last(name).map(|(place, _)| {
                misfit(place, "does nothing beside nohz=off: the tick is not stopped anywhere".to_owned())
            })
        };
        if is_off("nohz") { wants("nohz_full").into_iter().collect() } else { Vec::new() }
    }

    /// isolcpus=nohz and nohz_full= share one list: the second of them is dropped where they differ (housekeeping_setup).
    fn two_lists(&self) -> Vec<Misfit> {
        let has_nohz = self.isolcpus_flags().is_some_and(|flags| flags.contains(&"nohz"));
        let (Some((first, isolated)), Some((second, tickless))) =
            (self.cpus("isolcpus"), self.cpus("nohz_full"))
        else {
            return Vec::new();
        };
        let place = first.max(second);
        let differ = has_nohz && isolated != tickless;
        differ
            .then(|| {
                misfit(
                    place,
                    "must name the same CPUs as the other of nohz_full= and isolcpus=nohz,: the kernel drops the later one".to_owned(),
                )
            })
            .into_iter()
            .collect()
    }

    /// irqaffinity= sends interrupts where isolcpus= or nohz_full= wants none.
    fn interrupts(&self) -> Vec<Misfit> {
        let Some((place, interrupts)) = self.cpus("irqaffinity") else { return Vec::new() };
        let apart = ["isolcpus", "nohz_full"].into_iter().find_map(|name| Some((name, self.cpus(name)?.1)));
        let both = apart.map(|(name, apart)| (name, apart.intersection(&interrupts)));
        both.filter(|(_, both)| !both.is_empty())
            .map(|(name, both)| {
                misfit(place, format!("sends interrupts to CPU {both}, which {name}= sets apart"))
            })
            .into_iter()
            .collect()
    }

    /// hugepages= counts pages of the size that stands before it (hugepages_setup).
    fn pages(&self) -> Vec<Misfit> {
        let words = self.line.words.iter().enumerate();
        let is = |word: &Word, name: &str| crate::parameters::same(&word.name, name);
        let sizes: Vec<usize> =
            words.clone().filter(|(_, word)| is(word, "hugepagesz")).map(|(place, _)| place).collect();
        let counts: Vec<usize> =
            words.filter(|(_, word)| is(word, "hugepages")).map(|(place, _)| place).collect();
        let (Some(size), Some(count)) = (sizes.last(), counts.last()) else { return Vec::new() };
        let uncounted = size > count;
        uncounted
            .then(|| {
                misfit(*size, "has no hugepages= behind it, which would count pages of this size".to_owned())
            })
            .into_iter()
            .collect()
    }

    /// nosmp leaves the boot CPU alone.
    fn one_cpu(&self) -> Vec<Misfit> {
        let alone = self.last("nosmp").is_some();
        let lists = ["isolcpus", "nohz_full"].into_iter().filter_map(|name| self.last(name));
        lists
            .filter(|_| alone)
            .map(|(place, _)| misfit(place, "does nothing beside nosmp, which leaves one CPU".to_owned()))
            .collect()
    }
}

fn misfit(place: usize, message: String) -> Misfit {
    Misfit { place, fault: Fault { message, instead: None } }
}

/// What stands behind the flags of isolcpus.
fn behind_flags(text: &str) -> &str {
    let mut rest = text;
    while rest.starts_with(|c: char| c.is_ascii_lowercase()) && !rest.starts_with("all") {
        rest = rest.split_once(',').map_or("", |(_, rest)| rest);
    }
    rest
}
