//! What the kernel takes from real-time threads so that others do not starve, and whether anything does.

use machine::facts::{kernel, throttling};
use record::Fact;
use sysroot::SysRoot;
use units::Nanos;

use super::services;
use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Reading, Value, item, list, reading};

pub(super) const FACTS: &[NamedFact] = &[
    fact(
        "fair-server.runtimes",
        "nanoseconds a period that ordinary tasks may take from real-time threads, by CPU",
        fair_server,
    ),
    fact("sched.features", "the scheduler's features: NAME or NO_NAME", features),
    fact(
        "starvation.guard",
        "what lets starved threads run: fair server, throttling, stalld, nothing",
        guard,
    ),
    fact("daemons.stalld", "stalld, if it runs", stalld),
    fact(
        "group.real-time-budget",
        "microseconds a period of real time for the control group; 0 forbids it",
        group_budget,
    ),
];

/// The fair server's parameters, one directory a CPU, in nanoseconds (kernel/sched/debug.c, from 6.12).
const FAIR_SERVER: &str = "/sys/kernel/debug/sched/fair_server";

/// The largest share of a second that a CPU's fair server may take; absent in a kernel without.
fn servers(root: &SysRoot) -> Fact<Nanos> {
    throttling::fair_server(root, &kernel::names(root).release)
}

/// How many nanoseconds per period the fair server may take, for each CPU for real time; absent in a kernel without.
fn fair_server(survey: &Survey) -> Reading {
    let servers = servers(&survey.root);
    let value = servers.and_then(|_| {
        let runtimes = survey
            .real_time_cpus()
            .iter()
            .map(|cpu| {
                let runtime = survey.root.number::<u64>(&format!("{FAIR_SERVER}/cpu{cpu}/runtime"));
                runtime.map(|runtime| item(format!("cpu{cpu}"), runtime))
            })
            .collect::<Vec<_>>();
        all(runtimes).map(Value::List)
    });
    reading(value, "/sys/kernel/debug/sched/fair_server/cpu*/runtime")
}

/// All values, or the first that is none.
fn all<T>(facts: Vec<Fact<T>>) -> Fact<Vec<T>> {
    facts.into_iter().fold(Fact::Value(Vec::new()), |all, fact| {
        all.and_then(|mut values| {
            fact.map(|value| {
                values.push(value);
                values
            })
        })
    })
}

/// The scheduler's features, which moved with 5.13 (kernel/sched/debug.c).
fn features(survey: &Survey) -> Reading {
    const PLACES: [&str; 2] = ["/sys/kernel/debug/sched/features", "/sys/kernel/debug/sched_features"];
    let new = survey.root.read(PLACES[0]);
    let (place, text) = match new {
        Fact::Absent => (PLACES[1], survey.root.read(PLACES[1])),
        new => (PLACES[0], new),
    };
    reading(text.map(Value::Text), place)
}

fn stalld(survey: &Survey) -> Reading {
    list(services::running(&survey.root, &["stalld"]), "/proc/*/stat")
}

/// What gives starved threads some time beside a real-time thread that never sleeps: `fair server`, `throttling`,
/// `stalld` or `nothing`.
fn guard(survey: &Survey) -> Reading {
    let stalls = services::running(&survey.root, &["stalld"]);
    let guard = match (servers(&survey.root), throttle(&survey.root)) {
        (Fact::Value(share), _) if share.0 > 0 => "fair-server",
        // A server that cannot be read is as it was built: with a run time.
        (Fact::Unreadable(_), _) => "fair-server",
        (Fact::Absent, Fact::Value(runtime)) if runtime >= 0 => "throttling",
        (Fact::Absent, Fact::Unreadable(errno)) => return reading(Fact::Unreadable(errno), THROTTLE),
        _ if !stalls.is_empty() => "stalld",
        // A configuration alone does not say what guards, nor does a copy without /proc/sys: every kernel has the limit.
        (_, Fact::Unsupported | Fact::Absent) => return reading(Fact::Unsupported, THROTTLE),
        _ => "nothing",
    };
    let from = [FAIR_SERVER, THROTTLE, "/proc/*/stat"].map(str::to_owned).to_vec();
    Reading { value: Fact::Value(Value::Text(guard.to_owned())), from }
}

const THROTTLE: &str = "/proc/sys/kernel/sched_rt_runtime_us";

fn throttle(root: &SysRoot) -> Fact<i64> {
    root.number(THROTTLE)
}

/// The real-time budget of the control group that this program, or the process asked about, is in: with 0 the kernel
/// refuses it real-time policies.
fn group_budget(survey: &Survey) -> Reading {
    let budget = throttling::group_runtime(&survey.root, survey.process);
    reading(budget.map(Value::Number), "cpu.rt_runtime_us of the process's control group")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, shown, thread};
    use sysroot::FakeTree;

    fn guard(release: &str, files: &[(&str, &str)]) -> String {
        let tree = FakeTree::new(files);
        tree.write("/proc/sys/kernel/osrelease", release);
        shown(&tree, Isolated::None, "starvation.guard")
    }

    const SERVER: &str = "/sys/kernel/debug/sched/fair_server/cpu0";

    #[test]
    fn something_guards_unless_all_is_off() {
        let server = |runtime: &'static str| {
            [(const_format(SERVER, "runtime"), runtime), (const_format(SERVER, "period"), "1000000000")]
        };
        let with = |runtime| {
            let [one, two] = server(runtime);
            guard("6.12.0", &[(&one.0, one.1), (&two.0, two.1), (super::THROTTLE, "-1")])
        };
        assert_eq!(with("50000000"), "fair-server");
        assert_eq!(with("0"), "nothing");
        assert_eq!(guard("6.12.0", &[(super::THROTTLE, "-1")]), "fair-server");
        assert_eq!(guard("6.1.0", &[(super::THROTTLE, "950000")]), "throttling");
        assert_eq!(guard("6.1.0", &[(super::THROTTLE, "-1")]), "nothing");
        assert_eq!(guard("6.1.0", &[]), "unknown");
    }

    fn const_format(directory: &str, name: &str) -> String {
        format!("{directory}/{name}")
    }

    #[test]
    fn stalld_guards_where_nothing_else_does() {
        let tree = FakeTree::new(&[("/proc/sys/kernel/osrelease", "6.1.0"), (super::THROTTLE, "-1")]);
        thread(&tree, (9, 9), "stalld", 0, (0, 0), "0-3");
        assert_eq!(shown(&tree, Isolated::None, "starvation.guard"), "stalld");
        assert_eq!(shown(&tree, Isolated::None, "daemons.stalld"), "stalld: 9");
    }

    #[test]
    fn run_times_are_those_of_the_cpus_for_real_time() {
        let tree = FakeTree::new(&[("/proc/sys/kernel/osrelease", "6.12.0")]);
        for cpu in 0..4 {
            let place = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}");
            tree.write(&format!("{place}/runtime"), if cpu == 3 { "0" } else { "50000000" });
            tree.write(&format!("{place}/period"), "1000000000");
        }
        assert_eq!(shown(&tree, Isolated::Cpus("2-3"), "fair-server.runtimes"), "cpu2: 50000000, cpu3: 0");
        let old = FakeTree::new(&[("/proc/sys/kernel/osrelease", "6.1.0")]);
        assert_eq!(shown(&old, Isolated::Cpus("2-3"), "fair-server.runtimes"), "absent");
    }

    #[test]
    fn features_are_found_in_both_places() {
        let features =
            |path: &str| shown(&FakeTree::new(&[(path, "A NO_B")]), Isolated::None, "sched.features");
        assert_eq!(features("/sys/kernel/debug/sched/features"), "A NO_B");
        assert_eq!(features("/sys/kernel/debug/sched_features"), "A NO_B");
        assert_eq!(features("/sys/none"), "absent");
    }
}
