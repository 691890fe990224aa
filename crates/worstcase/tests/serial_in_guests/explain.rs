//! A delay that we make in a guest is explained by what we did.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use guest_tests::Guests;
use record::{Class, Hit, Record};
use sys::clock::Clock;
use sys::schedule::{self, Scheduling};
use units::CpuList;

const MS: u64 = 1_000_000;
/// So long that no pause of the host is taken for it.
const HELD: u64 = 60 * MS;

static RT: Guests = Guests::new("debian-6.1-rt-amd64", "quiet no_timer_check")
    .processors(2)
    .programs(&[env!("CARGO_BIN_EXE_worstcase")]);

/// What is done to CPU 1 while wake-ups are measured there.
#[derive(Clone, Copy)]
struct Hog {
    priority: &'static str,
    held: u64,
    pause: u64,
}

/// Ends the hog, whatever ends the test: its scope waits for it.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The hits of a traced run on CPU 1 beside a hog.
fn explained(hog: Hog) -> Vec<Hit> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let body = || {
            schedule::set_affinity(0, &"1".parse::<CpuList>().unwrap()).unwrap();
            schedule::set(Scheduling::Fifo(hog.priority.parse().unwrap())).unwrap();
            while !stop.load(Ordering::Relaxed) {
                let _ = Clock::Monotonic.sleep_until(Clock::Monotonic.now() + hog.pause);
                let end = Clock::Monotonic.now() + hog.held;
                while Clock::Monotonic.now() < end && !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        std::thread::Builder::new().name("the-hog".to_owned()).spawn_scoped(scope, body).unwrap();
        let _ends = Ends(&stop);
        let arguments = ["bench", "--loads", "idle", "--cpus", "1", "--interval", "10ms", "--duration", "3s"];
        let output =
            Command::new("worstcase").args(arguments).args(["--explain=3", "--out", "run"]).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        let record: Record =
            record::store::load("run".as_ref()).unwrap_or_else(|error| panic!("{error}: {words}"));
        let _ = std::fs::remove_dir_all("run");
        println!("{}", String::from_utf8_lossy(&output.stdout));
        record.explanations.into_iter().next().unwrap_or_else(|| panic!("{words}")).hits
    })
}

/// Each hit that is as long as what was done is explained by it, with most of its latency.
fn assert_explained(hits: &[Hit], at_least: u64, class: Class, culprit: &str) {
    let long: Vec<&Hit> = hits.iter().filter(|hit| hit.latency.0 >= at_least).collect();
    assert!(!long.is_empty(), "none of {:?}", hits.iter().map(|hit| hit.latency).collect::<Vec<_>>());
    for hit in long {
        let cause = hit.main_cause().unwrap();
        assert_eq!(cause.class, class, "{hit:#?}");
        assert!(cause.culprit.starts_with(culprit), "{cause:?}");
        assert!(cause.length.0 * 100 >= hit.latency.0 * 90, "{hit:#?}");
    }
}

#[test]
fn a_hog_is_named_on_a_real_time_kernel() {
    RT.run(|| {
        let hits = explained(Hog { priority: "99", held: HELD, pause: 237 * MS });
        assert_explained(&hits, HELD / 2, Class::Rival, "the-hog [");
    });
}
