use units::KernelVersion;

use super::*;
use crate::CommandLine;

const NEW: Option<KernelVersion> = Some(KernelVersion::new(6, 12));
/// The table of files with where each row comes from, which programs do not carry.
const FILES: &str = include_str!("files.txt");
const OLD: Option<KernelVersion> = Some(KernelVersion::new(6, 1));

fn is_wrong(word: &str, version: Option<KernelVersion>) -> bool {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    judge(name, value, version).is_some()
}

#[test]
fn each_line_of_the_tables_is_read() {
    let lines = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(parameters().count(), lines(&TABLE));
    assert_eq!(files::files().count(), lines(FILES));
    assert_eq!(symbols::names().count(), lines(include_str!("symbols.txt")));
    assert!(parameters().count() >= 150, "{}", parameters().count());
}

#[test]
fn words_of_the_table_are_taken_and_others_are_not() {
    for parameter in parameters() {
        if let Kind::Words(words) | Kind::Start(words) | Kind::List(words) = &parameter.kind {
            let word = words[0].text.replace('+', ",");
            assert_eq!(judge(parameter.name, Some(&word), None), None, "{}", parameter.name);
            assert!(judge(parameter.name, Some("zzz"), None).is_some(), "{}", parameter.name);
        }
    }
}

#[test]
fn values_that_the_kernel_does_not_take_are_faults() {
    for word in [
        "idle=spin",
        "transparent_hugepage=no",
        "mitigations=none",
        "preempt=rt",
        "intel_pstate=performance",
        "numa_balancing=off",
        "nmi_watchdog=off",
        "isolcpus=1-3,managed_irq",
        "isolcpus=domain",
        "isolcpus=managed-irq,2",
        "nohz_full=5-2",
        "nohz_full=",
        "nohz_full=2-3x",
        "rcu_nocb_poll=0",
        "nosmt=off",
        "processor.max_cstate=C1",
        "skew_tick=yes",
        "psi=maybe",
        "hugepagesz=5M",
        "amd_iommu=on",
    ] {
        assert!(is_wrong(word, NEW), "{word}");
    }
}

#[test]
fn values_that_the_kernel_takes_are_none() {
    for word in [
        "isolcpus=nohz,domain,managed_irq,1-3",
        "isolcpus=1-N",
        "isolcpus=0-30:2/4,",
        "nohz_full=all",
        "rcu_nocbs",
        "rcu_nocbs=1,,2",
        "rcu_nocb_poll",
        "rcu_nocb_poll=1",
        "nosmt=force",
        "mitigations=auto,nosmt",
        "highres=n",
        "skew_tick=0x1",
        "retbleed=auto,nosmt",
        "nmi_watchdog=panic,1",
        "isolcpus=$CPUS",
        "isolcpus=<cpus>",
        "root=/dev/sda1",
    ] {
        assert!(!is_wrong(word, NEW), "{word}");
    }
}

#[test]
fn versions_decide_which_words_there_are() {
    assert!(is_wrong("preempt=lazy", NEW));
    assert!(!is_wrong("preempt=lazy", Some(KernelVersion::new(6, 13))));
    assert!(is_wrong("amd_pstate=active", OLD) && !is_wrong("amd_pstate=active", NEW));
    assert!(is_wrong("nohz_full=1-N", Some(KernelVersion::new(5, 4))));
}

#[test]
fn words_that_do_not_go_together_are_misfits() {
    let misfits = |text: &str| together(&CommandLine::parse(text), NEW).len();
    for line in [
        "nohz=off nohz_full=2",
        "maxcpus=2 isolcpus=2-3",
        "nr_cpus=4 nohz_full=2-5",
        "isolcpus=nohz,2 nohz_full=2-3",
        "isolcpus=2-3 irqaffinity=1-2",
        "hugepages=4 hugepagesz=1G",
        "nosmp isolcpus=1",
    ] {
        assert_eq!(misfits(line), 1, "{line}");
    }
    for line in [
        "nohz=on nohz_full=2",
        "maxcpus=4 isolcpus=2-3",
        "nr_cpus=4 nohz_full=1-N",
        "isolcpus=nohz,2-3 nohz_full=2-3",
        "isolcpus=domain,2-3 nohz_full=2",
        "isolcpus=2-3 irqaffinity=0-1",
        "hugepagesz=1G hugepages=4",
    ] {
        assert_eq!(misfits(line), 0, "{line}");
    }
}

#[test]
fn files_know_their_values_and_versions() {
    use files::{FileFault, judge};
    let wrong = |path: &str, value: &str| matches!(judge(path, value, NEW), Some(FileFault::Value(_)));
    let gone = |path: &str, value: &str| matches!(judge(path, value, NEW), Some(FileFault::Gone(_)));
    assert!(wrong("/sys/kernel/mm/transparent_hugepage/enabled", "no"));
    assert!(!wrong("/sys/kernel/mm/transparent_hugepage/enabled", "never"));
    assert!(wrong("/proc/irq/$irq/smp_affinity", "2-3"));
    assert!(wrong("/proc/irq/12/smp_affinity_list", "0xc"));
    assert!(!wrong("/proc/irq/12/smp_affinity_list", "2-3"));
    assert!(wrong("/sys/fs/cgroup/a/b/cpu.max", "-1"));
    assert!(!wrong("/sys/fs/cgroup/a/b/cpu.max", "max 100000"));
    assert!(gone(&files::path_of("kernel.sched_latency_ns"), "1"));
    assert!(
        judge(&files::path_of("kernel.sched_latency_ns"), "1", Some(KernelVersion::new(5, 10))).is_none()
    );
    assert_eq!(files::path_of("net.ipv4.conf.eth0/1.rp_filter"), "/proc/sys/net/ipv4/conf/eth0.1/rp_filter");
    assert_eq!(files::path_of("kernel/sched_rt_runtime_us"), "/proc/sys/kernel/sched_rt_runtime_us");
}

proptest::proptest! {
    /// A list that is written from numbers and ranges is read as those CPUs, whatever empty items stand in it.
    #[test]
    fn lists_are_read_as_the_kernel_reads_them(ranges in proptest::collection::vec((0_u32..200, 0_u32..20), 1..8)) {
        let text: Vec<String> = ranges.iter().map(|(from, more)| format!("{from}-{}", from + more)).collect();
        let cpus = cpu_list(&text.join(",,"), None, NEW).unwrap();
        let expected: units::CpuList = ranges.iter().flat_map(|(from, more)| *from..=from + more).collect();
        proptest::prop_assert_eq!(cpus, expected);
    }

    #[test]
    fn any_value_is_judged_without_a_panic(name in 0_usize..150, text in "(\\PC|[-,:/@N=0-9]|all|domain,){0,20}") {
        let parameter = parameters().nth(name).unwrap();
        let _ = judge(parameter.name, Some(&text), NEW);
        let _ = together(&CommandLine::parse(&format!("{}={text}", parameter.name)), NEW);
        let _ = files::judge(&text, &text, NEW);
    }
}

#[test]
fn a_word_that_a_later_kernel_may_know_is_no_fault() {
    let later = Some(KernelVersion::new(6, 18));
    assert!(!is_wrong("mitigations=auto,no_guest_host,no_guest_guest", later));
    assert!(is_wrong("mitigations=auto,no_guest_host", NEW), "a word of 6.17");
    assert!(is_wrong("preempt=rt", NEW) && !is_wrong("preempt=rt", later));
    assert!(is_wrong("idle=Poll", later), "a slip in a word that the table has");
    assert!(is_wrong("isolcpus=1,domain", later), "the grammar of CPU lists has not changed");
}

/// Files that are younger than 6.12, or of kernels that are not mainline's, and the directories whose files differ by driver.
const UNREAD: [&str; 6] = [
    "cpuinfo_avg_freq",
    "interactive/*",
    "iosched/*",
    "sched/llc_enabled",
    "sched/ext_server/*",
    "fair_server/*",
];

/// A row's columns: path, value, versions, source, sources read, document.
fn file_rows() -> Vec<[&'static str; 6]> {
    let rows = FILES.lines().filter(|line| !line.starts_with('#'));
    let columns = |line: &'static str| line.split('|').map(str::trim).collect::<Vec<_>>().try_into();
    rows.map(|line| columns(line).unwrap_or_else(|_| panic!("not six columns: {line}"))).collect()
}

/// The versions of a row: the first that has the file, the first that has it no more.
fn span(versions: &str) -> (Option<KernelVersion>, Option<KernelVersion>) {
    let range = versions.split('=').next().unwrap().trim();
    let (since, until) = range.split_once('-').unwrap_or((range, ""));
    (since.parse().ok(), until.parse().ok())
}

#[test]
fn each_file_has_a_source_in_which_it_was_found() {
    let mut faults = Vec::new();
    for [path, value, versions, source, read, document] in file_rows() {
        let (since, until) = span(versions);
        let has = |version: KernelVersion| {
            since.is_none_or(|since| version >= since) && until.is_none_or(|until| version < until)
        };
        let is_older = until.is_some_and(|until| until <= OLD.unwrap());
        let is_unread = UNREAD.iter().any(|end| path.ends_with(end));
        let both = has(OLD.unwrap()) && has(NEW.unwrap());
        let beyond = read.split_whitespace().find(|version| !has(version.parse().unwrap()));
        for (is_wrong, what) in [
            (!source.contains('/') || !source.ends_with(['c', 'h']), "names no source"),
            (document != "-" && !document.starts_with("Documentation/"), "names no document"),
            (beyond.is_some(), "was found in a version that is said not to have it"),
            (read.is_empty() && value != "gone" && !is_older && !is_unread, "was found nowhere"),
            (both && !read.is_empty() && read != "6.1 6.12", "is not in both, and no version says so"),
        ] {
            faults.extend(is_wrong.then(|| format!("{path} {what}")));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// A path as a row's pattern stands for it.
fn one_of(pattern: &str) -> String {
    pattern
        .replace("cpu*", "cpu3")
        .replace("state*", "state1")
        .replace("policy*", "policy2")
        .replace('*', "x7")
}

/// Values that a row takes, and others that it does not.
fn drawn(value: &str, seed: &mut rand_like::Numbers) -> Option<(Vec<String>, Vec<String>)> {
    let text = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<String>>();
    Some(match value.split_once(' ').unwrap_or((value, "")) {
        ("int", range) => {
            let (least, most) = range.split_once("..").unwrap_or_default();
            let (low, high) =
                (least.parse().unwrap_or(i64::from(i32::MIN)), most.parse().unwrap_or(i64::from(i32::MAX)));
            let inside = low + seed.below(high - low + 1);
            let mut outside = text(&["x", "1k", "1.5"]);
            outside.extend((!least.is_empty()).then(|| (low - 1 - seed.below(9)).to_string()));
            outside.extend((!most.is_empty()).then(|| (high + 1 + seed.below(9)).to_string()));
            (vec![low.to_string(), high.to_string(), inside.to_string()], outside)
        }
        ("words", words) => {
            // What is younger than the version that is asked is tested by that.
            let is_known = |word: &&str| !word.ends_with("@6.13");
            let word = |word: &str| word.split('@').next().unwrap().replace('&', "+");
            (words.split(',').filter(is_known).map(word).collect(), text(&["zzz", "ALWAYSNEVER", "42x"]))
        }
        ("bool", _) => (text(&["0", "1", "y", "n"]), text(&["2", "x"])),
        ("cpus" | "cpus?", _) => {
            let first = seed.below(30);
            (
                vec![format!("{first}"), format!("{first}-{}", first + 1 + seed.below(5))],
                text(&["0xf0", "f0f", "all but 3"]),
            )
        }
        ("mask" | "hex", _) => (vec![format!("{:x}", 1 + seed.below(255))], text(&["2-3", "0-1,4", "cpu1"])),
        ("resume", _) => (vec!["n/a".into(), (1 + seed.below(900)).to_string()], text(&["0", "-1", "max"])),
        ("quota", _) => (text(&["max", "max 100000", "70000 100000"]), text(&["-1", "500", "50%"])),
        ("controllers", _) => (text(&["+cpuset", "+cpu -memory"]), text(&["cpuset", "+cpus"])),
        ("feature", _) => (text(&["NO_TTWU_QUEUE", "RT_PUSH_IPI"]), text(&["TTWU", "no_hrtick"])),
        ("ro" | "noeffect", _) => (Vec::new(), text(&["0", "1", "x"])),
        _ => return None,
    })
}

/// Numbers that are the same in each run.
mod rand_like {
    pub struct Numbers(pub u64);

    impl Numbers {
        /// At least 0 and below `end`.
        pub fn below(&mut self, end: i64) -> i64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as i64 % end.max(1)
        }
    }
}

/// What is wrong with a row, by values that are drawn for it.
fn faults_of(row: &[&'static str; 6], seed: &mut rand_like::Numbers, judged: &mut usize) -> Vec<String> {
    use files::{FileFault, judge};
    let [path, value, versions, ..] = row;
    let one = one_of(path);
    let mut faults = Vec::new();
    if files::file(&one).map(|file| file.path) != Some(*path) {
        return vec![format!("{path}: another row stands before it")];
    }
    let is_gone = |version| matches!(judge(&one, "1", version), Some(FileFault::Gone(_)));
    if *value == "gone" {
        faults.extend((!is_gone(NEW)).then(|| format!("{path} is there")));
        return faults;
    }
    let (since, until) = span(versions);
    let long_ago = KernelVersion::new(4, 0);
    faults.extend(
        (since.is_some() && !is_gone(Some(long_ago))).then(|| format!("{path} is there before {since:?}")),
    );
    faults.extend((until.is_some() && !is_gone(until)).then(|| format!("{path} is there in {until:?}")));
    let version = match (since, until) {
        (Some(since), _) => Some(since.max(NEW.unwrap())),
        (None, Some(_)) => Some(long_ago),
        (None, None) => NEW,
    };
    let Some((taken, refused)) = drawn(value, seed) else { return faults };
    *judged += taken.len() + refused.len();
    for text in &taken {
        let fault = judge(&one, text, version);
        faults.extend(fault.map(|fault| format!("{path} ({value}) takes {text}: {fault:?}")));
    }
    for text in &refused {
        let is_refused = matches!(judge(&one, text, version), Some(FileFault::Value(_)));
        faults.extend((!is_refused).then(|| format!("{path} ({value}) refuses {text}")));
    }
    faults
}

#[test]
fn each_file_takes_what_its_row_says_and_nothing_else() {
    let (mut seed, mut judged) = (rand_like::Numbers(24), 0);
    let faults: Vec<String> =
        file_rows().iter().flat_map(|row| faults_of(row, &mut seed, &mut judged)).collect();
    assert!(faults.is_empty(), "{} faults: {faults:#?}", faults.len());
    assert!(judged > 1000, "{judged} values");
}
