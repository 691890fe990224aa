//! Stressors that are one loop: square roots, sync, memory, copy. Each returns only why it cannot go on.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};

use sys::mapping::Mapping;
use units::Bytes;

use super::{About, Worker};

/// How many small pieces of work go into one addition on the board.
const BATCH: u64 = 1024;

pub(super) fn about_square_roots() -> About {
    About::new("cpu", "square roots", "square roots of random numbers")
}

/// `stress -c`: square roots of random numbers.
pub(super) fn square_roots(worker: &mut Worker<'_>) -> String {
    worker.started();
    loop {
        for _ in 0..BATCH {
            black_box((worker.random.next_u64() as f64).sqrt());
        }
        worker.count(BATCH);
    }
}

/// One call may take longer than a slot, all of it in the kernel's hands.
pub(super) fn about_sync() -> About {
    About { waits: true, ..About::new("io", "syncs", "sync(2), one after the other") }
}

/// `stress -i`: sync(2).
pub(super) fn sync(worker: &mut Worker<'_>) -> String {
    worker.started();
    loop {
        rustix::fs::sync();
        worker.count(1);
    }
}

pub(super) fn about_map_and_touch(bytes: Bytes) -> About {
    let does = format!("maps {bytes}, touches a byte of every 4096, unmaps");
    About { memory: bytes, ..About::new("vm", "pages touched", does) }
}

/// `stress -m`: maps memory, touches a byte of every 4096, unmaps.
pub(super) fn map_and_touch(worker: &mut Worker<'_>, bytes: Bytes) -> String {
    const STRIDE: usize = 4096;
    let Ok(length) = usize::try_from(bytes.0) else { return format!("{bytes} do not fit into this machine") };
    loop {
        match Mapping::new(length) {
            Ok(mut mapping) => worker.count(mapping.touch(STRIDE)),
            Err(error) => {
                return format!("mapping memory within the ceiling of {}: {error}", ceiling(worker));
            }
        };
        worker.started();
    }
}

pub(super) fn about_copy(bytes: Bytes) -> About {
    let does = format!("reads {bytes} from /dev/zero, writes them to /dev/null");
    About { memory: bytes, ..About::new("copy", "bytes copied", does) }
}

/// `dd if=/dev/zero of=/dev/null bs=`: zeros read into the whole buffer and written from it, for ever. It goes piece by
/// piece, and makes its buffer as it goes, so that it is seen to work where it gets the CPU for a moment only.
pub(super) fn copy(worker: &mut Worker<'_>, bytes: Bytes) -> String {
    const PIECE: usize = 1 << 20;
    let mut buffer = Vec::new();
    let length = usize::try_from(bytes.0).unwrap_or(usize::MAX);
    if buffer.try_reserve_exact(length).is_err() {
        return format!("no buffer of {bytes} within the ceiling of {}", ceiling(worker));
    }
    let open = || Ok((File::open("/dev/zero")?, File::options().write(true).open("/dev/null")?));
    let (mut zero, mut null) = match open() {
        Ok(files) => files,
        Err(error) => return copying(&error),
    };
    worker.started();
    for place in (0..length).step_by(PIECE).cycle() {
        let end = length.min(place + PIECE);
        if buffer.len() < end {
            buffer.resize(end, 0_u8);
        }
        let copied = zero.read(&mut buffer[place..end]);
        match copied.and_then(|length| null.write(&buffer[place..place + length])) {
            Ok(copied) => worker.count(copied as u64),
            Err(error) => return copying(&error),
        };
    }
    "there is nothing to copy".to_owned()
}

fn copying(error: &std::io::Error) -> String {
    format!("copying /dev/zero to /dev/null: {error}")
}

fn ceiling(worker: &Worker<'_>) -> Bytes {
    worker.shop.ceiling(worker.seat.stressor)
}
