//! Accounts of made-up programs, and of any bytes.
#![allow(clippy::unwrap_used)]

mod arm64;
mod comparison;

use microscope::{
    Account, Context, Off, Section, Stream, Symbols, account, folded, merge, places, rows, section,
};
use plugin::layout;
use plugin::sections as found;
use proptest::prelude::*;
use record::{Class, Stage};

const SYMBOLS: &str = "\
ffffffff81000000 T outer\nffffffff81000100 T inner\nffffffff81000200 T __schedule\nffffffff81000300 T try_to_wake_up\n\
ffffffff81000400 T asm_sysvec_apic_timer_interrupt\nffffffff81000500 T asm_exc_page_fault\nffffffff81000600 T handler\n\
ffffffff81000700 T _raw_spin_lock\n";
const OUTER: u64 = 0xffff_ffff_8100_0000;
const INNER: u64 = OUTER + 0x100;
const SCHEDULE: u64 = OUTER + 0x200;
const WAKE: u64 = OUTER + 0x300;
const TIMER: u64 = OUTER + 0x400;
const FAULT: u64 = OUTER + 0x500;
const HANDLER: u64 = OUTER + 0x600;
const LOCK: u64 = OUTER + 0x700;
const PROGRAM: u64 = 0x40_0000;

const STACK: u64 = 0xffff_c900_0000_3f00;
const OTHER: u64 = 0xffff_8880_0010_0000;
const PROBE: u64 = 0xffff_8880_0020_0000;
const ON: u64 = 0x200;
/// Nothing wants a reschedule, and nothing counts.
const FREE: u64 = 0x8000_0000;

/// The start of a block of so many instructions that retire.
#[derive(Clone, Copy)]
struct At {
    address: u64,
    stack: u64,
    length: u64,
    flags: u64,
    preempt: u64,
    task: u64,
    note: (u32, u64),
    last: u8,
}

fn at(address: u64, depth: u64, length: u64) -> At {
    At {
        address,
        stack: STACK - depth,
        length,
        flags: ON,
        preempt: FREE,
        task: OTHER,
        note: (0, 0),
        last: 0x90,
    }
}

fn stream(records: &[At], latency: u64) -> Vec<u64> {
    let mut words = vec![layout::MAGIC];
    for (id, at) in (1..).zip(records) {
        words.extend([layout::BLOCK, id, at.address, 1, 1, 1, u64::from(at.last)]);
    }
    for (task, name) in [(OTHER, *b"dd\0\0\0\0\0\0"), (PROBE, *b"probe\0\0\0")] {
        words.extend([layout::NAME, task, u64::from_le_bytes(name), 0]);
    }
    words.extend([layout::WINDOW, 5_000, latency, records.len() as u64 - 1, records.len() as u64]);
    let mut count = 1_000;
    for (id, at) in (1_u64..).zip(records) {
        let kind = u64::from(at.note.0) << 32;
        words.extend([count, at.stack, at.task, at.note.1, id | at.flags << 32, at.preempt | kind]);
        count += at.length;
    }
    words.extend([layout::END, count, 0]);
    words
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn of(records: &[At], latency: u64) -> Account {
    let stream = Stream::parse(&bytes(&stream(records, latency))).unwrap();
    account(&stream, &stream.windows[0], &Symbols::parse(SYMBOLS).unwrap())
}

/// The probe's reading, with which a window ends.
fn reading(value: u64) -> At {
    At { task: PROBE, note: (layout::READING, value), ..at(PROGRAM, 0, 0) }
}

fn sums(account: &Account) -> (u64, u64, u64) {
    let pieces = account.pieces.iter().map(|piece| piece.length.0).sum();
    (pieces, account.causes.iter().map(|cause| cause.length.0).sum(), account.calls.total)
}

/// A thread that keeps preemption off while the timer's interrupt wakes the probe.
fn spike() -> Vec<At> {
    vec![
        at(PROGRAM, 0, 10),
        at(OUTER, 0x10, 5),
        At { flags: 0, preempt: FREE + 1, ..at(INNER, 0x40, 100) },
        At { flags: 0, preempt: FREE + 1, ..at(TIMER, 0x80, 7) },
        At { flags: 0, preempt: FREE + 0x1_0001, ..at(HANDLER, 0xc0, 20) },
        At { flags: 0, preempt: FREE + 0x1_0001, note: (layout::ARGUMENT, PROBE), ..at(WAKE, 0x100, 30) },
        At { preempt: 1, ..at(INNER + 8, 0x60, 400) },
        At { preempt: 0, ..at(OUTER + 8, 0x20, 50) },
        At { preempt: 0, ..at(SCHEDULE, 0x40, 40) },
        At { task: PROBE, ..at(SCHEDULE + 8, 0x40, 15) },
        reading(9_000),
    ]
}

#[test]
fn each_stretch_has_its_stage_its_context_and_its_function() {
    let account = of(&spike(), 600);
    assert_eq!(sums(&account), (600, 600, 600));
    let class = |class| {
        let found = account.causes.iter().find(|cause| cause.class == class).unwrap();
        (found.culprit(), found.length.0)
    };
    assert_eq!(class(Class::PreemptionOff), ("inner", 400));
    assert_eq!(class(Class::NoPreemption), ("outer", 50));
    let interrupt = Context::Interrupt { name: "sysvec_apic_timer_interrupt".to_owned() };
    let of_it: Vec<_> = account.causes.iter().filter(|cause| cause.context == interrupt).collect();
    let of_it: Vec<_> = of_it.iter().map(|cause| (cause.class, cause.culprit(), cause.length.0)).collect();
    assert_eq!(of_it, [(Class::Usual, "try_to_wake_up", 50)], "the timer's own way is part of each wake-up");
    assert_eq!(account.allowed_by_nothing.unwrap().0, 50);
    let stages: Vec<Stage> = account.pieces.iter().map(|piece| piece.stage).collect();
    let mut ordered = stages.clone();
    ordered.sort();
    assert_eq!(stages, ordered, "the stages come in their order");
    assert_eq!(account.pieces.last().unwrap().length.0, 15);
    assert_eq!(account.pieces[0].stage, Stage::BeforeInterrupt);
    assert!(account.pieces[0].interrupts_off && account.pieces[0].function == "inner");
}

#[test]
fn interrupted_functions_stand_above_their_interrupt() {
    let text = folded(&[of(&spike(), 600)]);
    let path = "dd;outer;inner;asm_sysvec_apic_timer_interrupt;handler;try_to_wake_up 30";
    assert!(text.lines().any(|line| line == path), "{text}");
    assert!(
        text.lines().any(|line| line == "dd;outer;inner 438"),
        "after its interrupt the function goes on: {text}"
    );
}

/// As on amd64, where a handler changes to the stack of interrupts, calls functions there, and jumps to the exit on the way back.
#[test]
fn callers_are_kept_over_the_stack_of_interrupts() {
    const EXIT: u64 = OUTER + 0x800;
    let off = |address, depth, length| At { flags: 0, ..at(address, depth, length) };
    let on_stack_of_interrupts = |at: At| At { stack: at.stack + 0x10_0000, ..at };
    let records = vec![
        at(PROGRAM, 0, 10),
        at(OUTER, 0x10, 5),
        at(INNER, 0x40, 100),
        off(TIMER, 0x80, 7),
        off(HANDLER, 0xc0, 20),
        on_stack_of_interrupts(off(LOCK, 0x10, 3)),
        on_stack_of_interrupts(off(HANDLER + 8, 0x8, 4)),
        on_stack_of_interrupts(At { note: (layout::ARGUMENT, PROBE), ..off(WAKE, 0x10, 30) }),
        on_stack_of_interrupts(off(HANDLER + 16, 0x8, 2)),
        off(EXIT, 0xc0, 9),
        off(TIMER + 8, 0x80, 3),
        at(INNER + 8, 0x40, 400),
        At { task: PROBE, ..at(SCHEDULE + 8, 0x40, 15) },
        reading(9_000),
    ];
    let symbols = Symbols::parse(&format!("{SYMBOLS}ffffffff81000800 T irqentry_exit\n")).unwrap();
    let stream = Stream::parse(&bytes(&stream(&records, 590))).unwrap();
    let text = folded(&[account(&stream, &stream.windows[0], &symbols)]);
    let interrupted = "dd;outer;inner;asm_sysvec_apic_timer_interrupt";
    for path in ["handler 26", "handler;_raw_spin_lock 3", "handler;try_to_wake_up 30", "irqentry_exit 9"] {
        let path = format!("{interrupted};{path}");
        assert!(text.lines().any(|line| line == path), "{path}:\n{text}");
    }
    assert!(text.lines().any(|line| line == "dd;outer;inner 497"), "{text}");
}

#[test]
fn an_instruction_that_faults_has_not_ended() {
    let fault = |code| {
        vec![
            at(OUTER, 0, 10),
            At { note: (layout::ERROR_CODE, code), ..at(FAULT, 0x80, 20) },
            At { task: PROBE, ..at(OUTER + 4, 0x10, 3) },
            reading(1),
        ]
    };
    let last = |code| of(&fault(code), 33).pieces[0].context.clone();
    assert_eq!(last(0), Context::NotRecorded, "32 of 33 that began have ended");
    assert_ne!(last(16), Context::NotRecorded, "a fault of the fetch itself takes none away");
}

#[test]
fn time_before_the_last_halt_is_halted() {
    let records = vec![
        At { last: 0xf4, ..at(OUTER, 0, 5) },
        At { flags: 0, ..at(TIMER, 0x80, 30) },
        At { flags: 0, note: (layout::ARGUMENT, PROBE), ..at(WAKE, 0x100, 30) },
        At { task: PROBE, ..at(SCHEDULE + 8, 0x40, 15) },
        reading(1),
    ];
    let account = of(&records, 130);
    assert_eq!((account.pieces[0].context.clone(), account.pieces[0].length.0), (Context::Halted, 55));
    assert_eq!(sums(&account), (130, 130, 130));
}

#[test]
fn what_is_not_recorded_is_unknown() {
    let account = of(&spike(), 1_000_000);
    assert_eq!(
        (account.pieces[0].stage, &account.pieces[0].context),
        (Stage::Unknown, &Context::NotRecorded)
    );
    assert_eq!(sums(&account).0, 1_000_000);
    assert_eq!(account.causes[0].class, Class::Unknown);
}

#[test]
fn a_reading_that_lies_elsewhere_is_seen() {
    let mut records = spike();
    records[7].note = (layout::READING, 9_000 - 105);
    assert_eq!(of(&records, 600).readings, (1, 1));
    records[7].note = (layout::READING, 9_000 - 106);
    assert_eq!(of(&records, 600).readings, (0, 1));
}

#[test]
fn equal_causes_of_several_wake_ups_are_one_row() {
    let rows = rows(&[of(&spike(), 600), of(&spike(), 500)]);
    let row = rows.iter().find(|row| row.class == Class::PreemptionOff).unwrap();
    assert_eq!((row.hits, row.time.0, row.worst.0, row.culprit.as_str()), (2, 795, 400, "inner"));
}

/// A lock that `outer` takes and lets go 75 instructions later, and the section that the plugin makes of it.
fn locked() -> (Vec<At>, found::Section) {
    let held = FREE + 1;
    let records = vec![
        at(OUTER, 0, 10),
        at(LOCK, 8, 5),
        At { preempt: held, ..at(OUTER + 8, 0, 20) },
        At { preempt: held, ..at(INNER, 8, 50) },
        at(OUTER + 16, 0, 7),
    ];
    let section = found::Section {
        off: Off::Preemption as u32,
        level: 0,
        range: 0,
        address: LOCK,
        call: OUTER,
        end: OUTER + 16,
        count: 1_010,
        span: 75,
        length: 75,
        times: 3,
        sum: 90,
    };
    (records, section)
}

/// A stream that ends with a stretch, and with sections.
fn stretched(records: &[At], end: u64, length: u64, sections: &[found::Section]) -> Vec<u64> {
    let mut words = stream(records, length);
    let window = (0..words.len()).find(|&at| words[at..].starts_with(&[layout::WINDOW, 5_000])).unwrap();
    words[window + 1] = end;
    words.truncate(words.len() - 3);
    words.extend([layout::SECTIONS, sections.len() as u64, 0]);
    words.extend(sections.iter().flat_map(found::Section::words));
    words.extend([layout::END, 2_000, 0]);
    words
}

fn sections_of(words: &[u64]) -> Option<Vec<Section>> {
    let symbols = Symbols::parse(SYMBOLS).unwrap();
    let stream = Stream::parse(&bytes(words)).ok()?;
    Some(places(&stream, &symbols).iter().filter_map(|place| section(&stream, place, &symbols)).collect())
}

#[test]
fn a_section_is_that_of_the_function_that_took_the_lock() {
    let (records, known) = locked();
    let all = sections_of(&stretched(&records, 1_085, 75, &[known])).unwrap();
    let [one] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((one.off, one.owner.as_str(), one.length.0), (Off::Preemption, "outer", 75));
    assert_eq!((one.times, one.sum.0, one.calls.total), (3, 90, 75));
    assert_eq!(one.path, ["dd", "outer", "_raw_spin_lock"]);
    assert_eq!((one.function.as_str(), &one.context), ("inner", &Context::Thread { name: "dd".to_owned() }));
}

#[test]
fn a_stretch_of_another_run_is_no_section() {
    let (records, known) = locked();
    for (end, length) in [(1_086, 75), (1_085, 76), (1_084, 74)] {
        let other = found::Section { count: end - length, span: length, length, ..known };
        assert_eq!(sections_of(&stretched(&records, 1_085, 75, &[other])), Some(vec![]), "{end} {length}");
    }
}

#[test]
fn sections_of_one_function_are_one_with_the_longest() {
    let (records, known) = locked();
    let one = sections_of(&stretched(&records, 1_085, 75, &[known])).unwrap().remove(0);
    let mut all = vec![Section { length: units::Nanos(20), ..one.clone() }, one.clone()];
    merge(&mut all);
    assert_eq!(all, [Section { times: 6, sum: units::Nanos(180), ..one }]);
}

#[test]
fn a_stream_that_is_cut_off_is_refused() {
    let words = stream(&spike(), 600);
    for length in 0..words.len() {
        assert!(Stream::parse(&bytes(&words[..length])).is_err(), "{length}");
    }
}

/// Changes words of a stream in one of four ways each.
fn damage(words: &mut [u64], changes: Vec<(usize, u64, u8)>) {
    for (place, value, way) in changes {
        let place = place % words.len();
        words[place] = match way {
            0 => value,
            1 => value % 64,
            2 => words[place].wrapping_add(value % 9).wrapping_sub(4),
            _ => words[place] ^ 1 << (value % 64),
        };
    }
}

proptest! {
    #[test]
    fn any_bytes_are_answered_without_a_panic(any in proptest::collection::vec(any::<u8>(), 0..600), begins: bool) {
        let mut all = if begins { bytes(&[layout::MAGIC]) } else { Vec::new() };
        all.extend(any);
        let _ = Stream::parse(&all);
    }

    #[test]
    fn the_calls_of_sections_sum_to_their_length_in_any_stream(
        changes in proptest::collection::vec((0..220_usize, any::<u64>(), 0..4_u8), 0..6),
    ) {
        let (records, known) = locked();
        let mut words = stretched(&records, 1_085, 75, &[known]);
        damage(&mut words, changes);
        for section in sections_of(&words).into_iter().flatten() {
            prop_assert_eq!(section.calls.total, section.length.0);
        }
    }

    #[test]
    fn pieces_causes_and_calls_sum_to_the_latency_of_any_stream(
        changes in proptest::collection::vec((0..220_usize, any::<u64>(), 0..4_u8), 0..6),
        latency in prop_oneof![0..2_000_u64, any::<u64>()],
    ) {
        let mut words = stream(&spike(), latency);
        damage(&mut words, changes);
        if let Ok(stream) = Stream::parse(&bytes(&words)) {
            for window in &stream.windows {
                let account = account(&stream, window, &Symbols::parse(SYMBOLS).unwrap());
                prop_assert_eq!(sums(&account), (window.latency.0, window.latency.0, window.latency.0));
            }
        }
    }
}
