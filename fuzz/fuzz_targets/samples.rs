//! Any file is read to its end; what was written is read back from between foreign bytes.
//!
//! The first byte chooses: the rest as a file, the rest as frames behind a header, or the rest as samples that are
//! written and read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use record::samples::{Block, Header, Measured, Reader, Writer};
use record::{CStates, ClockName, time::UtcTime};
use units::Nanos;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_first() else { return };
    match choice % 3 {
        0 => drop(read(rest)),
        1 => drop(read(&[&write(1, &[]), rest].concat())),
        _ => round_trip(rest),
    }
});

/// Every byte behind the header is either part of a block or counted as damaged.
fn read(file: &[u8]) -> Option<Vec<Block>> {
    let mut reader = Reader::new(file).ok()?;
    let blocks: Vec<_> = reader.by_ref().map(|block| block.expect("a slice can be read")).collect();
    assert!(reader.damaged_bytes() <= file.len() as u64);
    Some(blocks)
}

fn round_trip(bytes: &[u8]) {
    let numbers: Vec<u64> =
        bytes.chunks_exact(8).map(|eight| u64::from_le_bytes(eight.try_into().unwrap_or_default())).collect();
    let Some((interval, numbers)) = numbers.split_first() else { return };
    let samples: Vec<_> = numbers.chunks_exact(2).map(|pair| (pair[0], Nanos(pair[1]))).collect();
    let blocks = read(&write(*interval, &samples)).expect("the header is whole");
    assert_eq!(blocks.into_iter().flat_map(|block| block.samples).collect::<Vec<_>>(), samples);
}

fn write(interval: u64, samples: &[(u64, Nanos)]) -> Vec<u8> {
    let scenario =
        Measured { load: "idle".into(), interval: Nanos(interval), cstates: CStates::AsIs, repeat: 1 };
    let header = Header {
        program: "fuzz".into(),
        started: UtcTime(0),
        clock: ClockName::Monotonic,
        cpus: vec![None],
        sweeps: vec![],
        scenarios: vec![scenario],
        lab: None,
    };
    let mut writer = Writer::new(Vec::new(), &header).expect("a vector can be written");
    writer.block(0, 0, samples).expect("the scenario is in the header");
    writer.get_ref().clone()
}
