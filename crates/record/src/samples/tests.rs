//! The file as a whole: written, read, cut, damaged.

use std::io::Read;

use proptest::prelude::*;
use units::{Random, Seed};

use super::*;
use crate::mend as insta;

type Samples = Vec<(u64, Nanos)>;

fn header(intervals: &[u64]) -> Header {
    Header {
        program: "worstcase 0.1.0".into(),
        started: UtcTime(1_795_295_521),
        clock: ClockName::Monotonic,
        cpus: vec![Some(CpuId(2)), None],
        sweeps: vec![],
        scenarios: intervals
            .iter()
            .map(|&interval| Measured {
                load: "idle".into(),
                interval: Nanos(interval),
                cstates: crate::CStates::AsIs,
                repeat: 1,
            })
            .collect(),
        lab: None,
    }
}

fn write(intervals: &[u64], blocks: &[(u16, u16, Samples)]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header(intervals)).unwrap();
    for (scenario, series, samples) in blocks {
        writer.block(*scenario, *series, samples).unwrap();
    }
    writer.get_ref().clone()
}

fn read(bytes: &[u8]) -> (Option<Header>, Vec<Block>, u64) {
    let mut reader = Reader::new(bytes).unwrap();
    let blocks = reader.by_ref().map(|block| block.unwrap()).collect();
    (reader.header().cloned(), blocks, reader.damaged_bytes())
}

/// Three blocks of few samples, with a stall and a lost sample.
fn small_file() -> (Vec<u8>, Vec<Block>, usize) {
    let stalled = vec![(5, Nanos(8_000)), (6, Nanos(2_300_000)), (9, Nanos(7_000)), (11, Nanos(90))];
    let blocks = [
        (0, 0, stalled),
        (0, 1, vec![(0, Nanos(3_000))]),
        (1, 0, vec![(70_000, Nanos(1)), (70_001, Nanos(2))]),
    ];
    let bytes = write(&[1_000_000, 100_000], &blocks);
    let (_, read, damaged) = read(&bytes);
    assert_eq!((read.len(), damaged), (3, 0));
    let start = write(&[1_000_000, 100_000], &[]).len();
    (bytes, read, start)
}

#[test]
fn the_header_is_text() {
    let bytes = write(&[1_000_000], &[]);
    insta::assert_snapshot!(String::from_utf8(bytes).unwrap(), @r#"
    worstcase-samples 1 6db00ca6
    {"program":"worstcase 0.1.0","started":"2026-11-21T21:12:01Z","clock":"monotonic","cpus":[2,null],"scenarios":[{"load":"idle","interval":1000000,"cstates":"as-is","repeat":1}]}
    "#);
}

#[test]
fn a_file_cut_anywhere_gives_its_whole_blocks() {
    let (bytes, blocks, start) = small_file();
    for cut in 0..bytes.len() {
        let Ok(mut reader) = Reader::new(&bytes[..cut]) else {
            assert!(cut < 29, "{cut}");
            continue;
        };
        let read: Vec<_> = reader.by_ref().map(|block| block.unwrap()).collect();
        assert_eq!(read, blocks[..read.len()]);
        let whole = |count: usize| start + bytes_of(&blocks[..count]);
        assert_eq!(read.len(), (1..=3).take_while(|&count| whole(count) <= cut).count(), "{cut}");
        assert_eq!(reader.header().is_some(), cut >= start, "{cut}");
    }
}

fn bytes_of(blocks: &[Block]) -> usize {
    let mut bytes = Vec::new();
    for block in blocks {
        frame::encode(block.scenario, block.series, block.interval, &block.samples, &mut bytes);
    }
    bytes.len()
}

/// Every bit in turn: a wrong one costs at most the block that it is in, and never gives a wrong sample or header.
#[test]
fn a_flipped_bit_costs_one_block_at_most() {
    let (bytes, blocks, start) = small_file();
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let Ok(mut reader) = Reader::new(&damaged[..]) else {
            assert!(bit / 8 < 20, "{bit}");
            continue;
        };
        let read: Vec<_> = reader.by_ref().map(|block| block.unwrap()).collect();
        let lost = blocks.iter().filter(|block| !read.contains(block)).count();
        assert!(read.iter().all(|block| blocks.contains(block)), "{bit}");
        assert_eq!((lost, lost > 0), (blocks.len() - read.len(), bit / 8 >= start), "{bit}");
        assert!(lost <= 1 && reader.damaged_bytes() > 0, "{bit}");
        assert!(reader.header().is_none_or(|read| *read == header(&[1_000_000, 100_000])), "{bit}");
    }
}

#[test]
fn a_block_that_does_not_fit_a_frame_is_spread_over_several() {
    let samples: Samples = (0..50_000).map(|activation| (activation, Nanos(1_000_000))).collect();
    let (_, blocks, damaged) = read(&write(&[2_000_000], &[(0, 3, samples.clone())]));
    assert!(blocks.len() > 1 && damaged == 0);
    assert!(blocks.iter().all(|block| (block.scenario, block.series) == (0, 3)));
    assert_eq!(blocks.into_iter().flat_map(|block| block.samples).collect::<Samples>(), samples);
}

#[test]
fn what_is_not_ours_is_refused_with_the_reason() {
    assert!(matches!(Reader::new(&b"T: 0 (10497) P:98 I:1000 C:    100"[..]), Err(Error::NotSamples)));
    let later = Reader::new(&b"worstcase-samples 12 00000000\n{}\n"[..]).unwrap_err();
    assert_eq!(
        later.to_string(),
        "a samples file of version 12, and only version 1 is known: use the program that wrote it, or a later one"
    );
    let error = Writer::new(Vec::new(), &header(&[1])).unwrap().block(1, 0, &[(0, Nanos(0))]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

/// What a real-time thread sees: mostly 2 to 30 us, one in a hundred up to 2 ms, one second a block.
#[test]
fn a_sample_takes_two_to_three_bytes() {
    let mut random = Seed(1).stream("samples");
    let draw = |random: &mut Random| match random.below(100) {
        0 => random.below(2_000_000),
        _ => 2_000 + random.below(28_000),
    };
    let second = |second: u64, random: &mut Random| {
        let mut samples: Samples = Vec::new();
        while samples.last().is_none_or(|&(activation, _)| activation < (second + 1) * 1_000 - 1) {
            let activation = samples
                .last()
                .map_or(second * 1_000, |&(activation, late)| activation + 1 + late.0 / 1_000_000);
            samples.push((activation, Nanos(draw(random))));
        }
        (0, 0, samples)
    };
    let blocks: Vec<_> = (0..60).map(|number| second(number, &mut random)).collect();
    let samples: usize = blocks.iter().map(|block| block.2.len()).sum();
    let per_sample = write(&[1_000_000], &blocks).len() as f64 / samples as f64;
    assert!((2.0..3.5).contains(&per_sample), "{per_sample} bytes a sample");
    assert_eq!(read(&write(&[1_000_000], &blocks)).1.len(), 60);
}

/// Gives a byte at a time, and at the end an error.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let (&byte, rest) = self.0.split_first().ok_or(io::Error::other("gone"))?;
        (to[0], self.0) = (byte, rest);
        Ok(1)
    }
}

#[test]
fn a_file_that_cannot_be_read_on_gives_what_came_before_and_the_error() {
    let (bytes, blocks, _) = small_file();
    let mut reader = Reader::new(Trickle(&bytes)).unwrap();
    assert_eq!(reader.by_ref().take(3).map(|block| block.unwrap()).collect::<Vec<_>>(), blocks);
    assert_eq!(reader.next().unwrap().unwrap_err().to_string(), "gone");
    assert!(reader.next().is_none());
}

fn any_blocks() -> impl Strategy<Value = Vec<(u16, u16, Samples)>> {
    let sample = (any::<u64>(), any::<u64>()).prop_map(|(activation, latency)| (activation, Nanos(latency)));
    let in_phase = (any::<u32>(), proptest::collection::vec(0..5_000_000_u64, 1..40));
    let in_phase = in_phase.prop_map(|(first, latencies)| {
        let mut next = u64::from(first);
        let mut wake = |latency: u64| {
            let activation = next;
            next += 1 + latency / 100_000;
            (activation, Nanos(latency))
        };
        latencies.into_iter().map(&mut wake).collect::<Samples>()
    });
    let samples = prop_oneof![proptest::collection::vec(sample, 1..20), in_phase];
    proptest::collection::vec((0..2_u16, any::<u16>(), samples), 0..6)
}

proptest! {
    #[test]
    fn what_is_written_is_read(blocks in any_blocks()) {
        let (read_header, read, damaged) = read(&write(&[1_000_000, 100_000], &blocks));
        prop_assert_eq!(read_header, Some(header(&[1_000_000, 100_000])));
        prop_assert_eq!(damaged, 0);
        let read: Vec<_> = read.into_iter().map(|block| (block.scenario, block.series, block.samples)).collect();
        prop_assert_eq!(read, blocks);
    }

    #[test]
    fn a_foreign_stretch_between_blocks_is_skipped_and_counted(
        before in any_blocks(), after in any_blocks(), stretch in proptest::collection::vec(any::<u8>(), 1..200)
    ) {
        let start = write(&[1_000_000, 100_000], &[]).len();
        let mut bytes = write(&[1_000_000, 100_000], &before);
        bytes.extend_from_slice(&stretch);
        bytes.extend_from_slice(&write(&[1_000_000, 100_000], &after)[start..]);
        let (_, read, damaged) = read(&bytes);
        prop_assert_eq!(damaged, stretch.len() as u64);
        let read: Vec<_> = read.into_iter().map(|block| (block.scenario, block.series, block.samples)).collect();
        prop_assert_eq!(read, [before, after].concat());
    }

    #[test]
    fn any_bytes_are_answered_without_a_panic(bytes: Vec<u8>) {
        let bytes = [MAGIC.as_bytes(), b"00000000\n", &bytes].concat();
        prop_assert_eq!(read(&bytes).1, []);
    }
}
