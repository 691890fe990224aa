//! Records of costs: what each operation takes, and how many times as much as in another set-up.

mod against;
mod page;
mod table;
mod trade;

pub use against::{Against, Row, against, json};

use against::Draws;
pub use page::page;
pub(crate) use table::{Table, figure};
pub use trade::{Gain, Measured, Row as Traded, SetUp, Trade, of_records as trade_of};

use record::cost::{Cost, Operation, Sample};
use record::{Fact, Unit};
use statistics::{Comparison, LEAST_APART, LEAST_RUNS, Median};
use units::{CpuId, Nanos};

use crate::style::{Style, Tone};
use crate::text::{count_of, wrap};

/// Of the samples of an operation, in picoseconds.
fn median(operation: &Operation) -> Option<Median> {
    let figures: Vec<u64> = operation.samples.iter().map(Sample::picoseconds).collect();
    statistics::median(&figures)
}

/// What one run found: a table, what was not measured, and doubts.
pub fn text(cost: &Cost, style: &Style) -> String {
    let mut text = table::of_one(cost).grid().render(style);
    if let Some(streams) = table::streams(cost) {
        text += &format!("\n{}", streams.grid().render(style));
    }
    let mut lines = vec![String::new()];
    for (names, why) in not_measured(cost) {
        lines.extend(wrap("Not measured: ", &format!("{}: {why}", names.join(", ")), 4, style.width));
    }
    for note in notes(cost) {
        lines.extend(wrap("note  ", &note, 6, style.width));
    }
    lines.extend(wrap("Energy: ", &energy(cost), 4, style.width));
    lines.extend(wrap("", &summary(cost), 0, style.width));
    text + &lines.join("\n") + "\n"
}

/// What a second run found against a first: a sentence, then a table.
pub fn compared(before: &Cost, after: &Cost, style: &Style) -> String {
    let against = against(before, after);
    let mut lines = Vec::new();
    for sentence in conclusion(&against) {
        lines.extend(
            wrap("", &sentence, 0, style.width).into_iter().map(|line| style.paint(Tone::Strong, &line)),
        );
    }
    lines.extend(in_turn(before, after).iter().flat_map(|line| wrap("", line, 0, style.width)));
    for caution in cautions(before, after) {
        lines.extend(wrap("note  ", &caution, 6, style.width));
    }
    lines.push(String::new());
    let mut text = lines.join("\n") + "\n" + &table::of_two(&against, unit(after)).grid().render(style);
    if !against.rows.is_empty() {
        text += &(wrap("", LEGEND, 2, style.width).join("\n") + "\n");
    }
    for (names, why) in by_reason(against.left_out.iter().map(|(words, why)| (words.clone(), why.as_str()))) {
        let line = format!("{}: {why}", names.join(", "));
        text += &(wrap("Not compared: ", &line, 4, style.width).join("\n") + "\n");
    }
    text
}

/// What the columns of a comparison are.
const LEGEND: &str = "before, after: medians of all rounds. times: how the figures of runs compare, which need not be the quotient of \
                      the medians; the intervals hold for all operations together.";

/// What `after` has that `before` has not, where their rounds were measured in turn.
fn in_turn(before: &Cost, after: &Cost) -> Option<String> {
    let (Some(without), Some(with)) = (&before.turn, &after.turn) else { return None };
    let are_both =
        before.started == after.started && without.settings == with.settings && !without.on && with.on;
    are_both.then(|| {
        format!("Before: without {}. After: with it. Their rounds came in turn.", with.settings.join(" and "))
    })
}

/// What the clock counted.
fn unit(cost: &Cost) -> Unit {
    cost.machine.unit()
}

/// The trade in a sentence or two.
fn conclusion(against: &Against) -> Vec<String> {
    let ratio = |found: &Comparison| {
        format!("{:.2} times ({:.2} to {:.2})", found.ratio, found.interval.0, found.interval.1)
    };
    let mut sentences = Vec::new();
    if let Some(why) = &against.inconclusive {
        sentences.push(format!("INCONCLUSIVE: {why}."));
    }
    if let Some(mean) = &against.mean {
        let change = against::word(mean.verdict);
        sentences
            .push(format!("In the geometric mean an operation takes {} as long: {change}.", ratio(mean)));
    }
    match (against.worst(), against.rows.is_empty()) {
        (Some(worst), _) => {
            sentences.push(format!("Worst: {}, {}.", worst.words, ratio(&worst.found)));
        }
        (None, true) => {}
        (None, false) => {
            let rows = against.rows.len() as u64;
            sentences.push(format!("None of {} is visibly slower.", count_of(rows, "operation")));
        }
    }
    sentences.extend(against.best().map(|best| format!("Best: {}, {}.", best.words, ratio(&best.found))));
    sentences
}

/// Why two records do not show what a set-up costs; none where they do.
fn inconclusive(before: &Cost, after: &Cost) -> Option<String> {
    let is_draw = |cost: &Cost| cost.machine.lab.is_some() && (cost.runs as usize) < LEAST_RUNS;
    if is_draw(before) || is_draw(after) {
        return Some("a single guest of the lab is one draw, and another seed gives other figures".into());
    }
    if in_turn(before, after).is_some()
        && let Some(why) = ended_early(before).or_else(|| ended_early(after))
    {
        return Some(why);
    }
    let of = |when: &str, cost: &Cost| {
        let why = ended_early(cost)
            .or_else(|| disturbed(cost))
            .or_else(|| (Draws::of(before, after) == Draws::Runs).then(|| few(cost)).flatten());
        Some(format!("{when}, {}", why?))
    };
    let both: Vec<String> = [of("before", before), of("after", after)].into_iter().flatten().collect();
    (!both.is_empty()).then(|| both.join("; "))
}

fn ended_early(cost: &Cost) -> Option<String> {
    let how = cost.interrupted.as_ref()?;
    Some(format!("the run was ended early by {how}"))
}

/// Why a record has too few runs to be compared with one that was made apart.
fn few(cost: &Cost) -> Option<String> {
    let most = cost.operations.iter().map(|operation| operation.by_run(&cost.plan).len()).max().unwrap_or(0);
    (most < LEAST_APART).then(|| {
        let verb = if most == 1 { "is" } else { "are" };
        let runs = count_of(most as u64, "run");
        format!("there {verb} {runs}, and records made apart are compared by {LEAST_APART} or more (--runs)")
    })
}

/// Said of two records that were measured one after the other.
const APART: &str = "measured apart: intervals take it that two records differ by no more than two runs of one; worstcase cost \
                     --with SETTING measures both in turn";

/// What else differs between two records, beside the set-up that is compared.
fn cautions(before: &Cost, after: &Cost) -> Vec<String> {
    let mut cautions = Vec::new();
    let mut differs = |what: &str, first: String, second: String| {
        if first != second {
            cautions.push(format!("{what} differs: {first} before, {second} after"));
        }
    };
    let cpus = |cost: &Cost| {
        let second = cost.plan.second.map_or("none".into(), |cpu| cpu.to_string());
        format!("{} and {second}", cost.plan.cpu)
    };
    let tool = |cost: &Cost| format!("{} ({})", cost.tool.version, cost.tool.build);
    differs("the machine", before.machine.host.clone(), after.machine.host.clone());
    differs("the program", tool(before), tool(after));
    differs("the pair of CPUs", cpus(before), cpus(after));
    differs("the length of a sample", before.plan.sample.to_string(), after.plan.sample.to_string());
    differs("the unit", unit(before).name().into(), unit(after).name().into());
    if Draws::of(before, after) == Draws::Runs {
        cautions.push(APART.to_owned());
    }
    let (first, second) = (notes(before), notes(after));
    let turn = in_turn(before, after).is_some();
    let both = first.iter().filter(|note| second.contains(note));
    let both = both.map(|note| if turn { note.clone() } else { format!("before and after: {note}") });
    cautions.extend(both);
    let of = |when: &str, notes: &[String], others: &[String]| -> Vec<String> {
        let own = notes.iter().filter(|note| !others.contains(note));
        own.map(|note| format!("{when}: {note}")).collect()
    };
    cautions.extend(of("before", &first, &second));
    cautions.extend(of("after", &second, &first));
    cautions
}

/// Operations without a figure, by the reason.
fn not_measured(cost: &Cost) -> Vec<(Vec<String>, String)> {
    let missing = cost.operations.iter().filter(|operation| operation.samples.is_empty());
    by_reason(missing.map(|operation| {
        let why = operation.failures.first().map_or("the run ended before", |failure| &failure.why);
        (operation.words(), why)
    }))
}

/// Those with one reason together, in the order in which reasons come.
pub(crate) fn by_reason<'a>(all: impl Iterator<Item = (String, &'a str)>) -> Vec<(Vec<String>, String)> {
    let mut reasons: Vec<(Vec<String>, String)> = Vec::new();
    for (words, why) in all {
        match reasons.iter_mut().find(|(_, known)| known == why) {
            Some((names, _)) => names.push(words),
            None => reasons.push((vec![words], why.to_owned())),
        }
    }
    reasons
}

/// What disturbed the figures.
fn notes(cost: &Cost) -> Vec<String> {
    let mut notes = Vec::new();
    for operation in cost.operations.iter().filter(|one| !one.samples.is_empty() && !one.failures.is_empty())
    {
        let (rounds, why) = (operation.failures.len() as u64, &operation.failures[0].why);
        notes.push(format!("{}: not measured in {}: {why}", operation.words(), count_of(rounds, "round")));
    }
    notes.extend(disturbed(cost));
    let Some(evidence) = &cost.evidence else {
        notes.push("the run was cut off: nobody read steal, throttling and temperature at its end".into());
        return notes;
    };
    for cpu in &evidence.cpus {
        match &cpu.steal {
            Fact::Value(Nanos(0)) => {}
            Fact::Value(steal) => {
                notes.push(format!("the hypervisor took {steal} from CPU {}", cpu.cpu));
            }
            _ => notes.push(format!("steal of CPU {} could not be read", cpu.cpu)),
        }
        if let Some(times) = cpu.thermal_throttles.value().filter(|times| **times > 0) {
            notes.push(format!("CPU {} was throttled by heat, {}", cpu.cpu, count_of(*times, "time")));
        }
    }
    for quota in evidence.quotas.value().into_iter().flatten() {
        let (quota, period) = (quota.limit.quota, quota.limit.period);
        notes.push(format!("a control group limits the CPU time to {quota} of each {period}"));
    }
    if let Some(cpus) = &evidence.online_changed {
        notes.push(format!("CPUs came or went: {cpus} were online at the end"));
    }
    notes
}

/// Why figures are those of a CPU that others used too, or may be.
fn disturbed(cost: &Cost) -> Option<String> {
    const ALL: u64 = 95;
    let why = |(cpu, share): (CpuId, Option<u64>)| match share {
        None => Some(format!(
            "how much of CPU {cpu} others had is not known: the CPU loop was not measured there"
        )),
        Some(percent) if percent < ALL && !cost.was_limited() => {
            Some(format!("other programs or the hypervisor had {} % of CPU {cpu}", 100 - percent))
        }
        Some(_) => None,
    };
    let reasons: Vec<String> = cost.shares_of_cpus().into_iter().filter_map(why).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// What meters of the machine say; each operation is not known apart.
fn energy(cost: &Cost) -> String {
    match cost.watts() {
        Some(watts) => format!(
            "{watts:.2} W in the mean of all operations (RAPL); one of 1 us takes {watts:.2} uJ at that."
        ),
        None if cost.turn.is_some() => {
            "not known of rounds that came in turn with those of another set-up.".into()
        }
        None => "not measured here: no meter could be read from beginning to end.".into(),
    }
}

fn summary(cost: &Cost) -> String {
    let second = cost.plan.second.map_or(String::new(), |cpu| format!(" and {cpu}"));
    let ended = cost.interrupted.as_ref().map_or(String::new(), |how| format!(", ended early by {how}"));
    let runs = match cost.plan.runs {
        0 => String::new(),
        runs => format!(" in {}", count_of(u64::from(runs), "run")),
    };
    format!(
        "{} of {} rounds{runs} of {}, samples of {}, CPU {}{second}, seed {}{ended}.",
        cost.rounds,
        cost.plan.rounds,
        count_of(cost.operations.len() as u64, "operation"),
        cost.plan.sample,
        cost.plan.cpu,
        cost.plan.seed
    )
}
