//! Which kernel runs, and how it preempts.

use record::Fact;
use sysroot::SysRoot;

use crate::configuration::{Configuration, configured_preemption};
use crate::kernel_log;

/// `uname -r`.
pub use crate::configuration::RELEASE;

/// What uname(2) says.
#[derive(Default)]
pub struct Names {
    /// `uname -n`.
    pub host: String,
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// `uname -m`.
    pub architecture: String,
}

/// uname(2) on the running system; else the files that say the same, empty where they are missing
/// (`/proc/sys/kernel/arch` is there from 6.1).
pub fn names(root: &SysRoot) -> Names {
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

/// The preemption in effect. A kernel that can change it is asked in debugfs, then in its log, where it names each
/// change, then on its command line (Documentation/admin-guide/kernel-parameters.txt, `preempt=`).
pub(super) fn preemption(root: &SysRoot, names: &Names, command_line: &str) -> Fact<String> {
    let built = built_preemption(names);
    let real_time = root.read("/sys/kernel/realtime").value().is_some_and(|text| text == "1");
    let mode = match built {
        "" => return Fact::Unsupported,
        "PREEMPT_RT" => None,
        _ if real_time => Some("PREEMPT_RT".to_owned()),
        "none or voluntary" => built_mode(root),
        "full" => effective_preemption(root),
        _ => effective_preemption(root)
            .or_else(|| (built == DYNAMIC).then(|| requested_preemption(command_line)).flatten())
            .or_else(|| built_mode(root)),
    };
    Fact::Value(mode.unwrap_or_else(|| built.to_owned()))
}

/// What the configuration makes it do where nothing asks for something else.
fn built_mode(root: &SysRoot) -> Option<String> {
    let configuration = Configuration::find(root, None);
    let mode = configuration.config.value().map(configured_preemption)?;
    ["lazy", "full", "voluntary", "none"].contains(&mode).then(|| mode.to_owned())
}

/// What the kernel itself calls its mode, where it has several. Kernels 5.12 to 5.15 have without saying so in their
/// version.
fn effective_preemption(root: &SysRoot) -> Option<String> {
    let debugfs = root.read("/sys/kernel/debug/sched/preempt").value().and_then(|text| chosen(text));
    debugfs.or_else(|| {
        let log = kernel_log::boot_log(root);
        log.value()?.lines.iter().rev().find_map(|line| logged_preemption(line))
    })
}

/// A kernel that chooses at boot, and does not say what.
pub const DYNAMIC: &str = "dynamic (mode unreadable)";

/// The first kernel where `PREEMPT` in the version can stand for lazy preemption, which lets real-time threads in
/// just as full preemption does.
const LAZY_SINCE: (u32, u32) = (6, 13);

/// What `uname -v` says of preemption, the kernel's scripts/mkcompile_h or init/Makefile. A real-time patch before
/// 5.4 says `PREEMPT RT`. A kernel that says nothing was built with PREEMPT_NONE or PREEMPT_VOLUNTARY.
pub fn built_preemption(names: &Names) -> &'static str {
    let words: Vec<&str> = names.version.split_whitespace().collect();
    let has = |word: &str| words.contains(&word);
    if words.is_empty() {
        ""
    } else if has("PREEMPT_RT") || words.windows(2).any(|pair| pair == ["PREEMPT", "RT"]) {
        "PREEMPT_RT"
    } else if has("PREEMPT_DYNAMIC") {
        DYNAMIC
    } else if has("PREEMPT") && release_numbers(&names.release).is_some_and(|numbers| numbers >= LAZY_SINCE) {
        "full or lazy"
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
pub fn logged_preemption(line: &str) -> Option<String> {
    let mode = line.strip_prefix("Dynamic Preempt:")?.trim();
    (!mode.is_empty()).then(|| mode.to_owned())
}

/// The last `preempt=` of the command line, if it names a mode; what follows ` -- ` is for init.
pub fn requested_preemption(command_line: &str) -> Option<String> {
    let words = command_line.split_whitespace().take_while(|word| *word != "--");
    let modes = words.filter_map(|word| word.strip_prefix("preempt="));
    modes.filter(|mode| ["none", "voluntary", "full", "lazy"].contains(mode)).last().map(str::to_owned)
}

/// Major and minor number of a kernel release, `6.18.44-fc` or `3.12-rc1`.
pub(super) fn release_numbers(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sysroot::FakeTree;

    fn names(release: &str, version: &str) -> Names {
        Names {
            host: String::new(),
            release: release.into(),
            version: version.into(),
            architecture: String::new(),
        }
    }

    #[test]
    fn a_kernel_that_does_not_say_how_it_preempts_does_as_it_was_built() {
        let names =
            |version: &str| Names { release: "6.18.1".into(), version: version.into(), ..Names::default() };
        let of = |version: &str, config: &str, line: &str| {
            let tree =
                FakeTree::new(&[("/proc/sys/kernel/osrelease", "6.18.1"), ("/boot/config-6.18.1", config)]);
            preemption(&tree.root, &names(version), line)
        };
        let dynamic = "#1 SMP PREEMPT_DYNAMIC";
        for (version, config, line, mode) in [
            (dynamic, "CONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPT_DYNAMIC=y\n", "quiet", "none"),
            (dynamic, "CONFIG_PREEMPT_NONE=y\n", "preempt=full", "full"),
            (dynamic, "CONFIG_HZ=250\n", "quiet", DYNAMIC),
            ("#1 SMP", "CONFIG_PREEMPT_VOLUNTARY=y\n", "quiet", "voluntary"),
            ("#1 SMP", "CONFIG_HZ=250\n", "quiet", "none or voluntary"),
            ("#1 SMP PREEMPT", "CONFIG_PREEMPT_LAZY=y\n", "quiet", "lazy"),
        ] {
            assert_eq!(of(version, config, line), Fact::Value(mode.to_owned()), "{version} {config} {line}");
        }
    }

    #[test]
    fn what_was_built_in_is_read_from_the_version() {
        for (release, version, built) in [
            ("6.1.0-21-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.90-1 (2024-05-03)", DYNAMIC),
            ("6.12.1", "#1 SMP PREEMPT_RT Mon Sep 30", "PREEMPT_RT"),
            ("3.12.19-rt30", "#8 SMP PREEMPT RT Tue Jul 1 2014", "PREEMPT_RT"),
            ("5.10.0", "#1 SMP PREEMPT Thu Jan 1", "full"),
            ("6.13.0", "#1 SMP PREEMPT Thu Jan 1", "full or lazy"),
            ("5.4.0-57", "#57-Ubuntu SMP Fri", "none or voluntary"),
            ("5.4.0-57", "", ""),
        ] {
            assert_eq!(built_preemption(&names(release, version)), built, "{version}");
        }
    }

    #[test]
    fn the_kernels_own_answer_goes_before_the_command_line() {
        let tree = FakeTree::empty();
        let (root, dynamic) = (&tree.root, names("6.1.0", "#1 SMP PREEMPT_DYNAMIC"));
        let mode = |names| preemption(root, names, "quiet preempt=none").value().cloned().unwrap();
        assert_eq!(preemption(root, &dynamic, "quiet"), Fact::Value(DYNAMIC.into()));
        assert_eq!(mode(&dynamic), "none");
        tree.write(
            "/dev/kmsg",
            "6,9,79117,-;Dynamic Preempt: voluntary\n6,800,99117000,-;Dynamic Preempt: lazy\n",
        );
        assert_eq!(mode(&dynamic), "lazy");
        tree.write("/sys/kernel/debug/sched/preempt", "none voluntary (full)\n");
        assert_eq!(mode(&dynamic), "full");
        tree.write("/sys/kernel/realtime", "1\n");
        assert_eq!(mode(&dynamic), "PREEMPT_RT");
    }

    #[test]
    fn releases_parse() {
        assert_eq!(release_numbers("6.18.44-fc-v595"), Some((6, 18)));
        assert_eq!(release_numbers("3.12-rc1"), Some((3, 12)));
        assert_eq!(release_numbers("6"), None);
        assert_eq!(release_numbers(""), None);
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
            let _ = (built_preemption(&names(&text, &text)), chosen(&text), logged_preemption(&text), requested_preemption(&text));
        }
    }
}
