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

/// What was judged wrong, passed and not understood of each part when it was last looked at, at most; README.md has what the first
/// results were. `a` and `d` to `q` were mended by, `b` and
/// `c` never.
const PARTS: [(&str, &str, [usize; 3], bool); 17] = [
    ("a", include_str!("../corpus/a.txt"), [0, 0, 0], true),
    ("b", include_str!("../corpus/b.txt"), [0, 0, 1], false),
    ("c", include_str!("../corpus/c.txt"), [0, 0, 0], false),
    ("d", include_str!("../corpus/d.txt"), [0, 0, 0], true),
    ("e", include_str!("../corpus/e.txt"), [0, 1, 0], true),
    ("f", include_str!("../corpus/f.txt"), [0, 0, 0], true),
    ("g", include_str!("../corpus/g.txt"), [0, 0, 0], true),
    ("h", include_str!("../corpus/h.txt"), [1, 1, 0], true),
    ("i", include_str!("../corpus/i.txt"), [0, 2, 0], true),
    ("j", include_str!("../corpus/j.txt"), [0, 0, 0], true),
    ("k", include_str!("../corpus/k.txt"), [0, 1, 0], true),
    ("l", include_str!("../corpus/l.txt"), [0, 1, 2], true),
    ("m", include_str!("../corpus/m.txt"), [0, 0, 0], true),
    ("n", include_str!("../corpus/n.txt"), [0, 0, 0], true),
    ("o", include_str!("../corpus/o.txt"), [0, 0, 0], true),
    ("p", include_str!("../corpus/p.txt"), [0, 0, 0], true),
    ("q", include_str!("../corpus/q.txt"), [0, 0, 0], true),
];

#[test]
fn each_part_is_judged_no_worse_than_it_was() {
    let mut worse = Vec::new();
    for (name, text, most, shown) in PARTS {
        let (accused, missed, unknown) = judged(text, shown);
        println!("{name}: accused {accused}, missed {missed}, not understood {unknown}");
        let found = [accused, missed, unknown];
        if found.iter().zip(&most).any(|(found, most)| found > most) {
            worse.push(format!("{name}: {found:?}, was {most:?}"));
        }
    }
    assert!(worse.is_empty(), "{worse:?}");
}
