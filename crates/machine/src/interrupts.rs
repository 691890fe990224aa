//! Interrupts of devices as /proc/interrupts lists them (`show_interrupts` in kernel/irq/proc.c).

use sysroot::SysRoot;

/// Where they are listed.
pub const PATH: &str = "/proc/interrupts";

/// One line of /proc/interrupts for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Its number, which another device may have after the next boot, or after its driver was loaded anew.
    pub number: u32,
    /// Its controller and its source there: `PCI-MSIX-0000:00:02.0 1-edge`.
    pub source: String,
    /// What handles it: `eth0-rx-0`.
    pub name: String,
    /// Whether each CPU has its own, so that it cannot be moved and is nobody's guest.
    pub per_cpu: bool,
}

impl Interrupt {
    /// What tells it from others when numbers have changed.
    pub fn identity(&self) -> String {
        format!("{} {}", self.source, self.name)
    }

    /// Its handlers by name: several where devices share a line.
    pub fn handlers(&self) -> impl Iterator<Item = &str> {
        self.name.split(',').map(str::trim)
    }
}

/// The interrupts of devices; none where they cannot be read.
pub fn all(root: &SysRoot) -> Vec<Interrupt> {
    root.read(PATH).value().map(|text| parse(text)).unwrap_or_default()
}

/// Parses /proc/interrupts: lines with a number, a handler, and as many counts as the head has CPUs.
pub fn parse(text: &str) -> Vec<Interrupt> {
    let mut lines = text.lines();
    let cpus = lines.next().unwrap_or_default().split_whitespace().count();
    lines.filter_map(|line| parse_line(line, cpus)).collect()
}

/// ` 36:  0  208381 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0`, ` 3:  7  9  GICv3  30 Level     arch_timer`.
fn parse_line(line: &str, cpus: usize) -> Option<Interrupt> {
    let (number, rest) = line.trim_start().split_once(':')?;
    let number = number.parse().ok()?;
    let mut words = rest.split_whitespace().skip(cpus).peekable();
    let chip = words.next()?;
    let source = words.next_if(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    words.next_if(|word| matches!(*word, "Level" | "Edge" | "None"));
    let name = words.collect::<Vec<_>>().join(" ");
    let per_cpu = is_per_cpu(chip, source, &name);
    (!name.is_empty()).then(|| Interrupt { number, source: format!("{chip} {source}"), per_cpu, name })
}

/// A source below 32 of ARM's interrupt controller is a CPU's own; other controllers tell by what the sources do.
fn is_per_cpu(chip: &str, source: &str, name: &str) -> bool {
    const OWN: [&str; 8] =
        ["arch_timer", "arm-pmu", "IPI", "riscv-timer", "twd", "local_timer", "kvm guest", "percpu"];
    let below_32 = source.parse::<u32>().is_ok_and(|source| source < 32);
    chip.starts_with("GIC") && below_32 || chip == "riscv-intc" || OWN.iter().any(|own| name.starts_with(own))
}

/// Whether the kernel manages the affinity itself. Known from debugfs only (kernel/irq/debugfs.c).
pub fn is_managed(root: &SysRoot, number: u32) -> bool {
    let state = root.read(&format!("/sys/kernel/debug/irq/irqs/{number}"));
    state.value().is_some_and(|text| text.contains("IRQD_AFFINITY_MANAGED"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// /proc/interrupts of a machine with two CPUs, shortened.
    const TEXT: &str = "           CPU0       CPU1       \n \
        \x20 1:          9          0   IO-APIC   1-edge      i8042\n \
        \x2016:          0          7   IO-APIC  16-fasteoi   ehci_hcd:usb1, snd hda\n \
        \x2036:          0     208381 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n \
        \x2037:          0          0   PCI-MSI 524288-edge\n\
        NMI:          0          0   Non-maskable interrupts\n\
        LOC:     269190     271609   Local timer interrupts\n\
        ERR:          0\n";

    fn names(text: &str) -> Vec<(u32, String, bool)> {
        parse(text)
            .into_iter()
            .map(|Interrupt { number, name, per_cpu, .. }| (number, name, per_cpu))
            .collect()
    }

    #[test]
    fn interrupts_of_devices_are_distinguished_from_the_rest() {
        assert_eq!(
            names(TEXT),
            [
                (1, "i8042".into(), false),
                (16, "ehci_hcd:usb1, snd hda".into(), false),
                (36, "virtio1-req.0".into(), false)
            ]
        );
    }

    #[test]
    fn a_cpus_own_interrupts_are_known_on_arm() {
        let text = "           CPU0       CPU1\n \
            \x203:     237357      90193     GICv3  30 Level     arch_timer\n \
            \x206:          0          0     GICv3  79 Level     timer@306a0000\n \
            \x207:          0          0     GICv3  23 Level     arm-pmu\n \
            \x2052:    1355491          0  gpio-mxc  12 Edge      latmon-pulse\n \
            \x2029:       9999       9999       GIC  29  twd\n\
            IPI0:       100       200  Rescheduling interrupts\n";
        assert_eq!(
            names(text),
            [
                (3, "arch_timer".into(), true),
                (6, "timer@306a0000".into(), false),
                (7, "arm-pmu".into(), true),
                (52, "latmon-pulse".into(), false),
                (29, "twd".into(), true)
            ]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "(CPU0 CPU1\n)?( ?[0-9]{0,3}: {0,2}[0-9 ]{0,8}(GIC|x) ?[0-9]{0,3}[- a-z]{0,9}\n?){0,4}|.{0,60}") {
            let _ = parse(&text);
        }
    }
}
