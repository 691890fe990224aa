//! Linux audit: rules that are asked at system calls, and threads that wait for its daemon (kernel/audit.c, kernel/auditsc.c).

use record::Fact;

use super::services::running;
use crate::survey::{NamedFact, Survey, fact};
use crate::value::{Item, Reading, Value, item, list, reading};

pub(super) const FACTS: &[NamedFact] = &[
    fact(
        "audit.rules",
        "rules that auditd's file has for system calls; absent where auditd does not run",
        rules,
    ),
    fact(
        "audit.backlog-wait",
        "how long a thread waits for auditd while its queue is full, in ticks; absent where auditd does not run",
        backlog_wait,
    ),
];

/// Where augenrules writes what is in /etc/audit/rules.d (augenrules(8)).
const RULES: &str = "/etc/audit/audit.rules";

/// AUDIT_BACKLOG_WAIT_TIME (kernel/audit.c). auditctl counts in ticks.
const DEFAULT_SECONDS: i64 = 60;

/// Ticks a second of most distributions' kernels.
const COMMON_HERTZ: i64 = 250;

fn lines(survey: &Survey) -> Fact<Vec<String>> {
    if running(&survey.root, &["auditd"]).is_empty() {
        return Fact::Absent;
    }
    let kept = |text: String| {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(str::to_owned).collect()
    };
    survey.root.read(RULES).map(kept)
}

/// Rules with `-S`, and watches, which are asked at system calls, too.
fn rules(survey: &Survey) -> Reading {
    let is_asked = |line: &&String| {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("-a" | "-A") => !line.contains("never") && line.contains(" -S "),
            Some("-w") => true,
            _ => false,
        }
    };
    match lines(survey) {
        Fact::Value(lines) => {
            let items: Vec<Item> = lines.iter().filter(is_asked).map(|line| item("rule", line)).collect();
            list(items, RULES)
        }
        other => reading(other.map(|_| Value::List(Vec::new())), RULES),
    }
}

fn backlog_wait(survey: &Survey) -> Reading {
    let hertz = match survey.read("config:HZ").value {
        Fact::Value(Value::Number(hertz)) => hertz,
        _ => COMMON_HERTZ,
    };
    let given = |lines: Vec<String>| {
        let mut values =
            lines.iter().filter_map(|line| line.strip_prefix("--backlog_wait_time")?.trim().parse().ok());
        values.next_back().unwrap_or(DEFAULT_SECONDS * hertz)
    };
    Reading::new(lines(survey).map(given), &[RULES])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Isolated, shown, thread};
    use sysroot::FakeTree;

    #[test]
    fn rules_count_where_the_daemon_runs() {
        let tree = FakeTree::new(&[(
            "/etc/audit/audit.rules",
            "# made\n-D\n-b 8192\n--backlog_wait_time 0\n-a never,task\n-a always,exit -F arch=b64 -S openat\n-w /etc/passwd -p wa\n",
        )]);
        let of = |name: &str| shown(&tree, Isolated::None, name);
        assert_eq!(of("audit.rules"), "absent");
        thread(&tree, (70, 70), "auditd", 0, (0, 0), "0-3");
        assert_eq!(of("audit.rules"), "rule: -a always,exit -S openat, rule: -w");
        assert_eq!(of("audit.backlog-wait"), "0");
        tree.write("/etc/audit/audit.rules", "-b 64\n");
        assert_eq!((of("audit.rules").as_str(), of("audit.backlog-wait").as_str()), ("none", "15000"));
    }
}
