//! A ladder as a page in Markdown, to be kept beside a source: it holds no time and no place, so that the same guests make the same
//! page.

use experiment::{Compared, Effect};
use statistics::{Comparison, Verdict};

use super::Experiment;
use super::conclusion::method;
use super::costs::{elsewhere, groups, has_elsewhere, left_out, rows};
use super::figures::{Costs, Reckoned, times};
use crate::cost::figure;
use crate::export::escaped;
use crate::text::shell;

/// What was asked, what was booted, what each rung gains and costs, and what each operation takes.
pub fn markdown(experiment: &Experiment) -> String {
    let reckoned = Reckoned::of(experiment);
    let costs = reckoned.costs();
    let command = shell(&experiment.command);
    let mut text = format!(
        "# {}\n\nThis page is made by one command:\n\n    {command} --markdown\n\n",
        experiment.title
    );
    if let Some((source, differs)) = &experiment.source {
        text += &format!("{source}\n\n");
        differs.iter().for_each(|line| text += &format!("- {line}\n"));
    }
    text += &booted(experiment);
    text += &summary(&reckoned, &costs);
    if !costs.is_empty() {
        text += "\n## What operations take\n\nThe first column of figures has instructions; the others say how many times as long \
                 one operation takes, with the interval that the guests allow. **Bold** is beyond the spread from guest to guest.\n";
    }
    let mut not_compared: Vec<(Vec<String>, String)> = Vec::new();
    for group in groups(&costs) {
        text += &operations(group, experiment);
        let new = left_out(group).into_iter().filter(|one| !not_compared.contains(one));
        not_compared.extend(new.collect::<Vec<_>>());
    }
    for (names, why) in not_compared {
        text += &format!("\nNot compared: {}: {}.\n", names.join(", "), escaped(&why));
    }
    text + &how(&reckoned)
}

fn booted(experiment: &Experiment) -> String {
    let mut text = "\n## What was booted\n\n| name | what |\n| --- | --- |\n".to_owned();
    let mut notes: Vec<&String> = Vec::new();
    for arm in &experiment.arms {
        text += &format!("| {} | {} |\n", arm.name, escaped(&arm.what));
        let new: Vec<&String> = arm.notes.iter().filter(|note| !notes.contains(note)).collect();
        notes.extend(new);
    }
    notes.iter().for_each(|note| text += &format!("\n{}.\n", escaped(note)));
    for one in &experiment.missing {
        text += &format!("\nMissing: {}.\n", escaped(one));
    }
    text
}

/// A row a comparison: tails under each load, operations in the mean, and the worst of them.
fn summary(reckoned: &Reckoned<'_>, costs: &[Costs<'_>]) -> String {
    let loads = &reckoned.experiment.loads;
    let mut pairs: Vec<(String, String)> = Vec::new();
    let judged = reckoned
        .comparisons
        .iter()
        .map(|one| (reckoned.experiment.name(&one.arm), reckoned.experiment.name(&one.against)));
    for pair in judged.chain(costs.iter().map(|costs| (costs.arm.name.clone(), costs.base.clone()))) {
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let tail = reckoned.tail_name();
    let mut heads = vec!["name".to_owned(), "beside".to_owned()];
    heads.extend(loads.iter().map(|load| format!("{tail}, {load}")));
    if !costs.is_empty() {
        heads.extend(["operations, mean".to_owned(), "the worst".to_owned()]);
    }
    let mut text = "\n## What each gains and costs\n\nHow many times as long, with the interval.\n\n"
        .to_owned()
        + &head(&heads);
    for (name, base) in pairs {
        let is_own = |one: &&Compared| {
            (reckoned.experiment.name(&one.arm), reckoned.experiment.name(&one.against))
                == (name.clone(), base.clone())
        };
        let mut cells = vec![name.clone(), base.clone()];
        for load in 0..loads.len() {
            let own = reckoned.comparisons.iter().filter(is_own).find(|one| one.load == load);
            cells.push(own.map_or_else(|| "-".into(), tail_cell));
        }
        if !costs.is_empty() {
            let own = costs.iter().find(|costs| (&costs.arm.name, &costs.base) == (&name, &base));
            cells.extend(own.map_or(["-".to_owned(), "-".to_owned()], cost_cells));
        }
        text += &line(&cells);
    }
    text
}

fn tail_cell(compared: &Compared) -> String {
    let Ok(found) = &compared.found else { return "-".into() };
    let [low, high] = found.interval;
    let is_beyond = matches!(found.effect, Some(Effect::Helps | Effect::Harms));
    emphasis(is_beyond, &times(found.ratio)) + &format!(" ({}-{})", times(low), times(high))
}

fn cost_cells(costs: &Costs<'_>) -> [String; 2] {
    let doubt = if costs.found.inconclusive.is_some() { ", inconclusive" } else { "" };
    let mean = costs.found.mean.as_ref().map_or_else(|| "-".to_owned(), |mean| ratio(mean) + doubt);
    let worst = costs.found.worst().map(|worst| format!("{}: {}", worst.words, ratio(&worst.found)));
    [mean, worst.unwrap_or_else(|| "none".into())]
}

fn operations(group: &[Costs<'_>], experiment: &Experiment) -> String {
    let Some(first) = group.first() else { return String::new() };
    let mut heads = vec!["operation".to_owned(), first.base.clone()];
    for costs in group {
        heads.push(costs.arm.name.clone());
        heads.extend(has_elsewhere(costs).then(|| "elsewhere".to_owned()));
    }
    let mut text = "\n".to_owned() + &head(&heads);
    for (row, found) in rows(group) {
        let mut cells = vec![row.words.clone(), figure(row.medians.0, experiment.unit)];
        for (costs, found) in group.iter().zip(found) {
            cells.push(found.map_or_else(|| "-".into(), |row| ratio(&row.found)));
            if has_elsewhere(costs) {
                cells.push(elsewhere(costs, row).map_or_else(|| "-".into(), |known| format!("{known:.2}")));
            }
        }
        text += &line(&cells);
    }
    let mut cells = vec!["geometric mean, families alike".to_owned(), String::new()];
    for costs in group {
        cells.push(costs.found.mean.as_ref().map_or_else(|| "-".to_owned(), ratio));
        cells.extend(has_elsewhere(costs).then(String::new));
    }
    text + &line(&cells)
}

fn how(reckoned: &Reckoned<'_>) -> String {
    let experiment = reckoned.experiment;
    let mut text = "\n## How\n\n".to_owned();
    for (name, value) in experiment.conditions.iter().filter(|(name, _)| name != "Records") {
        text += &format!("- {name}: {}\n", escaped(value));
    }
    let sentences = method(reckoned).into_iter().chain(experiment.caution().map(str::to_owned));
    sentences.for_each(|sentence| text += &format!("\n{sentence}\n"));
    text
}

/// What is beyond the spread by less than the digits show is no finding of a page.
fn ratio(found: &Comparison) -> String {
    let ((low, high), shown) = (found.interval, format!("{:.2}", found.ratio));
    emphasis(found.verdict != Verdict::NoDifference && shown != "1.00", &shown)
        + &format!(" ({low:.2}-{high:.2})")
}

fn emphasis(is_beyond: bool, text: &str) -> String {
    if is_beyond { format!("**{text}**") } else { text.to_owned() }
}

fn head(names: &[String]) -> String {
    line(names) + &line(&vec!["---".to_owned(); names.len()])
}

fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}
