//! What `check --recipe` says.

use audit::Severity;
use audit::recipe::{Examination, Remark};

use crate::style::{Style, Tone};
use crate::text::{clip, count_of, harmless, wrap};

/// Columns of the word in front of a remark.
const MARK: usize = 9;

/// What was found in the recipe called `name`.
pub fn recipe(examination: &Examination, name: &str, style: &Style) -> String {
    let mut lines = wrap("recipe: ", &harmless(&contents(examination, name)), 8, style.width);
    lines.push(String::new());
    lines.extend(examination.remarks.iter().flat_map(|remark| paragraph(remark, style)));
    if examination.remarks.is_empty() && examination.is_understood() {
        lines.push("nothing is wrong with what was understood".to_owned());
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// What was understood: a recipe of which nothing was is not a sound one.
fn contents(examination: &Examination, name: &str) -> String {
    let counts = [
        (examination.boot_words, "boot word"),
        (examination.symbols, "configuration symbol"),
        (examination.sysctls, "sysctl"),
        (examination.commands, "command"),
    ];
    let present = counts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = present.map(|(count, what)| count_of(*count as u64, what)).collect();
    match examination.is_understood() {
        true => format!("{name}: {}", parts.join(", ")),
        false => format!("{name}: no command, boot word or setting was found in it"),
    }
}

fn paragraph(remark: &Remark, style: &Style) -> Vec<String> {
    let (word, tone) = match remark.severity {
        Severity::Error => ("error", Tone::Bad),
        Severity::Warning => ("warning", Tone::Doubtful),
        Severity::Note => ("note", Tone::Plain),
    };
    let head = clip(
        &harmless(&format!("line {}: {}", remark.line, remark.excerpt)),
        style.width.saturating_sub(MARK),
    );
    let mut lines = vec![style.paint(tone, &format!("{word:<MARK$}")) + &style.paint(Tone::Strong, &head)];
    let margin = " ".repeat(MARK);
    lines.extend(wrap(&margin, &harmless(&remark.message), MARK, style.width));
    if let Some(instead) = &remark.instead {
        lines.extend(wrap(&format!("{margin}instead: "), &harmless(instead), MARK + 9, style.width));
    }
    lines
}
