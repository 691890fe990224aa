//! Experiments: each kind in one form, what each step of a ladder gained, and what may not be said.

use std::collections::BTreeMap;

use crate::mend as insta;
use crate::sample::{Spec, in_lab, plain};
use ::experiment as engine;
use engine::bisect::{Bisection, Doubt, Outcome};
use engine::{Bench, Block, Design, Error, Figures};
use record::{LabTime, Unit};
use report::experiment::{
    Answer, Arm, Change, Experiment, Measured, Published, json_of_ladder, markdown, page, text,
};
use statistics::Tail;
use units::{Nanos, Seed};

/// Measures blocks by making them up: the first change makes latencies three times as short, or as long.
struct MadeUp {
    factor: f64,
    blocks: Vec<Measured>,
}

impl Bench for MadeUp {
    fn measure(&mut self, blocks: &[Block]) -> Result<Option<Vec<Figures>>, Error> {
        let mut figures = Vec::new();
        for block in blocks {
            let factor = if block.arm.has(0) { self.factor } else { 1.0 };
            let one = measured(block.clone(), (12_000.0 * factor) as u64, vec!["cpu"]);
            figures.push(Figures::without_judgement(&one.record)?);
            self.blocks.push(one);
        }
        Ok(Some(figures))
    }
}

fn measured(block: Block, median: u64, loads: Vec<&'static str>) -> Measured {
    // No two blocks have the same draws.
    let seed = block.seed.0 + 100 * (u64::from(block.phase) + 10 * block.arm.count() as u64);
    let spec = Spec { seed, median, loads, cpus: 1, duration: Nanos::from_secs(2), ..Spec::default() };
    let place = format!("phase-{}/round-{}/{}", block.phase, block.round, block.arm);
    Measured { record: in_lab(spec.record(), LabTime::Instructions), block, place }
}

/// Of two changes, the first of which acts by that factor.
fn of(kind: &'static str, factor: f64, answer: impl FnOnce(&mut MadeUp) -> Answer) -> Experiment {
    let mut bench = MadeUp { factor, blocks: Vec::new() };
    let answer = Some(answer(&mut bench));
    let mut arms: Vec<engine::Arm> = bench.blocks.iter().map(|one| one.block.arm.clone()).collect();
    arms.sort_unstable();
    arms.dedup();
    let arm = |arm: engine::Arm| Arm {
        name: arm.to_string(),
        what: format!("what {arm} is"),
        arm,
        notes: Vec::new(),
        published: None,
        base: None,
    };
    let change = |name: &str| Change { name: name.to_owned(), ..Change::default() };
    Experiment {
        kind,
        title: format!("A {kind}"),
        begun: "2026-11-23T16:13:42Z".into(),
        question: format!("What does this {kind} ask?"),
        answer,
        changes: vec![change("first=1"), change("second=1")],
        smallest_effect: Some(0.2),
        arms: arms.into_iter().map(arm).collect(),
        blocks: bench.blocks,
        costs: Vec::new(),
        missing: Vec::new(),
        loads: vec!["cpu".into()],
        unit: Unit::Instructions,
        tail: None,
        conditions: vec![("Load".into(), "cpu".into())],
        source: None,
        command: ["worstcase", kind, "first=1", "--blocks", "8"].map(str::to_owned).to_vec(),
        resume: format!("worstcase {kind} --resume here"),
    }
}

fn design() -> Design {
    Design {
        settings: vec!["first=1".into(), "second=1".into()],
        blocks: 8,
        most_blocks: None,
        seed: Seed(1),
        smallest_effect: 0.2,
        measure: engine::Kind::Quantile,
        threshold: None,
    }
}

fn trial() -> Experiment {
    of("trial", 0.3, |bench| Answer::Trial(engine::trial(&design(), bench).unwrap().unwrap()))
}

fn search() -> Experiment {
    of("search", 0.3, |bench| Answer::Search(Box::new(engine::search(&design(), bench).unwrap().unwrap())))
}

fn bisection() -> Experiment {
    let tail = Tail::Quantile(0.99);
    let asked = Bisection { changes: vec![Vec::new(); 2], is_ordered: false, ratio: 2.0, seeds: 5, tail };
    let made = of("bisection", 3.0, |bench| Answer::Bisection {
        found: engine::bisect::bisect(&asked, bench).unwrap().unwrap(),
        is_ordered: false,
    });
    Experiment { tail: Some(tail), smallest_effect: Some(1.0), ..made }
}

fn published(idle: [u64; 3], full: [u64; 3]) -> Option<Published> {
    let latencies = BTreeMap::from([("idle".to_owned(), idle), ("full".to_owned(), full)]);
    Some(Published {
        source: "Enea, table A.9".into(),
        unit: "us".into(),
        latencies,
        operations: BTreeMap::new(),
    })
}

/// Three kernels: the second is no other than the first, the third is three times as fast.
fn ladder() -> Experiment {
    let made = of("ladder", 1.0, |bench| {
        for block in engine::ladder::blocks(3, 5) {
            let median = if block.arm.count() == 2 { 4_000 } else { 12_000 };
            bench.blocks.push(measured(block, median, vec!["idle", "full"]));
        }
        Answer::Ladder
    });
    let names = ["plain", "same", "rt"];
    let figures = [None, published([4, 7, 67], [4, 6, 56]), published([3, 6, 16], [3, 4, 90])];
    let rung = |((place, name), published): ((usize, &str), Option<Published>)| Arm {
        arm: engine::Arm::all(place),
        name: name.into(),
        what: format!("The kernel called {name}"),
        notes: Vec::new(),
        published,
        base: None,
    };
    Experiment {
        arms: names.into_iter().enumerate().zip(figures).map(rung).collect(),
        changes: Vec::new(),
        smallest_effect: None,
        loads: vec!["idle".into(), "full".into()],
        source: Some(("Made up".into(), vec!["Nothing in it was measured.".into()])),
        ..made
    }
}

fn shown(experiment: &Experiment) -> String {
    text(experiment, &plain())
}

/// The line that begins so, with its blanks one each.
fn line(text: &str, head: &str) -> String {
    let found = text.lines().find(|line| line.starts_with(head)).unwrap_or_else(|| panic!("{head}: {text}"));
    found.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_kind_has_the_question_and_the_verdict_first_and_tables_of_one_form() {
    for (experiment, verdict) in [
        (trial(), "1 of 2 settings helps"),
        (search(), "a set that suffices: first=1"),
        (bisection(), "guilty: first=1"),
        (ladder(), "rt / plain: shorter under 2 of 2 loads"),
    ] {
        let text = shown(&experiment);
        let mut paragraphs = text.split("\n\n");
        assert_eq!(paragraphs.next(), Some(experiment.question.as_str()));
        assert!(paragraphs.next().unwrap().starts_with(verdict), "{text}");
        for head in ["instructions blocks samples min avg p99", "times interval"] {
            let plain = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            assert!(plain.filter(|line| line.contains(head)).count() > 0, "{head}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let page = page(&experiment).unwrap();
        let (question, answer) = (page.find(&experiment.question).unwrap(), page.find(verdict).unwrap());
        assert!(question < answer && answer < page.find("What was compared</h2>").unwrap());
    }
}

#[test]
fn a_trial_in_eighty_columns() {
    insta::assert_snapshot!(shown(&trial()));
}

#[test]
fn control_says_what_is_noise_and_a_ladder_has_none() {
    assert!(shown(&trial()).contains("\nControl changes nothing, and"));
    assert!(shown(&ladder()).contains("\nThere is no control arm."));
}

#[test]
fn what_no_kernel_read_is_no_effect_and_what_is_undecided_says_what_it_takes() {
    let mut experiment = trial();
    let Some(Answer::Trial(answer)) = &mut experiment.answer else { panic!() };
    answer.settings[0].not_read = Some("not read".into());
    answer.settings[0].verdict = engine::Effect::Undecided;
    answer.settings[1].verdict = engine::Effect::Undecided;
    answer.settings[1].measures[0].rounds_for_smallest_effect = Some(34);
    experiment.changes[0].notes.push("not read by this kernel: the log names it".into());
    let text = shown(&experiment);
    assert!(line(&text, "on-1 / control").contains("undecided"), "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "none of 2 settings is shown to help",
        "first=1: not read by this kernel: its blocks are those of a kernel without it",
        "note: first=1: not read by this kernel: the log names it",
        "20 % takes about 34 rounds",
        "Next worstcase trial first=1 --blocks 34 would find",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_bisection_names_groups_and_doubts_in_their_own_words() {
    let said = |outcome, culprits: &[usize], is_ordered| {
        let mut experiment = bisection();
        let Some(Answer::Bisection { found, is_ordered: ordered }) = &mut experiment.answer else { panic!() };
        (found.outcome, *ordered) = (outcome, is_ordered);
        found.culprits = vec![culprits.iter().copied().collect()];
        shown(&experiment).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(
        said(Outcome::Guilty, &[0, 1], false).contains("guilty: first=1 + second=1 (together: without one")
    );
    assert!(said(Outcome::Guilty, &[0, 1], true).contains("guilty: first=1, second=1 (one of these"));
    assert!(
        said(Outcome::NoneGuilty, &[], false)
            .contains("none guilty: all changes together do not make it 2 times")
    );
    let doubt = said(Outcome::Inconclusive(Doubt::NotRead), &[1], false);
    assert!(doubt.contains("inconclusive: the kernel read none of these changes"), "{doubt}");
    assert!(doubt.contains("suspect: second=1"), "{doubt}");
}

#[test]
fn an_experiment_that_was_not_finished_says_how_to_go_on() {
    let experiment =
        Experiment { answer: None, missing: vec!["phase-1/round-8/off was not measured".into()], ..trial() };
    let text = shown(&experiment);
    assert!(text.contains("\nnot finished: 32 blocks measured, no answer yet\n"), "{text}");
    assert!(text.contains("missing: phase-1/round-8/off was not measured"), "{text}");
    assert!(text.contains("Next   worstcase trial --resume here\n"), "{text}");
    let empty = Experiment { blocks: Vec::new(), ..experiment };
    assert!(shown(&empty).contains("not finished: 0 blocks"));
    assert!(page(&empty).unwrap().contains("phase-1/round-8/off was not measured"));
}

#[test]
fn a_step_gains_only_beyond_the_spread_from_seed_to_seed() {
    let text = shown(&ladder());
    insta::assert_snapshot!(text);
    assert!(line(&text, "same / plain").contains("undecided"), "within the spread");
    assert!(line(&text, "rt / same").contains("shorter"), "beyond it");
}

#[test]
fn too_few_runs_are_shown_and_not_judged() {
    let mut ladder = ladder();
    ladder.blocks.retain(|one| one.block.arm.count() < 2 || one.block.round < 5);
    ladder.missing.push("rt/seed-5 failed: the guest panicked".into());
    let text = shown(&ladder);
    assert!(
        text.split_whitespace().collect::<Vec<_>>().join(" ").contains("the rung with the fewest has 4"),
        "{text}"
    );
    assert!(text.contains("rt/seed-5 failed: the guest panicked"), "{text}");
    let judged: serde_json::Value = serde_json::from_str(&json_of_ladder(&ladder)).unwrap();
    let steps = judged["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["to"] == "same"), "{steps:?}");
    assert_eq!(judged["rungs"][2]["missing"][0], "rt/seed-5 failed: the guest panicked");
    ladder.blocks.clear();
    assert!(shown(&ladder).contains("Steps are not judged"));
    assert!(page(&ladder).unwrap().contains("Steps are not judged"));
}

#[test]
fn steps_that_go_another_way_than_the_source_are_named() {
    let mut other = ladder();
    // The source says that the last step made full worse: here it made it better.
    let text = shown(&other).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Of 2 steps whose maxima the source gives, 1 go the same way here"), "{text}");
    assert!(text.contains("rt / same, full: the source's maximum 56 to 90 (1.61 times), here 0."), "{text}");
    other.arms.iter_mut().for_each(|rung| rung.published = None);
    assert!(!shown(&other).contains("whose maxima"));
}

#[test]
fn the_page_draws_every_arm_lists_every_block_and_needs_no_network() {
    let experiment = trial();
    let page = page(&experiment).unwrap();
    // A plot of ranges and one of tails, each for a wide and for a narrow screen; a histogram an arm.
    assert_eq!(page.matches("role=\"img\"").count(), 2 * 2 + 4);
    assert_eq!(page.matches("class=\"draw ").count(), 2 * 32, "a stroke a block");
    for one in &experiment.blocks {
        assert!(page.contains(&one.place), "{}", one.place);
    }
    for words in [
        "Order and seeds",
        "Left out",
        "How to repeat it",
        "worstcase trial first=1 --blocks 8",
        "Kernel command line",
    ] {
        assert!(page.contains(words), "{words}");
    }
    // The name of SVG's own names is no address that is asked.
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count());
}

#[test]
fn text_of_others_is_escaped_on_the_page_and_harmless_on_a_terminal() {
    let evil = "<img src=x>\u{1b}[2J".to_owned();
    let mut experiment = trial();
    experiment.title.clone_from(&evil);
    experiment.question.clone_from(&evil);
    experiment.command.push(evil.clone());
    experiment.resume.clone_from(&evil);
    experiment.missing.push(evil.clone());
    experiment.conditions.push((evil.clone(), evil.clone()));
    experiment.loads = vec!["cpu".into(), evil.clone()];
    experiment.changes[0].name.clone_from(&evil);
    experiment.changes[0].notes.push(evil.clone());
    experiment.arms.iter_mut().for_each(|arm| {
        arm.name.clone_from(&evil);
        arm.what.clone_from(&evil);
        arm.notes.push(evil.clone());
    });
    experiment.blocks.iter_mut().for_each(|one| one.place.clone_from(&evil));
    let Some(Answer::Trial(answer)) = &mut experiment.answer else { panic!() };
    answer.settings[0].setting.clone_from(&evil);
    let page = page(&experiment).unwrap();
    assert!(!page.contains("<img"), "{}", &page[page.find("<img").unwrap_or(0)..][..200]);
    assert!(!shown(&experiment).contains('\u{1b}'));
}

/// The ladder with costs: nothing differs on the second rung, on the third one operation takes five times as long.
fn ladder_with_costs() -> Experiment {
    let mut draws = units::Seed(26).stream("costs of rungs");
    let mut cost = |times: f64| {
        let length = |number, draw| 1e4 * draw * if number == 7 { times } else { 1.0 };
        // Each round is a guest of its own.
        record::cost::Cost { runs: 9, ..crate::cost::record(9, &mut draws, length) }
    };
    let mut ladder = ladder();
    ladder.costs = vec![
        (engine::Arm::all(0), cost(1.0)),
        (engine::Arm::all(1), cost(1.0)),
        (engine::Arm::all(2), cost(5.0)),
    ];
    for arm in &mut ladder.arms[1..] {
        arm.base = Some(engine::Arm::all(0));
    }
    let operations = BTreeMap::from([("operation-7".to_owned(), 4.5)]);
    ladder.arms[2].published = Some(Published {
        source: "other programs".into(),
        unit: String::new(),
        latencies: BTreeMap::new(),
        operations,
    });
    ladder
}

#[test]
fn rungs_are_compared_with_what_they_name_and_operations_stand_beside_figures_from_elsewhere() {
    let ladder = ladder_with_costs();
    let page = markdown(&ladder);
    let row =
        |head: &str| page.lines().find(|line| line.starts_with(head)).unwrap_or_else(|| panic!("{page}"));
    assert_eq!(row("| rt | plain |").matches("**").count(), 8, "two loads, the mean and the worst: {page}");
    assert!(row("| rt | plain |").contains("| operation 7: **5."), "{page}");
    assert!(
        row("| same | plain |").ends_with("| none |") && !row("| same | plain |").contains("**"),
        "{page}"
    );
    assert!(
        !page.contains("| rt | same |") && row("| operation | plain |").contains("| same | rt | elsewhere |"),
        "{page}"
    );
    assert!(
        row("| operation 7 |").ends_with("| 4.50 |") && row("| operation 6 |").ends_with("| - |"),
        "{page}"
    );
    assert!(!page.contains(&ladder.begun), "a page that is kept has no time: {page}");
    assert_eq!(page, markdown(&ladder));
    let json: serde_json::Value = serde_json::from_str(&json_of_ladder(&ladder)).unwrap();
    assert_eq!((&json["costs"][1]["from"], &json["costs"][1]["to"]), (&"plain".into(), &"rt".into()));
    assert_eq!(json["costs"][1]["operations"][7]["published"], 4.5);
    assert!(shown(&ladder).contains("rt against plain: helps "), "{}", shown(&ladder));
}

#[test]
fn a_ladder_of_costs_alone_has_an_answer_without_latencies() {
    let mut ladder = ladder_with_costs();
    (ladder.blocks, ladder.loads) = (Vec::new(), Vec::new());
    let text = shown(&ladder);
    assert!(text.contains("operations take so many times as long in the mean: same / plain: "), "{text}");
    assert!(text.contains("operation 7") && text.contains("elsewhere"), "{text}");
    assert!(!text.contains("too few samples"), "{text}");
    assert!(report::experiment::page(&ladder).unwrap().contains("What operations take"));
}
