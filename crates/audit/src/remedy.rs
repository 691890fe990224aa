//! A rule's cure with this machine's CPUs in it.

use machine::grammar::symbols::{self, Symbol};
use machine::kernel_config::{KernelConfig, Setting};

use crate::action::Action;
use crate::division::Division;
use crate::finding::{Domain, Remedy};
use crate::rule::{Cure, Write};

/// Every way that `cure` knows, the way with the least trouble first. Lines that cannot be set in `config` are not among them.
pub(crate) fn remedies(cure: &Cure, division: &Division, config: Option<&KernelConfig>) -> Vec<Remedy> {
    let settings = Settings::of(&cure.config, config);
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
        .chain(joined(Domain::Config, &settings.lines, BETWEEN))
        .chain(words(Domain::Application, &cure.application))
        .chain(words(Domain::Firmware, &cure.firmware))
        .chain(words(Domain::None, &cure.none))
        .chain(settings.obstacle.map(|text| Remedy { domain: Domain::None, text }))
        .collect()
}

/// What stands between lines of a configuration.
pub(crate) const BETWEEN: &str = "; ";

/// Lines of a configuration, as far as kconfig lets them be set.
struct Settings {
    lines: Vec<String>,
    /// Why others cannot be.
    obstacle: Option<String>,
}

impl Settings {
    /// A line without a prompt stays beside one that has one, which brings it about.
    fn of(lines: &[String], config: Option<&KernelConfig>) -> Self {
        let mut obstacles = Vec::new();
        let mut kept = Vec::new();
        for line in lines {
            match selected(line, lines, config) {
                Some(selectors) => obstacles.push(format!("{} is selected by {selectors}", named(line))),
                None => kept.push(line.clone()),
            }
        }
        if !kept.is_empty() && !kept.iter().any(|line| has_prompt(line)) {
            obstacles
                .extend(kept.drain(..).map(|line| format!("{} has no prompt: others set it", named(&line))));
        }
        Self { lines: kept, obstacle: (!obstacles.is_empty()).then(|| obstacles.join(BETWEEN)) }
    }
}

/// The symbol of a line, with `CONFIG_`.
fn named(line: &str) -> &str {
    line.trim_start_matches("# ").split(['=', ' ']).next().unwrap_or_default()
}

fn symbol(line: &str) -> Option<&'static Symbol> {
    symbols::symbol(named(line).trim_start_matches("CONFIG_"))
}

/// What the table does not have is taken to have one.
fn has_prompt(line: &str) -> bool {
    symbol(line).is_none_or(|symbol| symbol.has_prompt)
}

/// The symbols that are on, stay on, and keep the one on that `line` switches off.
fn selected(line: &str, lines: &[String], config: Option<&KernelConfig>) -> Option<String> {
    let is_off = |name: &str| lines.iter().any(|line| line.starts_with("# ") && named(line) == name);
    let is_on = |name: &&&str| {
        let set = config.and_then(|config| config.get(name));
        matches!(set, Some(Setting::Yes | Setting::Module)) && !is_off(&format!("CONFIG_{name}"))
    };
    let symbol = symbol(line).filter(|_| line.starts_with("# "))?;
    let selectors: Vec<&str> = symbol.selected_by.iter().filter(is_on).copied().collect();
    (!selectors.is_empty()).then(|| selectors.join(", "))
}

/// The shell's way to write a file: a loop where the path stands for one file a CPU, tee for a pattern.
fn command(write: &Write, division: &Division) -> String {
    let value = division.fill(&write.value);
    let value = printable::shell(&value);
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

    fn config_cure(lines: &[&str], config: &str) -> Vec<(Domain, String)> {
        let cure = Cure { config: lines.iter().map(|line| (*line).to_owned()).collect(), ..Cure::default() };
        let config = KernelConfig::parse(config);
        let remedies = remedies(&cure, &division(""), Some(&config)).into_iter();
        remedies.map(|remedy| (remedy.domain, remedy.text)).collect()
    }

    #[test]
    fn a_cure_that_kconfig_would_drop_is_not_offered() {
        let schedutil = "# CONFIG_CPU_FREQ_GOV_SCHEDUTIL is not set";
        let selected = "CONFIG_CPU_FREQ_GOV_SCHEDUTIL is selected by X86_INTEL_PSTATE".to_owned();
        let config = "CONFIG_X86_INTEL_PSTATE=y\nCONFIG_CPU_FREQ_GOV_SCHEDUTIL=y\n";
        assert_eq!(config_cure(&[schedutil], config), [(Domain::None, selected)]);
        assert_eq!(config_cure(&[schedutil], ""), [(Domain::Config, schedutil.to_owned())]);
        let daemon = "# CONFIG_PPC_RTAS_DAEMON is not set";
        let promptless = "CONFIG_PPC_RTAS_DAEMON has no prompt: others set it".to_owned();
        assert_eq!(config_cure(&[daemon], ""), [(Domain::None, promptless)]);
    }

    #[test]
    fn a_line_that_another_line_brings_about_stays() {
        let hz = ["CONFIG_HZ_1000=y", "CONFIG_HZ=1000"];
        assert_eq!(config_cure(&hz, ""), [(Domain::Config, hz.join("; "))]);
        let both = ["# CONFIG_PROVE_LOCKING is not set", "# CONFIG_DEBUG_WW_MUTEX_SLOWPATH is not set"];
        assert_eq!(config_cure(&both, "CONFIG_PROVE_LOCKING=y\n"), [(Domain::Config, both.join("; "))]);
    }
}
