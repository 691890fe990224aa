//! Threads in which the kernel handles interrupts, software interrupts and timers, found by what people call them.

use sysroot::SysRoot;

use crate::CommandLine;
use crate::interrupts::{self, Interrupt};
use crate::tasks::{self, Task};

/// Threads that each CPU has: timers and other software interrupts, callbacks of RCU.
const OF_CPUS: [&str; 4] = ["ktimers", "ktimersoftd", "ksoftirqd", "rcuc"];

/// What a name stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handlers {
    /// The interrupts of that number, handler or device.
    pub interrupts: Vec<Interrupt>,
    /// The threads that handle them, or that have that name and one CPU each.
    pub threads: Vec<Task>,
}

/// What `name` stands for: an interrupt's number, a handler or a device (`eth0` for all its queues), or a thread that
/// each CPU has (`ktimers`, or one alone: `ktimers/2`).
pub fn handlers(root: &SysRoot, name: &str) -> Handlers {
    let kernel: Vec<Task> = tasks::all(root).into_iter().filter(|task| task.kernel).collect();
    if is_of_cpus(name) {
        let own =
            |task: &Task| task.name == name || task.name.rsplit_once('/').is_some_and(|(of, _)| of == name);
        return Handlers { threads: kernel.into_iter().filter(own).collect(), ..Handlers::default() };
    }
    let numbers = numbers_of_device(root, name);
    let alias = alias(root, name);
    let fits =
        |text: &str| begins_with(text, name) || alias.as_ref().is_some_and(|alias| begins_with(text, alias));
    let is_its = |interrupt: &Interrupt| {
        interrupt.number.to_string() == name
            || numbers.contains(&interrupt.number)
            || interrupt.handlers().any(fits)
    };
    let interrupts: Vec<Interrupt> = interrupts::all(root).into_iter().filter(is_its).collect();
    let handles = |task: &Task| match handled(&task.name) {
        Some((number, handler)) => interrupts.iter().any(|interrupt| {
            let is_shared = interrupt.handlers().count() > 1 && interrupt.handlers().any(fits);
            interrupt.number == number && (!is_shared || fits(handler))
        }),
        None => task.name.strip_prefix("napi/").is_some_and(|device| begins_with(device, name)),
    };
    let threads = kernel.into_iter().filter(handles).collect();
    Handlers { interrupts, threads }
}

/// Whether that is the name of a thread that each CPU has.
pub fn is_of_cpus(name: &str) -> bool {
    OF_CPUS.contains(&name.split('/').next().unwrap_or_default())
}

/// The interrupt that a thread handles, and its handler: 24 and `eth0-rx-0` of `irq/24-eth0-rx-0`, and of
/// `irq/24-s-eth0-rx-0`, which does what a forced thread must not do itself (`setup_irq_thread` in kernel/irq/manage.c).
pub fn handled(thread: &str) -> Option<(u32, &str)> {
    let (number, handler) = thread.strip_prefix("irq/")?.split_once('-')?;
    Some((number.parse().ok()?, handler.strip_prefix("s-").unwrap_or(handler)))
}

/// Whether the kernel gives interrupts threads: with PREEMPT_RT always, otherwise where it was booted so.
pub fn are_threaded(root: &SysRoot) -> bool {
    let version = root.read("/proc/sys/kernel/version");
    let is_real_time = root.read("/sys/kernel/realtime").value().is_some_and(|text| text.trim() == "1")
        || version.value().is_some_and(|text| text.contains("PREEMPT_RT"));
    let line = root.read("/proc/cmdline");
    is_real_time || line.value().is_some_and(|text| CommandLine::parse(text).get("threadirqs").is_some())
}

/// `eth1` begins `eth1-rx-0` and `nvme0` begins `nvme0q1`, but `eth1` does not begin `eth10`, nor `eth` `eth0`.
fn begins_with(text: &str, name: &str) -> bool {
    let ends_in_digit = name.ends_with(|last: char| last.is_ascii_digit());
    let is_apart = |next: char| !next.is_ascii_alphanumeric() || ends_in_digit && next.is_ascii_alphabetic();
    !name.is_empty() && text.strip_prefix(name).is_some_and(|rest| rest.chars().next().is_none_or(is_apart))
}

/// Where a network interface or a disk has its device.
fn device(root: &SysRoot, name: &str) -> Option<String> {
    let places = ["net", "block"].map(|class| format!("/sys/class/{class}/{name}/device"));
    let is_name = !name.contains('/') && !name.starts_with('.');
    places.into_iter().find(|place| is_name && root.link(place).value().is_some())
}

/// Its interrupts by number, where the bus says which they are.
fn numbers_of_device(root: &SysRoot, name: &str) -> Vec<u32> {
    let Some(device) = device(root, name) else { return Vec::new() };
    let messages = root.list(&format!("{device}/msi_irqs")).value().cloned().unwrap_or_default();
    let line = root.read(&format!("{device}/irq"));
    let numbers = messages.iter().map(String::as_str).chain(line.value().map(|text| text.trim()));
    numbers.filter_map(|number| number.parse().ok()).filter(|number| *number > 0).collect()
}

/// What its driver calls it: `virtio0` for `eth0`.
fn alias(root: &SysRoot, name: &str) -> Option<String> {
    let link = root.link(&device(root, name)?);
    Some(link.value()?.rsplit('/').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysroot::FakeTree;

    const INTERRUPTS: &str = "           CPU0       CPU1\n \
        \x2016:          0          7   IO-APIC  16-fasteoi   ehci_hcd:usb1, snd_hda\n \
        \x2024:          0          9   PCI-MSI 0-edge      eth1-rx-0\n \
        \x2025:          0          9   PCI-MSI 1-edge      eth1-tx-0\n \
        \x2026:          0          9   PCI-MSI 2-edge      eth10-rx-0\n \
        \x2027:          0          9   PCI-MSI 3-edge      virtio0-input.0\n \
        \x2028:          0          9   PCI-MSI 4-edge      nvme0q1\n";

    const THREADS: [&str; 12] = [
        "irq/16-ehci_hcd:usb1",
        "irq/16-snd_hda",
        "irq/24-eth1-rx-0",
        "irq/25-eth1-tx-0",
        "irq/25-s-eth1-tx-0",
        "irq/26-eth10-rx-0",
        "irq/27-virtio0-input.0",
        "irq/28-nvme0q1",
        "ktimers/0",
        "ktimers/1",
        "ksoftirqd/0",
        "napi/eth1-8193",
    ];

    fn machine() -> FakeTree {
        let tree = FakeTree::new(&[(interrupts::PATH, INTERRUPTS)]);
        for (tid, name) in (50..).zip(THREADS) {
            let stat = format!("{tid} ({name}) S 2 0 0 0 -1 2097152 {}17 0 50 1 0", "0 ".repeat(28));
            tree.write(&format!("/proc/{tid}/task/{tid}/stat"), &stat);
        }
        tree
    }

    fn threads(tree: &FakeTree, name: &str) -> Vec<String> {
        handlers(&tree.root, name).threads.into_iter().map(|task| task.name).collect()
    }

    #[test]
    fn a_device_has_all_its_queues_and_not_those_of_another() {
        let own = ["irq/24-eth1-rx-0", "irq/25-eth1-tx-0", "irq/25-s-eth1-tx-0", "napi/eth1-8193"];
        assert_eq!(threads(&machine(), "eth1"), own);
        assert_eq!(threads(&machine(), "eth10"), ["irq/26-eth10-rx-0"]);
        assert_eq!(threads(&machine(), "nvme0"), ["irq/28-nvme0q1"]);
        for none in ["eth", "eth2", "", "nosuch"] {
            assert_eq!(handlers(&machine().root, none), Handlers::default(), "{none}");
        }
    }

    #[test]
    fn a_number_has_all_its_handlers_and_a_handler_its_own_thread_alone() {
        assert_eq!(threads(&machine(), "16"), ["irq/16-ehci_hcd:usb1", "irq/16-snd_hda"]);
        assert_eq!(threads(&machine(), "snd_hda"), ["irq/16-snd_hda"]);
        assert_eq!(threads(&machine(), "2"), Vec::<String>::new());
    }

    #[test]
    fn a_network_interface_is_known_by_its_device_too() {
        let tree = machine();
        let device = tree.root.path("/sys/class/net/eth0/device");
        std::fs::create_dir_all(device.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("../../../virtio0", device).unwrap();
        assert_eq!(threads(&tree, "eth0"), ["irq/27-virtio0-input.0"]);
    }

    #[test]
    fn threads_of_each_cpu_are_found_together_or_alone() {
        assert_eq!(threads(&machine(), "ktimers"), ["ktimers/0", "ktimers/1"]);
        assert_eq!(threads(&machine(), "ktimers/1"), ["ktimers/1"]);
        assert!(is_of_cpus("rcuc/3") && !is_of_cpus("eth0"));
    }

    #[test]
    fn threads_are_distinguished_from_what_they_handle() {
        assert_eq!(handled("irq/25-s-eth1-tx-0"), Some((25, "eth1-tx-0")));
        assert_eq!(handled("ktimers/0"), None);
        let version = |text| FakeTree::new(&[("/proc/sys/kernel/version", text), ("/proc/cmdline", "quiet")]);
        assert!(are_threaded(&version("#1 SMP PREEMPT_RT Debian").root));
        assert!(!are_threaded(&version("#1 SMP PREEMPT Debian").root));
        assert!(are_threaded(&FakeTree::new(&[("/proc/cmdline", "quiet threadirqs")]).root));
    }
}
