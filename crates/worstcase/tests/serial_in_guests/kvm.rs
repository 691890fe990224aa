//! Activations of a guest under KVM, in a guest of the lab whose CPU has AMD's virtualization.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use guest_tests::Guests;
use probe::source::Source;
use probe::timer::guest::{self, InGuest};
use record::instrument::timer::{GuestFigures, PartOfGuest};
use record::ways::Ways;
use record::{Fact, Record, Sample};
use sys::clock::Clock;
use sys::kvm::{Exit, Injected, PORT};
use sys::shared::Word;
use units::Nanos;

use super::partition::PROGRAMS;

const WORDS: &str = "quiet no_timer_check nowatchdog";

const fn nesting(kernel: &'static str) -> Guests {
    Guests::new(kernel, WORDS).programs(PROGRAMS).kvm()
}
static OLD: Guests = nesting("debian-6.1-amd64").processors(2);
static NEW: Guests = nesting("debian-6.12-amd64").processors(2);
/// Where the length of an exit is to be known, whatever the host does meanwhile.
static COUNTED: Guests = nesting("debian-6.1-amd64").in_instructions();
static WITHOUT: Guests = Guests::new("debian-6.1-amd64", WORDS).processors(2).programs(PROGRAMS);

/// An activation 1 ms from now: how late it was, after its parts were found to sum to that.
fn activation(source: &mut InGuest) -> Sample {
    let due = source.now() + 1_000_000;
    source.sleep_until(due).unwrap();
    let latency = source.now() - due;
    let parts = source.latest().unwrap().parts;
    assert_eq!(parts.iter().sum::<u64>(), latency);
    assert!(parts.iter().all(|part| *part > 0), "{parts:?}");
    Sample { latency: Nanos(latency), due: Nanos(due), activation: 0 }
}

/// Activations of which one in the middle has an instruction that exits: its figures, with the worst alone.
fn with_one(injected: Injected, at_exit: fn(Exit)) -> GuestFigures {
    let mut source = InGuest::new().unwrap();
    source.at_exit = at_exit;
    source.begin();
    let mut worst = Sample { latency: Nanos(0), due: Nanos(0), activation: 0 };
    for number in 0..100 {
        source.guest().inject(if number == 50 { injected } else { Injected::Nothing });
        let sample = activation(&mut source);
        if number == 50 {
            worst = sample;
        }
    }
    let words: Vec<Word> = (0..guest::WORDS).map(|_| Word::default()).collect();
    source.end(&words);
    guest::figures(&words, 0, &[worst]).unwrap()
}

#[test]
fn parts_sum_to_the_latency_on_6_1() {
    OLD.run(|| {
        let mut source = InGuest::new().unwrap();
        (0..1_000).for_each(|_| _ = activation(&mut source));
    });
}

#[test]
fn parts_sum_to_the_latency_on_6_12() {
    NEW.run(|| {
        let mut source = InGuest::new().unwrap();
        (0..1_000).for_each(|_| _ = activation(&mut source));
    });
}

/// How long the guest was held.
static HELD: AtomicU64 = AtomicU64::new(0);

/// Holds the guest for 5 ms, as a slow device of a monitor would.
fn hold(exit: Exit) {
    let begin = Clock::Monotonic.now();
    if exit == Exit::Port(PORT) {
        while Clock::Monotonic.now() < begin + 5_000_000 {}
        HELD.store(Clock::Monotonic.now() - begin, Ordering::Relaxed);
    }
}

#[test]
fn an_exit_that_this_program_held_is_named_with_its_length() {
    COUNTED.run(|| {
        let figures = with_one(Injected::Port, hold);
        let Fact::Value(worst) = &figures.worst[0] else { panic!("not kept: {figures:?}") };
        let (held, by) = (HELD.load(Ordering::Relaxed), worst.held.clone().unwrap());
        println!("held for {held}, found {by:?}, parts {:?}", worst.parts);
        assert_eq!(by.by, "port 0x11");
        assert!(held >= 5_000_000 && by.took.0.abs_diff(held) * 20 < held, "{by:?}, truly {held}");
        // It is in the part in which it was, and in no other.
        let interrupt = worst.parts[2].unwrap().0;
        let rest: u64 = [0, 1, 3].map(|part| worst.parts[part].unwrap().0).iter().sum();
        assert!(interrupt.abs_diff(held) * 20 < held && rest < held / 20, "{worst:?}");
        assert_eq!(figures.unusual_exits(0).unwrap(), [("io_exits".to_owned(), 1)]);
    });
}

#[test]
fn an_exit_that_the_kernel_handles_is_counted_to_its_activation() {
    COUNTED.run(|| {
        let figures = with_one(Injected::Cpuid, |_| ());
        let Fact::Value(worst) = &figures.worst[0] else { panic!("not kept: {figures:?}") };
        assert_eq!(worst.held, None);
        let usual = figures.part(PartOfGuest::Interrupt).unwrap().quantile(0.5).unwrap().0;
        let longer = worst.parts[2].unwrap().0.saturating_sub(usual);
        println!("an exit of CPUID took {longer} instructions beside {usual}: {:?}", worst.exits);
        assert!((500..20_000).contains(&longer), "{worst:?} {usual}");
        assert_eq!(figures.unusual_exits(0).unwrap(), [(GuestFigures::OF_NO_KIND.to_owned(), 1)]);
    });
}

/// The way through a guest, beside that of a thread.
fn ways() -> Ways {
    let words =
        ["ways", "--only", "fifo,kvm", "--loads", "idle", "-D", "1s", "-i", "5ms", "--out", "out", "--json"];
    let output = Command::new("worstcase").args(words).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// As it is recorded and shown.
fn measured() {
    let ways = ways();
    let row = ways.ways.iter().find(|way| way.name == "kvm").unwrap();
    let warnings = || -> Vec<String> {
        let record = record::store::load("out/kvm".as_ref());
        record.iter().flat_map(Record::all_warnings).map(|warning| warning.evidence.clone()).collect()
    };
    assert_eq!((row.why_not.clone(), row.figures.len()), (None, 1), "{row:?}: {:?}", warnings());
    let note = row.notes.iter().find(|note| note.contains("Of it: host ")).unwrap();
    println!("{note}");
    let record: Record = record::store::load("out/kvm".as_ref()).unwrap();
    let series = &record.scenarios[0].series[0];
    let figures = series.timer().unwrap().guest.as_ref().unwrap();
    assert_eq!(figures.part(PartOfGuest::Host).unwrap().summary().count, series.observed.summary().count);
    assert_eq!(figures.unsplit, 0);
    for (sample, parts) in
        series.worst.iter().zip(0..).map(|(sample, place)| (sample, series.own.parts_of_worst(place)))
    {
        let parts = parts.unwrap_or_else(|| panic!("{sample:?} was not kept: {figures:?}"));
        assert_eq!(parts.iter().flatten().map(|part| part.0).sum::<u64>(), sample.latency.0, "{parts:?}");
    }
    let sums: u64 = figures.parts.iter().map(|part| part.took.summary().sum).sum();
    assert_eq!(sums, series.observed.summary().sum, "of all, too");
}

#[test]
fn the_way_is_measured_and_laid_out_on_6_1() {
    OLD.run(measured);
}

#[test]
fn the_way_is_measured_and_laid_out_on_6_12() {
    NEW.run(measured);
}

#[test]
fn without_kvm_the_row_says_so() {
    WITHOUT.run(|| {
        let ways = ways();
        let row = ways.ways.iter().find(|way| way.name == "kvm").unwrap();
        assert!(row.why_not.as_ref().unwrap().starts_with("there is no /dev/kvm"), "{row:?}");
        let output =
            Command::new("worstcase").args(["measure", "--wake", "kvm", "-D", "1s"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains("open /dev/kvm: ") && said.contains("(errno 2)") && said.contains("kvm-amd"),
            "{said}"
        );
    });
}
