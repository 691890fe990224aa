use std::fs;
use std::path::Path;

use record::time::UtcTime;

use super::*;
use crate::MadeOf;
use crate::kept::CONSOLE;
use crate::ladder::LadderFile;
use crate::scripted::{Scripted, kernel, latencies};

const LADDER: &str = r#"
name = "small"
title = "Two kernels"
loads = ["idle", "cpu"]
duration = "2s"
seeds = 3

[[rung]]
name = "plain"
title = "The first"
kernel = "plain"

[[rung]]
name = "rt"
title = "The second"
kernel = "rt"
"#;

/// What was told, and after how many ends the run is to be stopped.
#[derive(Default)]
struct Ear {
    ended: Vec<(String, bool)>,
    stop_after: Option<usize>,
}

impl Told for Ear {
    fn begun(&mut self, _: &Cell) {}

    fn ended(&mut self, cell: &Cell, _: usize) {
        self.ended.push((cell.record.clone(), matches!(cell.state, CellState::Done { .. })));
    }

    fn stop(&mut self) -> bool {
        self.stop_after.is_some_and(|count| self.ended.len() >= count)
    }
}

fn kernels() -> BTreeMap<String, Kernel> {
    ["plain", "rt"].into_iter().map(|name| (name.to_owned(), kernel(name))).collect()
}

fn state() -> State {
    State::new(LadderFile::parse(LADDER).unwrap(), &kernels(), "0", UtcTime(0))
}

fn good() -> Scripted {
    Scripted::new(|_, _, seed| Ok(latencies(4_000, 50_000, seed)))
}

fn run(course: &mut Course, booter: &Scripted, ear: &mut Ear) -> Result<bool, Error> {
    course.run(booter, &kernels(), Path::new("its-place"), 2, ear)
}

#[test]
fn every_rung_is_measured_with_every_seed_and_its_record_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut course = Course::begin(state(), directory.path()).unwrap();
    let (booter, mut ear) = (good(), Ear::default());
    assert!(run(&mut course, &booter, &mut ear).unwrap());
    assert_eq!(booter.count(), 6);
    assert!(ear.ended.iter().all(|(_, done)| *done) && ear.ended.len() == 6);
    for cell in ["plain/seed-1", "plain/seed-3", "rt/seed-2"] {
        let place = directory.path().join(cell);
        let record = record::store::load(&place).unwrap();
        assert!(cell.ends_with(&format!("seed-{}", record.header.plan.seed.unwrap())));
        assert_eq!(fs::read_to_string(place.join(CONSOLE)).unwrap(), "Booting\n");
        assert!(place.join("sub/more").is_file());
    }
    let saved = State::load(directory.path()).unwrap();
    assert_eq!(saved, course.state);
    assert!(saved.waiting().is_empty());
    assert_eq!(saved.emulator.as_deref(), Some("QEMU 7.2"));
    let text = fs::read_to_string(directory.path().join(State::FILE)).unwrap();
    assert!(!text.contains("its-place") && !text.contains("nowhere"), "no path of this machine");
}

#[test]
fn a_guest_that_fails_is_told_and_does_not_stop_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let mut course = Course::begin(state(), directory.path()).unwrap();
    let booter = Scripted::new(|guest, load, seed| match (guest.kernel.name.as_str(), load, seed) {
        ("rt", "cpu", 2) => Err("the guest hangs".into()),
        _ => Ok(latencies(4_000, 50_000, seed)),
    });
    assert!(run(&mut course, &booter, &mut Ear::default()).unwrap());
    let failed = |course: &Course| -> Vec<String> {
        let failed = |cell: &Cell| match &cell.state {
            CellState::Failed(why) => Some(format!("{}: {why}", cell.record)),
            _ => None,
        };
        course.state.cells.iter().filter_map(failed).collect()
    };
    let failures = failed(&course);
    assert!(
        failures[0]
            .starts_with("rt/seed-2: the guest hangs\nwhat came back, with its console: rt/seed-2.failed"),
        "{failures:?}"
    );
    assert_eq!(failures.len(), 1);
    let left = directory.path().join("rt/seed-2.failed");
    for (file, text) in [
        ("console.txt", "Booting\n"),
        ("stderr.txt", "said before the end\n"),
        ("failure.txt", "the guest hangs\n"),
    ] {
        assert_eq!(fs::read_to_string(left.join(file)).unwrap(), text);
    }
    // It is tried again, and only it.
    let (mut again, booter) = (Course::resume(directory.path()).unwrap(), good());
    assert!(run(&mut again, &booter, &mut Ear::default()).unwrap());
    assert_eq!((booter.count(), failed(&again).len()), (1, 0));
    assert!(!left.exists(), "what failed before is no longer of interest");
}

#[test]
fn a_guest_that_measured_too_little_has_failed_and_leaves_its_traces() {
    let directory = tempfile::tempdir().unwrap();
    let mut course = Course::begin(state(), directory.path()).unwrap();
    struct Half;
    impl Booter for Half {
        fn made_of(&self, guest: &Guest) -> Result<MadeOf, Error> {
            good().made_of(guest)
        }

        fn boot(&self, guest: &Guest, stop: &dyn Fn() -> bool) -> Result<Outcome, Failure> {
            let mut fewer = guest.clone();
            let loads = fewer.command.iter().position(|word| word == "--loads").unwrap() + 1;
            fewer.command[loads] = "idle".into();
            good().boot(&fewer, stop)
        }
    }
    assert!(course.run(&Half, &kernels(), Path::new("its-place"), 1, &mut Ear::default()).unwrap());
    for cell in &course.state.cells {
        let CellState::Failed(why) = &cell.state else { panic!("{cell:?}") };
        assert!(
            why.contains("did not measure cpu to the end") && why.contains("said before the end"),
            "{why}"
        );
    }
    assert!(directory.path().join("rt/seed-1/console.txt").is_file());
}

#[test]
fn what_was_finished_before_an_interruption_is_kept_and_the_rest_is_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let mut course = Course::begin(state(), directory.path()).unwrap();
    let mut ear = Ear { stop_after: Some(2), ..Ear::default() };
    assert!(!course.run(&good(), &kernels(), Path::new("its-place"), 1, &mut ear).unwrap());
    let done = ear.ended.len();
    assert!((2..6).contains(&done), "{done}");
    let mut again = Course::resume(directory.path()).unwrap();
    assert_eq!(again.state.waiting().len(), 6 - done);
    let (booter, mut ear) = (good(), Ear::default());
    assert!(run(&mut again, &booter, &mut ear).unwrap());
    assert_eq!((booter.count(), again.state.waiting().len()), (6 - done, 0));
}

#[test]
fn more_seeds_are_added_to_a_ladder_that_is_done() {
    let directory = tempfile::tempdir().unwrap();
    let mut course = Course::begin(state(), directory.path()).unwrap();
    run(&mut course, &good(), &mut Ear::default()).unwrap();
    course.state.ladder.seeds = 5;
    course.state.plan_cells();
    assert_eq!(course.state.waiting().len(), 4);
}

#[test]
fn a_directory_that_holds_something_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("mine"), "").unwrap();
    let error = Course::begin(state(), directory.path()).unwrap_err();
    assert!(error.message.contains("not empty") && error.hint.unwrap().contains("--resume"));
    assert!(Course::resume(directory.path()).unwrap_err().message.contains("ladder.json"));
}

#[test]
fn a_state_that_names_paths_of_its_own_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut state = state();
    state.cells[0].record = "../elsewhere".into();
    state.save(directory.path()).unwrap();
    assert!(Course::resume(directory.path()).unwrap_err().message.contains("its cells"));
}

#[test]
fn what_cannot_be_kept_ends_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let mut course = Course::begin(state(), directory.path()).unwrap();
    fs::write(directory.path().join("plain"), "a file where a directory is to be").unwrap();
    let error = run(&mut course, &good(), &mut Ear::default()).unwrap_err();
    assert!(error.message.contains("plain"), "{error}");
}

/// What is changed of the guests between the two halves of a ladder, and how it is refused.
fn resumed_with(change: impl FnOnce(&mut Scripted, &mut BTreeMap<String, Kernel>)) -> Result<bool, Error> {
    let directory = tempfile::tempdir().unwrap();
    let mut course = Course::begin(state(), directory.path()).unwrap();
    let mut ear = Ear { stop_after: Some(2), ..Ear::default() };
    course.run(&good(), &kernels(), Path::new("its-place"), 1, &mut ear).unwrap();
    let mut again = Course::resume(directory.path()).unwrap();
    let (mut booter, mut kernels) = (good(), kernels());
    change(&mut booter, &mut kernels);
    let before = fs::read(directory.path().join(State::FILE)).unwrap();
    let result = again.run(&booter, &kernels, Path::new("its-place"), 1, &mut Ear::default());
    if result.is_err() {
        assert_eq!(booter.count(), 0, "no guest runs");
        assert_eq!(fs::read(directory.path().join(State::FILE)).unwrap(), before, "nothing is written");
    }
    result
}

#[test]
fn a_ladder_does_not_go_on_with_another_emulator_worstcase_or_kernel() {
    assert!(resumed_with(|_, _| {}).unwrap());
    let emulator = resumed_with(|booter, _| booter.emulator = "QEMU 10.0".into()).unwrap_err();
    assert!(emulator.message.contains("was QEMU 7.2 and is QEMU 10.0"), "{emulator}");
    assert!(emulator.hint.unwrap().contains("begin anew"));
    let binary = resumed_with(|booter, _| booter.binary = "another".into()).unwrap_err();
    assert!(binary.message.contains("the guest's worstcase had SHA-256"), "{binary}");
    let kernel = resumed_with(|_, kernels| kernels.get_mut("rt").unwrap().origin = "another image".into())
        .unwrap_err();
    assert!(kernel.message.contains("the kernel's image had SHA-256"), "{kernel}");
}

#[test]
fn a_ladder_of_a_version_that_kept_no_hashes_does_not_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut course = Course::begin(state(), directory.path()).unwrap();
    let mut ear = Ear { stop_after: Some(2), ..Ear::default() };
    course.run(&good(), &kernels(), Path::new("its-place"), 1, &mut ear).unwrap();
    let mut again = Course::resume(directory.path()).unwrap();
    again.state.kernels.values_mut().for_each(|kernel| kernel.made_of = None);
    let error = again.run(&good(), &kernels(), Path::new("its-place"), 1, &mut Ear::default()).unwrap_err();
    assert!(error.message.contains("did not keep what its guests were made of"), "{error}");
}

/// The worstcase is built again while guests run.
#[test]
fn a_guest_that_is_made_of_something_else_ends_the_ladder() {
    struct Rebuilt(std::sync::atomic::AtomicUsize);
    impl Booter for Rebuilt {
        fn made_of(&self, guest: &Guest) -> Result<MadeOf, Error> {
            good().made_of(guest)
        }

        fn boot(&self, guest: &Guest, stop: &dyn Fn() -> bool) -> Result<Outcome, Failure> {
            let mut booter = good();
            if self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= 2 {
                booter.binary = "rebuilt".into();
            }
            booter.boot(guest, stop)
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let mut course = Course::begin(state(), directory.path()).unwrap();
    let mut ear = Ear::default();
    let error = course.run(&Rebuilt(0.into()), &kernels(), Path::new("its-place"), 1, &mut ear).unwrap_err();
    assert!(error.message.contains("the guest's worstcase had SHA-256"), "{error}");
    assert_eq!(ear.ended.len(), 2, "what ran before is kept");
}
