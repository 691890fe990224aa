//! What was read, as it stands in parentheses behind a problem.

use audit::{Evidence, Finding};
use record::Fact;

use super::seen;

/// Facts whose value says little without words: `{}` is the value.
const WORDS: [(&str, &str); 11] = [
    ("preemption", "preemption model: {}"),
    ("cpus.rcu_nocbs", "rcu_nocbs: {}"),
    ("cpus.nohz_full", "nohz_full: {}"),
    ("cpus.separated", "isolated: {}"),
    ("cpus.open", "CPUs {}"),
    ("cpus.init", "CPUs {}"),
    ("cpus.online", "online: {}"),
    ("watchdog.cpus", "CPUs {}"),
    ("irqbalance.cpus", "CPUs {}"),
    ("process.top-priority", "priority {}"),
    ("process.unlocked-kib", "{} KiB"),
];

/// `vm.swappiness = 60`, `CONFIG_HZ=250`, `preemption model: none`; of a list what failed in it.
pub fn read(finding: &Finding) -> String {
    let Some(evidence) = finding.evidence.first() else { return String::new() };
    match finding.offenders.split_first() {
        None => named(evidence),
        Some((first, _)) if first.name.starts_with('/') => seen(finding),
        Some((first, others)) => {
            let is_option = evidence.fact.starts_with("config-on:");
            let first = if is_option {
                format!("CONFIG_{}={}", first.name, first.value)
            } else {
                format!("{}: {}", first.name, first.value)
            };
            if others.is_empty() { first } else { format!("{first}, and {} more", others.len()) }
        }
    }
}

/// Parts per million in percent: `0.18 % of its time`.
fn share(ppm: &str) -> Option<String> {
    let ppm: f64 = ppm.parse().ok()?;
    Some(format!("{:.2} % of its time", ppm / 10_000.0))
}

fn named(evidence: &Evidence) -> String {
    let value = evidence.value.to_string();
    let is_absent = evidence.value == Fact::Absent;
    let assigned =
        |name: &str| if is_absent { format!("{name} is absent") } else { format!("{name} = {value}") };
    if let Some(share) = share(&value).filter(|_| evidence.fact == "steal.ppm") {
        return share;
    }
    if let Some((_, words)) = WORDS.iter().find(|(fact, _)| *fact == evidence.fact && !is_absent) {
        return words.replace("{}", &value);
    }
    match evidence.fact.split_once(':') {
        Some(("sysctl", name)) => assigned(name),
        Some(("file" | "choice" | "cpus", path)) => assigned(end_of(path)),
        Some(("config", symbol)) if is_absent || value == "n" => format!("CONFIG_{symbol} is not set"),
        Some(("config", symbol)) => format!("CONFIG_{symbol}={value}"),
        Some(("boot", word)) if is_absent => format!("no {word} on the kernel command line"),
        Some(("boot", word)) if value.is_empty() || value == "present" => word.to_owned(),
        Some(("boot", word)) => format!("{word}={value}"),
        _ => value,
    }
}

/// The last two names of a path: `transparent_hugepage/enabled`.
fn end_of(path: &str) -> &str {
    let second = path.rmatch_indices('/').nth(1);
    second.map_or(path, |(place, _)| &path[place + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fact: &str, value: &str) -> String {
        let value = if value == "absent" { Fact::Absent } else { Fact::Value(value.to_owned()) };
        named(&Evidence { fact: fact.to_owned(), value, from: Vec::new() })
    }

    #[test]
    fn a_value_stands_behind_what_it_is_the_value_of() {
        for (fact, value, words) in [
            ("preemption", "none", "preemption model: none"),
            ("sysctl:vm.swappiness", "60", "vm.swappiness = 60"),
            (
                "choice:/sys/kernel/mm/transparent_hugepage/enabled",
                "always",
                "transparent_hugepage/enabled = always",
            ),
            ("config:HZ", "250", "CONFIG_HZ=250"),
            ("config:PREEMPT_RT", "n", "CONFIG_PREEMPT_RT is not set"),
            ("boot:threadirqs", "absent", "no threadirqs on the kernel command line"),
            ("boot:mitigations", "off", "mitigations=off"),
            ("file:/sys/x", "absent", "sys/x is absent"),
            ("cpus.init", "0-3", "CPUs 0-3"),
            ("steal.ppm", "1826", "0.18 % of its time"),
            ("daemons.rivals", "tuned", "tuned"),
        ] {
            assert_eq!(of(fact, value), words);
        }
    }
}
