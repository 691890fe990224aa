//! A record of costs as a page, or two of them compared.

use record::cost::Cost;

use super::{against, cautions, conclusion, in_turn, not_measured, notes, summary, table, unit};
use crate::page::facts;
use crate::page::view::{Block, Section};

/// The page: one HTML file, no network. Where there is an earlier record, the comparison comes first.
///
/// # Errors
/// Only if the template cannot be written into memory.
pub fn page(cost: &Cost, before: Option<&Cost>) -> Result<String, std::fmt::Error> {
    let mut sections: Vec<Section> = before.map(|before| comparison(before, cost)).into_iter().collect();
    sections.push(figures(cost));
    sections.push(conditions(cost));
    let title = format!("What operations take on {}", cost.machine.host);
    let place = vec![format!("Linux {}", cost.machine.kernel.release), cost.started.to_string()];
    crate::page::of_sections(&title, "cost", place, unit(cost), sections)
}

fn comparison(before: &Cost, after: &Cost) -> Section {
    let against = against(before, after);
    let mut blocks: Vec<Block> = conclusion(&against).into_iter().map(Block::Paragraph).collect();
    blocks.extend(in_turn(before, after).map(Block::Paragraph));
    blocks.extend(cautions(before, after).into_iter().map(Block::Paragraph));
    blocks.push(Block::Table(table::of_two(&against, unit(after)).on_page()));
    if !against.left_out.is_empty() {
        blocks.push(Block::Heading("Not compared".into()));
        blocks.push(Block::Facts(against.left_out));
    }
    let lead = format!("Compared with the record of {} on {}.", before.started, before.machine.host);
    Section::new("comparison", "What it costs", &lead, blocks)
}

fn figures(cost: &Cost) -> Section {
    let mut blocks = vec![Block::Table(table::of_one(cost).on_page())];
    blocks.extend(table::streams(cost).map(|streams| Block::Table(streams.on_page())));
    let missing: Vec<(String, String)> =
        not_measured(cost).into_iter().map(|(names, why)| (names.join(", "), why)).collect();
    if !missing.is_empty() {
        blocks.push(Block::Heading("Not measured".into()));
        blocks.push(Block::Facts(missing));
    }
    blocks.extend(notes(cost).into_iter().map(Block::Paragraph));
    Section::new("operations", "Operations", &summary(cost), blocks)
}

fn conditions(cost: &Cost) -> Section {
    let mut blocks = vec![
        Block::Heading("How to repeat it".into()),
        Block::Commands(vec![(repeat(cost), String::new())]),
        Block::Heading("Machine".into()),
    ];
    blocks.push(Block::Facts(facts::machine(&cost.machine)));
    Section::new("conditions", "How it was measured", cost.note.as_deref().unwrap_or(""), blocks)
}

/// The command that measures the same again, in the same orders.
fn repeat(cost: &Cost) -> String {
    let second = cost.plan.second.map_or(String::new(), |cpu| format!(",{cpu}"));
    let plan = &cost.plan;
    let runs = if plan.runs > 0 { format!(" --runs {}", plan.runs) } else { String::new() };
    let settings = cost.turn.iter().flat_map(|turn| &turn.settings);
    let with: String = settings.map(|setting| format!(" --with '{setting}'")).collect();
    format!(
        "worstcase cost --cpus {}{second} --rounds {}{runs} --sample {} --seed {}{with}",
        plan.cpu, plan.rounds, plan.sample, plan.seed
    )
}
