//! Ladders: what each step gained, and what may not be said.

use std::collections::BTreeMap;

use crate::mend as insta;
use crate::sample::{Spec, in_lab, plain};
use record::{LabTime, Unit};
use report::ladder::{Ladder, Published, Rung, json, page, text};

/// A rung whose idle machine has this median, in five runs.
fn rung(name: &str, median: u64, seeds: std::ops::RangeInclusive<u64>) -> Rung {
    let run = |seed| {
        let spec = Spec { seed, median, loads: vec!["idle", "full"], cpus: 1, ..Spec::default() };
        in_lab(spec.record(), LabTime::Instructions)
    };
    Rung {
        name: name.into(),
        title: format!("The kernel called {name}"),
        booted: format!("kernel-{name} word=1, Linux 6.1"),
        runs: seeds.map(run).collect(),
        missing: Vec::new(),
        notes: Vec::new(),
        published: None,
    }
}

fn published(idle: [u64; 3], full: [u64; 3]) -> Option<Published> {
    let latencies = BTreeMap::from([("idle".to_owned(), idle), ("full".to_owned(), full)]);
    Some(Published { source: "S0, table A.9".into(), unit: "us".into(), latencies })
}

/// Three kernels: the second is no other than the first, the third is three times as fast.
fn ladder() -> Ladder {
    let mut rungs =
        vec![rung("plain", 12_000, 1..=5), rung("same", 12_000, 6..=10), rung("rt", 4_000, 11..=15)];
    rungs[1].published = published([4, 7, 67], [4, 6, 56]);
    rungs[2].published = published([3, 6, 16], [3, 4, 90]);
    Ladder {
        title: "Three kernels".into(),
        source: Some("Made up".into()),
        differs: vec!["Nothing in it was measured.".into()],
        conditions: vec!["5 seeds a rung.".into()],
        unit: Unit::Instructions,
        loads: vec!["idle".into(), "full".into()],
        rungs,
    }
}

#[test]
fn a_step_gains_only_beyond_the_spread_from_seed_to_seed() {
    let text = text(&ladder(), &plain());
    insta::assert_snapshot!(text);
    let line = |head: &str| text.lines().find(|line| line.starts_with(head)).unwrap().to_owned();
    assert!(line("same / plain").matches('(').count() == 2, "within the spread: {}", line("same / plain"));
    assert!(!line("rt / same").contains('('), "beyond it: {}", line("rt / same"));
    assert!(text.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn too_few_runs_are_shown_and_not_judged() {
    let mut ladder = ladder();
    ladder.rungs[2].runs.truncate(4);
    ladder.rungs[2].missing.push("seed 15 failed: the guest panicked".into());
    let text = text(&ladder, &plain());
    assert!(text.contains("the rung with the fewest has 4"), "{text}");
    assert!(text.contains("seed 15 failed: the guest panicked"));
    let judged: serde_json::Value = serde_json::from_str(&json(&ladder)).unwrap();
    let steps = judged["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["to"] == "same"), "{steps:?}");
    ladder.rungs.iter_mut().for_each(|rung| rung.runs.clear());
    let empty = report::ladder::text(&ladder, &plain());
    assert!(empty.contains("Steps are not judged"), "{empty}");
    assert!(page(&ladder).unwrap().contains("Steps are not judged"));
}

#[test]
fn steps_that_go_another_way_than_the_source_are_named() {
    let mut other = ladder();
    // The source says that the last step made full worse: here it made it better.
    let text = text(&other, &plain());
    assert!(text.contains("Of 2 steps whose maxima the source gives, 1 go the same way here"), "{text}");
    assert!(text.contains("- rt / same, full: the source's maximum 56 to 90 (1.61 x), here 0."), "{text}");
    other.rungs.iter_mut().for_each(|rung| rung.published = None);
    assert!(!report::ladder::text(&other, &plain()).contains("whose maxima the source gives"));
}

#[test]
fn the_page_draws_every_rung_under_every_load_and_needs_no_network() {
    let page = page(&ladder()).unwrap();
    for words in ["Three kernels", "rt / plain", "Worst cases", "S0, table A.9", "data-unit=\"instructions\""]
    {
        assert!(page.contains(words), "{words}");
    }
    // One plot of ranges of ours and one of the source's, one tail a load; each for a wide and for a narrow screen.
    assert_eq!(page.matches("role=\"img\"").count(), 2 * (2 + 2));
    assert_eq!(page.matches("class=\"draw ").count(), 2 * 3 * 2 * 5, "a stroke a seed");
    // The name of SVG's own names is no address that is asked.
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count());
    let mut strange = ladder();
    strange.title = "<script>".into();
    strange.rungs[0].title = "<img>".into();
    let page = report::ladder::page(&strange).unwrap();
    assert!(!page.contains("<img>") && !page.contains("<h1><script>"));
}
