use std::fs;
use std::path::{Path, PathBuf};

use experiment::Effect;
use experiment::bisect::{Answer, Doubt, Outcome, bisect, name};
use record::time::UtcTime;

use super::{BisectPlan, Subject};
use crate::Error;
use crate::bench::{Guests, Means, Observer};
use crate::kept;
use crate::kernels::Needed;
use crate::replay::Replay;
use crate::scripted::{Scripted, kernel, latencies};
use crate::state::{Kind, State};

/// A guest's tail, where nothing is wrong with it.
const CALM: u64 = 10_000;

#[derive(Default)]
struct Ear {
    begun: usize,
    stop_after: Option<usize>,
}

impl Observer for Ear {
    fn begun(&mut self, _: &str, _: (usize, usize)) {
        self.begun += 1;
    }

    fn stop(&mut self) -> bool {
        self.stop_after.is_some_and(|count| self.begun > count)
    }
}

/// A bisection in its directory.
struct Run {
    state: State<BisectPlan>,
    directory: PathBuf,
}

impl Run {
    fn begin(subject: Subject, directory: &Path) -> Result<Self, Error> {
        let state = State::new(BisectPlan::about(subject), "0", UtcTime(0));
        state.begin(directory)?;
        Ok(Self { state, directory: directory.to_path_buf() })
    }

    fn resume(directory: &Path) -> Result<Self, Error> {
        Ok(Self { state: State::load(directory, Kind::Bisection)?, directory: directory.to_path_buf() })
    }
}

fn ten_words() -> Subject {
    let words: Vec<String> = (1..=10).map(|number| format!("word{number}")).collect();
    Subject::words("k".into(), &["quiet".into()], &[vec!["quiet".into()], words].concat())
}

fn list(names: &str) -> Subject {
    Subject::Kernels { names: names.split(' ').map(str::to_owned).collect(), words: Vec::new() }
}

/// Guests whose tail is a function of their kernel and words.
fn guests(tail: impl Fn(&str, &[&str]) -> u64 + Sync + 'static) -> Scripted {
    Scripted::new(move |guest, _, seed| {
        let words: Vec<&str> = guest.words.iter().map(String::as_str).collect();
        match tail(&guest.kernel.name, &words) {
            0 => Err("kernel panicked: no root".into()),
            tail => Ok(latencies(4_000, tail, seed)),
        }
    })
}

fn run_in(run: &mut Run, booter: &Scripted, ear: &mut Ear) -> Result<Option<Answer>, Error> {
    let means = Means {
        booter,
        kernels: &mut |needed| match needed {
            Needed::Named(name) => Ok(kernel(name)),
            Needed::Built(build) => Ok(kernel(&build.fragments[0].text)),
        },
        binary: &|_| Ok("worstcase".into()),
        jobs: 2,
        observer: ear,
    };
    let bisection = run.state.plan.bisection();
    Ok(bisect(&bisection, &mut Guests::of(&mut run.state, &run.directory, means))?)
}

fn answer(subject: Subject, booter: &Scripted) -> Result<Answer, Error> {
    let directory = tempfile::tempdir().unwrap();
    let mut run = Run::begin(subject, directory.path()).unwrap();
    let answer = run_in(&mut run, booter, &mut Ear::default()).map(Option::unwrap)?;
    assert_eq!(plain(&replayed(&run)), plain(&answer), "its records have the same answer");
    Ok(answer)
}

/// What the records say.
fn replayed(run: &Run) -> Answer {
    bisect(&run.state.plan.bisection(), &mut Replay::of(&run.state, &run.directory)).unwrap().unwrap()
}

/// Without the words of failures, of which the first line is kept.
fn plain(answer: &Answer) -> Answer {
    let mut answer = answer.clone();
    answer.steps.iter_mut().for_each(|step| step.failure = step.failure.take().map(|_| String::new()));
    answer
}

fn readings(answer: &Answer) -> Vec<(String, Effect)> {
    answer.steps.iter().filter_map(|step| Some((name(&step.arm), step.reading?))).collect()
}

#[test]
fn a_planted_word_among_ten_is_found_and_confirmed_both_ways() {
    let booter = guests(|_, words| if words.contains(&"word7") { 40_000 } else { CALM });
    let answer = answer(ten_words(), &booter).unwrap();
    assert_eq!((answer.outcome, &answer.culprits[..]), (Outcome::Guilty, &[[6].into()][..]));
    let readings = readings(&answer);
    for expected in [
        ("control", Effect::NoneVisible),
        ("with-1-10", Effect::Harms),
        ("with-7", Effect::Harms),
        ("with-1-6,8-10", Effect::NoneVisible),
    ] {
        assert!(readings.contains(&(expected.0.to_owned(), expected.1)), "{expected:?}: {readings:?}");
    }
    let alone = answer.steps.iter().find(|step| name(&step.arm) == "with-7").unwrap();
    let (ratio, [low, high]) = alone.ratio.unwrap();
    assert!(low <= ratio && ratio <= high && (3.0..5.0).contains(&ratio), "{ratio}");
    let fresh = answer.steps.iter().filter(|step| step.fresh).count();
    assert!(answer.steps.len() - fresh <= 9, "halving: {readings:?}");
    assert_eq!(booter.count(), 5 * (answer.steps.len() + 2), "five guests an arm, the good ones included");
    let seeds: std::collections::BTreeSet<u64> =
        booter.booted.lock().unwrap().iter().map(|(_, seed)| *seed).collect();
    assert_eq!(seeds, (1..=10).collect(), "confirmed by guests of their own");
    assert!(booter.booted.lock().unwrap().iter().all(|(words, _)| words[0] == "quiet"));
}

#[test]
fn a_word_that_is_missing_is_found_too() {
    let subject = Subject::words("k".into(), &["calms".into(), "a".into()], &["b".into(), "a".into()]);
    let booter = guests(|_, words| if words.contains(&"calms") { CALM } else { 40_000 });
    let answer = answer(subject.clone(), &booter).unwrap();
    assert_eq!(answer.outcome, Outcome::Guilty);
    assert_eq!(subject.change(*answer.culprits[0].first().unwrap()), "without calms");
}

#[test]
fn ten_inert_words_leave_none_guilty_after_three_arms() {
    let booter = guests(|_, _| CALM);
    let answer = answer(ten_words(), &booter).unwrap();
    assert_eq!((answer.outcome, answer.culprits.len()), (Outcome::NoneGuilty, 0));
    assert_eq!(booter.count(), 15);
}

#[test]
fn two_words_that_only_act_together_are_reported_together() {
    let both = |words: &[&str]| words.contains(&"word2") && words.contains(&"word9");
    let booter = guests(move |_, words| if both(words) { 40_000 } else { CALM });
    let answer = answer(ten_words(), &booter).unwrap();
    assert_eq!((answer.outcome, &answer.culprits[..]), (Outcome::Guilty, &[[1, 8].into()][..]));
    let readings = readings(&answer);
    assert!(readings.contains(&("with-2".into(), Effect::NoneVisible)), "{readings:?}");
    assert!(readings.contains(&("with-9".into(), Effect::NoneVisible)), "{readings:?}");
}

#[test]
fn two_words_that_each_do_it_are_two_culprits() {
    let either = |words: &[&str]| words.contains(&"word2") || words.contains(&"word9");
    let booter = guests(move |_, words| if either(words) { 40_000 } else { CALM });
    let answer = answer(ten_words(), &booter).unwrap();
    assert_eq!(answer.outcome, Outcome::Guilty);
    assert_eq!(answer.culprits.iter().flatten().sum::<usize>(), 9);
    assert_eq!(answer.culprits.len(), 2);
}

#[test]
fn a_control_that_moves_makes_every_answer_worthless() {
    let moves = |words: &[&str]| words.iter().any(|word| word.starts_with("worstcase.control"));
    let booter = guests(move |_, words| if moves(words) || words.contains(&"word7") { 40_000 } else { CALM });
    let answer = answer(ten_words(), &booter).unwrap();
    assert_eq!(answer.outcome, Outcome::Inconclusive(Doubt::Control));
    assert_eq!(booter.count(), 15, "nothing is searched");
}

#[test]
fn a_bad_set_up_that_is_better_is_reported_so() {
    let answer = answer(ten_words(), &guests(|_, words| if words.len() > 8 { CALM } else { 40_000 }));
    assert_eq!(answer.unwrap().outcome, Outcome::Inconclusive(Doubt::Reversed));
}

#[test]
fn a_spread_that_hides_the_ratio_is_no_acquittal() {
    let booter = Scripted::new(|guest, _, seed| {
        let bad = guest.words.len() > 8 && seed % 2 == 0;
        Ok(latencies(4_000, if bad { 90_000 } else { CALM }, seed))
    });
    assert_eq!(answer(ten_words(), &booter).unwrap().outcome, Outcome::Inconclusive(Doubt::Spread));
}

#[test]
fn effects_below_the_ratio_that_add_up_are_found_together() {
    let tail = |words: &[&str]| CALM + 4_000 * (words.len() as u64 - 1);
    let answer = answer(ten_words(), &guests(move |_, words| tail(words))).unwrap();
    assert_ne!(answer.outcome, Outcome::NoneGuilty);
    assert!(answer.culprits.iter().all(|group| group.len() >= 3), "{:?}", answer.culprits);
}

#[test]
fn in_a_list_of_kernels_the_step_is_found() {
    let bad = |name: &str| ["d", "e", "f"].contains(&name);
    let booter = guests(move |name, _| if bad(name) { 40_000 } else { CALM });
    let answer = answer(list("a b c d e f"), &booter).unwrap();
    assert_eq!((answer.outcome, &answer.culprits[..]), (Outcome::Guilty, &[[2].into()][..]));
    let last = answer.steps.last().unwrap();
    assert_eq!((name(&last.arm), name(&last.against)), ("with-1-3".into(), "with-1-2".into()));
}

#[test]
fn a_kernel_that_does_not_boot_widens_the_answer() {
    let booter = guests(|name, _| match name {
        "c" => 0,
        "d" | "e" => 40_000,
        _ => CALM,
    });
    let answer = answer(list("a b c d e"), &booter).unwrap();
    assert_eq!((answer.outcome, &answer.culprits[..]), (Outcome::Guilty, &[[1, 2].into()][..]));
    let failed = answer.steps.iter().find(|step| step.reading.is_none()).unwrap();
    assert!(
        failed
            .failure
            .as_deref()
            .unwrap()
            .starts_with("kernel panicked: no root\nwhat came back, with its console: with-1-2/seed-")
    );
    let bad_is_broken = guests(|name, _| if name == "e" { 0 } else { CALM });
    let error = self::answer(list("a b c d e"), &bad_is_broken).unwrap_err();
    assert!(error.message.contains("with-1-4 cannot be measured: kernel panicked"), "{error}");
}

#[test]
fn a_list_that_grows_worse_step_by_step_has_no_culprit() {
    let tail = |name: &str| CALM + 3_000 * u64::from(name.as_bytes()[0] - b'a');
    let answer = answer(list("a b c d e f"), &guests(move |name, _| tail(name))).unwrap();
    assert_eq!(answer.outcome, Outcome::Inconclusive(Doubt::Unconfirmed));
}

#[test]
fn words_with_which_nothing_boots_are_passed_over() {
    // Without word1 beside it, word3 panics; the culprit is another.
    let booter = guests(|_, words| match words {
        _ if words.contains(&"word3") && !words.contains(&"word1") => 0,
        _ if words.contains(&"word9") => 40_000,
        _ => CALM,
    });
    let answer = answer(ten_words(), &booter).unwrap();
    assert_eq!((answer.outcome, &answer.culprits[..]), (Outcome::Guilty, &[[8].into()][..]));
}

#[test]
fn symbols_boot_a_kernel_for_each_arm() {
    use crate::kernels::Asked;
    let asked = |text: &str| Asked { name: "f".into(), text: text.into() };
    let bad = asked("CONFIG_A=y\nCONFIG_B=y\nCONFIG_C=y\n");
    let subject = Subject::symbols(
        ("debian-6.12".into(), "tinyconfig".into()),
        &[asked("CONFIG_X=y\n")],
        &asked(""),
        &bad,
        Vec::new(),
    );
    let booter = guests(|text, _| if text.contains("CONFIG_B=y") { 40_000 } else { CALM });
    let answer = answer(subject.unwrap(), &booter).unwrap();
    assert_eq!((answer.outcome, &answer.culprits[..]), (Outcome::Guilty, &[[1].into()][..]));
}

#[test]
fn what_was_measured_is_not_measured_again() {
    let directory = tempfile::tempdir().unwrap();
    let culprit = |words: &[&str]| words.contains(&"word7");
    let booter = guests(move |_, words| if culprit(words) { 40_000 } else { CALM });
    let mut run = Run::begin(ten_words(), directory.path()).unwrap();
    assert_eq!(kept::records(directory.path()), 0);
    let mut ear = Ear { stop_after: Some(12), ..Ear::default() };
    assert_eq!(run_in(&mut run, &booter, &mut ear).unwrap(), None);
    let before = booter.count();

    assert!((12..20).contains(&before));
    assert!(Run::begin(ten_words(), directory.path()).is_err(), "nothing is overwritten");

    let kept = kept::records(directory.path());
    assert!(kept >= 10, "{kept}");
    let mut run = Run::resume(directory.path()).unwrap();
    let resumed = run_in(&mut run, &booter, &mut Ear::default()).unwrap().unwrap();
    assert_eq!(
        resumed,
        answer(ten_words(), &guests(move |_, words| if culprit(words) { 40_000 } else { CALM })).unwrap()
    );
    let arms = resumed.steps.len() + 2;
    assert_eq!(booter.count() - before, 5 * arms - kept, "only what was missing");
}

#[test]
fn a_record_that_cannot_be_kept_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut run = Run::begin(ten_words(), directory.path()).unwrap();
    fs::write(directory.path().join("good"), "in the way").unwrap();
    let error = run_in(&mut run, &guests(|_, _| CALM), &mut Ear::default()).unwrap_err();
    assert!(error.message.contains("/good: "), "{error}");
}

#[test]
fn a_kernel_that_has_changed_since_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut run = Run::begin(ten_words(), directory.path()).unwrap();
    run_in(&mut run, &guests(|_, _| CALM), &mut Ear { stop_after: Some(2), ..Ear::default() }).unwrap();
    let mut run = Run::resume(directory.path()).unwrap();
    run.state.kernels.get_mut("k").unwrap().release = "6.0".into();
    let error = run_in(&mut run, &guests(|_, _| CALM), &mut Ear::default()).unwrap_err();
    assert!(error.message.contains("not the kernel that was begun with"), "{error}");
}

#[test]
fn a_bisection_does_not_go_on_with_another_emulator_or_worstcase() {
    let resumed = |change: fn(&mut Scripted)| {
        let directory = tempfile::tempdir().unwrap();
        let mut run = Run::begin(list("a b c d e"), directory.path()).unwrap();
        let mut ear = Ear { stop_after: Some(7), ..Ear::default() };
        run_in(&mut run, &guests(|_, _| CALM), &mut ear).unwrap();
        let mut booter = guests(|_, _| CALM);
        change(&mut booter);
        let mut run = Run::resume(directory.path()).unwrap();
        run_in(&mut run, &booter, &mut Ear::default()).map(|_| booter.count())
    };
    assert!(resumed(|_| {}).unwrap() > 0);
    let error = resumed(|booter| booter.emulator = "QEMU 10.0".into()).unwrap_err();
    assert!(error.message.contains("this bisection was begun with other guests: the emulator was QEMU 7.2"));
    let error = resumed(|booter| booter.binary = "another".into()).unwrap_err();
    assert!(error.message.contains("the guest's worstcase had"), "{error}");
}

#[test]
fn changes_that_the_kernel_does_not_read_are_an_answer_of_their_own() {
    let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
    let subject = || Subject::words("k".into(), &words("quiet"), &words("quiet thredirqs preempt=nonne"));
    let mut booter = guests(|_, _| CALM);
    booter.unknown = words("thredirqs preempt=nonne");
    let none = answer(subject(), &booter).unwrap();
    assert_eq!(none.outcome, Outcome::Inconclusive(Doubt::NotRead));
    assert_eq!((none.without_effect, none.parameters.len()), ([0, 1].into(), 2));
    // One of them is read: it is searched, and the other named.
    booter.unknown = words("thredirqs");
    let one = answer(subject(), &booter).unwrap();
    assert_eq!((one.outcome, one.without_effect), (Outcome::NoneGuilty, [0].into()));
    // Chance alone makes a parameter look guilty that nobody reads.
    let mut chance = guests(|_, words| if words.contains(&"thredirqs") { 40_000 } else { CALM });
    chance.unknown = words("thredirqs");
    let chance = answer(subject(), &chance).unwrap();
    assert_eq!(
        (chance.outcome, &chance.culprits[..]),
        (Outcome::Inconclusive(Doubt::NotRead), &[[0].into()][..])
    );
}
