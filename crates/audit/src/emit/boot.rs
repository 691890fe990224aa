//! Words for a kernel command line, and the files in which boot loaders take them.

use super::choice::Chosen;
use super::{head, left_out, reasons};
use crate::finding::Audit;

/// The words in one line below their reasons.
pub(super) fn cmdline(audit: &Audit, boot: &Chosen) -> String {
    let mut lines = head(audit, "Words for the kernel's command line.");
    lines.extend(comments(boot));
    lines.push(boot.parts().join(" "));
    whole(lines)
}

/// A drop-in that appends to what GRUB's own file says. update-grub sources it with a POSIX shell.
pub(super) fn grub(audit: &Audit, boot: &Chosen) -> String {
    let mut lines = head(audit, "/etc/default/grub.d/90-worstcase.cfg: run update-grub after a change.");
    lines.extend(comments(boot));
    if !boot.parts().is_empty() {
        let words = within_double_quotes(&boot.parts().join(" "));
        lines.push(format!("GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT {words}\""));
    }
    whole(lines)
}

/// Commands for U-Boot: a variable of its own, and bootargs with it behind. A word a line, because the prompt takes
/// lines of a few hundred characters only (CONFIG_SYS_CBSIZE).
pub(super) fn uboot(audit: &Audit, boot: &Chosen) -> String {
    let mut lines = head(audit, "For U-Boot's prompt, or a script for mkimage -T script.");
    lines.push(
        "# Where bootcmd builds bootargs anew, append ${latency_args} there instead of the last setenv."
            .into(),
    );
    lines.extend(comments(boot));
    let words = boot.parts();
    if !words.is_empty() {
        lines.push("setenv latency_args".into());
        let append =
            |word: &&str| format!("setenv latency_args \"${{latency_args}} {}\"", within_double_quotes(word));
        lines.extend(words.iter().map(append));
        lines.push("setenv bootargs \"${bootargs}${latency_args}\"".into());
        lines.push("saveenv".into());
    }
    whole(lines)
}

/// Which words for which reason, and what has none.
pub(super) fn comments(boot: &Chosen) -> Vec<String> {
    let cured = boot.cures.iter().flat_map(|cured| {
        let words = &cured.parts;
        let words = if words.is_empty() { "(set by a rule above)".to_owned() } else { words.join(" ") };
        reasons(cured).into_iter().chain([format!("#   {words}")])
    });
    let others = boot.others.len();
    let elsewhere = match others {
        0 => Vec::new(),
        _ => {
            vec![format!(
                "# Failed rules that no word of a kernel command line cures: {others}; see worstcase check."
            )]
        }
    };
    let mut lines: Vec<String> = cured.chain(left_out(boot)).chain(elsewhere).collect();
    if boot.cures.is_empty() {
        lines.push("# No failed rule asks for a parameter on the kernel command line.".to_owned());
    }
    lines
}

fn within_double_quotes(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted
}

fn whole(lines: Vec<String>) -> String {
    lines.into_iter().map(|line| line + "\n").collect()
}
