use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use experiment::Block;
use record::Request;
use record::time::UtcTime;

use super::{LadderFile, LadderPlan};
use crate::bench::{Guests, Means, Observer};
use crate::boot::{Failure, Guest, Outcome};
use crate::kept::CONSOLE;
use crate::kernels::Kernel;
use crate::replay::{Missing, Replay};
use crate::scripted::{Scripted, kernel, latencies};
use crate::several::Booter;
use crate::state::{FILE, Kind, Plan, State};
use crate::{Error, MadeOf, parameters};

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

/// What has ended, and after how many ends the run is to be stopped.
#[derive(Default)]
struct Ear {
    ended: Vec<(String, bool)>,
    stop_after: Option<usize>,
}

impl Observer for Ear {
    fn ended(&mut self, name: &str, _: (usize, usize), result: Result<Duration, &Error>) {
        self.ended.push((name.to_owned(), result.is_ok()));
    }

    fn stop(&mut self) -> bool {
        self.stop_after.is_some_and(|count| self.ended.len() >= count)
    }
}

/// A ladder in its directory.
struct Run {
    state: State<LadderPlan>,
    directory: PathBuf,
}

impl Run {
    fn begin(directory: &Path) -> Result<Self, Error> {
        let run = Self { state: state(), directory: directory.to_path_buf() };
        run.state.begin(directory).map(|()| run)
    }

    fn resume(directory: &Path) -> Result<Self, Error> {
        Ok(Self { state: State::load(directory, Kind::Ladder)?, directory: directory.to_path_buf() })
    }

    fn with(
        &mut self,
        booter: &dyn Booter,
        kernels: &BTreeMap<String, Kernel>,
        jobs: usize,
        ear: &mut Ear,
    ) -> Result<bool, Error> {
        let means = Means {
            booter,
            kernels: &mut |needed| Ok(kernels[needed.name()].clone()),
            binary: &|_| Ok("its-place".into()),
            jobs,
            observer: ear,
        };
        let blocks = self.state.plan.blocks();
        Guests::of(&mut self.state, &self.directory, means).measure_all(&blocks)
    }

    /// Why guests have no record, by their places; an empty text where they have not run.
    fn missing(&self) -> Vec<(String, String)> {
        let mut replay = Replay::of(&self.state, &self.directory);
        replay.read(&self.state.plan.blocks()).unwrap();
        let why = |missing: Missing| (missing.place, missing.failure.unwrap_or_default());
        replay.missing.into_iter().map(why).collect()
    }
}

fn kernels() -> BTreeMap<String, Kernel> {
    ["plain", "rt"].into_iter().map(|name| (name.to_owned(), kernel(name))).collect()
}

fn state() -> State<LadderPlan> {
    State::new(LadderPlan { ladder: LadderFile::parse(LADDER).unwrap() }, "0", UtcTime(0))
}

fn good() -> Scripted {
    Scripted::new(|_, _, seed| Ok(latencies(4_000, 50_000, seed)))
}

fn run(run: &mut Run, booter: &Scripted, ear: &mut Ear) -> Result<bool, Error> {
    run.with(booter, &kernels(), 2, ear)
}

#[test]
fn every_rung_is_measured_with_every_seed_and_its_record_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut begun = Run::begin(directory.path()).unwrap();
    let (booter, mut ear) = (good(), Ear::default());
    assert!(run(&mut begun, &booter, &mut ear).unwrap());
    assert_eq!(booter.count(), 6);
    assert!(ear.ended.iter().all(|(_, done)| *done) && ear.ended.len() == 6);
    for cell in ["plain/seed-1", "plain/seed-3", "rt/seed-2"] {
        let place = directory.path().join(cell);
        let record = record::store::load(&place).unwrap();
        assert!(cell.ends_with(&format!("seed-{}", record.header.plan.seed.unwrap())));
        assert_eq!(fs::read_to_string(place.join(CONSOLE)).unwrap(), "Booting\n");
        assert!(place.join("sub/more").is_file());
    }
    let saved = Run::resume(directory.path()).unwrap();
    assert_eq!((&saved.state, saved.missing().len()), (&begun.state, 0));
    let text = fs::read_to_string(directory.path().join(FILE)).unwrap();
    assert!(text.contains("QEMU 7.2"), "{text}");
    assert!(!text.contains("its-place") && !text.contains("nowhere"), "no path of this machine");
}

#[test]
fn a_guest_that_fails_is_reported_and_does_not_stop_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let mut begun = Run::begin(directory.path()).unwrap();
    let booter = Scripted::new(|guest, load, seed| match (guest.kernel.name.as_str(), load, seed) {
        ("rt", "cpu", 2) => Err("the guest hangs".into()),
        _ => Ok(latencies(4_000, 50_000, seed)),
    });
    assert!(run(&mut begun, &booter, &mut Ear::default()).unwrap());
    let failures = begun.missing();
    assert_eq!((failures.len(), failures[0].0.as_str()), (1, "rt/seed-2"));
    let why = "the guest hangs\nwhat came back, with its console: rt/seed-2.failed";
    assert_eq!(failures[0].1, why, "{failures:?}");
    let left = directory.path().join("rt/seed-2.failed");
    for (file, text) in [
        ("console.txt", "Booting\n"),
        ("stderr.txt", "said before the end\n"),
        ("failure.txt", "the guest hangs\n"),
    ] {
        assert_eq!(fs::read_to_string(left.join(file)).unwrap(), text);
    }
    // It is tried again, and only it.
    let (mut again, booter) = (Run::resume(directory.path()).unwrap(), good());
    assert!(run(&mut again, &booter, &mut Ear::default()).unwrap());
    assert_eq!((booter.count(), again.missing().len()), (1, 0));
    assert!(!left.exists(), "what failed before is no longer of interest");
}

#[test]
fn a_guest_that_measured_too_little_has_failed_and_leaves_its_traces() {
    let directory = tempfile::tempdir().unwrap();
    let mut begun = Run::begin(directory.path()).unwrap();
    struct Half;
    impl Booter for Half {
        fn made_of(&self, guest: &Guest) -> Result<MadeOf, Error> {
            good().made_of(guest)
        }

        fn boot(&self, guest: &Guest, stop: &dyn Fn() -> bool) -> Result<Outcome, Failure> {
            let mut fewer = guest.clone();
            let asked: Request = serde_json::from_str(guest.command[2].to_str().unwrap()).unwrap();
            let asked = Request { loads: vec!["idle".into()], ..asked };
            fewer.command[2] = serde_json::to_string(&asked).unwrap().into();
            good().boot(&fewer, stop)
        }
    }
    assert!(begun.with(&Half, &kernels(), 1, &mut Ear::default()).unwrap());
    let missing = begun.missing();
    assert_eq!(missing.len(), 6);
    for (_, why) in missing {
        assert!(
            why.contains("did not measure cpu to the end") && why.contains("said before the end"),
            "{why}"
        );
    }
    assert!(directory.path().join("rt/seed-1.failed/console.txt").is_file());
}

#[test]
fn what_was_finished_before_an_interruption_is_kept_and_the_rest_is_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let mut begun = Run::begin(directory.path()).unwrap();
    let mut ear = Ear { stop_after: Some(2), ..Ear::default() };
    assert!(!begun.with(&good(), &kernels(), 1, &mut ear).unwrap());
    let done = ear.ended.len();
    assert!((2..6).contains(&done), "{done}");
    let mut again = Run::resume(directory.path()).unwrap();
    assert_eq!(again.missing().len(), 6 - done);
    let (booter, mut ear) = (good(), Ear::default());
    assert!(run(&mut again, &booter, &mut ear).unwrap());
    assert_eq!((booter.count(), again.missing().len()), (6 - done, 0));
}

#[test]
fn more_seeds_are_added_to_a_ladder_that_is_done() {
    let directory = tempfile::tempdir().unwrap();
    let mut begun = Run::begin(directory.path()).unwrap();
    run(&mut begun, &good(), &mut Ear::default()).unwrap();
    begun.state.plan.ladder.seeds = 5;
    assert_eq!(begun.missing().len(), 4);
}

#[test]
fn a_directory_that_holds_something_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("mine"), "").unwrap();
    let error = Run::begin(directory.path()).err().unwrap();
    assert!(error.message.contains("not empty") && error.hint.unwrap().contains("--resume"));
    assert!(Run::resume(directory.path()).err().unwrap().message.contains(FILE));
}

/// As the version before wrote it: a cell for each guest, with its state.
#[test]
fn a_ladder_of_a_former_version_that_is_done_is_shown_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut begun = Run::begin(directory.path()).unwrap();
    run(&mut begun, &good(), &mut Ear::default()).unwrap();
    let mut former = serde_json::to_value(&begun.state).unwrap();
    let fields = former.as_object_mut().unwrap();
    fields.remove("kind");
    fields["schema_version"] = 1.into();
    fields.insert("emulator".into(), "QEMU 7.2".into());
    let cell = serde_json::json!({
        "rung": "plain", "seed": 1, "record": "plain/seed-1", "state": { "done": { "seconds": 1.5 } }
    });
    fields.insert("cells".into(), vec![cell].into());
    fs::remove_file(directory.path().join(FILE)).unwrap();
    fs::write(directory.path().join("ladder.json"), former.to_string()).unwrap();
    let again = Run::resume(directory.path()).unwrap();
    assert_eq!((&again.state, again.missing().len()), (&begun.state, 0));
}

#[test]
fn what_cannot_be_kept_ends_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let mut begun = Run::begin(directory.path()).unwrap();
    fs::write(directory.path().join("plain"), "a file where a directory is to be").unwrap();
    let error = run(&mut begun, &good(), &mut Ear::default()).unwrap_err();
    assert!(error.message.contains("plain"), "{error}");
}

/// What is changed of the guests between the two halves of a ladder, and how it is refused.
fn resumed_with(change: impl FnOnce(&mut Scripted, &mut BTreeMap<String, Kernel>)) -> Result<bool, Error> {
    let directory = tempfile::tempdir().unwrap();
    let mut begun = Run::begin(directory.path()).unwrap();
    let mut ear = Ear { stop_after: Some(2), ..Ear::default() };
    begun.with(&good(), &kernels(), 1, &mut ear).unwrap();
    let mut again = Run::resume(directory.path()).unwrap();
    let (mut booter, mut kernels) = (good(), kernels());
    change(&mut booter, &mut kernels);
    let before = fs::read(directory.path().join(FILE)).unwrap();
    let result = again.with(&booter, &kernels, 1, &mut Ear::default());
    if result.is_err() {
        assert_eq!(booter.count(), 0, "no guest runs");
        assert_eq!(fs::read(directory.path().join(FILE)).unwrap(), before, "nothing is written");
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
    let mut begun = Run::begin(directory.path()).unwrap();
    let mut ear = Ear { stop_after: Some(2), ..Ear::default() };
    begun.with(&good(), &kernels(), 1, &mut ear).unwrap();
    let mut again = Run::resume(directory.path()).unwrap();
    again.state.kernels.values_mut().for_each(|kernel| kernel.made_of = None);
    let error = again.with(&good(), &kernels(), 1, &mut Ear::default()).unwrap_err();
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
    let mut begun = Run::begin(directory.path()).unwrap();
    let mut ear = Ear::default();
    let error = begun.with(&Rebuilt(0.into()), &kernels(), 1, &mut ear).unwrap_err();
    assert!(error.message.contains("the guest's worstcase had SHA-256"), "{error}");
    assert_eq!(ear.ended.len(), 2, "what ran before is kept");
}

#[test]
fn only_where_the_file_asks_for_it_guests_have_a_drawn_parameter_each() {
    let words = |asked: &str| -> Vec<Vec<String>> {
        let text = LADDER.replacen("seeds = 3\n", &format!("seeds = 3\n{asked}"), 1);
        let plan = LadderPlan { ladder: LadderFile::parse(&text).unwrap() };
        let guest = |block: &Block| {
            plan.guest(&block.arm, block.seed, &kernel("plain"), Path::new("worstcase")).unwrap().words
        };
        plan.blocks().iter().map(guest).collect()
    };
    assert!(words("").iter().all(Vec::is_empty));
    let drawn = words("draw-parameter = true\n");
    let different: BTreeSet<&Vec<String>> = drawn.iter().collect();
    assert_eq!(different.len(), 6, "{drawn:?}");
    assert!(drawn.iter().all(|words| words.len() == 1 && parameters::is_ours(&words[0])), "{drawn:?}");
}
