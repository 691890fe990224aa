//! What no kernel takes part in: a set-up that changes these changes the processor's share or speed.

use std::hint::black_box;

use record::cost::Place;

use super::{ALONE, Operation, SOURCE_STRESS_NG};
use crate::work::{Kit, Result, Work};

const TURNS: u32 = 1_000;
/// Beyond the caches of the second level.
const BLOCK: usize = 16 << 20;

pub const OPERATIONS: &[Operation] = &[
    Operation {
        name: record::cost::CONTROL,
        title: "pure CPU loop",
        unit: "1000 shifts and exclusive ors",
        bytes: 0,
        places: &[Place::OneCpu, Place::SecondCpu],
        source: SOURCE_STRESS_NG,
        stands_for: "computing without system calls",
        begin: integer,
    },
    Operation {
        name: "cpu-float",
        title: "floating-point loop",
        unit: "1000 multiplications and additions",
        bytes: 0,
        places: ALONE,
        source: SOURCE_STRESS_NG,
        stands_for: "computing with real numbers",
        begin: float,
    },
    Operation {
        name: "memory-copy",
        title: "memory copy 16 MiB",
        unit: "16 MiB from one place to another",
        bytes: BLOCK as u64,
        places: ALONE,
        source: "STREAM, perf bench mem memcpy",
        stands_for: "memory bandwidth",
        begin: copy,
    },
];

fn integer(_: &Kit) -> Result<Box<dyn Work>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    Ok(Box::new(move || {
        for _ in 0..TURNS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        black_box(state);
        Ok(())
    }))
}

fn float(_: &Kit) -> Result<Box<dyn Work>> {
    let mut value = 1.0_f64;
    Ok(Box::new(move || {
        for _ in 0..TURNS {
            value = value * 0.999_999 + 0.000_001;
        }
        black_box(value);
        Ok(())
    }))
}

fn copy(_: &Kit) -> Result<Box<dyn Work>> {
    let (from, mut to) = (vec![1_u8; BLOCK], vec![2_u8; BLOCK]);
    Ok(Box::new(move || {
        to.copy_from_slice(black_box(&from));
        black_box(&to);
        Ok(())
    }))
}
