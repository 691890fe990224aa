//! Recipes with a known truth (tests/corpus/README.md), those that may be mended by.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use audit::Severity;
use audit::recipe::{Target, examine};

#[path = "../corpus/parsed.rs"]
mod parsed;

/// Right ones judged wrong, wrong ones passed, not understood. What may not be mended by is not shown.
fn judged(text: &str, shown: bool) -> (usize, usize, usize) {
    let (mut accused, mut missed, mut unknown) = (0, 0, 0);
    for case in parsed::cases(text).unwrap() {
        let examination =
            examine(&case.text, Target { version: case.kernel.parse().ok(), ..Target::default() });
        let worst = |severity| examination.remarks.iter().any(|remark| remark.severity == severity);
        let (fails, warns) = (worst(Severity::Error), worst(Severity::Warning));
        let what = match (fails || examination.is_understood(), case.right) {
            (false, _) => {
                unknown += 1;
                "not understood"
            }
            (true, true) if fails || warns => {
                accused += 1;
                "right, accused"
            }
            (true, false) if !fails => {
                missed += 1;
                "wrong, passed"
            }
            _ => continue,
        };
        if !shown {
            continue;
        }
        println!("-- {what} ({}, {})\n{}", case.kernel, case.why, case.text.trim_end());
        examination
            .remarks
            .iter()
            .for_each(|remark| println!("   >> {} | {}", remark.excerpt, remark.message));
    }
    (accused, missed, unknown)
}

/// The half that was mended by stays as good as it became.
#[test]
fn half_a_is_judged_by_its_truth() {
    let (accused, missed, unknown) = judged(include_str!("../corpus/a.txt"), true);
    println!("accused {accused}, missed {missed}, not understood {unknown}");
    assert!(accused == 0 && missed <= 2 && unknown <= 1, "{accused} {missed} {unknown}");
}

/// The half that nothing was mended by: its first result stands in the corpus' README.
#[test]
fn half_b_is_judged_no_worse_than_at_first() {
    let (accused, missed, unknown) = judged(include_str!("../corpus/b.txt"), false);
    println!("accused {accused}, missed {missed}, not understood {unknown}");
    assert!(accused == 0 && missed <= 6 && unknown <= 2, "{accused} {missed} {unknown}");
}

/// Written after the tables were done, and mended by since.
#[test]
fn part_d_is_judged_by_its_truth() {
    let (accused, missed, unknown) = judged(include_str!("../corpus/d.txt"), true);
    println!("accused {accused}, missed {missed}, not understood {unknown}");
    assert!(accused == 0 && missed <= 1 && unknown == 0, "{accused} {missed} {unknown}");
}

/// Written after part d was mended by. Nothing that it passes was mended by it.
#[test]
fn part_e_is_judged_no_worse_than_at_first() {
    let (accused, missed, unknown) = judged(include_str!("../corpus/e.txt"), true);
    println!("accused {accused}, missed {missed}, not understood {unknown}");
    assert!(accused == 0 && missed <= 1 && unknown == 0, "{accused} {missed} {unknown}");
}

/// Written after the first result of half b, and not mended by either.
#[test]
fn the_fresh_part_is_judged_no_worse_than_at_first() {
    let (accused, missed, unknown) = judged(include_str!("../corpus/c.txt"), false);
    println!("accused {accused}, missed {missed}, not understood {unknown}");
    assert!(accused == 0 && missed <= 1 && unknown == 0, "{accused} {missed} {unknown}");
}

/// Written by who had not seen the tables, and mended by since its first result.
#[test]
fn part_f_is_judged_by_its_truth() {
    let (accused, missed, unknown) = judged(include_str!("../corpus/f.txt"), true);
    println!("accused {accused}, missed {missed}, not understood {unknown}");
    assert!(accused == 0 && missed <= 1 && unknown == 0, "{accused} {missed} {unknown}");
}

/// Written by the same, run once part f was mended by, and mended by in part since.
#[test]
fn part_g_is_judged_better_than_at_first() {
    let (accused, missed, unknown) = judged(include_str!("../corpus/g.txt"), true);
    println!("accused {accused}, missed {missed}, not understood {unknown}");
    assert!(accused == 0 && missed <= 22 && unknown <= 9, "{accused} {missed} {unknown}");
}
