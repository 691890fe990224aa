//! Accounts of made-up programs, and of any bytes.
#![allow(clippy::unwrap_used)]

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
    assert_eq!(class(Class::Interrupt), ("try_to_wake_up", 50));
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

/// arm64: calls do not push, and exceptions begin in a table.
mod arm64 {
    use super::*;

    const SYMBOLS: &str = "\
ffff800008000000 T vectors\nffff800008000800 t el1h_64_irq\nffff800008001000 T outer\nffff800008001100 T inner\n\
ffff800008001200 T try_to_wake_up\nffff800008001300 T arch_timer_handler_virt\nffff800008001400 T handle_percpu_devid_irq\n\
ffff800008001500 T call_on_irq_stack\nffff800008001600 T __schedule\nffff800008001700 T cpu_switch_to\n\
ffff800008001800 t el0t_64_sync\nffff800008001900 t el0_da\nffff800008001a00 t el0_svc\n";
    const BASE: u64 = 0xffff_8000_0800_0000;
    const FROM_KERNEL: u64 = BASE + 0x280;
    const FROM_PROGRAM: u64 = BASE + 0x400;
    const ENTRY: u64 = BASE + 0x800;
    const OUTER: u64 = BASE + 0x1000;
    const INNER: u64 = BASE + 0x1100;
    const WAKE: u64 = BASE + 0x1200;
    const TIMER: u64 = BASE + 0x1300;
    const DEVICES: u64 = BASE + 0x1400;
    const ON_IRQ_STACK: u64 = BASE + 0x1500;
    const SWITCH: u64 = BASE + 0x1700;
    const SYNC: u64 = BASE + 0x1800;
    const ABORT: u64 = BASE + 0x1900;
    const SVC: u64 = BASE + 0x1a00;

    const STACK: u64 = 0xffff_8000_0b00_4000;
    const IRQ_STACK: u64 = 0xffff_8000_0a00_4000;

    const NOP: u32 = 0xd503_201f;
    const BL: u32 = 0x9400_0000;
    const RET: u32 = 0xd65f_03c0;
    const ERET: u32 = 0xd69f_03e0;
    const WFI: u32 = 0xd503_207f;

    /// The start of a block of so many instructions that begin, and as many that it has.
    #[derive(Clone, Copy)]
    struct At {
        address: u64,
        stack: u64,
        began: u64,
        count: u64,
        last: u32,
        off: bool,
        preempt: u64,
        task: u64,
        note: (u32, u64),
    }

    fn at(address: u64, stack: u64, count: u64, last: u32) -> At {
        let task = OTHER;
        At { address, stack, began: count, count, last, off: false, preempt: FREE, task, note: (0, 0) }
    }

    fn off(at: At) -> At {
        At { off: true, ..at }
    }

    fn hard(at: At) -> At {
        At { preempt: FREE + 0x1_0000, ..off(at) }
    }

    fn of(records: &[At], latency: u64) -> Account {
        let mut words = vec![layout::MAGIC, layout::MACHINE, layout::ARM64];
        for (id, at) in (1..).zip(records) {
            let count = at.count as usize;
            words.extend([layout::BLOCK, id, at.address, at.count, 4 * at.count]);
            let mut put = |bytes: &[u8]| {
                words.extend(bytes.chunks(8).map(|chunk| {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    u64::from_le_bytes(word)
                }));
            };
            put(&vec![4; count]);
            let code = [vec![NOP; count - 1], vec![at.last]].concat();
            put(&code.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
        }
        for (task, name) in [(OTHER, *b"dd\0\0\0\0\0\0"), (PROBE, *b"probe\0\0\0")] {
            words.extend([layout::NAME, task, u64::from_le_bytes(name), 0]);
        }
        words.extend([layout::WINDOW, 5_000, latency, records.len() as u64 - 1, records.len() as u64]);
        let mut count = 1_000;
        for (id, at) in (1_u64..).zip(records) {
            let (kind, flags) = (u64::from(at.note.0) << 32, if at.off { 0 } else { ON });
            words.extend([count, at.stack, at.task, at.note.1, id | flags << 32, at.preempt | kind]);
            count += at.began;
        }
        words.extend([layout::END, count, 0]);
        let stream = Stream::parse(&bytes(&words)).unwrap();
        account(&stream, &stream.windows[0], &Symbols::parse(SYMBOLS).unwrap())
    }

    fn reading(value: u64) -> At {
        At { task: PROBE, note: (layout::READING, value), ..at(PROGRAM, 0x7f00, 1, NOP) }
    }

    #[test]
    fn what_the_kernel_does_not_count_is_not_known() {
        let words = [layout::MAGIC, layout::WINDOW, 1, 0, 0, 1, 1_000, 0, 0, 0, 1, 0];
        let block = [layout::BLOCK, 1, OUTER, 1, 4, 4, u64::from(NOP)];
        let of = |item: &[u64]| {
            let all = [&words[..1], &block[..], item, &words[1..], &[layout::END, 1_000, 0]].concat();
            let stream = Stream::parse(&bytes(&all)).unwrap();
            let account = account(&stream, &stream.windows[0], &Symbols::parse(SYMBOLS).unwrap());
            (account.preemption_off.is_some(), account.allowed_by_nothing.is_some())
        };
        assert_eq!((of(&[]), of(&[layout::UNCOUNTED])), ((true, true), (false, false)));
    }

    /// A timer's interrupt in `inner` that wakes the probe: its handler runs on a stack of its own.
    fn interrupted() -> Vec<At> {
        let (within, handler) = (STACK - 0x240, IRQ_STACK - 0x20);
        vec![
            at(PROGRAM, 0x7f00, 10, NOP),
            at(OUTER, STACK, 5, BL),
            at(INNER, STACK - 0x40, 30, NOP),
            off(at(FROM_KERNEL, STACK - 0x40, 4, NOP)),
            // The stack pointer is none here.
            off(at(FROM_KERNEL + 0x10, 0x1234, 5, NOP)),
            off(at(ENTRY, within, 20, BL)),
            hard(at(ON_IRQ_STACK, within, 6, NOP)),
            hard(at(ON_IRQ_STACK + 0x18, IRQ_STACK, 1, BL)),
            hard(at(DEVICES, IRQ_STACK, 9, BL)),
            hard(at(TIMER, handler, 11, BL)),
            At { note: (layout::ARGUMENT, PROBE), ..hard(at(WAKE, handler, 40, RET)) },
            hard(at(TIMER + 0x2c, handler, 3, RET)),
            hard(at(DEVICES + 0x24, handler, 2, RET)),
            hard(at(ON_IRQ_STACK + 0x1c, IRQ_STACK, 3, NOP)),
            hard(at(ON_IRQ_STACK + 0x28, within, 1, RET)),
            off(at(ENTRY + 0x50, within, 12, ERET)),
            at(INNER + 0x78, STACK - 0x40, 100, RET),
            at(OUTER + 0x14, STACK - 0x40, 50, NOP),
            reading(90),
        ]
    }

    #[test]
    fn callers_are_found_by_calls_and_returns_through_an_interrupt_on_another_stack() {
        let account = of(&interrupted(), 302);
        assert_eq!(sums(&account), (302, 302, 302));
        let text = folded(&[account]);
        let has = |line: &str| assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        has("dd;outer 55");
        has("dd;outer;inner 130");
        has("dd;outer;inner;el1h_64_irq 41");
        has("dd;outer;inner;el1h_64_irq;call_on_irq_stack 11");
        has(
            "dd;outer;inner;el1h_64_irq;call_on_irq_stack;handle_percpu_devid_irq;arch_timer_handler_virt;try_to_wake_up 40",
        );
    }

    #[test]
    fn an_interrupt_is_named_by_its_devices_handler_and_begins_where_its_entry_does() {
        let account = of(&interrupted(), 300);
        let interrupt = Context::Interrupt { name: "arch_timer_handler_virt".to_owned() };
        let found: Vec<u64> = account
            .pieces
            .iter()
            .filter(|piece| piece.context == interrupt)
            .map(|piece| piece.length.0)
            .collect();
        assert_eq!(found.iter().sum::<u64>(), 76);
        let before = |stage| account.pieces.iter().filter(move |piece| piece.stage == stage);
        assert_eq!(before(Stage::BeforeInterrupt).map(|piece| piece.length.0).sum::<u64>(), 300 - 267);
        assert_eq!(account.interrupts_off.0, 117);
    }

    #[test]
    fn an_interrupt_between_a_call_and_its_function_or_a_return_and_its_caller_changes_no_caller() {
        let cases = [(BL, INNER, 119, "dd;outer;inner 70"), (RET, OUTER + 0x14, 139, "dd;outer 95")];
        for (last, next, latency, line) in cases {
            let first = if last == BL { at(OUTER, STACK, 25, BL) } else { at(INNER, STACK - 0x40, 20, RET) };
            let start = [at(PROGRAM, 0x7f00, 10, NOP), at(OUTER, STACK, 25, BL)];
            let start = if last == BL { &start[..1] } else { &start[..] };
            let rest = [
                first,
                off(at(FROM_KERNEL, STACK - 0x40, 4, NOP)),
                off(at(ENTRY, STACK - 0x240, 20, ERET)),
                at(next, STACK - 0x40, 70, NOP),
                reading(90),
            ];
            let text = folded(&[of(&[start, &rest[..]].concat(), latency)]);
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_switch_of_threads_goes_on_where_the_other_thread_was() {
        let other = STACK + 0x8000;
        let records = [
            at(PROGRAM, 0x7f00, 10, NOP),
            at(OUTER, STACK, 5, BL),
            at(SWITCH, STACK - 0x40, 8, NOP),
            At { task: PROBE, ..at(SWITCH + 0x20, other - 0x80, 6, RET) },
            At { task: PROBE, ..at(INNER + 0x40, other - 0x80, 12, RET) },
            At { task: PROBE, ..at(OUTER + 0x80, other - 0x40, 9, NOP) },
            reading(90),
        ];
        let text = folded(&[of(&records, 50)]);
        let has = |line: &str| assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        has("dd;outer;cpu_switch_to 8");
        has("probe;outer;inner;cpu_switch_to 6");
        has("probe;outer;inner 12");
    }

    #[test]
    fn an_instruction_that_aborts_has_not_ended_and_a_call_of_the_kernel_has() {
        let of = |began, serves, latency| {
            let exception = At { began, ..at(PROGRAM, 0x7f00, 10, NOP) };
            let records = [
                exception,
                off(at(FROM_PROGRAM, STACK, 4, NOP)),
                off(at(SYNC, STACK - 0x150, 20, BL)),
                off(at(serves, STACK - 0x150, 20, NOP)),
                reading(90),
            ];
            of(&records, latency).pieces[0].context.clone()
        };
        assert_eq!(of(10, ABORT, 54), Context::NotRecorded, "the last instruction aborted: 53 have ended");
        assert_eq!(of(7, SVC, 51), Context::NotRecorded, "one in the middle: 50 have ended");
        assert_ne!(of(10, SVC, 54), Context::NotRecorded);
    }

    #[test]
    fn readings_are_multiples_of_the_counters_step() {
        let readings = |before: u64| {
            let mut records = interrupted();
            records[17].note = (layout::READING, before);
            of(&records, 300).readings
        };
        // 50 instructions are three steps of 16, or four.
        assert_eq!([86, 87].map(readings), [(1, 1); 2]);
        assert_eq!([85, 88].map(readings), [(0, 1); 2]);
    }

    #[test]
    fn time_before_the_last_wait_for_interrupts_is_halted() {
        let records = [
            off(at(OUTER, STACK, 5, WFI)),
            off(at(OUTER + 0x14, STACK, 3, NOP)),
            off(at(FROM_KERNEL, STACK, 30, NOP)),
            reading(90),
        ];
        let account = of(&records, 60);
        assert_eq!((account.pieces[0].context.clone(), account.pieces[0].length.0), (Context::Halted, 27));
    }

    #[test]
    fn a_wait_for_an_interrupt_that_waits_already_is_no_halt() {
        let context = |before| {
            let records = [
                off(At { note: (layout::READING, before), ..at(OUTER, STACK, 40, NOP) }),
                off(at(OUTER + 0x10, STACK, 5, WFI)),
                off(at(OUTER + 0x24, STACK, 3, NOP)),
                off(at(FROM_KERNEL, STACK, 30, NOP)),
                reading(90),
            ];
            of(&records, 60).pieces[0].context.clone()
        };
        assert_eq!(
            context(90 - 5),
            Context::Thread { name: "dd".to_owned() },
            "78 instructions, 80 nanoseconds"
        );
        assert_eq!(context(90 - 6), Context::Halted, "18 nanoseconds are no instructions");
    }

    proptest! {
        #[test]
        fn pieces_causes_and_calls_sum_to_the_latency_of_any_records(
            all in proptest::collection::vec((0..14_u64, 0..8_u64, 0..6_usize, 1..20_u64, 0..20_u64), 2..60),
            latency in 0..800_u64,
        ) {
            let mut records: Vec<At> = all.into_iter().map(|(place, depth, last, count, began)| {
                let last = [NOP, BL, RET, ERET, WFI, 0xd503_43df][last];
                let stack = [STACK, IRQ_STACK][(depth & 1) as usize] - 0x40 * (depth >> 1);
                At { began: began.min(count), ..at(BASE + 0x80 * [5, 8, 16, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52][place as usize], stack, count, last) }
            }).collect();
            records.push(reading(90));
            let account = of(&records, latency);
            prop_assert_eq!(sums(&account), (latency, latency, latency));
        }
    }
}
