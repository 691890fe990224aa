//! amd64.

use super::{Callers, Faults, Kind, Machine};

/// amd64.
pub static AMD64: Machine = Machine {
    kind,
    callers: Callers::Stack {
        return_thunks: &["__x86_return_thunk", "srso_", "retbleed_", "zen_untrain_ret"],
    },
    entries: &[
        "asm_exc_",
        "asm_sysvec_",
        "asm_common_interrupt",
        "asm_spurious_interrupt",
        "irq_entries_start",
    ],
    no_entry: None,
    prefix: "asm_",
    // Out of a program the entry runs on a small stack of its own, and the handler on the thread's.
    handlers: &["sysvec_"],
    handler: Some("common_interrupt"),
    timer: "asm_sysvec_apic_timer_interrupt",
    faults: Faults::Entries {
        page_fault: PAGE_FAULT,
        others: &[
            "asm_exc_general_protection",
            "asm_exc_device_not_available",
            "asm_exc_invalid_op",
            "asm_exc_stack_segment",
            "asm_exc_segment_not_present",
            "asm_exc_alignment_check",
        ],
    },
    for_callers: &[],
    page_faults: &[PAGE_FAULT],
    passes_halts: false,
    tick: 1,
};

const PAGE_FAULT: &str = "asm_exc_page_fault";

fn kind(bytes: &[u8]) -> Kind {
    match without_prefixes(bytes) {
        [0xc3] | [0xc2, ..] => Kind::Return,
        [0xf4] => Kind::Halt,
        // mwait
        [0x0f, 0x01, 0xc9] => Kind::Halt,
        // cli
        [0xfa] => Kind::Off,
        _ => Kind::Other,
    }
}

/// Legacy prefixes, and REX behind them.
fn without_prefixes(bytes: &[u8]) -> &[u8] {
    let is_prefix = |byte: &u8| {
        matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x66 | 0x67 | 0xf0 | 0xf2 | 0xf3)
    };
    let start = bytes.iter().position(|byte| !is_prefix(byte)).unwrap_or(bytes.len());
    match &bytes[start..] {
        [0x40..=0x4f, rest @ ..] => rest,
        rest => rest,
    }
}
