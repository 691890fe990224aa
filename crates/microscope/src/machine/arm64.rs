//! arm64.

use super::{Callers, Faults, Kind, Machine, Vectors};
use crate::symbols::Symbols;

/// arm64.
pub static ARM64: Machine = Machine {
    kind,
    callers: Callers::Links {
        vectors: &VECTORS,
        callers_of_handlers: &["handle_percpu_devid_irq", "__handle_irq_event_percpu"],
        beginning: "ret_from_fork",
        switch: "cpu_switch_to",
    },
    // Calls of programs begin as exceptions do (el0t_64_sync), and are none of these.
    entries: &["el1h_64_irq", "el1h_64_fiq", "el1h_64_error", "el0t_64_irq", "el0t_64_fiq", "el0t_64_error"],
    no_entry: Some("_handler"),
    prefix: "",
    handlers: &[],
    handler: None,
    timer: "arch_timer_handler_virt",
    faults: Faults::Functions {
        vectors: &VECTORS,
        functions: &["el1_abort", "el0_da", "el0_sp", "el1_pc", "el0_pc"],
        others: &[
            "el0_svc",
            "el0_ia",
            "el0_fpsimd_acc",
            "el0_sve_acc",
            "el0_undef",
            "el1_undef",
            "el0_dbg",
            "el1_dbg",
            "el0_sys",
        ],
    },
    for_callers: &["arch_local_irq_"],
    page_faults: &["el1_abort", "el0_da", "el0_ia"],
    passes_halts: true,
    // QEMU's counter has 62.5 MHz.
    tick: 16,
};

/// The kernel's table, that of programs on CPUs that guard it against speculation, and that with page tables of its own: of the
/// kernel with the stack of programs and with its own, of programs of 64 and of 32 bits.
static VECTORS: Vectors = Vectors {
    tables: &["vectors", "__bp_harden_el1_vectors", "tramp_vectors"],
    step: 0x80,
    entries: [
        "el1t_64_sync",
        "el1t_64_irq",
        "el1t_64_fiq",
        "el1t_64_error",
        "el1h_64_sync",
        "el1h_64_irq",
        "el1h_64_fiq",
        "el1h_64_error",
        "el0t_64_sync",
        "el0t_64_irq",
        "el0t_64_fiq",
        "el0t_64_error",
        "el0t_32_sync",
        "el0t_32_irq",
        "el0t_32_fiq",
        "el0t_32_error",
    ],
    of_kernel: (5, 7),
};

/// Where interrupts of an arm64 kernel begin. They are taken at once where they are let: no instruction runs before.
pub fn entries_on_arm64(symbols: &Symbols) -> Vec<(u64, u64)> {
    let (first, end) = VECTORS.of_kernel;
    let tables = VECTORS.tables.iter().filter_map(|table| symbols.address(table));
    tables.map(|table| (table + first * VECTORS.step, table + end * VECTORS.step)).collect()
}

fn kind(bytes: &[u8]) -> Kind {
    let Ok(bytes) = <[u8; 4]>::try_from(bytes) else { return Kind::Other };
    match u32::from_le_bytes(bytes) {
        // ret and its forms with authentication
        word if word & 0xffff_f000 == 0xd65f_0000 => Kind::Return,
        // bl
        word if word & 0xfc00_0000 == 0x9400_0000 => Kind::Call,
        // blr and its forms
        word if word & 0xfeff_f000 == 0xd63f_0000 => Kind::Call,
        // eret and its forms
        word if word & 0xffff_f000 == 0xd69f_0000 => Kind::Exit,
        // wfi
        0xd503_207f => Kind::Halt,
        // msr daifset, #imm, with I
        word if word & 0xffff_f2ff == 0xd503_42df => Kind::Off,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_returns_and_what_changes_interrupts_are_distinguished() {
        let of = |word: u32| kind(&word.to_le_bytes());
        assert_eq!((of(0xd65f_03c0), of(0xd65f_0bff)), (Kind::Return, Kind::Return), "ret, retaa");
        assert_eq!((of(0x97ff_ffff), of(0xd63f_0020)), (Kind::Call, Kind::Call), "bl, blr x1");
        assert_eq!((of(0xd69f_03e0), of(0xd503_207f)), (Kind::Exit, Kind::Halt), "eret, wfi");
        assert_eq!((of(0xd503_42df), of(0xd503_43df)), (Kind::Off, Kind::Off), "msr daifset, #2 and #3");
        assert_eq!(of(0xd503_41df), Kind::Other, "msr daifset, #1: fast interrupts");
        assert_eq!(of(0xd503_43ff), Kind::Other, "msr daifclr, #3");
        assert_eq!((of(0xd61f_0200), of(0x1400_0001)), (Kind::Other, Kind::Other), "br x16, b");
        assert_eq!(kind(&[0xc0, 0x03]), Kind::Other, "half of an instruction");
    }
}
