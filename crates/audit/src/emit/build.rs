//! A fragment of a kernel configuration, and the files in which build systems take it.

use super::choice::Chosen;
use super::patch::{added, patch};
use super::{FRAGMENT, boot, head, left_out, reasons};
use crate::finding::Audit;

/// The fragment, in Enea's form: lines that merge tools read, reasons in comments that they do not.
pub(super) fn fragment(audit: &Audit, config: &Chosen) -> String {
    let mut lines = head(audit, &format!("{FRAGMENT}: a fragment for merge_config.sh, Yocto, Buildroot."));
    for cured in &config.cures {
        lines.push(String::new());
        lines.extend(reasons(cured));
        lines.extend(cured.parts.iter().cloned());
    }
    if config.cures.is_empty() {
        lines.push("# No failed rule asks for another configuration.".to_owned());
    }
    let left_out = left_out(config);
    if !left_out.is_empty() {
        lines.push(String::new());
        lines.extend(left_out);
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// A patch that adds the fragment and a .bbappend to a layer.
pub(super) fn yocto(audit: &Audit, config: &Chosen, boot: &Chosen) -> String {
    let mut append =
        head(audit, "Adds the fragment to kernel recipes that merge fragments (kernel-yocto.bbclass).");
    append.push(
        "# Recipes that name fragments in KERNEL_FEATURES take it in files/cfg, as cfg/00051-latency, last."
            .into(),
    );
    append.extend(parameters(
        boot,
        "# Kernel parameters, for APPEND or UBOOT_EXTLINUX_KERNEL_ARGS of the machine:",
    ));
    append.push("FILESEXTRAPATHS:prepend := \"${THISDIR}/files:\"".into());
    append.push(format!("SRC_URI += \"file://{FRAGMENT}\""));
    patch(
        "Apply in a layer's directory with patch -p1 or git apply.",
        &[
            added("recipes-kernel/linux/linux-%.bbappend", &append.join("\n")),
            added(&format!("recipes-kernel/linux/files/{FRAGMENT}"), &fragment(audit, config)),
        ],
    )
}

/// A patch that adds the fragment to a tree; the line that names it belongs to the user's defconfig.
pub(super) fn buildroot(audit: &Audit, config: &Chosen, boot: &Chosen) -> String {
    let path = format!("board/latency/{FRAGMENT}");
    let line = format!("BR2_LINUX_KERNEL_CONFIG_FRAGMENT_FILES=\"{path}\"");
    let mut text =
        vec!["# Name it in the board's defconfig, behind other fragments:".to_owned(), format!("#   {line}")];
    text.extend(parameters(
        boot,
        "# Kernel parameters, for the boot loader's own file in BR2_ROOTFS_OVERLAY:",
    ));
    let text = format!("{}\n{}", text.join("\n"), fragment(audit, config));
    patch(&format!("Apply in Buildroot's tree with patch -p1, then set {line}"), &[added(&path, &text)])
}

fn parameters(boot: &Chosen, head: &str) -> Vec<String> {
    let words = boot.parts();
    if words.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![head.to_owned(), format!("#   {}", words.join(" "))];
    lines.extend(boot::comments(boot).into_iter().map(|line| line.replacen("# ", "#     ", 1)));
    lines
}
