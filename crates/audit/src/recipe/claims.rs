//! What the sentences of a whole page claim, beside what its lines do: CPUs that are said to be isolated, clocks with two masters,
//! files that another release reads.

use machine::grammar;
use units::CpuList;

use super::{Remark, RemarkId, intent, prose};

/// What is wrong with the lines of a text for what the text says of them.
pub fn remarks(text: &str) -> Vec<Remark> {
    let page = Page { text, lower: text.to_lowercase() };
    let checks: [fn(&Page) -> Option<Remark>; 13] = [
        lasting,
        alone,
        only_allowed,
        clock_for_idle,
        two_masters,
        software_stamps,
        wrong_way,
        balanced_again,
        interrupts_on_isolated,
        other_profile,
        other_partition,
        unthreaded,
        old_bandwidth,
    ];
    let mut remarks: Vec<Remark> = checks.iter().filter_map(|check| check(&page)).collect();
    remarks.extend(outside_isolated(&page));
    remarks
}

struct Page<'a> {
    text: &'a str,
    lower: String,
}

impl<'a> Page<'a> {
    fn says(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.lower.contains(phrase))
    }

    /// The first line that `is` so, from 1.
    fn line(&self, is: impl Fn(&str) -> bool) -> Option<(usize, &'a str)> {
        self.text.lines().enumerate().find(|(_, line)| is(line)).map(|(index, line)| (index + 1, line))
    }

    /// The line that starts one of these services.
    fn start_of(&self, services: &[&str]) -> Option<(usize, &'a str)> {
        self.line(|line| {
            let words: Vec<&str> = line.split([' ', '`', '"']).collect();
            let starts = words.contains(&"systemctl")
                && words.iter().any(|word| matches!(*word, "enable" | "start" | "restart" | "unmask"));
            starts && words.iter().any(|word| services.contains(&word.trim_end_matches(".service")))
        })
    }

    /// The CPUs of the text's isolcpus=, where it has one list only.
    fn isolated(&self) -> Option<CpuList> {
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`');
        let mut lists = self.text.match_indices("isolcpus=").filter_map(|(at, sign)| {
            let value = self.text[at + sign.len()..].split(ends).next()?;
            let first = value.find(|c: char| c.is_ascii_digit())?;
            grammar::cpu_list(value[first..].trim_end_matches(['.', ',', ';', ')']), None, None).ok()
        });
        let first = lists.next().filter(|list| !list.is_empty())?;
        lists.all(|list| list == first).then_some(first)
    }
}

fn error((line, shown): (usize, &str), message: impl Into<String>) -> Remark {
    Remark::error(line, RemarkId::Contradiction, shown, message)
}

/// Commands that change the running system, of which the text says that they last.
fn lasting(page: &Page) -> Option<Remark> {
    const COMMANDS: [&str; 12] = [
        "sysctl -w",
        "cpupower frequency-set",
        "cpupower idle-set",
        "ethtool -",
        "chrt -",
        "renice",
        "swapoff",
        "| tee /proc/",
        "| tee /sys/",
        "| sudo tee /proc/",
        "| sudo tee /sys/",
        "setpci",
    ];
    let is_claimed = page.says(&[
        "permanent",
        "survives a reboot",
        "survives reboots",
        "survive a reboot",
        "survives the next boot",
        "after every reboot",
        "across reboots",
        "only once",
        "for good",
    ]);
    let is_kept = page.says(&[
        "systemd",
        "/etc/",
        "rc.local",
        "crontab",
        "cron ",
        "udev",
        "execstart",
        "tmpfiles",
        "unit",
        "service",
        "not permanent",
        "until the next",
        "temporar",
        "lost",
        "make it permanent",
        "to make this permanent",
        "at boot",
        "nixos",
        "tuned",
    ]);
    let line = page.line(|line| COMMANDS.iter().any(|command| line.contains(command)))?;
    (is_claimed && !is_kept).then(|| error(line, "holds until the next boot: nothing here makes it again"))
}

/// Affinity keeps a program on its CPUs, and nobody else off them.
fn alone(page: &Page) -> Option<Remark> {
    let is_claimed = page.says(&[
        "no other process",
        "no other task",
        "no other program",
        "exclusively",
        "keeps other processes off",
        "keeps everything else off",
        "nothing else runs",
        "to itself alone",
        "for itself alone",
        "has the core to itself",
        "has the cpu to itself",
    ]);
    let is_kept = page.says(&[
        "isolcpus",
        "cpuset.cpus",
        "allowedcpus",
        "cset ",
        "cpumanagerpolicy",
        "isolated_cores",
        "partition",
        "guaranteed",
        "cpu manager",
        "not keep",
        "does not",
        "system.slice",
        "cpuaffinity=0",
        "static",
        "isolated",
    ]);
    let line = page.line(|line| {
        ["taskset -", "--cpuset-cpus", "CPUAffinity=", "cpuset:"].iter().any(|sign| line.contains(sign))
            && !line.starts_with('#')
    })?;
    (is_claimed && !is_kept).then(|| error(line, "binds this program: others may still run on these CPUs"))
}

/// Limits allow a priority, and give none.
fn only_allowed(page: &Page) -> Option<Remark> {
    let is_claimed = page.says(&[
        "runs with real-time priority",
        "runs at real-time priority",
        "runs with priority",
        "runs at priority",
        "runs as sched_fifo",
        "runs under sched_fifo",
        "runs with sched_fifo",
        "runs in sched_fifo",
        "is scheduled as fifo",
        "is scheduled with fifo",
        "makes it a real-time",
        "starts with fifo",
        "starts as fifo",
    ]);
    let is_asked = page.says(&[
        "cpuschedulingpolicy",
        "chrt",
        "sched_setscheduler",
        "pthread_",
        "jackd",
        "rtkit",
        "pipewire",
        "itself",
    ]);
    let line = page.line(|line| {
        line.contains("LimitRTPRIO=")
            || line.contains(" rtprio ") && line.split_whitespace().count() == 4
            || line.contains("--ulimit rtprio")
    })?;
    (is_claimed && !is_asked)
        .then(|| error(line, "allows the program to ask for a priority, and gives it none"))
}

/// The governor sets the clock's rate, and not how deep a CPU sleeps.
fn clock_for_idle(page: &Page) -> Option<Remark> {
    let is_claimed = page.says(&[
        "disables c-states",
        "no c-states",
        "c-states are off",
        "prevents c-states",
        "prevents deep c-states",
        "prevents deep idle",
        "out of c-states",
        "never sleeps",
        "never idles",
        "keeps the cpu in c0",
        "stays in c0",
        "no idle states",
        "disables idle states",
        "exit latency is gone",
    ]);
    let is_kept = page.says(&[
        "max_cstate",
        "cpu_dma_latency",
        "idle-set",
        "idle=poll",
        "cpuidle",
        "resume_latency",
        "nohlt",
        "force_latency",
    ]);
    let line = page.line(|line| {
        line.contains("performance")
            && (line.contains("scaling_governor")
                || line.contains("frequency-set")
                || line.contains("cpufreq-set"))
    })?;
    (is_claimed && !is_kept).then(|| error(line, "sets the clock's rate: idle states stay as they are"))
}

/// phc2sys and another daemon that set the same clock.
fn two_masters(page: &Page) -> Option<Remark> {
    let follows = page.line(|line| {
        line.contains("phc2sys")
            && (line.contains("-c CLOCK_REALTIME") || line.contains(" -a") && line.contains("-r"))
    });
    follows?;
    let start = page.start_of(&["systemd-timesyncd", "chronyd", "chrony", "ntp", "ntpd", "ntpsec"])?;
    Some(error(start, "sets the same clock as phc2sys: the two pull against each other"))
}

/// ptp4l -S takes software time stamps (ptp4l(8)).
fn software_stamps(page: &Page) -> Option<Remark> {
    let line =
        page.line(|line| line.contains("ptp4l ") && line.split_whitespace().any(|word| word == "-S"))?;
    let is_hardware = page.says(&[
        "hardware clock",
        "hardware time stamp",
        "hardware timestamp",
        "/dev/ptp",
        "nic's own time",
    ]);
    (is_hardware && !page.says(&["software time stamp", "software timestamp", "in software"])).then(|| {
        error(line, "-S takes time stamps in software, and leaves the device's clock alone: -H").instead("-H")
    })
}

/// phc2sys -s is the clock that is followed, -c the one that is set (phc2sys(8)).
fn wrong_way(page: &Page) -> Option<Remark> {
    let line = page.line(|line| line.contains("phc2sys") && line.contains("-s CLOCK_REALTIME"))?;
    let is_meant = page.says(&[
        "system clock follow",
        "system clock from",
        "clock to the system",
        "set the system clock",
        "system time from",
        "synchronize the system clock",
        "synchronise the system clock",
        "discipline the system clock",
        "sync the system clock",
    ]);
    is_meant.then(|| {
        error(line, "-s is the clock that is followed: this sets the device's clock by the system's")
    })
}

/// irqbalance is started behind the lines that place interrupts.
fn balanced_again(page: &Page) -> Option<Remark> {
    let (placed, _) = page.line(|line| line.contains("smp_affinity") && line.contains(['>', '|']))?;
    let start = page.start_of(&["irqbalance"]).filter(|(line, _)| *line > placed)?;
    let is_kept_off = page.says(&["banned_cpu", "--banirq", "--banscript", "--policyscript"]);
    (!is_kept_off).then(|| error(start, "moves the interrupts again that the lines above have placed"))
}

/// Interrupts that are sent to isolated CPUs by a text that wants them elsewhere.
fn interrupts_on_isolated(page: &Page) -> Option<Remark> {
    let isolated = page.isolated()?;
    let wants_none = page.says(&[
        "no device interrupt",
        "see no interrupt",
        "no interrupts on",
        "interrupts off the",
        "interrupts away from",
        "keep the isolated core clean",
        "irqs away from",
        "irqs off the",
    ]);
    let line = page.line(|line| {
        written_mask(line).is_some_and(|cpus| !cpus.is_empty() && cpus.difference(&isolated).is_empty())
    })?;
    wants_none.then(|| error(line, format!("sends the interrupt to the isolated CPUs {isolated}")))
}

/// The CPUs of `echo MASK > .../smp_affinity`, through tee or not.
fn written_mask(line: &str) -> Option<CpuList> {
    let (_, value) = line.split_once("echo ")?;
    let value = value.split_whitespace().next()?.trim_matches(['"', '\'']);
    let end = |c: char| c.is_whitespace() || matches!(c, '`' | '"' | ';');
    let path = line.split(end).find(|word| word.contains("smp_affinity"))?;
    match path.ends_with("_list") {
        true => grammar::cpu_list(value, None, None).ok(),
        false => CpuList::from_mask(value.trim_start_matches("0x")),
    }
}

/// Files of variables that tuned's profiles read, each its own.
fn other_profile(page: &Page) -> Option<Remark> {
    const PROFILES: [&str; 4] =
        ["realtime-virtual-guest", "realtime-virtual-host", "cpu-partitioning", "realtime"];
    let file = |profile: &str| format!("/etc/tuned/{profile}-variables.conf");
    let written: Vec<&str> =
        PROFILES.into_iter().filter(|profile| page.text.contains(&file(profile))).collect();
    let [written] = written.as_slice() else { return None };
    let line = page.line(|line| line.contains("tuned-adm profile "))?;
    let (_, chosen) = line.1.split_once("tuned-adm profile ")?;
    let chosen = chosen.split([' ', '`', '"']).next()?;
    let is_other = PROFILES.contains(&chosen) && chosen != *written;
    is_other.then(|| error(line, format!("the profile reads {}", file(chosen))))
}

/// The firmware's partition of Raspberry Pi OS has another place since Bookworm (Debian 12).
fn other_partition(page: &Page) -> Option<Remark> {
    let is_new = page.says(&["bookworm", "trixie", "raspberry pi 5", "pi 5 "]);
    let is_guarded = page.says(&["bullseye", "older", "before bookworm", "previous release"]);
    let names = |line: &str| line.contains("/boot/cmdline.txt") || line.contains("/boot/config.txt");
    let line = page.line(|line| names(line) && prose::advises(line))?;
    (is_new && !is_guarded && !page.text.contains("/boot/firmware"))
        .then(|| error(line, "the firmware reads /boot/firmware since Bookworm: this file has no effect"))
}

/// rtirq raises threads of interrupts, which a kernel without PREEMPT_RT has with threadirqs only.
fn unthreaded(page: &Page) -> Option<Remark> {
    let is_stock = page.says(&[
        "not preempt_rt",
        "stock kernel",
        "generic kernel",
        "stock (not",
        "non-rt kernel",
        "without preempt_rt",
    ]);
    let line = page.line(|line| line.contains("RTIRQ_NAME_LIST") || line.contains("restart rtirq"))?;
    (is_stock && !page.text.contains("threadirqs")).then(|| {
        error(line, "this kernel has no threads of interrupts without threadirqs on its command line")
    })
}

/// Docker's real-time bandwidth needs control groups of version 1.
fn old_bandwidth(page: &Page) -> Option<Remark> {
    let is_new = page.says(&[
        "unified cgroup",
        "cgroup v2",
        "cgroup2",
        "cgroups v2",
        "ubuntu 22.04",
        "ubuntu 24.04",
        "debian 12",
        "debian 13",
    ]);
    let is_old = page.says(&["cgroup v1", "cgroups v1", "unified_cgroup_hierarchy=0"]);
    let line = page.line(|line| line.contains("--cpu-rt-runtime"))?;
    (is_new && !is_old).then(|| {
        error(line, "real-time bandwidth needs control groups of version 1 and CONFIG_RT_GROUP_SCHED")
    })
}

/// Commands that a sentence or comment puts on the isolated CPUs, with none of these in their list.
fn outside_isolated(page: &Page) -> Vec<Remark> {
    let Some(isolated) = page.isolated() else { return Vec::new() };
    let mut said = String::new();
    let mut remarks = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        let trimmed = line.trim();
        let is_sentence = prose::introduces(trimmed) || trimmed.starts_with('#');
        let lower = format!("{said} {trimmed}").to_lowercase();
        let is_meant = lower.contains("isolated c") || lower.contains("isolated p");
        let is_other = [
            "housekeeping",
            "non-isolated",
            "not isolated",
            "away from",
            "off the isolated",
            "everything else",
            "keep",
            "outside",
        ]
        .iter()
        .any(|word| lower.contains(word));
        let list = listed(trimmed).filter(|_| is_meant && !is_other);
        if let Some(list) = list.filter(|list| !list.is_empty() && list.intersection(&isolated).is_empty()) {
            let message = format!("runs on CPUs {list}: isolated are {isolated}");
            remarks.push(error((index + 1, line), message));
        }
        if is_sentence {
            said = trimmed.to_owned();
        } else if !trimmed.is_empty() && !trimmed.starts_with("```") && !trimmed.ends_with('\\') {
            said.clear();
        }
    }
    remarks
}

/// The list of CPUs that a command gets.
fn listed(line: &str) -> Option<CpuList> {
    const OPTIONS: [(&str, &[&str]); 4] = [
        ("taskset", &["-c", "--cpu-list", "-cp", "-pc"]),
        ("cyclictest", &["-a", "--affinity"]),
        ("dpdk-", &["-l", "--lcores"]),
        ("numactl", &["-C", "--physcpubind"]),
    ];
    let words: Vec<&str> = line.split([' ', '`', '"', '=']).filter(|word| !word.is_empty()).collect();
    OPTIONS.iter().find_map(|(program, options)| {
        let at = words.iter().position(|word| word.starts_with(program))?;
        let option = at + words[at..].iter().position(|word| options.contains(word))?;
        grammar::cpu_list(words.get(option + 1)?, None, None).ok()
    })
}

/// Lines of code that the machine of the whole page does not have.
pub fn elsewhere(text: &str, blocks: &[(usize, &str)], target: super::Target) -> Vec<Remark> {
    blocks
        .iter()
        .flat_map(|(first, block)| {
            intent::elsewhere(text, block, target).into_iter().map(move |mut remark| {
                remark.line += first - 1;
                remark
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_that_hold_are_fine() {
        for fine in [
            "isolcpus=2-3\nRun it on the isolated CPUs:\ntaskset -c 2 ./loop\n",
            "isolcpus=2-3\n# keep the shell off the isolated CPUs\ntaskset -c 0 bash\n",
            "phc2sys -s eth0 -c CLOCK_REALTIME -w\nsystemctl disable --now systemd-timesyncd\n",
            "ptp4l -i eth0 -S -m with software time stamps\n",
            "echo 1 > /proc/irq/9/smp_affinity\nsystemctl disable --now irqbalance\n",
            "# /etc/tuned/realtime-variables.conf\nisolated_cores=2\ntuned-adm profile realtime\n",
            "Raspberry Pi OS Bookworm: /boot/firmware/cmdline.txt\n",
        ] {
            assert_eq!(remarks(fine), [], "{fine}");
        }
    }

    #[test]
    fn claims_that_lines_do_not_keep_are_errors() {
        for wrong in [
            "isolcpus=2-3\nRun it on the isolated CPUs:\ntaskset -c 0 ./loop\n",
            "isolcpus=3 so that CPU 3 sees no interrupts on it:\necho 8 > /proc/irq/9/smp_affinity\nno interrupts on it\n",
            "phc2sys -s eth0 -c CLOCK_REALTIME -w\nsystemctl enable --now systemd-timesyncd\n",
            "The hardware clock follows:\nptp4l -i eth0 -S -m\n",
            "Let the system clock follow the NIC:\nphc2sys -s CLOCK_REALTIME -c eth0 -w\n",
            "echo 1 > /proc/irq/9/smp_affinity\nsystemctl enable --now irqbalance\n",
            "# /etc/tuned/cpu-partitioning-variables.conf\nisolated_cores=2\ntuned-adm profile realtime\n",
            "Raspberry Pi OS Bookworm: write it to /boot/cmdline.txt\n",
            "The stock kernel of Debian:\nRTIRQ_NAME_LIST=\"snd\"\n",
            "Ubuntu 24.04:\ndocker run --cpu-rt-runtime=95000 x\n",
        ] {
            assert_eq!(remarks(wrong).len(), 1, "{wrong}: {:?}", remarks(wrong));
        }
    }
}
