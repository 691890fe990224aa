//! After the reboot: which word came through, which took effect, and which not and why.

use machine::CommandLine;
use machine::command_line::Word;
use record::Fact;
use survey::{Item, Survey, Value, chosen, cpus_of};
use sysroot::SysRoot;
use units::CpuList;

use super::word::written;

/// What became of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Something of the running kernel shows it.
    InForce(String),
    /// It stands on the line, and nothing of the kernel shows more.
    Given,
    /// It is not on the line that the kernel was booted with; what stands there in its place.
    NotGiven(String),
    /// It is on the line and does nothing: why.
    Ignored(String),
    /// It is on the line, and the kernel says something else.
    Differs(String),
}

impl Effect {
    /// Whether something is not as it was asked for.
    pub fn is_off(&self) -> bool {
        !matches!(self, Self::InForce(_) | Self::Given)
    }
}

/// How a file shows a word's effect.
#[derive(Clone, Copy)]
enum Shown {
    /// The CPUs of the word are among those of the file.
    Cpus,
    /// The same with a mask, which is to have no other CPUs.
    Mask,
    /// The file says this.
    Says(&'static str),
    /// The file says what the word says.
    Same,
    /// The word that is chosen in the file is that of the line.
    Chosen,
}

/// Words of which the running kernel shows the effect, and where: a file, or a fact of the survey.
const SIGHTS: [(&str, &str, Shown); 14] = [
    ("isolcpus", "/sys/devices/system/cpu/isolated", Shown::Cpus),
    ("nohz_full", "/sys/devices/system/cpu/nohz_full", Shown::Cpus),
    ("rcu_nocbs", "cpus.rcu_nocbs", Shown::Cpus),
    ("preempt", "preemption", Shown::Same),
    ("irqaffinity", "/proc/irq/default_smp_affinity", Shown::Mask),
    ("workqueue.unbound_cpus", "/sys/devices/virtual/workqueue/cpumask", Shown::Mask),
    ("transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled", Shown::Chosen),
    ("nmi_watchdog", "/proc/sys/kernel/nmi_watchdog", Shown::Same),
    ("nosoftlockup", "/proc/sys/kernel/soft_watchdog", Shown::Says("0")),
    ("nowatchdog", "/proc/sys/kernel/watchdog", Shown::Says("0")),
    ("numa_balancing", "/proc/sys/kernel/numa_balancing", Shown::Says("0")),
    ("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource", Shown::Same),
    ("cpuidle.governor", "/sys/devices/system/cpu/cpuidle/current_governor", Shown::Same),
    ("nosmt", "/sys/devices/system/cpu/smt/active", Shown::Says("0")),
];

/// What became of each word on the running machine.
pub fn effects(root: &SysRoot, words: &[Word]) -> Vec<(Word, Effect)> {
    let line = root.read("/proc/cmdline").value().map(|text| CommandLine::parse(text)).unwrap_or_default();
    let survey = Survey::new(root.clone(), CpuList::new());
    let dead = items(&survey, "boot.dead");
    let unknown = items(&survey, "boot.unknown");
    let one = |word: &Word| (word.clone(), effect(&survey, word, &line, &dead, &unknown));
    words.iter().map(one).collect()
}

/// Names that were to go and are on the line all the same.
pub fn still_there(root: &SysRoot, names: &[String]) -> Vec<String> {
    let line = root.read("/proc/cmdline").value().map(|text| CommandLine::parse(text)).unwrap_or_default();
    names.iter().filter(|name| line.get(name).is_some()).cloned().collect()
}

fn items(survey: &Survey, name: &str) -> Vec<Item> {
    match survey.read(name).value {
        Fact::Value(Value::List(items)) => items,
        _ => Vec::new(),
    }
}

fn effect(survey: &Survey, word: &Word, line: &CommandLine, dead: &[Item], unknown: &[Item]) -> Effect {
    if !line.words.contains(word) {
        let other = line.get(&word.name).map_or_else(|| "the line does not have it".to_owned(), written);
        return Effect::NotGiven(other);
    }
    if let Some(last) = line.get(&word.name).filter(|last| *last != word) {
        if !machine::command_line::each_counts(&word.name) {
            return Effect::Ignored(format!("{} stands behind it", written(last)));
        }
    }
    if let Some(item) = dead.iter().find(|item| item.name == word.name) {
        return Effect::Ignored(format!("this kernel was built without it: {}", item.value));
    }
    if let Some(item) = unknown.iter().find(|item| item.name == written(word)) {
        return Effect::Ignored(format!("the kernel does not know it: {}", item.value));
    }
    seen(survey, word).unwrap_or(Effect::Given)
}

/// What the running kernel shows of a word; none where nothing does.
fn seen(survey: &Survey, word: &Word) -> Option<Effect> {
    let parameter = word.name.split_once('.').map(|(module, name)| {
        let plain = |text: &str| text.replace('-', "_");
        (format!("/sys/module/{}/parameters/{}", plain(module), plain(name)), Shown::Same)
    });
    let sight = SIGHTS.iter().find(|(name, _, _)| machine::command_line::same_name(name, &word.name));
    let (path, shown) = sight.map(|(_, path, shown)| ((*path).to_owned(), *shown)).or(parameter)?;
    let (now, from) = now(survey, &path)?;
    let root = survey.root();
    let is_so = match shown {
        Shown::Cpus => asked(root, word)?.difference(&now.parse().unwrap_or_default()).is_empty(),
        Shown::Mask => CpuList::from_mask(&now)? == asked(root, word)?,
        Shown::Says(value) => now == value,
        Shown::Same => same(&now, word.text()),
        Shown::Chosen => chosen(&now)? == word.text(),
    };
    let shown = format!("{from} says {}", if now.is_empty() { "nothing" } else { &now });
    Some(if is_so { Effect::InForce(shown) } else { Effect::Differs(shown) })
}

/// What a file says, or a fact that was not read from the kernel command line itself; and where it stands.
fn now(survey: &Survey, path: &str) -> Option<(String, String)> {
    if path.starts_with('/') {
        return Some((survey.root().read(path).value()?.clone(), path.to_owned()));
    }
    let reading = survey.read(path);
    let is_of_line = reading.from.iter().any(|from| from.ends_with("/cmdline"));
    let value = reading.value.value().filter(|_| !is_of_line)?;
    Some((value.to_string(), reading.from.first()?.clone()))
}

/// Parameters of modules say `Y` and `N` for what is given as `1` and `0`.
fn same(now: &str, asked: &str) -> bool {
    let plain = |text: &str| match text {
        "Y" | "y" | "on" | "" => "1".to_owned(),
        "N" | "n" | "off" => "0".to_owned(),
        other => other.to_owned(),
    };
    plain(now) == plain(asked)
}

fn asked(root: &SysRoot, word: &Word) -> Option<CpuList> {
    let possible = root.cpu_list("/sys/devices/system/cpu/possible").value()?.clone();
    cpus_of(word.text(), &possible)
}
