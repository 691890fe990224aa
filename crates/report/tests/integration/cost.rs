//! Records of costs whose truth is known.

use record::cost::{CONTROL, COST_VERSION, Cost, CostPlan, Failure, Operation, Place, Sample, Turn};
use record::{Fact, Machine, Tool};
use report::Style;
use report::cost::{Measured, SetUp, Trade, against, compared, json, page, text, trade_of};
use statistics::Value;
use units::{CpuId, Nanos, Random, Seed};

use crate::sample::Spec;

const ROUNDS: u32 = 9;
const FAMILIES: [&str; 3] = ["pipes", "sockets", "files"];

/// A record with `count` operations, each taking `length(operation, draw)` picoseconds a piece.
pub fn record(count: u32, draws: &mut Random, length: impl Fn(u32, f64) -> f64) -> Cost {
    let mut operation = |number: u32| Operation {
        name: if number == 0 { CONTROL.into() } else { format!("operation-{number}") },
        title: format!("operation {number}"),
        family: FAMILIES[(number * 3 / count) as usize].into(),
        unit: "1".into(),
        bytes: 0,
        place: Place::OneCpu,
        samples: (1..=ROUNDS).map(|round| sample(round, length(number, skewed(draws)))).collect(),
        failures: Vec::new(),
    };
    Cost {
        cost_version: COST_VERSION,
        tool: Tool { version: "1".into(), build: "test".into() },
        command_line: vec!["worstcase".into(), "cost".into()],
        note: None,
        turn: None,
        started: record::time::UtcTime(0),
        machine: Machine::default(),
        plan: CostPlan {
            cpu: CpuId(0),
            second: Some(CpuId(1)),
            rounds: ROUNDS,
            runs: ROUNDS,
            sample: Nanos::from_millis(100),
            seed: Seed(1),
        },
        rounds: ROUNDS,
        runs: 0,
        interrupted: None,
        evidence: Some(record::Evidence::default()),
        operations: (0..count).map(&mut operation).collect(),
    }
}

fn sample(round: u32, picoseconds: f64) -> Sample {
    let count = 1_000_000;
    let time = Nanos((picoseconds * 1_000.0) as u64);
    Sample { round, count, time, cpu_time: time, switches: 2 * count }
}

/// One and more: mostly a little, now and then several times as much, as on a machine that others use too.
fn skewed(draws: &mut Random) -> f64 {
    let share = draws.below(1_000_000) as f64 / 1e6;
    1.0 + 0.05 / (1.02 - share)
}

/// A run that was ended in its first round has nothing to compare: a comparison with it is no pass.
#[test]
fn a_comparison_of_nothing_is_inconclusive() {
    let whole = record(4, &mut Seed(1).stream("cost"), |_, draw| draw * 1e6);
    let mut cut = whole.clone();
    cut.operations.iter_mut().for_each(|operation| operation.samples.truncate(1));
    let found = against(&whole, &cut);
    assert!(found.rows.is_empty());
    let why = "after, there is 1 run, and records made apart are compared by 3 or more (--runs)";
    assert_eq!(found.inconclusive.as_deref(), Some(why));
    let style = Style { width: 200, ..Style::default() };
    assert!(compared(&whole, &cut, &style).starts_with(&format!("INCONCLUSIVE: {why}.")));
    let turn = |cost: &Cost, on| Cost { turn: Some(Turn { settings: vec!["s".into()], on }), ..cost.clone() };
    let in_turn = against(&turn(&whole, false), &turn(&cut, true));
    assert_eq!(in_turn.inconclusive.as_deref(), Some("no operation could be compared"));
    assert!(against(&whole, &whole).inconclusive.is_none());
}

/// Rounds of one run say nothing of what changes until the next run.
#[test]
fn records_that_were_not_measured_in_turn_are_said_to_be_apart() {
    let before = record(4, &mut Seed(1).stream("cost"), |_, draw| draw * 1e6);
    let turn = |on| Cost { turn: Some(Turn { settings: vec!["s".into()], on }), ..before.clone() };
    let says =
        |first: &Cost, second: &Cost| compared(first, second, &Style::default()).contains("measured apart");
    assert!(says(&before, &before) && says(&turn(true), &turn(true)));
    assert!(!says(&turn(false), &turn(true)));
}

#[test]
fn operations_without_a_figure_stand_below_the_table_alone() {
    let mut cut = record(4, &mut Seed(1).stream("cost"), |_, draw| draw * 1e6);
    cut.operations.iter_mut().skip(1).for_each(|operation| operation.samples.clear());
    let shown = text(&cut, &Style { width: 100, ..Style::default() });
    let (table, below) = shown.split_once("Not measured: ").unwrap();
    assert!(!table.contains("operation 2") && below.contains("operation 2"), "{shown}");
}

#[test]
fn the_same_set_up_twice_shows_a_difference_of_any_operation_once_in_twenty_at_most() {
    const COMPARISONS: usize = 300;
    let mut draws = Seed(26).stream("null");
    let differs = |_: &usize| {
        let both = [0, 1].map(|_| record(45, &mut draws, |number, draw| f64::from(number + 1) * 1e4 * draw));
        let found = against(&both[0], &both[1]);
        assert_eq!((found.rows.len(), found.comparisons), (45, 46));
        found.worst().is_some() || found.best().is_some()
    };
    let seen = (0..COMPARISONS).filter(differs).count();
    assert!(seen * 20 <= COMPARISONS + 20, "{seen} of {COMPARISONS}");
}

/// What holds throughout a record and is otherwise in the next one: as large as what makes its runs differ.
#[test]
fn records_made_apart_keep_their_error_where_records_differ_as_runs_do() {
    const COMPARISONS: usize = 100;
    let mut draws = Seed(26).stream("apart");
    let bell = |draws: &mut Random| (0..12).map(|_| draws.below(1_000_001) as f64 / 1e6).sum::<f64>() - 6.0;
    let mut one = |_: usize| {
        let stretches: Vec<f64> = (0..45).map(|_| bell(&mut draws)).collect();
        let mut cost = record(45, &mut draws, |_, _| 0.0);
        for (own, operation) in stretches.iter().zip(&mut cost.operations) {
            let of_run = |sample: &mut Sample| {
                *sample = self::sample(sample.round, 1e4 * (0.1 * (own + bell(&mut draws))).exp());
            };
            operation.samples.iter_mut().for_each(of_run);
        }
        cost
    };
    let pairs: Vec<[Cost; 2]> = (0..COMPARISONS).map(|_| [0, 1].map(&mut one)).collect();
    let differs = |found: &report::cost::Against| found.worst().is_some() || found.best().is_some();
    let apart = pairs.iter().filter(|[first, second]| differs(&against(first, second))).count();
    let turn = |cost: &Cost, on| Cost { turn: Some(Turn { settings: vec!["s".into()], on }), ..cost.clone() };
    let in_turn = |[first, second]: &&[Cost; 2]| differs(&against(&turn(first, false), &turn(second, true)));
    let as_if_in_turn = pairs.iter().filter(in_turn).count();
    assert!(apart * 20 <= COMPARISONS + 100, "{apart} of {COMPARISONS}");
    assert!(as_if_in_turn * 2 > COMPARISONS, "{as_if_in_turn} of {COMPARISONS} where rounds are draws");
    println!("{apart} apart, {as_if_in_turn} as if in turn, of {COMPARISONS}");
}

#[test]
fn more_rounds_in_as_many_runs_do_not_make_records_agree() {
    let mut draws = Seed(26).stream("runs");
    let before = record(9, &mut draws, |_, draw| 1e5 * draw);
    let after = record(9, &mut draws, |_, draw| 1.5e5 * draw);
    assert!(against(&before, &after).worst().is_some());
    for (runs, is_open) in [(2, true), (1, true), (0, true), (3, false)] {
        let with = |cost: &Cost| Cost { plan: CostPlan { runs, ..cost.plan.clone() }, ..cost.clone() };
        let found = against(&with(&before), &with(&after));
        assert_eq!(found.inconclusive.is_some(), is_open, "{runs}: {:?}", found.inconclusive);
        assert_eq!(found.rows.is_empty(), is_open, "{runs}");
    }
}

#[test]
fn an_operation_that_was_made_slower_is_the_worst_and_the_mean_weighs_families_alike() {
    let mut draws = Seed(1).stream("truth");
    let before = record(9, &mut draws, |_, draw| 1e5 * draw.sqrt().sqrt());
    // One family of three is eight times as slow: the geometric mean is twice as much.
    let slower = |number: u32| if number < 3 { 8.0 } else { 1.0 };
    let after = record(9, &mut draws, |number, draw| 1e5 * draw.sqrt().sqrt() * slower(number));
    let found = against(&before, &after);
    let mean = found.mean.unwrap();
    assert!((1.9..2.1).contains(&mean.ratio), "{mean:?}");
    let worst = found.worst().unwrap().name.as_str();
    assert!([CONTROL, "operation-1", "operation-2"].contains(&worst), "{worst}");
    let slow: Vec<&str> = found
        .rows
        .iter()
        .filter(|row| row.found.verdict == statistics::Verdict::Higher)
        .map(|row| row.name.as_str())
        .collect();
    assert_eq!(slow, [CONTROL, "operation-1", "operation-2"]);
    let shown = compared(&before, &after, &Style::default());
    let sentences = shown.replace('\n', " ");
    assert!(sentences.contains("Worst: operation ") && sentences.contains("as long: slower."), "{shown}");
    let json: serde_json::Value = serde_json::from_str(&json(&found)).unwrap();
    assert_eq!(json["operations"][8]["verdict"], "no difference visible");
    assert!(page(&after, Some(&before)).unwrap().contains("What it costs"));
}

#[test]
fn what_was_not_measured_is_named_with_its_reason_and_never_compared() {
    let mut draws = Seed(1).stream("truth");
    let before = record(3, &mut draws, |_, draw| 1e5 * draw);
    let mut after = before.clone();
    after.operations[1].samples.clear();
    after.operations[1].failures = vec![Failure { round: 1, why: "connect: unreachable".into() }];
    after.operations.remove(2);
    after.evidence = None;
    let shown = text(&after, &Style::default());
    assert!(shown.contains("Not measured: operation 1: connect: unreachable"), "{shown}");
    assert!(shown.contains("was cut off"), "{shown}");
    let found = against(&before, &after);
    assert_eq!(found.rows.len(), 1);
    let left_out: Vec<&str> = found.left_out.iter().map(|(words, _)| words.as_str()).collect();
    assert_eq!(left_out, ["operation 2", "operation 1"]);
    assert!(
        compared(&before, &after, &Style::default()).contains("Not compared: operation 1: not measured in")
    );
}

#[test]
fn figures_of_a_cpu_that_others_used_are_inconclusive_and_so_are_those_without_a_control() {
    let mut draws = Seed(1).stream("truth");
    let before = record(3, &mut draws, |_, draw| 1e5 * draw);
    assert_eq!(against(&before, &before).inconclusive, None);
    let mut shared = before.clone();
    shared.operations[0].samples.iter_mut().for_each(|sample| sample.cpu_time = Nanos(sample.time.0 / 2));
    let mut unknown = before.clone();
    unknown.operations[0].samples.clear();
    for other in [&shared, &unknown] {
        for (first, second) in [(&before, other), (other, &before)] {
            assert!(against(first, second).inconclusive.is_some());
            assert!(compared(first, second, &Style::default()).contains("INCONCLUSIVE: "));
        }
    }
    // A quota that took effect is what is measured.
    let group = "/sys/fs/cgroup/half".into();
    let limit = record::CpuQuota { group, quota: Nanos::from_millis(50), period: Nanos::from_millis(100) };
    let quota = record::QuotaEvidence { limit, periods: Fact::Value(9), throttled: Fact::Value(Nanos(1)) };
    shared.evidence = Some(record::Evidence { quotas: Fact::Value(vec![quota]), ..Default::default() });
    assert_eq!(against(&before, &shared).inconclusive, None);
}

#[test]
fn too_few_rounds_are_not_compared_and_say_how_many_are_needed() {
    let mut draws = Seed(1).stream("truth");
    let mut before = record(3, &mut draws, |_, draw| 1e5 * draw);
    before.operations.iter_mut().for_each(|one| one.samples.truncate(2));
    let found = against(&before, &before);
    assert!(found.rows.is_empty() && found.mean.is_none());
    assert!(found.left_out[0].1.contains("3 are needed"), "{found:?}");
    assert!(
        compared(&before, &before, &Style::default()).contains("INCONCLUSIVE: before, there are 2 runs"),
        "nothing is no good news"
    );
}

/// A set-up whose tail under `io` is about that long, in seven runs.
fn set_up<'a>(name: &str, tail: u64, cost: &'a Cost) -> SetUp<'a> {
    let tails = (0..7).map(|run| Value::exact(tail + tail * run / 100)).collect();
    SetUp { name: name.into(), tails: vec![("io".into(), tails)], cost: Some(cost) }
}

#[test]
fn a_trade_off_says_what_was_gained_and_what_it_costs_by_name() {
    let mut draws = Seed(26).stream("trade");
    let before = record(30, &mut draws, |_, draw| 1e4 * draw);
    let after = record(30, &mut draws, |number, draw| 1e4 * draw * if number == 7 { 5.0 } else { 1.0 });
    let set_ups = [set_up("stock", 120_000, &before), set_up("rt", 10_000, &after)];
    let trade = Trade::of("p99.9".into(), &set_ups).unwrap();
    let sentence = &trade.sentences()[0];
    assert!(sentence.starts_with("rt against stock: helps 12.0x at p99.9 under io (1"), "{sentence}");
    assert!(sentence.contains("; costs 1.") && sentence.contains("in operation 7."), "{sentence}");
    let json = trade.json();
    assert_eq!(json["set_ups"][0]["cost"]["worst"]["operation"], "operation-7");
    assert!((json["set_ups"][0]["gains"][0]["times_shorter"].as_f64().unwrap() - 12.0).abs() < 0.5);
    let page = trade.page().unwrap();
    assert!(page.contains("trade-off") && page.contains("rt under io: p99.9 12.0x shorter"), "{page}");
}

#[test]
fn a_longer_tail_is_a_harm_and_what_does_not_differ_is_no_gain() {
    let mut draws = Seed(26).stream("harm");
    let both = [0, 1].map(|_| record(30, &mut draws, |_, draw| 1e4 * draw));
    let of = |tail| {
        let set_ups = [set_up("stock", 10_000, &both[0]), set_up("other", tail, &both[1])];
        Trade::of("p99.9".into(), &set_ups).unwrap().sentences().remove(0)
    };
    assert!(of(20_000).contains("harms 2.00x at p99.9 under io"), "{}", of(20_000));
    let same = of(10_000);
    assert!(
        same.contains("no visible change at p99.9") && same.contains("no operation visibly more"),
        "{same}"
    );
}

#[test]
fn single_runs_have_a_ratio_and_no_interval_and_costs_that_are_missing_are_said_to_be() {
    let mut draws = Seed(26).stream("single");
    let both = [0, 1].map(|_| record(30, &mut draws, |_, draw| 1e4 * draw));
    let single = |name: &str, tail, cost| {
        let tails = vec![("io".to_owned(), vec![Value::exact(tail)])];
        SetUp { name: name.into(), tails, cost }
    };
    let set_ups = [
        single("one", 9_000, Some(&both[0])),
        single("two", 3_000, Some(&both[1])),
        single("three", 3_000, None),
    ];
    let sentences = Trade::of("p99".into(), &set_ups).unwrap().sentences();
    assert!(sentences[0].contains("3.00x shorter at p99 under io, of too few runs"), "{sentences:?}");
    assert!(sentences[1].contains("what it costs was not measured"), "{sentences:?}");
    let [one, two, _] = set_ups.each_ref().map(|one| (one.name.clone(), one.tails.clone(), one.cost));
    let turned = [two, one].map(|(name, tails, cost)| SetUp { name, tails, cost });
    let sentences = Trade::of("p99".into(), &turned).unwrap().sentences();
    assert!(sentences[0].contains("3.00x longer at p99 under io, of too few runs"), "{sentences:?}");
    assert!(Trade::of("p99".into(), &set_ups[..1]).is_none());
}

#[test]
fn latencies_of_other_plans_have_no_ratio_and_costs_still_have_theirs() {
    let mut draws = Seed(26).stream("plans");
    let measured = |name: &str, cost: Cost, priority: u8| {
        let mut latencies = Spec { loads: vec!["io"], ..Spec::default() }.record();
        latencies.header.plan.priority = units::Priority::try_from(priority).ok();
        Measured { name: name.into(), records: vec![latencies], cost }
    };
    let mut cost = || record(30, &mut draws, |_, draw| 1e4 * draw);
    let both = [measured("one", cost(), 98), measured("two", cost(), 80)];
    let trade = trade_of(&both).unwrap();
    let sentence = &trade.sentences()[0];
    assert!(sentence.starts_with("two against one: its latencies are not comparable; costs "), "{sentence}");
    let text = trade.text(&Style::default());
    assert!(text.starts_with("NOT COMPARABLE") && text.contains("one / two: priority: 98 / 80"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!text.contains("p99.9 shorter"), "{text}");
    assert_eq!(trade.json()["objections"].as_array().unwrap().len(), 1);
}

#[test]
fn guests_are_compared_where_they_are_several_and_a_single_one_is_a_draw() {
    let mut draws = Seed(26).stream("guests");
    let guest = |draws: &mut Random| {
        let mut cost = record(30, draws, |_, draw| 1e4 * draw);
        cost.machine.lab = Some(record::Lab {
            time: record::LabTime::Instructions,
            kernel: None,
            words: Vec::new(),
            emulator: "QEMU".into(),
            cpu_model: "max".into(),
            under: None,
            processors: 1,
            not_modelled: Vec::new(),
            images: None,
            parameters: None,
        });
        cost
    };
    let mut arm = || Cost::of_runs(&(0..7).map(|_| guest(&mut draws)).collect::<Vec<_>>()).unwrap();
    let (first, second) = (arm(), arm());
    assert_eq!(against(&first, &second).inconclusive, None);
    assert!(against(&Cost { runs: 1, ..first }, &second).inconclusive.unwrap().contains("one draw"));
}

/// What RAPL's package took over the run, in joules, of a second.
fn with_energy(mut cost: Cost, joules: Fact<u64>) -> Cost {
    let mut evidence = record::Evidence::default();
    evidence.counters.over = Nanos::from_secs(1);
    let source = "/sys/class/powercap/intel-rapl:0/energy_uj, package-0";
    let microjoules = joules.map(|joules| joules * 1_000_000);
    evidence.counters.add(record::Counted::Energy, source, record::CountedOn::Machine, microjoules);
    cost.evidence = Some(evidence);
    cost
}

#[test]
fn a_trade_off_has_power_and_energy_where_both_set_ups_were_metered() {
    let mut draws = Seed(26).stream("energy");
    let mut of = |length: f64, joules| with_energy(record(30, &mut draws, |_, draw| length * draw), joules);
    let (before, after) = (of(1e4, Fact::Value(10)), of(2e4, Fact::Value(15)));
    let trade = |after: &Cost| {
        Trade::of("p99.9".into(), &[set_up("stock", 100, &before), set_up("rt", 100, after)]).unwrap()
    };
    let known = trade(&after);
    let energy = known.rows[0].energy().unwrap();
    assert!((2.5..3.5).contains(&energy), "twice the time at 1.5 times the power: {energy}");
    let text = known.text(&Style { width: 100, ..Style::default() });
    assert!(text.contains("15.00 W") && text.contains("x in energy."), "{text}");
    assert_eq!(known.json()["set_ups"][0]["watts"], serde_json::json!([10.0, 15.0]));
    for unknown in [Fact::Unreadable(13), Fact::Absent, Fact::Unsupported] {
        let trade = trade(&with_energy(after.clone(), unknown));
        assert!(trade.rows[0].watts.is_none() && !trade.sentences()[0].contains("energy"));
        assert!(trade.text(&Style::default()).contains("not measured here"));
    }
    assert!(
        report::cost::text(&after, &Style { width: 100, ..Style::default() }).contains("15.00 W in the mean")
    );
}
