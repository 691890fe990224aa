//! What came of an experiment, in words: the verdict with its reasons, what control says of noise, what to do next.

use std::collections::BTreeSet;

use experiment::bisect::{Doubt as Unfound, Outcome as Bisected};
use experiment::{Arm, Doubt, Effect, Found, Judged, Kept, Need, Outcome, Tried};
use record::WarningId;
use record::verdict::Verdict;
use units::Nanos;

use super::figures::{Reckoned, interval, times};
use super::{Answer, Experiment, Measured};
use crate::text::{count_of, joined, shell};

/// What a reader sees first.
pub(super) struct Conclusion {
    /// How it is shown: as a run of that verdict.
    pub verdict: Verdict,
    pub headline: String,
    /// Its reasons, a sentence each.
    pub lines: Vec<String>,
    /// Commands, and what each is for.
    pub next: Vec<(String, String)>,
}

impl Conclusion {
    fn of_verdict(verdict: Verdict, headline: impl Into<String>) -> Self {
        Self { verdict, headline: headline.into(), lines: Vec::new(), next: Vec::new() }
    }

    fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    fn next(mut self, command: String, why: impl Into<String>) -> Self {
        self.next.push((command, why.into()));
        self
    }
}

/// What came of it.
pub(super) fn conclusion(reckoned: &Reckoned<'_>) -> Conclusion {
    let experiment = reckoned.experiment;
    match &experiment.answer {
        None => unfinished(experiment),
        Some(Answer::Trial(answer)) => trial(experiment, &answer.settings),
        Some(Answer::Search(found)) => search(experiment, found),
        Some(Answer::Bisection { found, is_ordered }) => bisection(experiment, found, *is_ordered),
        Some(Answer::Ladder) => ladder(reckoned),
    }
}

fn unfinished(experiment: &Experiment) -> Conclusion {
    let measured = count_of(experiment.blocks.len() as u64, "block");
    let headline = format!("not finished: {measured} measured, no answer yet");
    let why = "measures what is missing, and answers";
    Conclusion::of_verdict(Verdict::Inconclusive, headline).next(experiment.resume.clone(), why)
}

/// `0.29 times as long, 0.16 to 0.82 (97.7 % sure)`.
fn found(judged: &Judged) -> String {
    let Judged { ratio, interval: range, confidence, .. } = judged;
    format!("{} times as long, {} ({:.1} % sure)", times(*ratio), interval(*range), confidence * 100.0)
}

fn trial(experiment: &Experiment, settings: &[Tried]) -> Conclusion {
    let count = |effect| settings.iter().filter(|tried| tried.verdict == effect).count();
    let (helps, undecided) = (count(Effect::Helps), count(Effect::Undecided));
    let verdict = match () {
        () if helps == settings.len() => Verdict::Pass,
        () if undecided > 0 => Verdict::Inconclusive,
        () => Verdict::Measured,
    };
    let headline = match settings {
        [only] => format!("{}: {}", only.setting, tried(experiment, only)),
        several if helps == 0 => format!("none of {} settings is shown to help", several.len()),
        several => {
            let verb = if helps == 1 { "helps" } else { "help" };
            format!("{helps} of {} settings {verb}", several.len())
        }
    };
    let mut conclusion = Conclusion::of_verdict(verdict, headline);
    for one in settings {
        conclusion.lines.push(of_setting(experiment, one));
    }
    conclusion.next = settings.iter().filter_map(|one| apply(experiment, one)).collect();
    let wanted = settings.iter().filter(|one| one.verdict == Effect::Undecided && one.not_read.is_none());
    let wanted = wanted.filter_map(|one| one.measures.first()?.rounds_for_smallest_effect).max();
    let Some(rounds) = wanted else { return conclusion };
    if has_stolen_time(experiment) && !experiment.command.iter().any(|word| word == WITHOUT_STEAL) {
        let command = [experiment.command.as_slice(), &[WITHOUT_STEAL.to_owned()]].concat();
        conclusion =
            conclusion.next(shell(&command), "sets apart what the hypervisor took: the spread may be its");
    }
    let takes = time_of(experiment, rounds).map_or_else(String::new, |time| format!("; takes {time}"));
    let why = format!("would find an effect of {} in 4 of 5 trials{takes}", experiment.smallest());
    conclusion.next(again(experiment, "--blocks", rounds), why)
}

/// The option that sets proven steal apart.
const WITHOUT_STEAL: &str = "--without-steal";

/// Whether the hypervisor took time from measured CPUs in any block.
fn has_stolen_time(experiment: &Experiment) -> bool {
    let mut warnings = experiment.blocks.iter().flat_map(|one| one.record.all_warnings());
    warnings.any(|warning| warning.id == WarningId::Steal)
}

/// How long so many rounds take, by those that were measured; none of guests, whose time is their own.
fn time_of(experiment: &Experiment, rounds: u32) -> Option<String> {
    let is_of_guest = |one: &Measured| one.record.header.machine.lab.is_some();
    if experiment.blocks.iter().any(is_of_guest) {
        return None;
    }
    let scenarios = experiment.blocks.iter().flat_map(|one| &one.record.scenarios);
    let measured: u128 = scenarios.map(|scenario| u128::from(scenario.length.0)).sum();
    let known: BTreeSet<u32> = experiment.blocks.iter().map(|one| one.block.round).collect();
    let all = measured.checked_mul(rounds.into())?.checked_div(known.len() as u128)?;
    Some(Nanos(u64::try_from(all).ok()?).rounded())
}

/// What a setting does, in a few words.
fn tried(experiment: &Experiment, tried: &Tried) -> String {
    match (&tried.not_read, tried.verdict) {
        (Some(_), _) => "not read by this kernel".into(),
        (None, Effect::Helps) => "helps".into(),
        (None, Effect::Harms) => "harms".into(),
        (None, Effect::NoneVisible) => format!("no effect of {} or more", experiment.smallest()),
        (None, Effect::Undecided) => "undecided".into(),
    }
}

fn of_setting(experiment: &Experiment, one: &Tried) -> String {
    let head = format!("{}: {}", one.setting, tried(experiment, one));
    let Some(judged) = one.measures.first().filter(|_| one.not_read.is_none()) else {
        return format!("{head}: its blocks are those of a kernel without it, and what differs is chance");
    };
    let line = format!("{head}; {} {}", judged.measure, found(judged));
    if one.verdict == Effect::Undecided { format!("{line}; {}", power(experiment, judged)) } else { line }
}

/// What rounds like these find, where they decided nothing.
fn power(experiment: &Experiment, judged: &Judged) -> String {
    let rounds = match judged.rounds_for_smallest_effect {
        Some(rounds) => format!("about {rounds} rounds"),
        None => "more than 1000 rounds".to_owned(),
    };
    let (longer, shorter) = (times(judged.detectable), times(judged.detectable.recip()));
    let smallest = experiment.smallest();
    format!(
        "the spread is so wide that only a tail {longer} times as long, or {shorter} times, is found in 4 of 5 trials; an \
         effect of {smallest} takes {rounds}, or longer blocks"
    )
}

fn apply(experiment: &Experiment, tried: &Tried) -> Option<(String, String)> {
    let change = experiment.changes.iter().find(|change| change.name == tried.setting)?;
    let command = change.apply.clone().filter(|_| tried.verdict == Effect::Helps)?;
    Some((command, "makes it; worstcase tune undo takes it back".into()))
}

fn search(experiment: &Experiment, found: &Found) -> Conclusion {
    let smallest = experiment.smallest();
    let mut conclusion = match found.outcome {
        Outcome::Sufficient => {
            let kept: Vec<&str> = found.kept.iter().map(|kept| kept.setting.as_str()).collect();
            let headline = format!("a set that suffices: {}", kept.join(", "));
            let why = format!("In fresh blocks it helps, and all on is not better by {smallest}.");
            Conclusion::of_verdict(Verdict::Pass, headline).line(why)
        }
        Outcome::NothingHelps => {
            let headline = "all together do not help: there is nothing to search";
            Conclusion::of_verdict(Verdict::Measured, headline)
        }
        Outcome::Inconclusive(doubt) => doubtful_search(experiment, found, doubt),
    };
    conclusion.lines.extend(found.kept.iter().map(|kept| price(experiment, kept)));
    let dropped = found.steps.iter().filter(|step| step.dropped).map(|step| &step.setting);
    let dropped: Vec<&String> = dropped.collect();
    if !dropped.is_empty() {
        conclusion.lines.push(format!(
            "Left out, for the tail is not longer by {smallest} without: {}.",
            joined(&dropped)
        ));
    }
    if found.outcome != Outcome::Sufficient {
        return conclusion;
    }
    let kept =
        experiment.changes.iter().filter(|change| found.kept.iter().any(|kept| kept.setting == change.name));
    let applied = kept.filter_map(|change| Some((change.apply.clone()?, "makes it".to_owned())));
    conclusion.next.extend(applied);
    conclusion.line("Smaller sets may suffice as well: settings were left out one after the other.")
}

fn doubtful_search(experiment: &Experiment, found: &Found, doubt: Doubt) -> Conclusion {
    let of =
        |headline: &str| Conclusion::of_verdict(Verdict::Inconclusive, format!("inconclusive: {headline}"));
    match doubt {
        Doubt::Spread => {
            let conclusion =
                of("the spread hides whether all together help").line(power(experiment, &found.all));
            match found.all.rounds_for_smallest_effect {
                Some(rounds) => {
                    conclusion.next(again(experiment, "--blocks", rounds), "would show it in 4 of 5 searches")
                }
                None => conclusion,
            }
        }
        Doubt::TooManyBlocks => {
            let enough = found.planned.and_then(|planned| planned.enough);
            let rounds = enough.map_or_else(|| "more than 1000".to_owned(), |enough| enough.to_string());
            let conclusion = of("all together help, and the spread hides which are needed").line(format!(
                "To tell takes {rounds} rounds a step: make blocks longer (--duration), or accept a larger \
                 --smallest-effect."
            ));
            match enough {
                Some(rounds) => {
                    conclusion.next(again(experiment, "--blocks", rounds), "measures so many all the same")
                }
                None => conclusion,
            }
        }
        Doubt::Unconfirmed => of("fresh blocks do not confirm that what is left does what all do"),
    }
}

/// What leaving a setting out makes of the tail.
fn price(experiment: &Experiment, kept: &Kept) -> String {
    let need = match kept.need {
        Need::Shown => "needed".to_owned(),
        Need::NotShown => "not shown to be needed".to_owned(),
        Need::Spare => format!("not needed beside the others (less than {})", experiment.smallest()),
    };
    format!("{}: {need}; without it the tail is {}", kept.setting, found(&kept.price))
}

fn bisection(experiment: &Experiment, found: &experiment::bisect::Answer, is_ordered: bool) -> Conclusion {
    let group = |changes: &experiment::Changes| {
        let names: Vec<&str> = changes.iter().map(|&place| experiment.changes[place].name.as_str()).collect();
        let (joint, note) = match names.len() {
            1 => ("", ""),
            _ if is_ordered => (", ", " (one of these: what lies between could not be judged)"),
            _ => (" + ", " (together: without one of them it does not happen)"),
        };
        names.join(joint) + note
    };
    let groups: Vec<String> = found.culprits.iter().map(group).collect();
    match found.outcome {
        Bisected::Guilty => {
            let confirmed = if is_ordered {
                "Fresh guests confirm it: the kernel after it is bad against the one before it."
            } else {
                "Fresh guests confirm it: good with it is bad, bad without it is not."
            };
            Conclusion::of_verdict(Verdict::Pass, format!("guilty: {}", groups.join("; "))).line(confirmed)
        }
        Bisected::NoneGuilty => {
            let headline =
                format!("none guilty: all changes together do not make it {} as long", experiment.smallest());
            Conclusion::of_verdict(Verdict::Measured, headline)
        }
        Bisected::Inconclusive(doubt) => {
            let mut conclusion =
                Conclusion::of_verdict(Verdict::Inconclusive, format!("inconclusive: {}", unfound(doubt)));
            conclusion.lines = groups.iter().map(|group| format!("suspect: {group}")).collect();
            conclusion
        }
    }
}

fn unfound(doubt: Unfound) -> &'static str {
    match doubt {
        Unfound::Control => {
            "a kernel parameter that nobody reads moves the tail as much: these guests cannot tell; more --seeds or longer \
             runs may"
        }
        Unfound::Spread => {
            "the spread from guest to guest hides whether the bad set-up is bad; more --seeds or longer runs may tell"
        }
        Unfound::Reversed => "the bad set-up is the better one: swap good and bad",
        Unfound::NotRead => {
            "the kernel read none of these changes, so that what differs is chance: is a parameter misspelt, or this \
             kernel built without it?"
        }
        Unfound::Unconfirmed => {
            "fresh guests do not confirm what was found: it was chance, or the change comes in several small steps, or \
             the spread hides it; more --seeds or a smaller --ratio may tell"
        }
    }
}

/// The last rung against the first, then each step.
fn ladder(reckoned: &Reckoned<'_>) -> Conclusion {
    let experiment = reckoned.experiment;
    let mut steps: Vec<((&Arm, &Arm), String)> = Vec::new();
    for (compared, _) in reckoned.judged() {
        let pair = (&compared.arm, &compared.against);
        if !steps.iter().any(|(known, _)| *known == pair) {
            steps.push((pair, format!("{}: {}", reckoned.pair(compared), counts(reckoned, pair))));
        }
    }
    let verdict = if experiment.missing.is_empty() { Verdict::Measured } else { Verdict::Inconclusive };
    let (whole, steps) = match steps.pop() {
        Some((_, whole)) => (whole, steps),
        None => (of_costs(reckoned), Vec::new()),
    };
    let mut conclusion = Conclusion::of_verdict(verdict, whole);
    conclusion.lines = steps.into_iter().map(|(_, line)| line).collect();
    conclusion.lines.extend(not_judged(reckoned));
    if !experiment.missing.is_empty() {
        return conclusion.next(experiment.resume.clone(), "boots the guests that are missing");
    }
    let seeds = experiment.blocks.iter().map(|one| one.block.round).max().unwrap_or(0);
    let more = format!("{} --seeds {}", experiment.resume, (2 * seeds).max(statistics::LEAST_RUNS as u32));
    conclusion.next(more, "adds guests: smaller steps are seen")
}

/// What a ladder that measures no latencies came to.
fn of_costs(reckoned: &Reckoned<'_>) -> String {
    let means: Vec<String> = reckoned
        .costs()
        .iter()
        .filter_map(|costs| {
            let mean = costs.found.mean.as_ref()?;
            let range = interval([mean.interval.0, mean.interval.1]);
            Some(format!("{} / {}: {} ({range})", costs.arm.name, costs.base, times(mean.ratio)))
        })
        .collect();
    match means.is_empty() {
        true => "no step is judged".into(),
        false => format!("operations take so many times as long in the mean: {}", means.join("; ")),
    }
}

/// Under how many loads a step made the tail shorter, longer, or neither.
fn counts(reckoned: &Reckoned<'_>, pair: (&Arm, &Arm)) -> String {
    let own = || reckoned.judged().filter(|(compared, _)| (&compared.arm, &compared.against) == pair);
    if let ([_], Some((_, one))) = (reckoned.experiment.loads.as_slice(), own().next()) {
        let effect = one.effect.map_or("", super::table::word);
        return format!("{effect}, {} times ({})", times(one.ratio), interval(one.interval));
    }
    let count = |effect| own().filter(|(_, one)| one.effect == Some(effect)).count();
    format!(
        "shorter under {} of {} loads, longer under {}, undecided under {}",
        count(Effect::Helps),
        reckoned.experiment.loads.len(),
        count(Effect::Harms),
        count(Effect::Undecided)
    )
}

/// Why steps are not judged, if some are not.
fn not_judged(reckoned: &Reckoned<'_>) -> Option<String> {
    if reckoned.experiment.loads.is_empty() {
        return None;
    }
    if reckoned.tail.is_none() {
        return Some("Steps are not judged: too few samples a load for a tail.".into());
    }
    let blocks = |arm: &super::Arm| {
        let own = reckoned.experiment.blocks.iter().filter(|one| one.block.arm == arm.arm);
        own.count()
    };
    let fewest = reckoned.experiment.arms.iter().map(blocks).min().unwrap_or(0);
    (fewest < statistics::LEAST_RUNS).then(|| {
        format!(
            "Steps are judged where both rungs have {} runs or more, each with a seed of its own; the rung with the \
             fewest has {fewest}.",
            statistics::LEAST_RUNS
        )
    })
}

/// What the control arm says of noise: it was measured with nothing changed.
pub(super) fn noise(reckoned: &Reckoned<'_>) -> String {
    let control = reckoned.judged().find(|(one, _)| one.arm == Arm::Control && one.against == Arm::off());
    let Some((compared, found)) = control else {
        return "There is no control arm. The spread from seed to seed is the noise: a step is judged only beyond it.".into();
    };
    let name = reckoned.pair(compared);
    let size = format!("{} times ({})", times(found.ratio), interval(found.interval));
    match found.effect {
        Some(Effect::NoneVisible) => format!(
            "Control changes nothing, and stands still: {name} is {size}. What differs by no more than that is noise."
        ),
        Some(Effect::Helps | Effect::Harms) => format!(
            "Control changes nothing, and moved all the same: {name} is {size}. Writing by itself, or a parameter more, \
             does that; so changes are compared with what is written to alike."
        ),
        Some(Effect::Undecided) | None => {
            format!("Control changes nothing, and {name} is {size}: differences of that size are noise here.")
        }
    }
}

/// How it was judged, and how far that can be trusted, a sentence each.
pub(super) fn method(reckoned: &Reckoned<'_>) -> Vec<String> {
    let experiment = reckoned.experiment;
    let smallest = experiment.smallest();
    let mut sentences = vec![
        "A / B: times is A's figure in those of B, before and after are the medians of B's and of A's blocks; control writes the \
         values that are there. interval, sure: where the ratio lies, and how sure that is. tail: what that shows. from X: \
         how many latencies were X or more. block maxima: the highest latency of each block."
            .to_owned(),
    ];
    match &experiment.answer {
        Some(Answer::Trial(_)) => {
            let shared = match experiment.changes.len() {
                1 => String::new(),
                settings => format!(", all {settings} settings together (Holm)"),
            };
            sentences.push(format!(
                "Blocks are compared within rounds, by exact signed ranks; the first row of a pair decides. no effect: none \
                 of {smallest} or more. \"shorter\" or \"longer\" for a setting that does nothing comes in at most 1 of 20 \
                 trials{shared}."
            ));
        }
        Some(Answer::Search(_)) => sentences.push(format!(
            "Blocks are compared within rounds, by exact signed ranks. no effect: none of {smallest} or more. *: in fresh \
             blocks, which the search had not seen."
        )),
        Some(Answer::Bisection { .. }) => sentences.push(format!(
            "Guests are compared with guests, by the Mann-Whitney statistic. shorter, longer: by {smallest} or more, beyond \
             the spread; no effect: surely not {smallest} as long. *: fresh guests, which judge what was found: a change that \
             does nothing is called guilty in at most 2.5 % of bisections."
        )),
        Some(Answer::Ladder) if reckoned.comparisons.is_empty() => sentences.clear(),
        Some(Answer::Ladder) => sentences.extend(reckoned.judged().map(|(_, one)| one.confidence).min_by(f64::total_cmp).map(
            |least| {
                let pairs = match experiment.arms.iter().any(|arm| arm.base.is_some()) {
                    true => "Rungs are compared with the one that stands beside them",
                    false => "Each rung is compared with the one before, the last with the first",
                };
                format!(
                    "{pairs}, by the Mann-Whitney statistic. \
                     undecided: no more than the spread from seed to seed. Of steps that change nothing one in {:.0} looks as \
                     if it did.",
                    (1.0 / (1.0 - least)).floor()
                )
            },
        )),
        None => return Vec::new(),
    }
    sentences
}

/// The command with another value of an option.
fn again(experiment: &Experiment, option: &str, value: impl ToString) -> String {
    let mut words = experiment.command.clone();
    match words.iter().position(|word| word == option) {
        Some(place) if place + 1 < words.len() => words[place + 1] = value.to_string(),
        _ => words.extend([option.to_owned(), value.to_string()]),
    }
    shell(&words)
}
