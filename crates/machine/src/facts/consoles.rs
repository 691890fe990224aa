//! Where the kernel prints, and how much.

use record::Fact;
use sysroot::SysRoot;
use sysroot::parsed;

/// The enabled consoles of /proc/consoles (Documentation/filesystems/proc.rst).
pub(super) fn consoles(root: &SysRoot) -> Fact<Vec<String>> {
    root.read("/proc/consoles").map(|text| enabled_consoles(&text))
}

/// The first figure of /proc/sys/kernel/printk: messages of a lower level than this are printed.
pub fn log_level(root: &SysRoot) -> Fact<u32> {
    root.read("/proc/sys/kernel/printk")
        .and_then(|text| parsed(text.split_whitespace().next().unwrap_or_default().parse()))
}

/// Names of consoles with the flag E, from lines like `ttyS0                -W- (EC  p a)    4:64`.
pub(crate) fn enabled_consoles(text: &str) -> Vec<String> {
    enabled_with_flags(text).map(|(name, _)| name.to_owned()).collect()
}

/// Enabled consoles with their flags; N is for those that print without the old lock (fs/proc/consoles.c).
pub fn enabled_with_flags(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let (name, flags) = line.split_once('(')?;
        let flags = flags.split(')').next().filter(|flags| flags.starts_with('E'))?;
        Some((name.split_whitespace().next()?, flags))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_enabled_consoles_count() {
        let text = "tty0                 -WU (EC  p  )    4:1\n\
                    ttyS0                -W- (E   p a)    4:64\n\
                    netcon0              -W- ( B     )\n";
        assert_eq!(enabled_consoles(text), ["tty0", "ttyS0"]);
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "([a-z0-9]{0,5} -W- \\([EC ]{0,3}\n?){0,3}|.{0,40}") {
            let _ = enabled_consoles(&text);
        }
    }
}
