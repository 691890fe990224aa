//! What to do after a run: the two or three commands that fit what was seen, the most useful first.

use record::claims::{CUSTOMARY, FIRST_LOOK};
use record::verdict::Verdict;
use record::{
    CStates, Explanation, Phase, PlannedScenario, Record, Request, RunPlan, Scenario, ScenarioEnd, WarningId,
    is_command,
};
use units::Nanos;

use crate::differences::Weight;
use crate::explanation::{self, Triable};
use crate::instrument;
use crate::style::Style;
use crate::text;

/// Commands shown.
const MOST_STEPS: usize = 3;
/// Trials among them.
const MOST_TRIALS: usize = 2;
/// A maximum this many times the median has a cause of its own.
const TAIL: u64 = 10;
/// A trace that caught nothing is made so many times longer, and no shorter than this.
const LONGER: u64 = 6;
const SHORT_TRACE: Nanos = Nanos::from_secs(60);

/// A command to be typed as it is, and what it is for in a few words.
type Step = (String, String);

/// What fits a record. Nothing fits a guest of the lab: its command says what comes next.
pub fn steps(record: &Record, triable: Triable<'_>) -> Vec<Step> {
    if record.header.machine.lab.is_some() {
        return Vec::new();
    }
    if !record.is_measured() {
        return rest(record).into_iter().collect();
    }
    let first = [privileges(record), rest(record)];
    let last = [explain(record), check(), isolate(record), requirement(record)];
    first
        .into_iter()
        .flatten()
        .chain(trials(record, triable))
        .chain(last.into_iter().flatten())
        .take(MOST_STEPS)
        .map(with_own_command)
        .collect()
}

/// What has to be put into a command that stands for another one.
fn with_own_command((command, purpose): Step) -> Step {
    let note = if command.contains(OWN_COMMAND) { "; with this run's command in place of '...'" } else { "" };
    (command, purpose + note)
}

/// What fits the explanations of a record that lies in `directory`.
pub fn of_explanations(record: &Record, directory: &str, triable: Triable<'_>) -> Vec<Step> {
    let export = format!("worstcase explain {} --export perfetto -o run.trace", printable::shell(directory));
    let has_events = record.explanations.iter().any(|one| !one.hits.is_empty());
    let events = step(export, "the traced events, for ui.perfetto.dev").filter(|_| has_events);
    trials(record, triable).into_iter().chain(events).chain(check()).take(MOST_STEPS).collect()
}

/// What fits several records that lie in `directories`: what would make them comparable, and their plots.
pub fn of_several(records: &[Record], directories: &[String]) -> Vec<Step> {
    let (Some((first, others)), Some(name)) = (records.split_first(), directories.first()) else {
        return Vec::new();
    };
    let forbidden = |other: &Record| {
        crate::differences::differences(first, other)
            .iter()
            .any(|difference| difference.weight == Weight::Forbids)
    };
    let is_of_machine = first.header.machine.lab.is_none();
    let again = || {
        let loads: Vec<&str> = first.header.plan.loads.iter().map(String::as_str).collect();
        let command = same(first, &loads)?;
        step(format!("{command} --against {}", printable::shell(name)), "measure again as A was, and compare")
    };
    let again = if is_of_machine && others.iter().any(forbidden) { again() } else { None };
    let page = format!("worstcase report {} --html compared.html", text::shell(directories));
    let page = step(page, "their tails in one plot");
    again.into_iter().chain(page).collect()
}

/// For the terminal, every line ended.
pub fn text(record: &Record, triable: Triable<'_>, style: &Style) -> String {
    super::text(&steps(record, triable), style)
}

fn step(command: impl Into<String>, purpose: impl Into<String>) -> Option<Step> {
    Some((command.into(), purpose.into()))
}

/// Root, where neither policy nor locked memory were granted: then every figure is that of an ordinary program.
fn privileges(record: &Record) -> Option<Step> {
    lacks_privileges(record).then_some(())?;
    let loads: Vec<&str> = record.header.plan.loads.iter().map(String::as_str).collect();
    let command = same(record, &loads).unwrap_or_else(|| "worstcase bench".into());
    step(
        command,
        "as root, or with the rights that worstcase why policy-differs names: real-time priority and locked memory",
    )
}

fn lacks_privileges(record: &Record) -> bool {
    warns(record, WarningId::PolicyDiffers) && warns(record, WarningId::MemoryNotLocked)
}

/// What a command is for that root must type, as this run shows. Not every machine has a sudo.
fn as_root(record: &Record, purpose: &str) -> String {
    let lacks = warns(record, WarningId::PolicyDiffers) || warns(record, WarningId::MemoryNotLocked);
    if lacks { format!("as root: {purpose}") } else { purpose.to_owned() }
}

fn warns(record: &Record, id: WarningId) -> bool {
    record.all_warnings().any(|warning| warning.id == id)
}

/// What an interruption left out.
fn rest(record: &Record) -> Option<Step> {
    let plan = &record.header.plan;
    let unfinished = |load: &&String| {
        let of_load: Vec<_> =
            record.scenarios.iter().filter(|scenario| scenario.head.planned.load == **load).collect();
        let planned = plan.scenarios().iter().filter(|planned| planned.load == **load).count();
        of_load.len() < planned || of_load.iter().any(|scenario| scenario.end == ScenarioEnd::Interrupted)
    };
    record.scenarios.iter().any(|scenario| scenario.end == ScenarioEnd::Interrupted).then_some(())?;
    let loads: Vec<&str> = plan.loads.iter().filter(unfinished).map(String::as_str).collect();
    step(same(record, &loads)?, "measure what the interruption left out")
}

/// The command that measures under `loads` as a run did. None where there are none, or its length has no words.
fn same(record: &Record, loads: &[&str]) -> Option<String> {
    let plan = &record.header.plan;
    (!loads.is_empty()).then_some(())?;
    let limit = plan.limit.map(|limit| format!(" --limit {limit}")).unwrap_or_default();
    let length = length(plan)?;
    let repeat = if plan.repeat > 1 { format!(" --repeat {}", plan.repeat) } else { String::new() };
    Some(format!("worstcase bench{}{}{limit}{length}{repeat}", options(record), under(loads)))
}

/// The option that measures as long; none where the user ended the run.
fn length(plan: &RunPlan) -> Option<String> {
    match (plan.samples, plan.duration) {
        (Some(samples), _) => Some(format!(" --samples {samples}")),
        (None, duration) => Some(format!(" --duration {}", duration?)),
    }
}

/// The options that decide what is measured and how, each after a blank: what differs from what bench does unless it is asked.
fn options(record: &Record) -> String {
    options_of(record, &record.header.plan)
}

/// The same for a run that need not be the same again: without a phase that nobody asked for, which a short measurement has by
/// itself.
fn chosen_options(record: &Record) -> String {
    let mut plan = record.header.plan.clone();
    let is_chosen = plan.preset.is_some() || asked(record, "phase").is_some();
    if let (false, Some(timer)) = (is_chosen, plan.timer_mut()) {
        if timer.phase == Phase::Random {
            timer.phase = Phase::Sweep;
        }
    }
    options_of(record, &plan)
}

fn options_of(record: &Record, plan: &RunPlan) -> String {
    let cpus = &record.header.machine.cpus;
    let mut options = (instrument::of(plan).again)(plan);
    let mut add = |name: &str, value: &dyn std::fmt::Display| options += &format!(" --{name} {value}");
    let usual = Request::default();
    // Priority and policy of a reservation are its own.
    if let Some(policy) = plan.policy.filter(|policy| *policy != usual.policy && !plan.is_reservation()) {
        add("policy", &policy);
    }
    if let Some(priority) = plan.priority.filter(|_| plan.priority != usual.priority) {
        add("priority", &priority);
    }
    if plan.warm_up != usual.warm_up {
        add("warm-up", &plan.warm_up);
    }
    match plan.cstates.as_slice() {
        [CStates::AsIs] | [] => {}
        [CStates::Restrict] => add("cstates", &"restrict"),
        _ => add("cstates", &"both"),
    }
    let taken = plan.partition.as_ref().map(|partition| partition.cpus.clone()).unwrap_or_default();
    match &plan.partition {
        Some(partition) => add("partition", &printable::shell(&partition.group)),
        None if plan.cpus != cpus.allowed => add("cpus", &plan.cpus),
        None => {}
    }
    if !record.is_unloaded() && plan.load_cpus != cpus.for_loads(&taken) {
        add("load-cpus", &plan.load_cpus);
    }
    for name in ["load-dir", "load-user"] {
        if let Some(value) = asked(record, name) {
            add(name, &printable::shell(value));
        }
    }
    options
}

/// What the run was given for an option.
fn asked<'a>(record: &'a Record, name: &str) -> Option<&'a str> {
    let words = &record.header.command_line;
    let value = |(place, word): (usize, &'a String)| {
        let rest = word.strip_prefix("--")?.strip_prefix(name)?;
        if rest.is_empty() { words.get(place + 1).map(String::as_str) } else { rest.strip_prefix('=') }
    };
    words.iter().enumerate().find_map(value)
}

/// Stands for a command that was a load: it comes from a record, and is for its owner to type.
const OWN_COMMAND: &str = " --load-command '...'";

/// The options that measure under these loads.
fn under(loads: &[&str]) -> String {
    let (commands, named): (Vec<&str>, Vec<&str>) = loads.iter().partition(|load| is_command(load));
    // Beside a command bench measures without a load by itself.
    let is_by_itself = !commands.is_empty() && matches!(named[..], [] | ["idle"]);
    let names = if is_by_itself { String::new() } else { format!(" --loads {}", named.join(",")) };
    names + if commands.is_empty() { "" } else { OWN_COMMAND }
}

/// Trials of what helps against the heaviest cause of each load that a setting reaches. Where late wake-ups came and none
/// could be explained, a longer trace: it catches more of them.
fn trials(record: &Record, triable: Triable<'_>) -> Vec<Step> {
    let of_each = record.explanations.iter().filter_map(|one| explanation::trial_of(one, triable));
    let mut commands: Vec<String> = of_each.collect();
    commands.dedup();
    if commands.is_empty() {
        return longer_trace(record).into_iter().collect();
    }
    let purpose = "try whether this setting cuts the heaviest cause";
    commands.into_iter().take(MOST_TRIALS).filter_map(|command| step(command, purpose)).collect()
}

fn longer_trace(record: &Record) -> Option<Step> {
    let missed =
        |one: &&Explanation| one.hits.is_empty() && one.tracing.failure.is_none() && one.tracing.blind > 0;
    let load = under(&[&record.explanations.iter().find(missed)?.scenario.head.planned.load]);
    let length = record.header.plan.duration.unwrap_or(SHORT_TRACE).saturating_mul(LONGER).max(SHORT_TRACE);
    step(
        format!("worstcase bench --explain{}{load} --duration {length}", chosen_options(record)),
        "late wake-ups came while the trace was read: a longer run catches more",
    )
}

/// The trace, where there is a tail or a limit was exceeded and no trace was made yet.
fn explain(record: &Record) -> Option<Step> {
    let plan = &record.header.plan;
    // A thread that keeps its CPU is not woken.
    if !record.explanations.is_empty() || plan.timer().is_none() || plan.keeps_the_cpu() {
        return None;
    }
    // What could not be explained to root cannot be until its cure was done, and that stands in the note.
    if warns(record, WarningId::NotExplained) && !lacks_privileges(record) {
        return None;
    }
    let (worst, scenario, _) = record.worst()?;
    let exceeded = record.header.plan.limit.is_some_and(|limit| worst > limit);
    if !exceeded && worst.0 <= median(scenario)?.0.saturating_mul(TAIL) {
        return None;
    }
    let loads = under(&[&scenario.head.planned.load]);
    // A tail that comes once in an hour does not come in bench's own time.
    let is_longer = plan.samples.is_some() || plan.duration > Some(Request::BENCH_DURATION);
    let length = length(plan).filter(|_| is_longer).unwrap_or_default();
    let purpose = as_root(record, "find out what delayed the worst wake-ups");
    step(format!("worstcase bench --explain{}{loads}{length}", chosen_options(record)), purpose)
}

fn median(scenario: &Scenario) -> Option<Nanos> {
    scenario.series.iter().filter_map(|series| series.corrected().quantile(0.5)).max()
}

fn check() -> Option<Step> {
    step("worstcase check", "find the settings here that are known to cost latency")
}

/// Isolation, where a limit was not met on CPUs that serve everything else too.
fn isolate(record: &Record) -> Option<Step> {
    let shared = warns(record, WarningId::NotIsolated);
    let cpu = record.header.plan.cpus.iter().last()?;
    let failed = record.judgement.verdict == Verdict::Fail;
    let alone = record.header.plan.cpus.len() < 2;
    if !shared || !failed || alone {
        return None;
    }
    step(
        format!("worstcase tune plan --isolate {cpu}"),
        format!("see what would set a CPU apart for real time, here {cpu}"),
    )
}

/// A requirement where there was none, a longer run where one was met.
fn requirement(record: &Record) -> Option<Step> {
    let plan = &record.header.plan;
    let unit = record.header.machine.unit();
    let length = record.scenarios.iter().map(|scenario| scenario.length).min()?;
    let loads =
        named_loads(record).map_or(Request::BENCH_LOADS.len() - plan.loads_left_out.len(), <[_]>::len);
    let time = FIRST_LOOK.saturating_mul(loads.saturating_mul(setups(plan)) as u64).rounded();
    let whole = |purpose: &str| as_root(record, &format!("{purpose}; takes {time}"));
    match plan.limit {
        // A limit from an idle machine is exceeded under load.
        None if record.is_unloaded() => {
            step(format!("worstcase bench{}", chosen_options(record)), as_root(record, "measure under load"))
        }
        None => {
            let worst = record.worst()?.0;
            let limit = round_up(worst);
            let limit = (instrument::of(plan).longest_limit)(plan).map_or(limit, |most| limit.min(most));
            // No answer is waited for so long: such a limit would fail for sure.
            (limit >= worst).then_some(())?;
            step(again(record, limit, "10m"), whole("turn this into a pass or a fail"))
        }
        Some(limit) if record.judgement.verdict == Verdict::Pass && length < FIRST_LOOK => {
            step(again(record, unit.limit(limit), "10m"), whole("this was a first look"))
        }
        Some(limit) if record.judgement.verdict == Verdict::Pass && length < CUSTOMARY => step(
            again(record, unit.limit(limit), "24h"),
            as_root(record, "24 h under each load is customary before a worst case is believed"),
        ),
        Some(_) => None,
    }
}

/// In how many ways each load is measured: periods or calls, policies of C-states.
fn setups(plan: &RunPlan) -> usize {
    let all = plan.scenarios();
    let Some(first) = all.first() else { return 1 };
    let is_alike = |one: &&PlannedScenario| (&one.load, one.repeat) == (&first.load, first.repeat);
    all.iter().filter(is_alike).count()
}

/// The same instrument under the same loads with a limit, for longer.
fn again(record: &Record, limit: impl std::fmt::Display, duration: &str) -> String {
    let loads = named_loads(record)
        .map_or_else(String::new, |loads| under(&loads.iter().map(String::as_str).collect::<Vec<_>>()));
    format!("worstcase bench{}{loads} --limit {limit} --duration {duration}", chosen_options(record))
}

/// The loads that a longer run is to name; none where it runs those that bench has by itself.
fn named_loads(record: &Record) -> Option<&[String]> {
    let plan = &record.header.plan;
    (!record.is_unloaded() && !is_usual(plan)).then_some(&plan.loads)
}

/// Whether the loads are those that bench has unless it is asked for others.
fn is_usual(plan: &RunPlan) -> bool {
    let left_out = |load: &str| plan.loads_left_out.iter().any(|one| one.load == load);
    let usual = Request::BENCH_LOADS.into_iter().filter(|load| !left_out(load));
    plan.loads.iter().map(String::as_str).eq(usual)
}

/// The next of 1, 2, 5, 10, .. microseconds at or above a latency.
fn round_up(latency: Nanos) -> Nanos {
    let mut decade = 1_000_u64;
    loop {
        for factor in [1, 2, 5] {
            let limit = decade.saturating_mul(factor);
            if limit >= latency.0 || limit == u64::MAX {
                return Nanos(limit);
            }
        }
        decade = decade.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_suggested_measures_with_the_same_instrument() {
        use record::InstrumentPlan;
        use record::instrument::noise::NoiseSetup;
        use record::instrument::response::{Receive, ResponseSetup};
        let plan = |instrument| RunPlan { instrument, ..RunPlan::default() };
        let noise = NoiseSetup { threshold: Nanos(1_000), window: Nanos(2), spin: Nanos(1) };
        let noise = plan(InstrumentPlan::Noise(noise));
        let options = |plan: &RunPlan| (instrument::of(plan).again)(plan);
        assert_eq!(options(&noise), " --probe noise");
        let network = plan(InstrumentPlan::Response(ResponseSetup {
            interval: Nanos::from_millis(2),
            patience: Nanos::from_millis(1),
            peer: "10.0.0.2:2307".into(),
            interface: Some("eth0".into()),
            frames: 1,
            size: 64,
            socket_priority: None,
            hardware_stamps: false,
            ptp_frames: false,
            receive: Receive::Sleep,
        }));
        let network_options =
            " --probe network --peer 10.0.0.2:2307 --interface eth0 --interval 2ms --patience 1ms";
        assert_eq!(options(&network), network_options);
        assert_eq!((instrument::of(&network).longest_limit)(&network), Some(Nanos::from_millis(1)));
    }

    #[test]
    fn calls_are_named_as_they_were_asked_for_and_defaults_are_not() {
        use record::InstrumentPlan;
        use record::instrument::call::{CallPlan, ChosenCall};
        let options = |names: &[&str], all, burst| {
            let call = |name: &&str| ChosenCall { call: (*name).to_owned(), across: false };
            let (interval, partners) = (CallPlan::INTERVAL, Default::default());
            let calls = names.iter().map(call).collect();
            let call = InstrumentPlan::Call(CallPlan {
                calls,
                all,
                interval,
                burst,
                partners,
                left_out: Vec::new(),
            });
            let plan = RunPlan { instrument: call, ..RunPlan::default() };
            (instrument::of(&plan).again)(&plan)
        };
        assert_eq!(options(&["pi-mutex"], false, CallPlan::BURST), " --probe call");
        assert_eq!(options(&["pi-mutex", "futex"], true, CallPlan::BURST), " --probe call --calls all");
        let two = options(&["pi-mutex", "futex"], false, Nanos::ZERO);
        assert_eq!(two, " --probe call --calls pi-mutex,futex --burst 0s");
    }

    #[test]
    fn a_limit_is_suggested_above_what_was_seen() {
        let of = |nanos| round_up(Nanos(nanos)).to_string();
        assert_eq!(
            (of(999), of(1_001), of(1_883_500), of(5_000_000)),
            ("1us".into(), "2us".into(), "2ms".into(), "5ms".into())
        );
        assert_eq!(round_up(Nanos(u64::MAX)), Nanos(u64::MAX));
    }
}
