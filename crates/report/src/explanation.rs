//! Why the worst wake-ups were late: the causes over all of a load, and the account of the worst.

use explain::{CauseTotal, Totals, cures, totals};
use record::{
    Cause, Certainty, Class, Explanation, Hit, LostEvents, Overview, Record, Tracing, Unit, Wake, WarningId,
    WatchSummary,
};
use units::{CpuId, Nanos, Total};

use crate::group::end_word;
use crate::overview;
use crate::style::{Style, Tone};
use crate::text::{count_of, harmless, longest, named_row, paragraph, percent};

/// Causes that are listed, the rest is one line.
const CAUSES: usize = 8;
/// Pieces of the worst wake-up that are listed.
const PIECES: usize = 16;

/// All explanations of a record; empty where there is none.
pub fn text(record: &Record, style: &Style) -> String {
    let record = &*record.for_readers();
    let unit = record.header.machine.unit();
    let each = record.explanations.iter().map(|explanation| one(record, explanation, unit, style));
    let not = not_explained(record).filter(|_| !record.explanations.is_empty());
    each.chain(not.map(|(why, _)| paragraph(why, 0, style.width))).collect::<Vec<_>>().join("\n")
}

/// Why late wake-ups that were to be explained were not, and what helps: of each load that was not.
pub fn not_explained(record: &Record) -> impl Iterator<Item = (&str, &str)> {
    let warnings = record.warnings.iter().filter(|warning| warning.id == WarningId::NotExplained);
    warnings.map(|warning| (warning.evidence.as_str(), warning.cure.as_str()))
}

fn one(record: &Record, explanation: &Explanation, unit: Unit, style: &Style) -> String {
    let load = harmless(&explanation.scenario.head.planned.load);
    let wrapped = |text: &str, indent| paragraph(text, indent, style.width);
    let mut text =
        style.paint(Tone::Strong, &wrapped(&format!("{load}: {}", head(record, explanation, unit)), 0));
    text.extend(doubts(explanation, unit).iter().map(|doubt| wrapped(doubt, 2)));
    let overview = overview::text(&explanation.overview, traced(explanation), unit, style);
    let why_no_parts = no_parts(record, explanation).map(|why| wrapped(&why, 0));
    let gap = if why_no_parts.is_some() && !overview.is_empty() { "\n" } else { "" };
    let overview = why_no_parts.unwrap_or_default() + gap + &overview;
    let Some(hit) = explanation.hits.first() else { return text + &overview };
    let totals = totals(&explanation.hits);
    text += "\n";
    text.extend(causes(&totals, unit, style).iter().map(|line| line.trim_end().to_owned() + "\n"));
    text.extend(what_helps(&totals.causes, is_guest(record)).iter().map(|line| wrapped(line, 2)));
    text += "\n";
    text.extend(worst(explanation, hit, unit, style).into_iter().map(|line| line + "\n"));
    text.extend(main_cause(hit).iter().map(|line| wrapped(line, 2)));
    text + if overview.is_empty() { "" } else { "\n" } + &overview
}

/// The account of a late wake-up, with what it was mainly.
pub fn hit(hit: &Hit, unit: Unit, style: &Style) -> String {
    let head = format!("{} on CPU {}, thread {}", unit.with_name(hit.latency), hit.cpu, hit.tid);
    let mut text = style.paint(Tone::Strong, &(head + "\n"));
    text.extend(pieces(hit, unit, style).into_iter().map(|line| line + "\n"));
    text.extend(main_cause(hit).iter().map(|line| paragraph(line, 2, style.width)));
    text
}

/// What late wake-ups of a machine that was watched come to. Whether it is a guest is none where that is not known.
pub fn watched(
    hits: &[Hit],
    summary: &WatchSummary,
    (tracing, overview, is_guest): (&Tracing, &Overview, Option<bool>),
    style: &Style,
) -> String {
    let unit = Unit::Microseconds;
    let WatchSummary { seconds, threshold, wake_ups: count, late, unknown: unfinished, lost, .. } = summary;
    let wake_ups = count_of(*count, "wake-up");
    let late_as = unit.with_name(*threshold);
    let head = format!("{late} of {wake_ups} in {seconds:.1} s were {late_as} late or more");
    let unknown = match unfinished {
        0 => String::new(),
        _ => format!(
            "; how late {} came is not known, because the trace has no switch to the thread",
            count_of(*unfinished, "more wake-up")
        ),
    };
    let mut text = style.paint(Tone::Strong, &paragraph(&(head + &unknown), 0, style.width));
    text.extend(overwritten(lost).map(|lost| paragraph(&lost, 2, style.width)));
    text.extend(doubts_of(tracing, unit).iter().map(|doubt| paragraph(doubt, 2, style.width)));
    if !hits.is_empty() {
        let totals = totals(hits);
        text.extend(causes(&totals, unit, style).iter().map(|line| line.trim_end().to_owned() + "\n"));
        text.extend(what_helps(&totals.causes, is_guest).iter().map(|line| paragraph(line, 2, style.width)));
    }
    let overview = overview::text(overview, count.saturating_add(*unfinished), unit, style);
    text + if overview.is_empty() { "" } else { "\n" } + &overview
}

/// Where events were overwritten; none where none were.
fn overwritten(lost: &[LostEvents]) -> Option<String> {
    let one = |lost: &LostEvents| {
        let times = count_of(lost.times, "time");
        format!("CPU {} {times}, {:.3} s in all", lost.cpu, lost.length.as_secs_f64())
    };
    let each: Vec<String> = lost.iter().map(one).collect();
    (!each.is_empty()).then(|| {
        let each = each.join("; ");
        format!(
            "events were overwritten before they were read, and wake-ups meanwhile are not counted: {each}"
        )
    })
}

/// `the 10 worst of 4000 wake-ups were 412 to 787 us late, 5.4 ms in all`
pub(crate) fn head(record: &Record, explanation: &Explanation, unit: Unit) -> String {
    let count = traced(explanation);
    let Some((worst, least)) = explanation.hits.first().zip(explanation.hits.last()) else {
        return nothing(explanation, unit);
    };
    let medians = medians(record, explanation, unit);
    let lateness = if worst.latency == least.latency {
        format!("was {}", unit.with_name(worst.latency))
    } else {
        format!("were {} to {}", unit.figure(least.latency), unit.with_name(worst.latency))
    };
    let hits = explanation.hits.len();
    let left_out = explanation.tracing.blind > 0 || explanation.tracing.own > 0;
    let which = match (hits, so_late(explanation)) {
        (1, so_late) if !left_out || so_late == Some(1) => "the worst of".to_owned(),
        (_, so_late) if !left_out || so_late == Some(hits) => format!("the {hits} worst of"),
        (_, Some(so_late)) => format!("{hits} of the {so_late} worst of"),
        // Worse ones may be among those that the trace does not have.
        (1, None) => "1 late one of".to_owned(),
        (_, None) => format!("{hits} late ones of"),
    };
    format!("{which} {count} traced wake-ups {lateness} late{medians}")
}

/// How many wake-ups of the traced repetition were as late as the least of those that are explained, or later. None where the
/// record's lists of the worst end before.
fn so_late(explanation: &Explanation) -> Option<usize> {
    let least = explanation.hits.last()?.latency;
    let mut all = 0;
    for series in &explanation.scenario.series {
        let here = series.worst.iter().filter(|sample| sample.latency >= least).count();
        let is_cut = here == series.worst.len() && series.observed.summary().count > here as u64;
        if is_cut && series.observed.summary().maximum() >= Some(least) {
            return None;
        }
        all += here;
    }
    (all >= explanation.hits.len()).then_some(all)
}

/// Wake-ups of the repetition that was traced.
pub(crate) fn traced(explanation: &Explanation) -> u64 {
    explanation.scenario.series.iter().map(|series| series.observed.summary().count).total()
}

/// Of a load of which no late wake-up was explained. Those that came and were not caught are counted below.
fn nothing(explanation: &Explanation, unit: Unit) -> String {
    let tracing = &explanation.tracing;
    let threshold = unit.with_name(tracing.threshold);
    match tracing.blind.saturating_add(tracing.own) {
        // Of wake-ups that nobody waited for nothing is known.
        _ if traced(explanation) == 0 => "nothing was traced: no wake-up came".to_owned(),
        _ if tracing.failure.is_some() => "no late wake-up was explained".to_owned(),
        0 if worst_traced(explanation).is_none_or(|(worst, _)| worst <= tracing.threshold) => {
            format!("no wake-up was later than {threshold}")
        }
        0 => format!("no wake-up above {threshold} was explained"),
        late => format!("none of {} above {threshold} was explained", count_of(late, "wake-up")),
    }
}

/// The worst wake-up of the repetition that was traced, and where it was.
fn worst_traced(explanation: &Explanation) -> Option<(Nanos, Option<CpuId>)> {
    let series = explanation.scenario.series.iter().enumerate();
    let worst =
        series.filter_map(|(place, series)| Some((series.observed.summary().maximum()?, place))).max()?;
    Some((worst.0, explanation.scenario.head.cpus.get(worst.1).copied().flatten()))
}

/// That the worst traced wake-up is not among those that were explained, where that is so.
fn unexplained(explanation: &Explanation, unit: Unit) -> Option<String> {
    let (worst, cpu) = worst_traced(explanation)?;
    let explained = explanation.hits.first().map_or(explanation.tracing.threshold, |hit| hit.latency);
    let place = cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
    (worst > explained).then(|| {
        format!("the worst traced wake-up was {} late{place}: it is not explained", unit.with_name(worst))
    })
}

/// What tracing costs: both medians.
fn medians(record: &Record, explanation: &Explanation, unit: Unit) -> String {
    let untraced = usize::try_from(explanation.of).ok().and_then(|place| record.scenarios.get(place));
    let median = |scenario: &record::Scenario| {
        scenario.series.iter().filter_map(|series| series.observed.quantile(0.5)).max()
    };
    match (untraced.and_then(median), median(&explanation.scenario)) {
        (Some(untraced), Some(traced)) => {
            format!(" (median {}, untraced {})", unit.figure(traced), unit.with_name(untraced))
        }
        _ => String::new(),
    }
}

/// Why no activation stands in parts, where none does.
pub(crate) fn no_parts(record: &Record, explanation: &Explanation) -> Option<String> {
    let all = traced(explanation);
    if !explanation.overview.parts.is_empty() || all == 0 {
        return None;
    }
    let hides_names =
        explanation.tracing.absent.iter().any(|absent| absent.starts_with("names of functions"));
    let wake = record.header.plan.timer().map(|timer| timer.wake).unwrap_or_default();
    let why = match wake {
        Wake::Nanosleep if hides_names => {
            "the kernel hides the names of functions, so the thread's own timer is not known among others"
        }
        Wake::Nanosleep => "the trace has none of them whole, from the thread's own timer to its end",
        Wake::Timerfd | Wake::PosixTimer | Wake::Deadline => {
            "parts begin at the timer of a thread that sleeps (--wake nanosleep), and these threads wait otherwise"
        }
        _ => "parts begin at the timer of a thread that sleeps (--wake nanosleep)",
    };
    let of = count_of(all, "traced activation");
    Some(format!("no table of the parts of {of}: {why}"))
}

/// What the trace missed.
pub(crate) fn doubts(explanation: &Explanation, unit: Unit) -> Vec<String> {
    let early =
        end_word(&explanation.scenario.end).map(|end| format!("the traced repetition ended early: {end}"));
    let doubts = doubts_of(&explanation.tracing, unit);
    early.into_iter().chain(unexplained(explanation, unit)).chain(doubts).collect()
}

fn doubts_of(tracing: &Tracing, unit: Unit) -> Vec<String> {
    let mut doubts = Vec::new();
    if let Some(failure) = &tracing.failure {
        doubts.push(format!("tracing failed: {}", harmless(failure)));
    }
    if tracing.blind > 0 {
        let blind = count_of(tracing.blind, "wake-up");
        let why = match tracing.freezes {
            0 => "left no events in the trace",
            _ => "came while the trace was read: not explained",
        };
        doubts.push(format!("{blind} above {} {why}", unit.with_name(tracing.threshold)));
    }
    if tracing.own > 0 {
        let own = count_of(tracing.own, "wake-up");
        doubts.push(format!("{own} left out: tracing itself made more than half of the latency"));
    }
    let without: Vec<&str> = explain::EVENTS
        .iter()
        .filter(|event| tracing.absent.iter().any(|absent| absent == event.event))
        .map(|event| event.without)
        .collect();
    let matters = [
        "which thread runs",
        "time that a hypervisor took",
        "who sends IPIs",
        "functions called by other CPUs",
    ];
    let lacking: Vec<&str> = matters.into_iter().filter(|what| without.contains(what)).collect();
    if !lacking.is_empty() {
        doubts.push(format!("this kernel has no events for: {}", lacking.join("; ")));
    }
    let is_event = |absent: &str| absent.contains('/') && !absent.contains(' ');
    let others = tracing.absent.iter().filter(|absent| !is_event(absent));
    doubts.extend(others.map(|absent| format!("not to be had: {}", harmless(absent))));
    doubts
}

fn causes(totals: &Totals, unit: Unit, style: &Style) -> Vec<String> {
    let named = style.width.saturating_sub(37).clamp(20, 60);
    let mut lines = vec![format!("{:named$}  hits  {:>9}    share  {:>9}", "cause", "time", "worst")];
    let row = |name: &str, hits: String, time: Nanos, worst: String| {
        let share = percent(time.0, totals.time.0);
        let figures = format!("  {hits:>4}  {:>9}  {share:>5} %  {worst:>9}", unit.figure(time));
        named_row("", name, named, &figures)
    };
    for cause in totals.causes.iter().take(CAUSES) {
        lines.push(row(&words(cause), cause.hits.to_string(), cause.time, unit.figure(cause.worst)));
    }
    let rest: Nanos = totals.causes.iter().skip(CAUSES).fold(Nanos::ZERO, |sum, cause| sum + cause.time);
    if rest > Nanos::ZERO {
        let name = count_of(totals.causes.len().saturating_sub(CAUSES) as u64, "smaller cause");
        lines.push(row(&name, String::new(), rest, String::new()));
    }
    lines.push(row("sum", totals.hits.to_string(), totals.time, String::new()));
    lines
}

/// `clear_huge_page in stress: preemption off`: the culprit first.
pub(crate) fn words(cause: &CauseTotal) -> String {
    let sort = cures::of(cause.class).words;
    let sure = match cause.certainty {
        Certainty::Likely => " (likely)",
        Certainty::Sure | Certainty::Unknown => "",
    };
    match harmless(&cause.culprit) {
        culprit if culprit.is_empty() => format!("{sort}{sure}"),
        culprit => format!("{culprit}: {}{sure}", short(cause.class, sort)),
    }
}

/// The sort in so few words that the culprit has room.
fn short(class: Class, words: &'static str) -> &'static str {
    match class {
        Class::Host => "hypervisor or firmware",
        Class::NoPreemption => "no preemption point",
        Class::Rival => "same or higher priority",
        Class::Call => "IPI",
        Class::Interrupt => "interrupt",
        Class::Softirq => "softirq",
        Class::Timer => "kernel timer",
        _ => words,
    }
}

/// Whether the machine was a guest, where that is known.
pub(crate) fn is_guest(record: &Record) -> Option<bool> {
    record.header.machine.virtualization.value().map(|name| name != "none")
}

/// What helps against the causes with a tenth of the time or more. A guest has no firmware that takes its CPU, and a machine that
/// is no guest has no hypervisor.
pub(crate) fn what_helps(causes: &[CauseTotal], is_guest: Option<bool>) -> Vec<String> {
    const OF_FIRMWARE: &str = "fw-smi";

    let time = causes.iter().map(|cause| cause.time.0).total();
    let mut seen = Vec::new();
    let mut lines = Vec::new();
    for cause in causes.iter().filter(|cause| cause.time.0 >= time / 10 && time > 0) {
        let sort = cures::of(cause.class);
        if seen.contains(&cause.class) || (sort.rules.is_empty() && sort.advice.is_empty()) {
            continue;
        }
        seen.push(cause.class);
        let has_sense = |rule: &&&str| match is_guest {
            _ if cause.class != Class::Host => true,
            Some(true) => **rule != OF_FIRMWARE,
            Some(false) => **rule == OF_FIRMWARE,
            None => true,
        };
        let rules = sort.rules.iter().filter(has_sense).copied().collect::<Vec<_>>().join(", ");
        let is_of_guests = cause.class == Class::Host && is_guest == Some(false);
        let advice = if is_of_guests { "" } else { sort.advice };
        let advice =
            [advice, &rules].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
        lines.push(format!("what helps against {}: {advice}", short(cause.class, sort.words)));
    }
    lines
}

/// Whether a trial of a rule would change something on the machine of whoever reads: elsewhere none is offered.
pub type Triable<'a> = &'a dyn Fn(&str) -> bool;

/// The command that tries whether a cure helps under the very load, for its heaviest cause that has one which is `triable`.
pub(crate) fn trial_of(explanation: &Explanation, triable: Triable<'_>) -> Option<String> {
    let load = &explanation.scenario.head.planned.load;
    let is_plain = load.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    let causes = totals(&explanation.hits).causes;
    let time = causes.iter().map(|cause| cause.time.0).total();
    let heavy = causes.iter().filter(|cause| is_plain && time > 0 && cause.time.0 >= time.div_ceil(10));
    let rule = heavy.filter_map(|cause| cures::trial(cause.class)).find(|rule| triable(rule))?;
    let apart = if causes.iter().any(|cause| cause.class == Class::Host) { " --without-steal" } else { "" };
    Some(format!("worstcase tune trial {rule} --load {load}{apart}"))
}

fn worst(explanation: &Explanation, hit: &Hit, unit: Unit, style: &Style) -> Vec<String> {
    let which = match unexplained(explanation, unit) {
        Some(_) => "The worst that was explained",
        None => "The worst",
    };
    let mut lines = vec![format!(
        "{which}: {} on CPU {}, activation {}",
        unit.with_name(hit.latency),
        hit.cpu,
        hit.activation
    )];
    lines.extend(pieces(hit, unit, style));
    lines
}

/// The pieces of a wake-up, the longest of them.
fn pieces(hit: &Hit, unit: Unit, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    let room = style.width.saturating_sub(34).clamp(20, 60);
    let mut at = Nanos::ZERO;
    // Of more pieces than fit, the longest are shown, in their order.
    let longest = longest(hit.pieces.iter().map(|piece| piece.length), PIECES);
    for (place, piece) in hit.pieces.iter().enumerate() {
        if longest.contains(&place) {
            let head = format!("  {:>10}  ", unit.figure(at));
            let words = format!("{}: {}", piece.stage.words(), piece.activity.words());
            lines.push(named_row(&head, &words, room, &format!("  {:>10}", unit.figure(piece.length))));
        }
        at += piece.length;
    }
    let hidden = hit.pieces.len().saturating_sub(PIECES);
    if hidden > 0 {
        lines.push(format!("  and {}", count_of(hidden as u64, "shorter piece")));
    }
    lines
}

/// The largest cause, how sure it is, and what shows it.
fn main_cause(hit: &Hit) -> Vec<String> {
    let Some(cause) = hit.main_cause() else { return Vec::new() };
    let share = percent(cause.length.0, hit.latency.0);
    let sure = certainty(cause.certainty);
    let mut lines = vec![format!("{share} % of the latency, {sure}: {}", words_of(cause))];
    if !cause.witness.is_empty() {
        lines.push(format!("seen by: {}", harmless(&cause.witness)));
    }
    lines
}

/// The sort of a cause, and its culprit.
pub(crate) fn words_of(cause: &Cause) -> String {
    let sort = cures::of(cause.class).words;
    match harmless(&cause.culprit) {
        culprit if culprit.is_empty() => sort.to_owned(),
        culprit => format!("{sort}, {culprit}"),
    }
}

/// How sure a cause is, in a word.
pub(crate) const fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Sure => "sure",
        Certainty::Likely => "likely",
        Certainty::Unknown => "unknown",
    }
}
