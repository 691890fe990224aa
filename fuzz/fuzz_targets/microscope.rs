//! Any bytes are answered as the stream of the plugin, and pieces and causes of what is read sum to the latency,
//! calls of sections to their length.
#![no_main]

use libfuzzer_sys::fuzz_target;
use microscope::{Stream, Symbols, account, places, section};

const SYMBOLS: &str = "\
ffffffff81000000 T outer\nffffffff81000100 T inner\nffffffff81000200 T __schedule\nffffffff81000300 T try_to_wake_up\n\
ffffffff81000400 T asm_sysvec_apic_timer_interrupt\nffffffff81000500 T asm_exc_page_fault\n";

fuzz_target!(|bytes: &[u8]| {
    let Ok(symbols) = Symbols::parse(SYMBOLS) else { return };
    if let Ok(stream) = Stream::parse(bytes) {
        for window in &stream.windows {
            let account = account(&stream, window, &symbols);
            let pieces: u64 = account.pieces.iter().map(|piece| piece.length.0).sum();
            let causes: u64 = account.causes.iter().map(|cause| cause.length.0).sum();
            assert_eq!(
                (pieces, causes, account.calls.total),
                (account.latency.0, account.latency.0, account.latency.0)
            );
        }
        for section in places(&stream, &symbols).iter().filter_map(|place| section(&stream, place, &symbols))
        {
            assert_eq!(section.calls.total, section.length.0);
        }
    }
    // Most bytes are no stream: they may be a list of symbols.
    let _ = Symbols::parse(&String::from_utf8_lossy(bytes));
});
