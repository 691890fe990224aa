//! Any counters and traces of activity are answered: what is counted is counted on the CPUs in question, and never less
//! than before.
//!
//! The texts of /proc/softirqs, /proc/schedstat, trace_pipe and a histogram stand one after the other, with an empty line
//! between them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use machine::activity::{Activity, Tally};
use sysroot::{SysRoot, Tree};
use trace::{Item, Symbols, counted, text};
use units::CpuList;

fuzz_target!(|input: &str| {
    let mut parts = input.splitn(4, "\n\n");
    let mut next = || parts.next().unwrap_or_default();
    let (softirqs, schedstat, trace, histogram) = (next(), next(), next(), next());
    let cpus: CpuList = "1-2".parse().expect("a list");
    let file = |path: &str, text: &str| (path.to_owned(), text.as_bytes().to_vec());
    let files = [file("/proc/softirqs", softirqs), file("/proc/schedstat", schedstat)];
    let root = SysRoot::of(Tree::whole(files));
    let (before, after) = (Activity::default(), Activity::take(&root, &cpus));
    let mut tally = Tally::new(cpus.clone());
    let mut sum = 0_u64;
    for step in 0..4 {
        match step {
            0 => tally.add(&before, &after),
            1 => tally.add(&after, &after),
            2 => {
                for item in trace.lines().filter_map(text::parse) {
                    if let Item::Event(event) = item {
                        counted::add(&mut tally, &event, &Symbols::default());
                    }
                }
            }
            _ => {
                counted::add_histogram(&mut tally, histogram);
            }
        }
        let residues = tally.residues();
        assert!(residues.iter().all(|residue| cpus.contains(residue.cpu) && residue.events > 0));
        assert!(tally.named().len() <= residues.len());
        let now = residues.iter().fold(0_u64, |sum, residue| sum.saturating_add(residue.events));
        assert!(now >= sum, "{now} after {sum}");
        sum = now;
    }
});
