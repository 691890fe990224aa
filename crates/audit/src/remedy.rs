//! A rule's cure with this machine's CPUs in it.

use crate::action::Action;
use crate::division::Division;
use crate::finding::{Domain, Remedy};
use crate::rule::{Cure, Write};

/// Every way that `cure` knows, the way with the least trouble first.
pub(crate) fn remedies(cure: &Cure, division: &Division) -> Vec<Remedy> {
    let words = |domain, text: &Option<String>| {
        text.as_ref().map(|text| Remedy { domain, text: division.fill(text) })
    };
    let joined = |domain, parts: &[String], between: &str| {
        let filled: Vec<String> = parts.iter().map(|part| division.fill(part)).collect();
        (!filled.is_empty()).then(|| Remedy { domain, text: filled.join(between) })
    };
    let writes =
        cure.runtime.iter().map(|write| Remedy { domain: Domain::Runtime, text: command(write, division) });
    let actions: Vec<String> = cure.actions.iter().map(Action::command).collect();
    writes
        .chain(joined(Domain::Runtime, &actions, "; "))
        .chain(words(Domain::Runtime, &cure.command))
        .chain(joined(Domain::Boot, &cure.boot, " "))
        .chain(joined(Domain::Config, &cure.config, "; "))
        .chain(words(Domain::Application, &cure.application))
        .chain(words(Domain::Firmware, &cure.firmware))
        .chain(words(Domain::None, &cure.none))
        .collect()
}

/// The shell's way to write a file: a loop where the path stands for one file a CPU, tee for a pattern.
fn command(write: &Write, division: &Division) -> String {
    let value = quoted(&division.fill(&write.value));
    if write.path.contains("{isolated}") && !division.isolated.is_empty() {
        let numbers: Vec<String> = division.isolated.iter().map(|cpu| cpu.to_string()).collect();
        let path = write.path.replace("{isolated}", "$cpu");
        return format!("for cpu in {}; do {}; done", numbers.join(" "), command_for(&path, &value));
    }
    command_for(&division.fill(&write.path), &value)
}

fn command_for(path: &str, value: &str) -> String {
    if path.contains('*') {
        return format!("echo {value} | tee {path}");
    }
    match path.strip_prefix("/proc/sys/").filter(|name| !name.contains('.')) {
        Some(name) => format!("sysctl -w {}={value}", name.replace('/', ".")),
        None => format!("echo {value} > {path}"),
    }
}

/// In quotes where the shell would take it apart.
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,/:+@%=".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn division(isolated: &str) -> Division {
        Division::new(isolated.parse().unwrap(), &"0-3".parse().unwrap())
    }

    fn command_of(path: &str, value: &str, isolated: &str) -> String {
        command(&Write { path: path.into(), value: value.into() }, &division(isolated))
    }

    #[test]
    fn a_write_is_a_command_for_any_shell() {
        assert_eq!(command_of("/sys/kernel/mm/ksm/run", "0", ""), "echo 0 > /sys/kernel/mm/ksm/run");
        assert_eq!(command_of("/proc/sys/vm/swappiness", "10", ""), "sysctl -w vm.swappiness=10");
        assert_eq!(
            command_of("/proc/sys/net/ipv4/conf/eth0.1/x", "1", ""),
            "echo 1 > /proc/sys/net/ipv4/conf/eth0.1/x"
        );
        assert_eq!(command_of("/sys/p*/governor", "a b", ""), "echo 'a b' | tee /sys/p*/governor");
        assert_eq!(
            command_of("/sys/cpu{isolated}/state*/disable", "1", "2-3"),
            "for cpu in 2 3; do echo 1 | tee /sys/cpu$cpu/state*/disable; done"
        );
        assert_eq!(
            command_of("/proc/irq/default", "{housekeeping-mask}", "2-3"),
            "echo 3 > /proc/irq/default"
        );
    }

    #[test]
    fn what_the_shell_would_take_apart_is_quoted() {
        assert_eq!(quoted("performance"), "performance");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
    }
}
