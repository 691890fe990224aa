//! Trials and searches while they run, in words.

use experiment::Planned;

use super::plan::{Conditions, Place, TrialPlan};

/// What is going to be measured.
pub fn plan(plan: &TrialPlan) -> String {
    let TrialPlan { design, conditions: Conditions { load, duration, warm_up, wake, .. }, .. } = plan;
    let place = match &plan.place {
        Place::Here { release } => format!("this machine, Linux {release}"),
        Place::Guests(guests) => format!("guests with {}, clock: {}", guests.kernel, guests.time),
    };
    let settings: String =
        design.settings.iter().enumerate().map(|(place, name)| format!("\n  {} {name}", place + 1)).collect();
    let (blocks, seed) = (design.blocks, design.seed);
    let arms = if plan.search { 3 } else { design.settings.len() as u64 + 2 };
    let first = if plan.search { "first phase: " } else { "" };
    let length = length(plan, u64::from(blocks) * arms);
    format!(
        "{place}; load {load}, woken by {wake}; seed {seed}\n\
         {first}{blocks} rounds of {arms} blocks in random order, {duration} each after {warm_up} of warm-up{length}\n\
         settings:{settings}"
    )
}

/// How long so many blocks take on this machine; how long a guest takes depends on the host.
fn length(plan: &TrialPlan, blocks: u64) -> String {
    let Conditions { duration, warm_up, without_steal, .. } = plan.conditions;
    let times = blocks.saturating_mul(if without_steal { 2 } else { 1 });
    match &plan.place {
        Place::Here { .. } => format!(": about {}", (duration + warm_up).saturating_mul(times).rounded()),
        Place::Guests(_) => String::new(),
    }
}

/// What the later phases of a search take.
pub fn planned(plan: &TrialPlan, planned: &Planned) -> String {
    let Planned { enough, rounds, chance, blocks, goes_on } = *planned;
    let effect = percent(plan);
    let needed = |enough: Option<u32>| match enough {
        Some(enough) => format!("{enough} rounds"),
        None => "more than 1000 rounds".to_owned(),
    };
    let longer = "Longer blocks scatter less: --duration.";
    if !goes_on {
        return format!(
            "all on helps; to tell which settings are needed takes {} a step at this spread",
            needed(enough)
        );
    }
    let length = length(plan, u64::from(blocks));
    let text = format!(
        "all on helps; next: up to {blocks} blocks in rounds of 2 or more{length}\n\
         At this spread {rounds} rounds leave out a setting that does nothing (less than\n\
         {effect}) with a probability of {:.0} %.",
        chance * 100.0
    );
    match enough {
        Some(enough) if enough <= rounds => text,
        _ => format!("{text} For 90 %: {}. {longer}", needed(enough)),
    }
}

/// `20 %`.
fn percent(plan: &TrialPlan) -> String {
    let percent = plan.design.smallest_effect * 100.0;
    if percent.fract() < 1e-9 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}
