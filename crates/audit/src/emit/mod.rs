//! Findings turned into what makes them pass: a fragment of a kernel configuration, words for a kernel command line, and the files
//! in which build systems and boot loaders take them. Reasons stand in comments.

mod boot;
mod build;
mod choice;
mod patch;

use printable::line;

use crate::finding::{Audit, Finding, Outcome};
use crate::rule::Rule;
use crate::rules::Rules;
use choice::{Choice, Chosen, Cured};

/// In which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A fragment for merge_config.sh and its like.
    Kconfig,
    /// Words, as they stand in /proc/cmdline.
    Cmdline,
    /// A patch that adds files to a Yocto layer.
    Yocto,
    /// A patch that adds a file to a Buildroot tree.
    Buildroot,
    /// A file for /etc/default/grub.d.
    Grub,
    /// Commands for U-Boot's prompt.
    Uboot,
}

/// The name that Enea gives its fragment: fragments are merged in the order of their names, and this one after the others.
pub const FRAGMENT: &str = "00051-latency.cfg";

/// What makes the failed rules of `audit` pass, in `form`. What costs safety or security is among it only for the rules that
/// somebody `named`.
pub fn emit(form: Form, audit: &Audit, rules: &Rules, named: &[String]) -> String {
    let config = || chosen(audit, rules, Choice::of_config(named));
    let boot = || chosen(audit, rules, Choice::of_boot(named));
    match form {
        Form::Kconfig => build::fragment(audit, &config()),
        Form::Yocto => build::yocto(audit, &config(), &boot()),
        Form::Buildroot => build::buildroot(audit, &config(), &boot()),
        Form::Cmdline => boot::cmdline(audit, &boot()),
        Form::Grub => boot::grub(audit, &boot()),
        Form::Uboot => boot::uboot(audit, &boot()),
    }
}

/// The words of a kernel command line that make the failed rules of `audit` pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Each key once, the worse finding's first.
    pub words: Vec<String>,
    /// Rules that a word would help and that got none, each with the reason.
    pub left_out: Vec<(String, String)>,
}

/// What [`Form::Cmdline`] has in its last line, without the reasons.
pub fn parameters(audit: &Audit, rules: &Rules, named: &[String]) -> Parameters {
    let chosen = chosen(audit, rules, Choice::of_boot(named));
    let left_out = chosen.left_out.iter().map(|(finding, why)| (finding.rule.clone(), why.clone()));
    Parameters {
        words: chosen.parts().into_iter().map(str::to_owned).collect(),
        left_out: left_out.collect(),
    }
}

fn chosen<'a>(audit: &'a Audit, rules: &'a Rules, mut choice: Choice<'a>) -> Chosen<'a> {
    let failed = audit.with(Outcome::Failed);
    let pairs: Vec<(&Finding, &Rule)> =
        failed.filter_map(|finding| Some((finding, rules.get(&finding.rule)?))).collect();
    pairs.into_iter().for_each(|(finding, rule)| choice.offer(finding, rule, &audit.division));
    choice.made()
}

/// What every form begins with, as comment lines.
fn head(audit: &Audit, what: &str) -> Vec<String> {
    let cpus = match &audit.division.isolated {
        none if none.is_empty() => String::new(),
        cpus => format!(", CPUs {cpus} for real time"),
    };
    vec![
        format!("# {what}"),
        format!("# worstcase check {}, profile {}{cpus}.", audit.tool_version, audit.profiles),
    ]
}

/// Why, and at what price, as comment lines that no parser of configurations takes for `is not set`.
fn reasons(cured: &Cured) -> Vec<String> {
    let Cured { finding, rule, .. } = cured;
    let seen = finding.evidence.first().map_or_else(String::new, |evidence| evidence.value.to_string());
    let seen = if finding.offenders.is_empty() { seen } else { finding.offenders[0].value.clone() };
    let next_boot = finding.next_boot.iter().map(|change| format!("#   {}", line(change)));
    [
        format!("# {}: {} (here: {})", finding.rule, line(finding.headline()), line(&seen)),
        format!("#   {}", line(&finding.why).trim_start_matches("CONFIG_")),
    ]
    .into_iter()
    .chain(next_boot)
    .chain(rule.costs.iter().map(|(kind, what)| format!("#   trade-off, {kind}: {}", line(what))))
    .collect()
}

/// What could not be taken, and why, as comment lines.
fn left_out(chosen: &Chosen) -> Vec<String> {
    chosen.left_out.iter().map(|(finding, why)| format!("# Not here, {}: {why}", finding.rule)).collect()
}
