//! Which kernel runs, and how it preempts.

use record::Fact;

use crate::{SysRoot, kernel_log};

/// What uname(2) says.
pub(super) struct Names {
    pub host: String,
    pub release: String,
    pub version: String,
    pub architecture: String,
}

/// uname(2) on the running system; else the files that say the same, empty where they are missing
/// (`/proc/sys/kernel/arch` is there from 6.1).
pub(super) fn names(root: &SysRoot) -> Names {
    if root.is_live() {
        let uname = rustix::system::uname();
        let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
        return Names {
            host: text(uname.nodename()),
            release: text(uname.release()),
            version: text(uname.version()),
            architecture: text(uname.machine()),
        };
    }
    let file =
        |name: &str| root.read(&format!("/proc/sys/kernel/{name}")).value().cloned().unwrap_or_default();
    Names {
        host: file("hostname"),
        release: file("osrelease"),
        version: file("version"),
        architecture: file("arch"),
    }
}

/// The preemption in effect. A kernel with PREEMPT_DYNAMIC is asked in debugfs, then in its log, where it names each
/// change of mode, then on its command line (Documentation/admin-guide/kernel-parameters.txt, `preempt=`).
pub(super) fn preemption(root: &SysRoot, version: &str, command_line: &str) -> Fact<String> {
    let built = built_preemption(version);
    if built == "PREEMPT_RT" || root.read("/sys/kernel/realtime").value().is_some_and(|text| text == "1") {
        return Fact::Value("PREEMPT_RT".into());
    }
    let debugfs = || root.read("/sys/kernel/debug/sched/preempt").value().and_then(|text| chosen(text));
    let log = || kernel_log::boot_lines(root).iter().rev().find_map(|line| logged_preemption(line));
    let mode = match built {
        "dynamic" => debugfs().or_else(log).or_else(|| requested_preemption(command_line)),
        _ => None,
    };
    match (mode, built) {
        (Some(mode), _) => Fact::Value(mode),
        (None, "dynamic") => Fact::Value("dynamic (mode unreadable)".into()),
        (None, "") => Fact::Unsupported,
        (None, built) => Fact::Value(built.into()),
    }
}

/// What `uname -v` says of preemption, the kernel's scripts/mkcompile_h or init/Makefile. A real-time patch before
/// 5.4 says `PREEMPT RT`. A kernel that says nothing was built with PREEMPT_NONE or PREEMPT_VOLUNTARY.
fn built_preemption(version: &str) -> &'static str {
    let words: Vec<&str> = version.split_whitespace().collect();
    let has = |word: &str| words.contains(&word);
    if words.is_empty() {
        ""
    } else if has("PREEMPT_RT") || words.windows(2).any(|pair| pair == ["PREEMPT", "RT"]) {
        "PREEMPT_RT"
    } else if has("PREEMPT_DYNAMIC") {
        "dynamic"
    } else if has("PREEMPT_LAZY") {
        "lazy"
    } else if has("PREEMPT") {
        "full"
    } else {
        "none or voluntary"
    }
}

/// The word in parentheses of `none voluntary (full) lazy`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('(')?;
    rest.split_once(')').map(|(word, _)| word.trim().to_owned()).filter(|word| !word.is_empty())
}

/// The mode in a line of the kernel's log, `Dynamic Preempt: full` (kernel/sched/core.c).
fn logged_preemption(line: &str) -> Option<String> {
    let mode = line.strip_prefix("Dynamic Preempt:")?.trim();
    (!mode.is_empty()).then(|| mode.to_owned())
}

/// The last `preempt=` of the command line, if it names a mode; what follows ` -- ` is for init.
fn requested_preemption(command_line: &str) -> Option<String> {
    let words = command_line.split_whitespace().take_while(|word| *word != "--");
    let modes = words.filter_map(|word| word.strip_prefix("preempt="));
    modes.filter(|mode| ["none", "voluntary", "full", "lazy"].contains(mode)).last().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_built_in_is_read_from_the_version() {
        for (version, built) in [
            ("#1 SMP PREEMPT_DYNAMIC Debian 6.1.90-1 (2024-05-03)", "dynamic"),
            ("#1 SMP PREEMPT_RT Mon Sep 30", "PREEMPT_RT"),
            ("#8 SMP PREEMPT RT Tue Jul 1 2014", "PREEMPT_RT"),
            ("#1 SMP PREEMPT Thu Jan 1", "full"),
            ("#57-Ubuntu SMP Fri", "none or voluntary"),
            ("", ""),
        ] {
            assert_eq!(built_preemption(version), built, "{version}");
        }
    }

    #[test]
    fn the_mode_is_found_in_debugfs_log_and_command_line() {
        assert_eq!(chosen("none voluntary (full) lazy"), Some("full".into()));
        assert_eq!(chosen("none voluntary full"), None);
        assert_eq!(logged_preemption("Dynamic Preempt: voluntary"), Some("voluntary".into()));
        assert_eq!(logged_preemption("rcu: Preemptible hierarchical RCU implementation."), None);
        assert_eq!(
            requested_preemption("quiet preempt=none preempt=full -- preempt=lazy"),
            Some("full".into())
        );
        assert_eq!(requested_preemption("preempt=fast"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "[a-zA-Z_()=: -]{0,60}|.{0,40}") {
            let _ = (built_preemption(&text), chosen(&text), logged_preemption(&text), requested_preemption(&text));
        }
    }
}
