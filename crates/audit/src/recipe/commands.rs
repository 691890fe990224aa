//! Lines that are commands: behind a prompt, or beginning with a program that recipes use.

use super::script::unwrapped;
use super::tools;

/// Programs that these recipes use.
const PROGRAMS: [&str; 85] = [
    "uname",
    "apt",
    "apt-get",
    "echo",
    "stress",
    "stress-ng",
    "cyclictest",
    "latmus",
    "chrt",
    "taskset",
    "systemctl",
    "hwlatdetect",
    "mpstat",
    "pidstat",
    "vmstat",
    "ping",
    "cat",
    "setenv",
    "fw_setenv",
    "tee",
    "printf",
    "sysctl",
    "cpupower",
    "for",
    "exec",
    "mkdir",
    "rtla",
    "ethtool",
    "tuned-adm",
    "tuna",
    "ulimit",
    "setcap",
    "swapoff",
    "sh",
    "bash",
    "sed",
    "cset",
    "x86_energy_perf_policy",
    "grubby",
    "rpm-ostree",
    "kernelstub",
    "bootloader",
    "kexec",
    "docker",
    "podman",
    "nerdctl",
    "perf",
    "trace-cmd",
    "turbostat",
    "modprobe",
    "service",
    "update-grub",
    "ip",
    "cgexec",
    "cgset",
    "numactl",
    "nice",
    "ionice",
    "renice",
    "systemd-run",
    "mount",
    "insmod",
    "wrmsr",
    "rdmsr",
    "qemu-system-x86_64",
    "pgrep",
    "pidof",
    "xargs",
    "tc",
    "ptp4l",
    "phc2sys",
    "ts2phc",
    "config",
    "merge_config.sh",
    "hackbench",
    "pi_stress",
    "oslat",
    "iperf3",
    "chcpu",
    "cpufreq-set",
    "grub-mkconfig",
    "grub2-mkconfig",
    "nvpmodel",
    "jetson_clocks",
    "pro",
];

/// English words, too: programs where options or a path follow.
const WORDS: [&str; 8] = ["find", "make", "watch", "ps", "install", "touch", "chmod", "chown"];

/// The words of a line behind a prompt, or of one that begins with a program that these recipes use.
pub fn words(line: &str) -> Option<Vec<String>> {
    let bare = line.trim_start_matches("~ ").trim_start_matches(['$', '#']).trim_start();
    let words: Vec<String> = bare.split_whitespace().map(str::to_owned).collect();
    let words = unwrapped(&words).to_vec();
    words.first()?;
    let is_program = is_known(&words);
    // A path in a line of fields, as of /etc/passwd, is not what is typed.
    let is_field = words[0].contains(':');
    (line.starts_with("$ ") || is_program && !is_field).then_some(words)
}

/// Whether they begin with a program that these recipes use.
pub fn is_known(words: &[String]) -> bool {
    let Some(program) = words.first().and_then(|word| word.rsplit('/').next()) else { return false };
    let has_arguments = words.get(1).is_some_and(|word| word.starts_with(['-', '/', '.']));
    PROGRAMS.contains(&program) && (program != "config" || words[0].contains('/'))
        || tools::is_known(program) && words.len() > 1
        || WORDS.contains(&program) && has_arguments
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_shell_in_a_line_of_passwd_is_no_command() {
        assert_eq!(super::words("root:x:0:0:root:/root:/bin/bash"), None);
        assert!(super::words("/bin/bash setup").is_some());
    }
}
