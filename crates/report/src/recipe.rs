//! What `check --recipe` says.

use audit::recipe::{Examination, NotJudged, Remark};

use crate::findings::{MARK, marked};
use crate::style::Style;
use crate::text::{count_of, harmless, wrap};

/// What was found in the recipe called `name`, of `count` lines that are not blank.
pub fn recipe(examination: &Examination, name: &str, count: usize, style: &Style) -> String {
    let contents = contents(examination, name, count);
    let mut lines = wrap("recipe: ", &harmless(&contents), 8, style.width);
    lines.push(String::new());
    lines.extend(examination.remarks.iter().flat_map(|remark| paragraph(remark, style)));
    if examination.remarks.is_empty() && examination.is_understood() {
        let has_others = understood(examination) + examination.not_judged.len() < count;
        let rest = if has_others { "; other lines were not judged" } else { "" };
        lines.extend(wrap("", &format!("nothing is wrong with what was understood{rest}"), 0, style.width));
    }
    if !examination.not_judged.is_empty() {
        lines.extend(wrap("not judged: ", &harmless(&not_judged(examination)), 2, style.width));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// The first lines of which nothing is known.
fn not_judged(examination: &Examination) -> String {
    const SHOWN: usize = 8;
    let all = &examination.not_judged;
    let line = |one: &NotJudged| format!("line {} ({})", one.line, one.excerpt);
    let shown: Vec<String> = all.iter().take(SHOWN).map(line).collect();
    let more = match all.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}: no table of worstcase has what is set or run there", shown.join(", "))
}

/// How many items were.
fn understood(examination: &Examination) -> usize {
    let Examination { parameters, symbols, sysctls, commands, settings, .. } = examination;
    parameters + symbols + sysctls + commands + settings
}

/// What was understood: a recipe of which nothing was is not a sound one.
fn contents(examination: &Examination, name: &str, lines: usize) -> String {
    let counts = [
        (examination.parameters, "kernel parameter"),
        (examination.symbols, "configuration symbol"),
        (examination.sysctls, "sysctl"),
        (examination.commands, "command"),
        (examination.settings, "file setting"),
    ];
    let present = counts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = present.map(|(count, what)| count_of(*count as u64, what)).collect();
    let lines = count_of(lines as u64, "line");
    match (examination.is_understood(), examination.unknown) {
        (true, _) => format!("{name}: {} in {lines}", parts.join(", ")),
        (false, 0) if !examination.not_judged.is_empty() => {
            format!("{name}: nothing that worstcase knows was found in {lines}")
        }
        (false, 0) => format!("{name}: no command, kernel parameter or setting was found in {lines}"),
        (false, unknown) => {
            let what = count_of(unknown as u64, "setting");
            format!(
                "{name}: {what} of a known file cannot be judged, because worstcase has no table entry for it"
            )
        }
    }
}

fn paragraph(remark: &Remark, style: &Style) -> Vec<String> {
    let head = format!("line {}: {}", remark.line, remark.excerpt);
    let mut lines = vec![marked(remark.severity, &head, style)];
    let margin = " ".repeat(MARK);
    lines.extend(wrap(&margin, &harmless(&remark.message), MARK, style.width));
    if let Some(instead) = &remark.instead {
        lines.extend(wrap(&format!("{margin}instead: "), &harmless(instead), MARK + 9, style.width));
    }
    lines
}
