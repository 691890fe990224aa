//! `dd if=/dev/zero of=/dev/null bs=`: zeros read into a buffer and written from it.

use std::fs::File;
use std::io::{Read, Write};

use serde::{Deserialize, Serialize};
use units::Bytes;

use super::about::About;
use super::worker::{BuiltIn, Worker};

/// Reads /dev/zero into a buffer and writes that to /dev/null: `dd bs=`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Copy {
    /// Size of the buffer.
    pub bytes: Bytes,
}

impl BuiltIn for Copy {
    fn about(&self) -> About {
        let does = format!("reads {} from /dev/zero, writes them to /dev/null", self.bytes);
        About { memory: self.bytes, ..About::new("copy", "bytes copied", does) }
    }

    /// It goes piece by piece, and makes its buffer as it goes, so that it is seen to work where it gets the CPU for a
    /// moment only.
    fn run(&self, worker: &mut Worker<'_>) -> String {
        const PIECE: usize = 1 << 20;
        let mut buffer = Vec::new();
        let length = usize::try_from(self.bytes.0).unwrap_or(usize::MAX);
        if buffer.try_reserve_exact(length).is_err() {
            return format!("no buffer of {} within the ceiling of {}", self.bytes, worker.ceiling);
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
}

fn copying(error: &std::io::Error) -> String {
    format!("copying /dev/zero to /dev/null: {error}")
}
