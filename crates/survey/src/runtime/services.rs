//! Services that change settings behind one's back or make bursts of work: found by the names of running programs and
//! of systemd's unit files, without asking systemd.

use machine::facts::processors;
use machine::tasks;
use record::Fact;
use sysroot::SysRoot;
use units::CpuList;

use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Item, Reading, Value, item, list, reading};

pub(super) const FACTS: &[NamedFact] = &[
    fact(
        "irqbalance.cpus",
        "CPUs to which irqbalance may move interrupts; absent where it does not run",
        irqbalance_cpus,
    ),
    fact("daemons.power", "programs that set frequencies and idle states of their own accord", power_daemons),
    fact("daemons.rivals", "the same, if there are several", rival_power_daemons),
    fact(
        "timers.bursty",
        "enabled timers of systemd that fetch software, scan disks or flash firmware",
        bursty_timers,
    ),
    fact("daemons.bursty", "programs that install software or build indexes", bursty_daemons),
    fact("sleep.allowed", "whether systemd may put the machine to sleep", sleep_by_system),
];

const PROGRAMS: &str = "/proc/*/stat";

/// Running programs by the names that the kernel keeps of them, 15 bytes long, each with its process id.
pub fn running(root: &SysRoot, names: &[&str]) -> Vec<Item> {
    let all = tasks::all(root).into_iter().filter(|task| !task.kernel && task.tid == task.pid);
    let named = all.filter(|task| names.contains(&task.name.as_str()));
    named.map(|task| item(task.name, task.pid)).collect()
}

/// The CPUs to which irqbalance may move interrupts; absent where it does not run. Unless a list of its own forbids it
/// others, it keeps away from the CPUs isolated at boot and those without a tick, and from no others
/// (`setup_banned_cpus` in irqbalance's cputree.c).
fn irqbalance_cpus(survey: &Survey) -> Reading {
    if running(&survey.root, &["irqbalance"]).is_empty() {
        return reading(Fact::Absent, PROGRAMS);
    }
    let online = processors::online(&survey.root);
    let settings = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];
    let texts = settings.map(|path| (path, survey.root.read(path)));
    let own = texts.iter().find_map(|(path, text)| Some((*path, banned(text.value()?)?)));
    let (from, banned) = match own {
        Some((path, banned)) => (path, banned),
        None => ("/sys/devices/system/cpu/{isolated,nohz_full}", banned_by_itself(&survey.root)),
    };
    reading(Fact::Value(Value::Cpus(online.difference(&banned))), from)
}

/// What settings forbid to irqbalance: a list, in versions before 1.8.0 a mask.
fn banned(settings: &str) -> Option<CpuList> {
    let lines = settings.lines().map(str::trim);
    let value = |name: &str| {
        let mut values =
            lines.clone().filter_map(move |line| line.strip_prefix(name)?.trim().strip_prefix('='));
        values
            .next_back()
            .map(|value| value.trim().trim_matches(['"', '\'']).to_owned())
            .filter(|text| !text.is_empty())
    };
    let list = value("IRQBALANCE_BANNED_CPULIST").and_then(|list| list.parse().ok());
    list.or_else(|| value("IRQBALANCE_BANNED_CPUS").and_then(|mask| CpuList::from_mask(&mask)))
}

fn banned_by_itself(root: &SysRoot) -> CpuList {
    let list = |name: &str| root.cpu_list(&format!("/sys/devices/system/cpu/{name}"));
    let lists = [list("isolated"), list("nohz_full")];
    lists.iter().filter_map(Fact::value).fold(CpuList::new(), |all, cpus| all.union(cpus))
}

/// Programs that set frequencies, idle states and energy preferences of their own accord.
const POWER: [&str; 8] = [
    "power-profiles-",
    "thermald",
    "tuned",
    "auto-cpufreq",
    "cpufreqd",
    "laptop_mode",
    "tlp",
    "system76-power",
];

fn power_daemons(survey: &Survey) -> Reading {
    list(running(&survey.root, &POWER), PROGRAMS)
}

/// The same, if there is more than one of them.
fn rival_power_daemons(survey: &Survey) -> Reading {
    let running = running(&survey.root, &POWER);
    list(if running.len() > 1 { running } else { Vec::new() }, PROGRAMS)
}

/// Daemons that look for, fetch and install software, or build indexes.
fn bursty_daemons(survey: &Survey) -> Reading {
    const BURSTY: [&str; 10] = [
        "packagekitd",
        "snapd",
        "fwupd",
        "unattended-upgr",
        "dnf-automatic",
        "updatedb",
        "updatedb.ploca",
        "baloo_file",
        "tracker-miner-f",
        "localsearch-3",
    ];
    list(running(&survey.root, &BURSTY), PROGRAMS)
}

/// Where timers are enabled, by the administrator and by the distribution.
const TIMERS: [&str; 3] = [
    "/etc/systemd/system/timers.target.wants",
    "/usr/lib/systemd/system/timers.target.wants",
    "/lib/systemd/system/timers.target.wants",
];

/// Enabled timers that fetch software, scan disks or flash firmware.
fn bursty_timers(survey: &Survey) -> Reading {
    const BURSTY: [&str; 14] = [
        "apt-daily.timer",
        "apt-daily-upgrade.timer",
        "dnf-makecache.timer",
        "dnf-automatic.timer",
        "fwupd-refresh.timer",
        "fstrim.timer",
        "man-db.timer",
        "mdcheck_start.timer",
        "mdcheck_continue.timer",
        "mlocate-updatedb.timer",
        "packagekit-offline-update.timer",
        "plocate-updatedb.timer",
        "raid-check.timer",
        "updatedb.timer",
    ];
    let listed = TIMERS.map(|directory| (directory, survey.root.list(directory)));
    if listed.iter().all(|(_, names)| *names == Fact::Absent) {
        return reading(Fact::Absent, "/etc/systemd/system/timers.target.wants");
    }
    let mut items: Vec<Item> = Vec::new();
    for (directory, names) in &listed {
        let names = names.value().into_iter().flatten().filter(|name| BURSTY.contains(&name.as_str()));
        for name in names.filter(|name| !is_masked(&survey.root, name)) {
            if !items.iter().any(|item| item.name == *name) {
                items.push(item(name, directory));
            }
        }
    }
    Reading { value: Fact::Value(Value::List(items)), from: TIMERS.map(str::to_owned).to_vec() }
}

/// Whether the administrator has masked a unit: a link to /dev/null (systemctl(1)).
fn is_masked(root: &SysRoot, unit: &str) -> bool {
    root.link(&format!("/etc/systemd/system/{unit}")).value().is_some_and(|target| target == "/dev/null")
}

/// Whether the machine may be put to sleep by systemd; absent where it cannot sleep or systemd does not run.
fn sleep_by_system(survey: &Survey) -> Reading {
    const FROM: &str = "/sys/power/state and /etc/systemd/system/sleep.target";
    let states = survey.root.read("/sys/power/state");
    let sleeps = states.value().is_some_and(|text| text.split_whitespace().any(|state| state != "disk"));
    let has_systemd = survey.root.list("/run/systemd/system").value().is_some();
    let value = if sleeps && has_systemd {
        Fact::Value(Value::Flag(!is_masked(&survey.root, "sleep.target")))
    } else {
        Fact::Absent
    };
    reading(value, FROM)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, link, shown, thread};
    use super::banned;
    use sysroot::FakeTree;

    #[test]
    fn irqbalance_keeps_away_by_itself_or_by_its_list() {
        let tree = FakeTree::new(&[
            ("/sys/devices/system/cpu/online", "0-7"),
            ("/sys/devices/system/cpu/isolated", "2"),
            ("/sys/devices/system/cpu/nohz_full", "3"),
        ]);
        let cpus = || shown(&tree, Isolated::None, "irqbalance.cpus");
        assert_eq!(cpus(), "absent");
        thread(&tree, (7, 7), "irqbalance", 0, (0, 0), "0-7");
        assert_eq!(cpus(), "0-1,4-7");
        tree.write(
            "/etc/default/irqbalance",
            "#IRQBALANCE_BANNED_CPULIST=0\nIRQBALANCE_BANNED_CPULIST=\"6-7\"\n",
        );
        assert_eq!(cpus(), "0-5");
    }

    #[test]
    fn settings_of_irqbalance_parse() {
        let reading = |text: &str| banned(text).map(|cpus| cpus.to_string());
        assert_eq!(reading("IRQBALANCE_BANNED_CPUS=000000fc"), Some("2-7".into()));
        assert_eq!(reading("IRQBALANCE_BANNED_CPULIST=\n"), None);
        assert_eq!(reading("IRQBALANCE_ONESHOT=1"), None);
        assert_eq!(reading("IRQBALANCE_BANNED_CPULIST=x"), None);
    }

    #[test]
    fn several_power_daemons_are_rivals() {
        let tree = FakeTree::empty();
        let reading = |name: &str| shown(&tree, Isolated::None, name);
        thread(&tree, (7, 7), "tuned", 0, (0, 0), "0-7");
        assert_eq!((reading("daemons.power"), reading("daemons.rivals")), ("tuned: 7".into(), "none".into()));
        thread(&tree, (8, 8), "power-profiles-", 0, (0, 0), "0-7");
        assert_eq!(reading("daemons.rivals"), "tuned: 7, power-profiles-: 8");
    }

    #[test]
    fn enabled_timers_that_are_not_masked_are_reported_once() {
        let tree = FakeTree::empty();
        let reading = || shown(&tree, Isolated::None, "timers.bursty");
        assert_eq!(reading(), "absent");
        for name in ["apt-daily.timer", "fstrim.timer", "logrotate.timer"] {
            tree.write(&format!("/etc/systemd/system/timers.target.wants/{name}"), "");
            tree.write(&format!("/usr/lib/systemd/system/timers.target.wants/{name}"), "");
        }
        link(&tree, "/etc/systemd/system/fstrim.timer", "/dev/null");
        assert_eq!(reading(), "apt-daily.timer: /etc/systemd/system/timers.target.wants");
    }

    #[test]
    fn a_machine_sleeps_unless_it_is_masked() {
        let tree = FakeTree::new(&[("/sys/power/state", "freeze mem disk"), ("/run/systemd/system/x", "")]);
        let reading = || shown(&tree, Isolated::None, "sleep.allowed");
        assert_eq!(reading(), "yes");
        link(&tree, "/etc/systemd/system/sleep.target", "/dev/null");
        assert_eq!(reading(), "no");
        let other = FakeTree::new(&[("/sys/power/state", "disk"), ("/run/systemd/system/x", "")]);
        assert_eq!(shown(&other, Isolated::None, "sleep.allowed"), "absent");
    }
}
