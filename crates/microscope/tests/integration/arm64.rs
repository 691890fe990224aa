//! arm64: calls do not push, and exceptions begin in a table.

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
    assert_eq!(context(90 - 5), Context::Thread { name: "dd".to_owned() }, "78 instructions, 80 nanoseconds");
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
